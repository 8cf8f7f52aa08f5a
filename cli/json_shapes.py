"""What `--json` prints, verb by verb, and the JSON Schema of it that is published.

A key that is here stays; more may come, so the published schema lets further keys through. Tests hold what each verb
prints against the same shapes without that leave.

A shape is a word (`text`, `count`, `number`, `yes`, `any`; with `?` it may be null), a list of one shape, or an object;
`*` stands for any key.
"""

from __future__ import annotations

import json
from typing import Any

_WORDS = {
    "text": {"type": "string"},
    "count": {"type": "integer"},
    "number": {"type": "number"},
    "yes": {"type": "boolean"},
}


def _of(words: str, what: str) -> dict[str, Any]:
    """An object of the same kind of value for several keys."""
    return dict.fromkeys(words.split(), what)


_COUNTS = _of("read inserted updated unchanged merged excluded quarantined loaded missing", "count")
_VERIFIED = {
    **_of("entity source target", "text"), **_of("read loaded merged excluded quarantined dropped compared", "count"),
    "counted": "count?", "matched": "count?", "problems": ["text"], "notes": ["text"], "excluded_by": {"*": "count"},
}  # fmt: skip
_ENTITY = {
    "stage": {**_of("rows parts bytes", "count"), **_of("completed snapshot", "yes"), "expected": "count?"},
    **_of("batches second_pass references_filled recovered", "count"), "counts": _COUNTS, "excluded_by": {"*": "count"},
    "matched": "count?", "seconds": "number", "plan_versions": {"*": "count"}, "completed": "yes",
    "failures": {"*": {**_of("code field example", "text"), **_of("count open dropped", "count")}},
    "quarantine": _of("open dropped", "count"), "retried": _of("inserted updated unchanged merged excluded", "count"),
    "undone": _of("batches deleted restored refused", "count"),
}  # fmt: skip
_PROGRESS = {
    **_of("started_at last_at outcome paused_at purged_at", "text?"), **_of("phase interrupted", "text"), "phases": {"*": "text"},
    "plan_version": "count", "entities": {"*": _ENTITY}, "counts": _COUNTS, "open_questions": {"*": "any"},
    "questions_answered": "count", "held_entities": ["text"],
    "decisions": {"*": {**_of("decisions calls prompt_tokens answer_tokens", "count"), "seconds": "number"}},
    "attempts": {"*": {"count": "count", "error": "text"}}, "attend_next": ["text"], "verified": "yes?",
    "verification": "any", "exit_code": "count?", "taken_back": "yes",
}  # fmt: skip
_STATUS = {
    **_of("job state source target", "text"), "running": "text?", "position": "count", "progress": _PROGRESS, "money": "number?",
}  # fmt: skip
_ENDED = {**_STATUS, "exit_code": "count"}
_PREVIEW = {
    "job": "text", "plan_version": "count", "held": {"*": ["text"]}, "questions": "count",
    "entities": [{
        **_of("entity source target", "text"),
        **_of("read load unchanged merged excluded quarantined collisions_total duplicates_total", "count"), "matched": "count?",
        "excluded_by": {"*": "count"}, "changes": "any", "collisions": ["any"], "duplicates": ["any"], "unmapped": {"*": "text"},
        "clusters": [{**_of("signature code field example_key", "text"), "count": "count"}], "unaccounted": ["text"],
        "deferred": ["text"], "rows": [{**_of("kind key reason", "text"), "before": {"*": "text?"}, "after": "any"}],
    }],
}  # fmt: skip

