"""What an event is, and what its fields may be: plain JSON, made so when the event is built."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import BeforeValidator, ConfigDict, Field

from workspace.plain import as_confidence, as_key, as_signal, as_text, plain, without_password

Phase = Literal[
    "survey", "match", "preview", "stage", "load", "references", "verify", "done", "undo", "retry", "sync", "rehearse", "pilot",
]  # fmt: skip
Side = Literal["source", "target"]
Author = Literal["rule", "experience", "choose", "propose", "person", "file"]
Rung = Literal["rule", "experience", "choose", "propose", "ask"]

PHASES: tuple[str, ...] = get_args(Phase)
RUNGS: tuple[str, ...] = get_args(Rung)

Text = Annotated[str, BeforeValidator(as_text)]
MaskedDsn = Annotated[str, BeforeValidator(without_password)]
Json = Annotated[Any, BeforeValidator(plain)]
Facts = Annotated[dict[str, Any], BeforeValidator(plain)]
FactsList = Annotated[list[dict[str, Any]], BeforeValidator(plain)]
TextList = Annotated[list[str], BeforeValidator(plain)]
Key = Annotated[tuple[str, ...] | None, BeforeValidator(as_key)]
Count = Annotated[int, Field(ge=0)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
SignalName = Annotated[str, BeforeValidator(as_signal)]
Confidence = Annotated[float, BeforeValidator(as_confidence), Field(ge=0, le=1, allow_inf_nan=False)]


class Event:
    """What every event is. `type` is its name in the log and never changes once released."""

    type: ClassVar[str]


CONFIG = ConfigDict(extra="forbid", hide_input_in_errors=True, defer_build=True)
"""Of each event: an error must not show what it refused."""
