"""The bare model: a chat of thoughts, actions and observations, without workspace, ladder, candidates or grammar of actions.
`python -m bench.react train dev` has the embedded model match the columns of each scenario so, and scores what it mapped.

It is told the tables of both systems, and may ask for a table's columns, a column's values, map a column, and say that it is done. All that
was said is the next prompt, and what no longer fits is dropped from its beginning: what an agent is without a harness.
Nobody is asked, so that each wrong mapping is a silent error.
"""

from __future__ import annotations

import argparse
import json
import re
import sqlite3
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import sqlglot
from sqlglot import exp

from agent.models.embedded import embedded_model_path
from agent.models.llamacpp import LlamaCpp
from agent.models.open import open_model
from agent.models.protocol import Model, Price, Prompt
from bench.plan_score import Schema, base_table, carries, reads
from bench.scenarios import Scenario, scenarios
from bench.scenarios.maker import Maker
from workspace.errors import ModelError

MOST_TURNS = 120
_CONTEXT = 8192  # tokens, as many as the embedded model was trained on
_KEPT = 16_000  # characters of what was said; what came before is dropped
_STUCK = 4  # the same action in a row
_LINE = 'root ::= [^\\n]{1,160} "\\n"'
_TASK = """You move customer records from an old database into a new one. Find for each column of the new database the column of the old one that its values come from.
Write one action a line, and read the observation that follows it. Actions:
old tables
new tables
old columns TABLE
new columns TABLE
values TABLE.COLUMN
map NEWTABLE.NEWCOLUMN = OLDTABLE.OLDCOLUMN
done

Another move began so:
> old tables
staff, visits
> new tables
employees, calls
> old columns staff
nr, sname, fname
> new columns employees
id, last_name, first_name
> values staff.sname
Smith; Jones; Brown
> map employees.last_name = staff.sname
mapped
> map employees.first_name = staff.fname
mapped
Here begins yours."""


@dataclass(frozen=True)
class Chatted:
    """What a chat came to, in fields of the gold plan: mapped as it should be, mapped otherwise or where it has nothing, left
    out. `turns` are actions, of which `useless` ones were none or named what isn't there."""

    scenario: str
    right: int
    wrong: int
    left_out: int
    turns: int
    useless: int
    ended: str
    tokens: int
    seconds: float


class Chat:
    """One scenario's chat. `old` holds the values of the old system's columns by table, `new` the new one's columns."""

    def __init__(self, old: Mapping[str, Mapping[str, Sequence[str]]], new: Schema) -> None:
        self.mapped: dict[tuple[str, str], tuple[str, str]] = {}
        self.turns = self.useless = 0
        self.price = Price()
        self._old, self._new = old, new
        self._said = "".join(f"\n> {each}\n{self.observe(each)}" for each in ("old tables", "new tables"))

    def run(self, model: Model) -> str:
        """Goes on until the model is done, turns in circles, or has had its turns; which of these."""
        last, times = "", 0
        while self.turns < MOST_TURNS:
            prompt = Prompt(_TASK, f"{self._said[-_KEPT:]}\nYour next action, one line:")
            try:
                text = model.write(prompt, _LINE, 100)
            except ModelError as error:
                return f"failed: {error.what}"
            self.turns += 1
            self.price += text.price
            action = text.text.strip().lstrip("›>-*• ")
            times = times + 1 if action == last else 1
            last = action
            if action == "done":
                return "done"
            if times == _STUCK:
                return "in circles"
            self._said += f"\n> {action}\n{self.observe(action)}"
        return "out of turns"

    def observe(self, action: str) -> str:
        """What an action does, in words."""
        if action in ("old tables", "new tables"):
            return ", ".join(self._old if action.startswith("old") else self._new)
        for word, side in (("old columns ", self._old), ("new columns ", self._new)):
            if action.startswith(word) and action.removeprefix(word) in side:
                return ", ".join(side[action.removeprefix(word)])
        if action.startswith("values ") and (place := _place(action.removeprefix("values "), self._old)):
            return "; ".join(self._old[place[0]][place[1]][:3])
        if told := re.fullmatch(r"map (.+?) ?(?:=|<-) ?(.+)", action):
            to, origin = _place(told[1], self._new), _place(told[2], self._old)
            if to and origin:
                self.mapped[to] = origin
                return "mapped"
        self.useless += 1
        return "no such action, table or column"