SHAPES: dict[str, Any] = {
    "run": _ENDED,
    "run --dry-run": _PREVIEW,
    "resume": _ENDED,
    "preview": _PREVIEW,
    "jobs": {"jobs": [{
        **_of("job state", "text"), **_of("source? target? phase?", "text"), **_of("running? started_at? last_at? error", "text?"),
        **_of("read? loaded? quarantined? questions?", "count"), "exit_code?": "count?",
    }]},
    "status": _STATUS,
    "inspect": {"job": "text", "position": "count", **_of("belief experience", "any"), "progress": _PROGRESS},
    "inspect --log": {"job": "text", "events": [{"position": "count", "at": "text", "type": "text", "*": "any"}]},
    "answer": {"job": "text", "answered": "count", "questions": ["any"]},
    "verify": {"job": "text", "ok": "yes", "entities": [_VERIFIED]},
    "undo": {
        "job": "text", "batch": "text?", **_of("deleted restored refused exit_code", "count"), "kept": "any",
        "kept_rows": [{"entity": "text", "key": "any", "id": "any", "reason": "text"}],
    },
    "sync": {
        "job": "text", "generation": "count", "done": "yes", "since": "text?", "lag_seconds": "number?",
        "entities": [{
            "entity": "text", **_of("counted gone", "count?"), "snapshot": "yes", "watermark": "text?",
            **_of("seen new changed again inserted updated unchanged excluded quarantined freed kept asked deleted", "count"),
            **_of("marked stayed references", "count"),
        }],
        "skipped": {"*": "text"}, "asked": "count", "kept_rows": ["any"], "exit_code": "count",
    },
    "doctor": {"ok": "yes", "checks": [_of("name state found advice", "text")]},
    "explain": {**_of("code meaning remedy", "text"), "exit_code": "count"},
    "plan check": {"ok": "yes", "plan": "text", "entities": [{
        **_of("entity from to", "text"), **_of("key fields references deferred unaccounted", "any"),
    }]},
    "plan explain": {
        **_of("job entity column", "text"), "plan_version": "count", **_of("says value_map failed", "any"), "chapters": ["any"],
    },
    "plan diff": {"same": "yes", **_of("appeared changed went", "any")},
    "quarantine list": {"job": "text", "clusters": [{
        **_of("entity signature code field", "text"), **_of("count open dropped", "count"), "example": "any",
    }]},
    "quarantine show": {"job": "text", "rows": [{
        **_of("entity field code signature detail status", "text"), "row": "count", **_of("key raw", "any"),
    }]},
    "quarantine retry": {
        "job": "text", **_of("plan_version open dropped", "count"), "changed": "any", "entities": [{
            "entity": "text", **_of("driven inserted updated unchanged merged excluded stay references", "count"),
        }],
    },
    "quarantine drop": {"job": "text", **_of("rows open dropped", "count")},
    "dsn list": {"dsns": [{**_of("name system host database user ssh", "text"), "port": "count?"}]},
    "model list": {
        "folder": "text", "default": _of("path why", "text"),
        "models": [{**_of("name path sha256 origin", "text?"), "size": "count", **_of("verified default", "yes?")}],
        "to_pull": [{**_of("name repository revision file sha256 about", "text"), "size": "count"}],
    },
    "experience list": {"file": "text", "lessons": "count", "shown": ["any"]},
}  # fmt: skip
"""By the verb's words, and the option that changes what is printed."""


def schema(shape: Any, *, more: bool = True) -> dict[str, Any]:
    """The shape as JSON Schema; without `more`, no key is let through that isn't there."""
    if isinstance(shape, list):
        return {"type": "array", "items": schema(shape[0], more=more)}
    if isinstance(shape, dict):
        known = {key.removesuffix("?"): schema(each, more=more) for key, each in shape.items() if key != "*"}
        needed = [key for key in shape if key != "*" and not key.endswith("?")]
        others: Any = schema(shape["*"], more=more) if "*" in shape else more
        return {"type": "object", "properties": known, "required": needed, "additionalProperties": others}
    if shape == "any":
        return {}
    kind = dict(_WORDS[shape.removesuffix("?")])
    return {"type": [kind["type"], "null"]} if shape.endswith("?") else kind


def schemas_text() -> str:
    """The schemas of all verbs as one file; a verb's is `#/$defs/` and its words."""
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What migrate prints with --json",
        "$defs": {verb: schema(shape) for verb, shape in SHAPES.items()},
    }
    return json.dumps(document, indent=1) + "\n"
