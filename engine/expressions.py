"""Expressions of a plan: SQL scalars over one source row, checked against an allow-list and compiled so
that nothing raises: what can't be computed is NULL and a reason.

The compiler walks sqlglot's tree itself. A node that isn't listed here is refused with its position; no
name reaches DuckDB that isn't a column of the entity, an allowed function or a domain function. It must
never let a subquery, a table, an aggregate or a file function through.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from engine.functions import FUNCTIONS
from engine.functions.protocol import DomainFunction
from engine.functions.register import FAILED, udf_name
from engine.query import identifier, literal
from engine.syntax import parse_expression, too_deep
from workspace.errors import ExpressionError

NUMBER = "DECIMAL(28,9)"
"""What text becomes beside a number: exact for 19 digits before the point and 9 after it."""

_CAST_TYPES = {
    "TEXT", "VARCHAR", "CHAR", "INT", "BIGINT", "SMALLINT", "INT128", "DECIMAL", "DOUBLE", "FLOAT", "BOOLEAN",
    "DATE", "TIME", "TIMESTAMP", "TIMESTAMPNTZ", "DATETIME", "TIMESTAMPTZ", "UUID",
}  # fmt: skip

# Text in, text out; arguments become VARCHAR, NULL in gives NULL out (concat, concat_ws and coalesce excepted).
_TEXT_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Lower: "VARCHAR", exp.Upper: "VARCHAR", exp.Trim: "VARCHAR", exp.Length: "BIGINT", exp.Substring: "VARCHAR",
    exp.Replace: "VARCHAR", exp.Left: "VARCHAR", exp.Right: "VARCHAR", exp.Concat: "VARCHAR", exp.ConcatWs: "VARCHAR",
    exp.RegexpReplace: "VARCHAR", exp.RegexpExtract: "VARCHAR", exp.RegexpLike: "BOOLEAN", exp.StrPosition: "BIGINT",
    exp.SplitPart: "VARCHAR", exp.Split: "VARCHAR[]", exp.Reverse: "VARCHAR", exp.StartsWith: "BOOLEAN",
    exp.EndsWith: "BOOLEAN", exp.Contains: "BOOLEAN", exp.Pad: "VARCHAR", exp.MD5: "VARCHAR",
    exp.Chr: "VARCHAR",
}  # fmt: skip
_WHOLE = ("SMALLINT", "INT", "INTEGER", "BIGINT", "HUGEINT", "INT128")
_COUNTS = ("start", "length", "position", "part_index", "occurrence", "group")
_MOST_CHARACTERS = 1_000_000
_NUMBER_FUNCTIONS: dict[type[exp.Expr], str] = {
    exp.Round: "round", exp.Abs: "abs", exp.Ceil: "ceil", exp.Floor: "floor", exp.Sign: "sign",
}  # fmt: skip
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.GT: ">", exp.GTE: ">=", exp.LT: "<", exp.LTE: "<=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM", exp.NullSafeNEQ: "IS DISTINCT FROM",
}  # fmt: skip
_ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%",
}  # fmt: skip

ALLOWED_NAMES: tuple[str, ...] = (
    "abs", "ceil", "chr", "coalesce", "concat", "concat_ws", "contains", "ends_with", "floor", "greatest", "if", "least",
    "left", "length", "lower", "lpad", "md5", "nullif", "regexp_extract", "regexp_matches", "regexp_replace",
    "replace", "reverse", "right", "round", "rpad", "sign", "split_part", "starts_with", "string_split", "strpos",
    "strptime", "substring", "trim", "ltrim", "rtrim", "upper",
)  # fmt: skip
"""The SQL functions that an expression may call, as documentation and error messages list them."""


@dataclass(frozen=True)
class Piece:
    """A compiled part: DuckDB SQL for its value and for its reason (None: it cannot fail), and its type.

    `type` is a DuckDB type, or NUMBER for numeric values of whatever width, or NULL.
    """

    sql: str
    reason: str | None
    type: str


@dataclass
class Hoists:
    """Domain-function calls pulled out of expressions, so that each is made once a row and no more.

    `levels[i]` maps a call's SQL to its column name; a call at level i uses columns of levels below.
    """

    levels: list[dict[str, str]] = field(default_factory=list)
    count: int = 0

    def add(self, level: int, sql: str) -> str:
        """The column name of that call, the same for the same SQL."""
        while len(self.levels) <= level:
            self.levels.append({})
        if sql not in self.levels[level]:
            self.levels[level][sql] = f"_ph_f{self.count}"
            self.count += 1
        return self.levels[level][sql]


class Compiler:
    """Compiles the expressions of one entity over its columns (name -> VARCHAR or BLOB)."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.columns = dict(columns)
        self.hoists = Hoists()
        self._folded: dict[str, list[str]] = {}
        for name in columns:
            self._folded.setdefault(name.lower(), []).append(name)

    def compile(self, text: str, where: str) -> Piece:
        """The piece for an expression. ExpressionError names what is not allowed and its position."""
        self._text, self._where = text, where
        try:
            piece, _level = self._node(parse_expression(text, where))
        except RecursionError:
            raise too_deep(where) from None
        return piece

    # -- the walk ---------------------------------------------------------------------------------

    def _node(self, node: exp.Expr | None) -> tuple[Piece, int]:
        if node is None:
            raise ExpressionError(
                "a function lacks an argument",
                where=self._where,
                advice="docs/reference/functions.md shows each function",
            )
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            return handler(self, node)
        if type(node) in _COMPARISONS:
            return self._comparison(node)
        if type(node) in _ARITHMETIC:
            return self._arithmetic(node)
        if type(node) in _TEXT_FUNCTIONS:
            return self._text_function(node)
        if type(node) in _NUMBER_FUNCTIONS:
            return self._number_function(node)
        raise self._refusal(node)

    def _refusal(self, node: exp.Expr) -> ExpressionError:
        if isinstance(node, (exp.Query, exp.Subquery, exp.Exists)):
            what, advice = "a subquery is not allowed", "put joins and subqueries in the entity's `from:`"
        elif isinstance(node, (exp.AggFunc, exp.Window)):
            what, advice = (
                "an aggregate or window is not allowed",
                "an expression sees one row; aggregate in `from:`",
            )
        elif isinstance(node, exp.Anonymous):
            what, advice = f"unknown function {node.name}()", _function_advice(node.name)
        elif isinstance(node, exp.Func):
            what, advice = (
                f"the function {node.sql_name().lower()}() is not allowed",
                _function_advice(node.sql_name()),
            )
        elif isinstance(node, exp.Literal):
            what, advice = f"{node.name} is not a number that a column holds", "text stands in single quotes"
        else:
            what, advice = (
                f"{type(node).__name__.lower()} is not allowed",
                "only scalar expressions over the row are",
            )
        return ExpressionError(what, where=f"{self._where}{self._position(node)}", advice=advice)

    def _position(self, node: exp.Expr) -> str:
        for part in node.walk():
            if "start" in part.meta:
                return f", position {part.meta['start'] + 1}"
        name = node.name or (node.sql_name() if isinstance(node, exp.Func) else "")
        found = re.search(re.escape(name), self._text, re.IGNORECASE) if name else None
        return f", position {found.start() + 1}" if found else ""

    def _column(self, node: exp.Column) -> tuple[Piece, int]:
        if node.table or not isinstance(node.this, exp.Identifier):
            raise ExpressionError(
                f"{node.sql('duckdb')}: a column is named without its table",
                where=f"{self._where}{self._position(node)}",
                advice="the expression sees the columns of the entity's `from:`",
            )
        name = node.name
        if name not in self.columns:
            folded = self._folded.get(name.lower(), [])
            if len(folded) != 1:
                raise ExpressionError(
                    f"unknown column {name!r}",
                    where=f"{self._where}{self._position(node)}",
                    advice=f"the source has: {', '.join(list(self.columns)[:40])}",
                )
            name = folded[0]
        return Piece(identifier(name), None, self.columns[name]), 0

    def _literal(self, node: exp.Literal) -> tuple[Piece, int]:
        if node.is_string:
            return Piece(literal(node.this), None, "VARCHAR"), 0
        try:
            number = float(node.this)
        except ValueError:  # `1E`: sqlglot takes it for a number
            number = float("inf")
        if abs(number) == float("inf"):
            raise self._refusal(node)
        return Piece(node.sql("duckdb"), None, "NUMBER"), 0

    def _null(self, node: exp.Null) -> tuple[Piece, int]:
        return Piece("NULL", None, "NULL"), 0

    def _boolean(self, node: exp.Boolean) -> tuple[Piece, int]:
        return Piece("true" if node.this else "false", None, "BOOLEAN"), 0

    def _paren(self, node: exp.Paren) -> tuple[Piece, int]:
        inner, level = self._node(node.this)
        return Piece(f"({inner.sql})", inner.reason, inner.type), level

    def _negative(self, node: exp.Neg) -> tuple[Piece, int]:
        inner, level = self._number(node.this)
        return self._in_range(f"(-{inner.sql})", inner), level

    def _logic(self, node: exp.Connector) -> tuple[Piece, int]:
        (a, la), (b, lb) = self._truth(node.this), self._truth(node.expression)
        word = "AND" if isinstance(node, exp.And) else "OR"
        return Piece(f"({a.sql} {word} {b.sql})", _first(a.reason, b.reason), "BOOLEAN"), max(la, lb)

    def _not(self, node: exp.Not) -> tuple[Piece, int]:
        inner, level = self._truth(node.this)
        return Piece(f"(NOT {inner.sql})", inner.reason, "BOOLEAN"), level

    def _truth(self, node: exp.Expr) -> tuple[Piece, int]:
        """The node as a condition; a bare text column is read as the boolean it spells."""
        piece, level = self._node(node)
        if piece.type in ("BOOLEAN", "NULL"):
            return piece, level
        self._no_binary(node, piece)
        return self._tried(piece, "BOOLEAN", "cast boolean"), level

    def _is(self, node: exp.Is) -> tuple[Piece, int]:
        piece, level = self._node(node.this)
        other = node.expression
        if isinstance(other, exp.Null):
            return Piece(f"({piece.sql} IS NULL)", None, "BOOLEAN"), level
        if isinstance(other, exp.Boolean):
            piece, level = self._truth(node.this)
            return Piece(f"({piece.sql} IS {'TRUE' if other.this else 'FALSE'})", piece.reason, "BOOLEAN"), level
        raise self._refusal(node)

    def _comparison(self, node: exp.Expr) -> tuple[Piece, int]:
        (a, la), (b, lb) = self._alike(node.this, node.args["expression"])
        operator = _COMPARISONS[type(node)]
        return Piece(f"({a.sql} {operator} {b.sql})", _first(a.reason, b.reason), "BOOLEAN"), max(la, lb)

    def _alike(self, left: exp.Expr, right: exp.Expr) -> tuple[tuple[Piece, int], tuple[Piece, int]]:
        """Both sides in one type: beside a number, text is read as a number; beside a date, as a date."""
        (a, la), (b, lb) = self._node(left), self._node(right)
        if a.type == b.type or "NULL" in (a.type, b.type):
            return (a, la), (b, lb)
        self._no_binary(left, a)
        self._no_binary(right, b)
        for wanted in ("NUMBER", "BIGINT", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMPTZ", "UUID"):
            if wanted in (a.type, b.type):
                target = NUMBER if wanted in ("NUMBER", "BIGINT") else wanted
                if a.type == "VARCHAR":
                    a = self._tried(a, target, f"cast {_word(target)}")
                if b.type == "VARCHAR":
                    b = self._tried(b, target, f"cast {_word(target)}")
                break
        return (a, la), (b, lb)

    def _arithmetic(self, node: exp.Expr) -> tuple[Piece, int]:
        (a, la), (b, lb) = self._number(node.this), self._number(node.args["expression"])
        sql = f"{a.sql} {_ARITHMETIC[type(node)]} {b.sql}"
        if isinstance(node, (exp.Div, exp.IntDiv)):
            # by zero there is no number, not an endless one
            sql = f"{a.sql} / nullif({b.sql}, 0)"
        if isinstance(node, exp.IntDiv):
            sql = f"CAST(trunc({sql}) AS DECIMAL(38,0))"
        return self._in_range(sql, a, b), max(la, lb)

    def _in_range(self, sql: str, *pieces: Piece) -> Piece:
        """A calculation over numbers: where it can't be done, NULL and a reason."""
        given = " AND ".join(f"{p.sql} IS NOT NULL" for p in pieces)
        own = f"CASE WHEN {given} AND TRY({sql}) IS NULL THEN 'range number' END"
        return Piece(f"TRY({sql})", _first(*(p.reason for p in pieces), own), "NUMBER")

    def _no_binary(self, node: exp.Expr, piece: Piece) -> None:
        """Refuses binary and lists beside anything else: DuckDB would read text as one, and fail on some row."""
        if piece.type == "BLOB" or piece.type.endswith("[]"):
            raise ExpressionError(
                f"{node.sql('duckdb')} is {'binary' if piece.type == 'BLOB' else 'a list'}, not text",
                where=f"{self._where}{self._position(node)}",
                advice="binary columns and lists go to the target as they are",
            )

    def _number(self, node: exp.Expr) -> tuple[Piece, int]:
        piece, level = self._node(node)
        self._no_binary(node, piece)
        if piece.type == "VARCHAR":
            piece = self._tried(piece, NUMBER, "cast number")
        return piece, level

    def _tried(self, piece: Piece, type_: str, reason: str) -> Piece:
        """The piece cast to a type; text that isn't one is NULL with a reason, blank text is NULL without."""
        text = f"nullif(trim(CAST({piece.sql} AS VARCHAR)), '')"
        sql = f"TRY_CAST({text} AS {type_})"
        first = ""
        if type_.startswith(("DATE", "TIMESTAMP")) and piece.type == "VARCHAR":
            # There is no year 0; the zero date is the source's way to say "none".
            sql = f"CASE WHEN NOT starts_with({text}, '0000') THEN {sql} END"
            first = f"WHEN starts_with({text}, '0000-00-00') THEN 'soft zero date' "
        elif type_ in _WHOLE and piece.type == "VARCHAR":
            # A cast rounds a number, as SQL has it; text with a fraction isn't a whole number.
            sql = f"CASE WHEN regexp_full_match({text}, '[+-]?[0-9]+([.]0*)?') THEN {sql} END"
        elif type_ in ("DOUBLE", "REAL", "FLOAT"):
            first = f"WHEN isinf({sql}) THEN 'range number' "
        own = f"CASE {first}WHEN {text} IS NOT NULL AND {sql} IS NULL THEN {literal(reason)} END"
        return Piece(sql, _first(piece.reason, own), "NUMBER" if type_ == NUMBER else type_)

    def _cast(self, node: exp.Cast) -> tuple[Piece, int]:
        kind = node.to.this.name if isinstance(node.to.this, exp.DataType.Type) else str(node.to.this)
        if kind not in _CAST_TYPES:
            raise ExpressionError(
                f"a cast to {node.to.sql('duckdb').lower()} is not allowed",
                where=f"{self._where}{self._position(node)}",
                advice="cast to varchar, bigint, decimal(p,s), double, boolean, date, time, timestamp, timestamptz or uuid",
            )
        piece, level = self._node(node.this)
        type_ = node.to.sql("duckdb").upper()
        if kind in ("TEXT", "VARCHAR", "CHAR"):
            return Piece(f"CAST({piece.sql} AS VARCHAR)", piece.reason, "VARCHAR"), level
        self._no_binary(node.this, piece)
        numeric = kind in ("INT", "BIGINT", "SMALLINT", "INT128", "DECIMAL", "DOUBLE", "FLOAT")
        tried = self._tried(piece, type_, f"cast {_word(type_)}")
        return Piece(tried.sql, tried.reason, "NUMBER" if numeric else type_), level

    def _in(self, node: exp.In) -> tuple[Piece, int]:
        if node.args.get("query") or not node.expressions:
            raise self._refusal(node.args.get("query") or node)
        parts: list[Piece] = []
        subject: Piece | None = None
        level = 0
        for item in node.expressions:
            (a, la), (b, lb) = self._alike(node.this, item)
            if subject is None or a.type != "VARCHAR":
                subject = a
            parts.append(b)
            level = max(level, la, lb)
        assert subject is not None
        if subject.type != "VARCHAR":
            parts = [self._tried(p, NUMBER, "cast number") if p.type == "VARCHAR" else p for p in parts]
        choices = ", ".join(p.sql for p in parts)
        return Piece(
            f"({subject.sql} IN ({choices}))", _first(subject.reason, *(p.reason for p in parts)), "BOOLEAN"
        ), level

    def _between(self, node: exp.Between) -> tuple[Piece, int]:
        both = exp.And(
            this=exp.GTE(this=node.this, expression=node.args["low"]),
            expression=exp.LTE(this=node.this.copy(), expression=node.args["high"]),
        )
        return self._node(both)

    def _like(self, node: exp.Expr) -> tuple[Piece, int]:
        (a, la), (b, lb) = self._as_text(node.this), self._as_text(node.args["expression"])
        word = "ILIKE" if isinstance(node, exp.ILike) else "LIKE"
        return Piece(f"({a.sql} {word} {b.sql})", _first(a.reason, b.reason), "BOOLEAN"), max(la, lb)

    def _as_text(self, node: exp.Expr) -> tuple[Piece, int]:
        piece, level = self._node(node)
        if piece.type in ("VARCHAR", "NULL"):
            return piece, level
        self._no_binary(node, piece)
        return Piece(f"CAST({piece.sql} AS VARCHAR)", piece.reason, "VARCHAR"), level

    def _case(self, node: exp.Case) -> tuple[Piece, int]:
        branches: list[tuple[Piece, Piece]] = []
        level = 0
        for branch in node.args["ifs"]:
            test = exp.EQ(this=node.this.copy(), expression=branch.this) if node.this else branch.this
            condition, a = self._truth(test)
            value, b = self._node(branch.args["true"])
            branches.append((condition, value))
            level = max(level, a, b)
        default, c = self._node(node.args["default"]) if node.args.get("default") else (Piece("NULL", None, "NULL"), 0)
        values = [value for _, value in branches] + [default]
        type_ = self._common(values)
        sql = (
            "CASE "
            + " ".join(f"WHEN {c.sql} THEN {_to(v, type_)}" for c, v in branches)
            + f" ELSE {_to(default, type_)} END"
        )
        reason = None
        if any(v.reason for v in values) or any(c.reason for c, _ in branches):
            reason = "CASE " + " ".join(
                f"WHEN {c.reason} IS NOT NULL THEN {c.reason} WHEN {c.sql} THEN {v.reason or 'NULL'}" if c.reason
                else f"WHEN {c.sql} THEN {v.reason or 'NULL'}"
                for c, v in branches
            ) + f" ELSE {default.reason or 'NULL'} END"  # fmt: skip
        return Piece(sql, reason, type_), max(level, c)

    def _if(self, node: exp.If) -> tuple[Piece, int]:
        return self._case(
            exp.Case(ifs=[exp.If(this=node.this, true=node.args["true"])], default=node.args.get("false"))
        )

    def _coalesce(self, node: exp.Coalesce) -> tuple[Piece, int]:
        compiled = [self._node(part) for part in [node.this, *node.expressions]]
        pieces = [piece for piece, _ in compiled]
        type_ = self._common(pieces)
        sql = f"coalesce({', '.join(_to(p, type_) for p in pieces)})"
        inner = _first(*(p.reason for p in pieces))
        reason = f"CASE WHEN {sql} IS NULL THEN {inner} END" if inner else None
        return Piece(sql, reason, type_), max(level for _, level in compiled)

    def _nullif(self, node: exp.Nullif) -> tuple[Piece, int]:
        (a, la), (b, lb) = self._alike(node.this, node.args["expression"])
        return Piece(f"nullif({a.sql}, {b.sql})", a.reason, a.type), max(la, lb)

    def _extreme(self, node: exp.Expr) -> tuple[Piece, int]:
        compiled = [self._node(part) for part in [node.this, *node.expressions]]
        if any(piece.type in ("NUMBER", "BIGINT") for piece, _ in compiled):
            compiled = [self._number(part) for part in [node.this, *node.expressions]]
        pieces = [piece for piece, _ in compiled]
        type_ = self._common(pieces)
        name = "greatest" if isinstance(node, exp.Greatest) else "least"
        sql = f"{name}({', '.join(_to(p, type_) for p in pieces)})"
        return Piece(sql, _first(*(p.reason for p in pieces)), type_), max(level for _, level in compiled)

    def _common(self, pieces: list[Piece]) -> str:
        types = {p.type for p in pieces if p.type != "NULL"}
        if len(types) == 1:
            return types.pop()
        if not types:
            return "NULL"
        if types == {"NUMBER", "BIGINT"}:
            return "NUMBER"
        if "BLOB" in types or any(t.endswith("[]") for t in types):
            raise ExpressionError(
                "the branches mix text with binary or a list",
                where=self._where,
                advice="make all branches one type",
            )
        return "VARCHAR"

    def _pipes(self, node: exp.DPipe) -> tuple[Piece, int]:
        (a, la), (b, lb) = self._as_text(node.this), self._as_text(node.expression)
        return Piece(f"({a.sql} || {b.sql})", _first(a.reason, b.reason), "VARCHAR"), max(la, lb)

    def _text_function(self, node: exp.Expr) -> tuple[Piece, int]:
        """Rebuilds the call with each argument compiled: sqlglot writes the name, we write the arguments."""
        copy = node.copy()
        level = 0
        pieces: list[Piece] = []
        counted = False
        for key, value in list(copy.args.items()):
            parts = value if isinstance(value, list) else [value]
            replaced: list[object] = []
            for part in parts:
                if not isinstance(part, exp.Expr):
                    replaced.append(part)
                elif key == "modifiers" or (isinstance(node, (exp.Pad, exp.Chr)) and key.startswith("expression")):
                    replaced.append(self._constant(part, text=key == "modifiers"))
                elif isinstance(part, exp.Literal) and not part.is_string:
                    replaced.append(self._constant(part, text=False))
                else:
                    is_count = key in _COUNTS or (isinstance(node, (exp.Left, exp.Right)) and key == "expression")
                    piece, at = self._count(part) if is_count else self._as_text(part)
                    counted = counted or is_count
                    level = max(level, at)
                    pieces.append(piece)
                    replaced.append(exp.Var(this=piece.sql))
            copy.set(key, replaced if isinstance(value, list) else replaced[0])
        if isinstance(node, (exp.RegexpReplace, exp.RegexpExtract, exp.RegexpLike)):
            self._check_pattern(node)
        sql, type_ = copy.sql("duckdb", comments=False), _TEXT_FUNCTIONS[type(node)]
        if counted:
            ranged = self._in_range(sql, *pieces)
            return Piece(ranged.sql, ranged.reason, type_), level
        return Piece(sql, _first(*(piece.reason for piece in pieces)), type_), level

    def _constant(self, node: exp.Expr, *, text: bool) -> exp.Expr:
        """A literal that is the same for each row; a number of characters is at most _MOST_CHARACTERS."""
        if isinstance(node, exp.Literal) and node.is_string == text and (text or float(node.this) <= _MOST_CHARACTERS):
            return node
        raise ExpressionError(
            f"{node.sql('duckdb', comments=False)} has to be a {'text' if text else 'number'} written out"
            + ("" if text else f", at most {_MOST_CHARACTERS:,}"),
            where=f"{self._where}{self._position(node)}",
            advice="so that it is checked once, before any row moves",
        )

    def _count(self, node: exp.Expr) -> tuple[Piece, int]:
        """A number of characters or parts that hangs on the row."""
        piece, level = self._number(node)
        sql = f"TRY_CAST({piece.sql} AS BIGINT)"
        own = f"CASE WHEN {piece.sql} IS NOT NULL AND {sql} IS NULL THEN 'range number' END"
        return Piece(sql, _first(piece.reason, own), "BIGINT"), level

    def _check_pattern(self, node: exp.Expr) -> None:
        pattern = node.args["expression"]
        if not (isinstance(pattern, exp.Literal) and pattern.is_string):
            raise ExpressionError(
                "a regular expression must be a literal", where=f"{self._where}{self._position(node)}",
                advice="so that it is checked once, before any row moves",
            )  # fmt: skip

    def _number_function(self, node: exp.Expr) -> tuple[Piece, int]:
        inner, level = self._number(node.this)
        name = _NUMBER_FUNCTIONS[type(node)]
        digits = node.args.get("decimals")
        if digits is not None and not (isinstance(digits, exp.Literal) and not digits.is_string):
            raise self._refusal(digits)
        shown = f", {digits.sql()}" if digits is not None else ""
        return self._in_range(f"{name}({inner.sql}{shown})", inner), level

    def _strptime(self, node: exp.StrToTime) -> tuple[Piece, int]:
        piece, level = self._as_text(node.this)
        layout = node.args["format"]
        if not (isinstance(layout, exp.Literal) and layout.is_string):
            raise self._refusal(layout)
        text = f"nullif(trim({piece.sql}), '')"
        sql = f"try_strptime({text}, {literal(layout.this)})"
        own = f"CASE WHEN {text} IS NOT NULL AND {sql} IS NULL THEN 'cast timestamp' END"
        return Piece(sql, _first(piece.reason, own), "TIMESTAMP"), level

    def _anonymous(self, node: exp.Anonymous) -> tuple[Piece, int]:
        function = FUNCTIONS.get(node.name.lower())
        if function is None:
            raise self._refusal(node)
        given = len(node.expressions)
        if not len(function.parameters) - function.optional <= given <= len(function.parameters):
            raise ExpressionError(
                f"{function.name}() takes {function.signature}, not {given} arguments",
                where=f"{self._where}{self._position(node)}",
                advice="docs/reference/functions.md shows each function",
            )
        return self._domain(function, node.expressions)

    def _domain(self, function: DomainFunction, arguments: list[exp.Expr]) -> tuple[Piece, int]:
        compiled = [self._as_text(argument) for argument in arguments]
        level = max((at for _, at in compiled), default=0)
        given = [f"CAST({p.sql} AS VARCHAR)" for p, _ in compiled]
        inner = _first(*(p.reason for p, _ in compiled))
        call = f"{udf_name(function.name, len(given))}({', '.join(given)})"
        if function.unchanged_when:
            # It gives a text for each text, so that the value alone tells whether it failed: no struct has to be made
            # of the many that it leaves as they are.
            same = function.unchanged_when.format(given[0])
            column = self.hoists.add(level, f"CASE WHEN NOT ({same}) THEN {call}.v ELSE {given[0]} END")
            failed = literal(f"function {function.name}: {FAILED.code}")
            own = f"CASE WHEN {column} IS NULL AND {given[0]} IS NOT NULL THEN {failed} END"
            return Piece(column, _first(inner, own), function.returns), level + 1
        column = self.hoists.add(level, call)
        own = f"CASE WHEN {column}.r IS NOT NULL THEN CASE WHEN {column}.soft THEN 'soft ' ELSE 'function ' END || {literal(function.name + ': ')} || {column}.r END"
        value = (
            f"{column}.v"
            if function.returns in ("VARCHAR", "VARCHAR[]", "BOOLEAN")
            else f"TRY_CAST({column}.v AS {function.returns})"
        )
        type_ = "NUMBER" if function.returns.startswith("DECIMAL") else function.returns
        return Piece(value, _first(inner, own), type_), level + 1


def _first(*reasons: str | None) -> str | None:
    given = [reason for reason in reasons if reason]
    if not given:
        return None
    return given[0] if len(given) == 1 else f"coalesce({', '.join(given)})"


def _to(piece: Piece, type_: str) -> str:
    return (
        f"CAST({piece.sql} AS VARCHAR)" if type_ == "VARCHAR" and piece.type not in ("VARCHAR", "NULL") else piece.sql
    )


def _word(type_: str) -> str:
    """The reason's word for a DuckDB type: DECIMAL(28,9) -> number, TIMESTAMPTZ -> timestamp."""
    name = type_.split("(")[0].lower()
    return {"decimal": "number", "double": "number", "float": "number", "bigint": "integer", "int": "integer",
            "smallint": "integer", "int128": "integer", "hugeint": "integer", "timestamptz": "timestamp"}.get(name, name)  # fmt: skip


def _function_advice(name: str) -> str:
    import difflib

    known = [*ALLOWED_NAMES, *FUNCTIONS]
    near = difflib.get_close_matches(name.lower(), known, n=3)
    return f"did you mean {' or '.join(near)}?" if near else "docs/reference/functions.md lists the functions"


_Handler = Callable[[Compiler, exp.Expr], tuple[Piece, int]]
_HANDLERS: dict[type[exp.Expr], _Handler] = {
    exp.Column: Compiler._column,  # type: ignore[dict-item]
    exp.Literal: Compiler._literal,  # type: ignore[dict-item]
    exp.Null: Compiler._null,  # type: ignore[dict-item]
    exp.Boolean: Compiler._boolean,  # type: ignore[dict-item]
    exp.Paren: Compiler._paren,  # type: ignore[dict-item]
    exp.Neg: Compiler._negative,  # type: ignore[dict-item]
    exp.And: Compiler._logic,  # type: ignore[dict-item]
    exp.Or: Compiler._logic,  # type: ignore[dict-item]
    exp.Not: Compiler._not,  # type: ignore[dict-item]
    exp.Is: Compiler._is,  # type: ignore[dict-item]
    exp.In: Compiler._in,  # type: ignore[dict-item]
    exp.Between: Compiler._between,  # type: ignore[dict-item]
    exp.Like: Compiler._like,
    exp.ILike: Compiler._like,
    exp.Case: Compiler._case,  # type: ignore[dict-item]
    exp.If: Compiler._if,  # type: ignore[dict-item]
    exp.Coalesce: Compiler._coalesce,  # type: ignore[dict-item]
    exp.Nullif: Compiler._nullif,  # type: ignore[dict-item]
    exp.Greatest: Compiler._extreme,
    exp.Least: Compiler._extreme,
    exp.DPipe: Compiler._pipes,  # type: ignore[dict-item]
    exp.Cast: Compiler._cast,  # type: ignore[dict-item]
    exp.TryCast: Compiler._cast,  # type: ignore[dict-item]
    exp.StrToTime: Compiler._strptime,  # type: ignore[dict-item]
    exp.Anonymous: Compiler._anonymous,  # type: ignore[dict-item]
}