def chat(scenario: Scenario, model: Model, folder: Path) -> Chatted:
    """Has the model chat about a scenario, which is made in an empty folder."""
    maker = Maker(scenario, folder)
    scenario.records().make(maker, **scenario.options)
    maker.close()
    old = _old(folder / "source.db")
    held = Chat(old, _new(scenario))
    ended = held.run(model)
    wanted = _wanted(scenario, {table: list(columns) for table, columns in old.items()})
    right = sum(_is_right(wanted.get(to, []), origin) for to, origin in held.mapped.items())
    return Chatted(
        scenario.name, right, len(held.mapped) - right, len(wanted.keys() - held.mapped.keys()), held.turns,
        held.useless, ended, held.price.prompt_tokens + held.price.answer_tokens, round(held.price.seconds, 1),
    )  # fmt: skip


def _wanted(scenario: Scenario, schema: Schema) -> dict[tuple[str, str], list[tuple[frozenset[str], frozenset[str]]]]:
    """By column of the new system what the gold plan reads for it, and what its value is made of."""
    found: dict[tuple[str, str], list[tuple[frozenset[str], frozenset[str]]]] = {}
    for entity in scenario.gold().entities.values():
        for column, field in entity.fields.items():
            if not field.constant and base_table(entity):
                both = reads(field.expression, entity, schema), carries(field.expression, entity, schema)
                found.setdefault((entity.to, column), []).append(both)
    return found


def _is_right(wanted: Sequence[tuple[frozenset[str], frozenset[str]]], origin: tuple[str, str]) -> bool:
    """A chat names one column: one of those that a value is made of will do."""
    return any(".".join(origin) in (made or read) for read, made in wanted)


def _old(file: Path) -> dict[str, dict[str, list[str]]]:
    connection = sqlite3.connect(file)
    found: dict[str, dict[str, list[str]]] = {}
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        rows = connection.execute('SELECT * FROM "' + table.replace('"', '""') + '" LIMIT 50')
        names = [column[0] for column in rows.description]
        values = rows.fetchall()
        found[table] = {
            name: [str(row[n]) for row in values if row[n] not in (None, "")] for n, name in enumerate(names)
        }
    connection.close()
    return found


def _new(scenario: Scenario) -> dict[str, list[str]]:
    made = sqlglot.parse(scenario.file("target.sql").read_text(encoding="utf-8"), dialect="postgres")
    return {
        each.this.this.name: [c.name for c in each.find_all(exp.ColumnDef)]
        for each in made
        if isinstance(each, exp.Create) and isinstance(each.this, exp.Schema)
    }


def _place(text: str, side: Mapping[str, Sequence[str] | Mapping[str, Sequence[str]]]) -> tuple[str, str] | None:
    """The table and the column that a text names, or None; either may hold dots and blanks."""
    found = ((table, column) for table in side for column in side[table] if f"{table}.{column}" == text.strip())
    return next(found, None)


def main() -> int:
    """Chats about each scenario and prints what came of it."""
    parser = argparse.ArgumentParser(prog="python -m bench.react", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)  # fmt: skip
    parser.add_argument("scenarios", nargs="+", help="scenarios, families or splits")
    parser.add_argument("--model", help="as for `migrate run`; the embedded model without")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    model: Model | None
    model = open_model(arguments.model)[0] if arguments.model else LlamaCpp(embedded_model_path(), context=_CONTEXT)
    if model is None:
        parser.error("a chat wants a model")
    found = []
    for scenario in scenarios(*arguments.scenarios):
        with tempfile.TemporaryDirectory(prefix="packhorse-react-") as folder:
            found.append(chat(scenario, model, Path(folder)))
        print(found[-1].scenario, file=sys.stderr)
    model.close()
    if arguments.json:
        print(json.dumps([asdict(each) for each in found], indent=1))
        return 0
    print("| scenario | right | wrong in silence | left out | actions | of them useless | ended | tokens | s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for each in found:
        print(f"| {' | '.join(str(value) for value in asdict(each).values())} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
