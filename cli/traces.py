"""`--otel`: the job as OpenTelemetry traces: a span for the command, in it phases, entities, batches and model calls.

Made from the job's log, as it is recorded, so that traces and log can't differ; names of tables and counts stand in
them, no record values. Where they go is said by the variables of OpenTelemetry itself. Nothing of it is loaded unless
it was asked for.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context

from cli.log_lines import level, shown
from workspace.errors import PackhorseError
from workspace.events import (
    BatchCommitted,
    BatchRetried,
    BatchUndone,
    DecisionMade,
    EntityCompleted,
    Event,
    PhaseStarted,
    QuestionAsked,
)
from workspace.log import Entry
from workspace.paths import JobPaths

_PATIENCE = 5  # seconds at the end, for what hasn't been sent


class Traces:
    """A listener that makes spans. `processor` takes the place of the OTLP exporter."""

    def __init__(self, verb: str, processor: SpanProcessor | None = None) -> None:
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # who can't be reached is no news for each batch
        self._provider = TracerProvider(resource=Resource.create({"service.name": _service()}), shutdown_on_exit=False)
        self._provider.add_span_processor(processor or _exporting())
        self._tracer = self._provider.get_tracer("packhorse")
        self._root = self._tracer.start_span(f"migrate {verb}")
        self._phase: Span | None = None
        self._entities: dict[str, Span] = {}

    def __call__(self, paths: JobPaths, entries: Sequence[Entry]) -> None:
        """Makes spans of the entries."""
        self._root.set_attribute("packhorse.job", paths.job)
        for entry in entries:
            self._take(entry.event, entry.at)

    def end(self, code: int, error: BaseException | None) -> None:
        """Ends what is open; `error` is told by its code alone."""
        now = datetime.now(UTC)
        self._end_phase(now)
        self._root.set_attribute("packhorse.exit_code", code)
        if error is not None:
            kind = type(error) if isinstance(error, PackhorseError) else PackhorseError
            self._root.set_attribute("packhorse.error", kind.code)
        self._root.set_status(Status(StatusCode.ERROR if code in (1, 2) or error is not None else StatusCode.OK))
        self._root.end()

    def close(self) -> None:
        """Sends what hasn't been sent, for some seconds."""
        with contextlib.suppress(Exception):
            self._provider.force_flush(_PATIENCE * 1000)
            self._provider.shutdown()

    def _take(self, event: Event, at: datetime) -> None:
        match event:
            case PhaseStarted():
                self._end_phase(at)
                self._phase = self._span(event.phase, self._root, at)
            case DecisionMade() | QuestionAsked() if event.calls:
                seconds = getattr(event, "seconds", 0.0)
                self._whole(f"model {event.kind}", self._phase or self._root, event, at, seconds)
            case EntityCompleted():
                entity = self._entity(event.entity, at)
                del self._entities[event.entity]
                entity.end(_nanoseconds(at))
            case BatchCommitted() | BatchRetried() | BatchUndone():
                start = at - timedelta(seconds=event.seconds)
                self._whole(f"batch {event.batch}", self._entity(event.entity, start), event, at, event.seconds)
            case _ if level(event) != "info":
                entity_name = getattr(event, "entity", "")
                holder = self._entities.get(entity_name) or self._phase or self._root
                holder.add_event(event.type, _attributes(event), _nanoseconds(at))

    def _entity(self, name: str, at: datetime) -> Span:
        if name not in self._entities:
            self._entities[name] = self._span(name, self._phase or self._root, at)
            self._entities[name].set_attribute("packhorse.entity", name)
        return self._entities[name]

    def _end_phase(self, at: datetime) -> None:
        for entity in self._entities.values():
            entity.end(_nanoseconds(at))
        self._entities.clear()
        if self._phase is not None:
            self._phase.end(_nanoseconds(at))
            self._phase = None

    def _span(self, name: str, parent: Span, at: datetime) -> Span:
        return self._tracer.start_span(name, context=set_span_in_context(parent), start_time=_nanoseconds(at))

    def _whole(self, name: str, parent: Span, event: Event, at: datetime, seconds: float) -> None:
        """A span of something that is over."""
        span = self._span(name, parent, at - timedelta(seconds=seconds))
        span.set_attributes(_attributes(event))
        span.end(_nanoseconds(at))


def _exporting() -> SpanProcessor:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return BatchSpanProcessor(OTLPSpanExporter(timeout=_PATIENCE))


def _service() -> str:
    return os.environ.get("OTEL_SERVICE_NAME") or "packhorse"


def _attributes(event: Event) -> dict[str, Any]:
    return {f"packhorse.{name}": value for name, value in shown(event).items()}


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1000
