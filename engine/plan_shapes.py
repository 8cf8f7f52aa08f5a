"""What a plan's YAML may look like beyond what its types say: conditions that the parser holds to, told to the schema.

Each stands beside the validator that it repeats, and the tests hold both against the same plans. Touches no data.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import WithJsonSchema

_TRUE_OR_FALSE = ("true", "false", "yes", "no", "on", "off", "t", "f", "y", "n", "1", "0")
# [Yy][Ee][Ss]: editors' regular expressions have no flag for case within them
_ANY_CASE = "|".join("".join(f"[{c.upper()}{c}]" if c.isalpha() else c for c in word) for word in _TRUE_OR_FALSE)

Flag = Annotated[
    bool,
    WithJsonSchema(
        {"anyOf": [{"type": "boolean"}, {"enum": [0, 1]}, {"type": "string", "pattern": f"^({_ANY_CASE})$"}]}
    ),
]
"""True or false, and the words that YAML once read so: today it gives `yes` as a text."""

GivenText = Annotated[str | None, WithJsonSchema({"type": "string"})]
"""A text; None only where the key isn't there."""

Shape = dict[str, Any]
_ONE = {"type": "string", "minLength": 1}

CONDITIONS: Shape = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "minProperties": 1,
            # In words of ASCII, since Python and JavaScript don't agree on what else is a letter: never stricter than
            # the parser. The first is a letter or digit.
            "propertyNames": {"maxLength": 60, "pattern": r"^[^\x00-/:-@\[-^`{-\x7f][^\x00-\x1f!-,/:-@\[-^`{-\x7f]*$"},
            "additionalProperties": {"type": "string", "pattern": r"\S"},
        },
        {"type": "null"},
    ]
}
"""`where`: one condition, or several by name."""

ONE_ORIGIN: Shape = {
    "oneOf": [{"required": ["from"]}, {"required": ["sql"]}, {"required": ["default"]}],
    "allOf": [
        {"not": {"required": ["default", "map"], "properties": {"map": _ONE}}},
        {"not": {"required": ["default", "ref"], "properties": {"ref": _ONE}}},
        {"not": {"required": ["map", "ref"], "properties": {"map": _ONE, "ref": _ONE}}},
    ],
}
"""A field: exactly one of from, sql, default; a map or a ref, and neither beside a default."""

OLDEST_OR_NEWEST: Shape = {
    "oneOf": [
        {"required": [each], "properties": {each: {"type": "string"}}} for each in ("oldest", "newest")
    ]
}  # fmt: skip
"""By a column's value: exactly one of oldest, newest."""


def _holds(key: str) -> Shape:
    return {"required": [key], "properties": {key: {"not": {"enum": [[], {}]}}}}


SAME_OR_BY: Shape = {
    "anyOf": [_holds("same"), _holds("by")],
    "allOf": [
        {"if": _holds("by"), "then": _holds("block")},
        {"if": _holds("block"), "then": _holds("by")},
    ],
}  # fmt: skip
"""A merge: same, or by and block."""
