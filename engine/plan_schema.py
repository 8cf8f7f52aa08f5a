"""The JSON Schema (2020-12) of a plan, made from the models that parse one, for editors to complete and check it by.

It says what a plan looks like, not whether it fits two systems (`engine.check`). What it refuses, the parser refuses.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import CoreSchema

from engine.plan import Plan
from engine.plan_texts import TEXTS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_LINK = re.compile(r"\[([^\]]*)\]\(([^)]*)\)")
_EMPTY: tuple[object, ...] = (None, "", [], {})


class _Untitled(GenerateJsonSchema):
    """Without the titles that pydantic makes of names: an editor shows the key itself."""

    schema_dialect = DIALECT

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def generate(self, schema: CoreSchema, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        return {"$schema": self.schema_dialect, **super().generate(schema, mode)}


@cache
def plan_schema() -> dict[str, Any]:
    """The schema as JSON values; not to be changed by its reader. KeyError for a key that `plan_texts` has no text for."""
    schema = Plan.model_json_schema(by_alias=True, schema_generator=_Untitled)
    for model in dict.fromkeys(model for model, _ in TEXTS):
        part = schema if model is Plan else schema["$defs"][model.__name__]
        _describe(part, model)
    schema["title"] = "A plan of Packhorse: what goes where"
    return schema


def schema_text() -> str:
    """The schema as the text of a file."""
    return json.dumps(plan_schema(), indent=2, ensure_ascii=False) + "\n"


def _describe(part: dict[str, Any], model: type[BaseModel]) -> None:
    part.pop("title", None)
    part["description"] = " ".join((model.__doc__ or "").split("\n\n")[0].split())
    for key, about in part["properties"].items():
        about["description"] = _plain(TEXTS[model, key])
        if about.get("default", ...) in _EMPTY:  # an editor would write it into the file
            del about["default"]


def _plain(text: str) -> str:
    """A text of the manual without its links."""
    return _LINK.sub(lambda found: f"{found[1]} ({_page(found[2])})", text).replace(
        "see below", "see docs/reference/plan.md"
    )


def _page(link: str) -> str:
    return "docs/" + link.removeprefix("../") if link.startswith("../") else f"docs/reference/{link}"
