"""Models for a person: which there are, what was pulled, how fast one is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from rich.console import Console

from cli.views.text import one_line


class Model(Protocol):
    """What is shown of a model that is here."""

    @property
    def name(self) -> str:
        """What `--model` knows it by."""

    @property
    def path(self) -> Path:
        """Where it lies."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def sha256(self) -> str:
        """What is known; empty for nothing."""

    @property
    def verified(self) -> bool:
        """Whether the file was found to have it."""


class ToPull(Protocol):
    """What is shown of a model that can be pulled."""

    @property
    def name(self) -> str:
        """What `model pull` knows it by."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def about(self) -> str:
        """What it is for."""


def show_list(
    console: Console, kept: Sequence[Model], default: Path, why: str, missing: Sequence[ToPull], folder: Path
) -> None:
    """A line a model, the default marked; then what can be pulled."""
    width = max([*(len(each.name) for each in kept), *(len(each.name) for each in missing)], default=0)
    for each in kept:
        mark = "*" if each.path == default else " "
        state = f"{each.sha256[:12]} {'verified' if each.verified else 'NOT VERIFIED'}" if each.sha256 else "not known"
        console.print(f"{mark} {one_line(each.name):<{width}}  {_size(each.size):>9}  SHA-256 {state}")
        console.print(f"  {'':<{width}}  {one_line(str(each.path))}")
    for pull in missing:
        console.print(f"  {pull.name:<{width}}  {_size(pull.size):>9}  not here: migrate model pull {pull.name}")
    console.print(f"\n* decides where --model says nothing: {one_line(why)}")
    console.print(f"pulled models lie in {one_line(str(folder))}")


def show_pulled(out: Console, notes: Console, kept: Model, default: Path) -> None:
    """The path, for a script to take; on stderr what it is."""
    notes.print(f"{one_line(kept.name)}: {_size(kept.size)}, SHA-256 {kept.sha256} verified")
    if kept.path == default:
        notes.print("it decides from now on where --model says nothing")
    out.print(str(kept.path))


class Speeds(Protocol):
    """What is shown of a measurement; see `agent.models.measure`."""

    @property
    def name(self) -> str:
        """The model."""

    @property
    def load_seconds(self) -> float:
        """Until it could be asked."""

    @property
    def memory_mib(self) -> float:
        """Resident afterwards."""

    @property
    def prompt_rate(self) -> float:
        """Tokens read a second."""

    @property
    def answer_rate(self) -> float:
        """Tokens written a second."""

    @property
    def decisions_rate(self) -> float:
        """Choices a second."""

    @property
    def decision_seconds(self) -> float:
        """A choice."""

    @property
    def cached(self) -> float:
        """Share of its prompt out of the cache."""

    @property
    def form(self) -> str:
        """How it is asked."""

    @property
    def threads(self) -> int:
        """Threads at most."""

    @property
    def gpu(self) -> str:
        """Layers on a GPU."""


def show_speeds(console: Console, found: Speeds) -> None:
    """A line a figure."""
    for name, text in (
        ("model", one_line(found.name)),
        ("load", f"{found.load_seconds:.1f} s, {found.memory_mib:,.0f} MiB resident afterwards"),
        ("prompt", f"{found.prompt_rate:,.1f} tokens/s"),
        ("answer", f"{found.answer_rate:,.1f} tokens/s"),
        ("decisions", f"{found.decisions_rate:,.2f}/s, {found.decision_seconds:.2f} s each, asked {found.form}"),
        ("cache", f"{found.cached:.0%} of a decision's prompt"),
        ("threads", f"{found.threads}, layers on a GPU: {found.gpu}"),
    ):
        console.print(f"{name:<10}  {text}")


def _size(size: int) -> str:
    return f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
