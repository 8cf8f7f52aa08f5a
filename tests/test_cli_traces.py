"""`--otel`: spans as OpenTelemetry's own SDK makes them, received over OTLP by a real listener; nothing loaded unless asked."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from cli.traces import Traces
from tests.cli_runner import migrate
from tests.plain_job import SECRET, write_systems
from workspace.errors import JobFailedError
from workspace.events import BatchCommitted, DecisionMade, EntityCompleted, PhaseStarted, QuarantineSeen
from workspace.listening import listening
from workspace.log import Workspace
from workspace.paths import JobPaths


@pytest.fixture
def collector() -> Iterator[tuple[str, list[bytes]]]:
    """The address of a collector, and what it was sent."""
    bodies: list[bytes] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            bodies.append(body)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", bodies
    server.shutdown()
    server.server_close()


def received(bodies: list[bytes]) -> list[Any]:
    spans = []
    for body in bodies:
        request = ExportTraceServiceRequest.FromString(body)
        spans += [span for each in request.resource_spans for scope in each.scope_spans for span in scope.spans]
    return spans


def test_a_job_is_a_tree_of_spans(tmp_path: Path, collector: tuple[str, list[bytes]]) -> None:
    address, bodies = collector
    run = write_systems(tmp_path, rows=50, bad=2)
    done = migrate(*run, "--otel", cwd=tmp_path, env={"OTEL_EXPORTER_OTLP_ENDPOINT": address})
    assert done.code == 0, done
    assert SECRET.encode() not in b"".join(bodies)
    spans = received(bodies)
    by_name = {span.name: span for span in spans}
    by_id = {span.span_id: span for span in spans}
    assert len({span.trace_id for span in spans}) == 1
    assert {"migrate run", "load", "verify", "people", "batch 0"} <= set(by_name)

    def parent(name: str) -> str:
        return str(by_id[by_name[name].parent_span_id].name)

    assert by_name["migrate run"].parent_span_id == b""
    assert (parent("load"), parent("people"), parent("batch 0")) == ("migrate run", "load", "people")
    batch = {each.key: each.value for each in by_name["batch 0"].attributes}
    assert (batch["packhorse.inserted"].int_value, batch["packhorse.quarantined"].int_value) == (48, 2)
    for span in spans:
        assert span.start_time_unix_nano <= span.end_time_unix_nano
    assert {each.name for span in spans for each in span.events} >= {"quarantine_seen"}
    about = {each.key: each.value for each in by_name["migrate run"].attributes}
    assert about["packhorse.job"].string_value == "night"


def test_an_endpoint_alone_asks_for_them_and_nobody_there_holds_nothing_up(
    tmp_path: Path, collector: tuple[str, list[bytes]]
) -> None:
    address, bodies = collector
    run = write_systems(tmp_path)
    assert migrate(*run, cwd=tmp_path, env={"OTEL_EXPORTER_OTLP_ENDPOINT": address}).code == 0
    assert received(bodies)
    began = time.monotonic()
    away = migrate("verify", "--otel", cwd=tmp_path, env={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    assert away.code == 0
    assert time.monotonic() - began < 30
    away.no_traceback()
    assert "opentelemetry" not in away.err.lower()


def test_nothing_is_loaded_unless_asked_for(tmp_path: Path) -> None:
    run = write_systems(tmp_path)
    code = f"import sys; from cli.app import run; run({run!r}); print([n for n in sys.modules if n.startswith('opentelemetry.sdk')])"
    env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True, env=env
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path) -> None:
    for name, code in ((["--otel"], 2), ([], 0)):
        folder = tmp_path / str(code)
        folder.mkdir()
        run = [*write_systems(folder), *name]
        script = f"import sys; sys.modules['opentelemetry.sdk.trace'] = None; from cli.app import run; sys.exit(run({run!r}))"
        env = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False, env=env
        )
        assert done.returncode == code, done.stderr
        assert ("packhorse[otel]" in done.stderr) is bool(code)


def test_model_calls_failures_and_what_is_left_open(tmp_path: Path) -> None:
    memory = InMemorySpanExporter()
    traces = Traces("run", SimpleSpanProcessor(memory))
    with listening(traces), Workspace.open(JobPaths(tmp_path, "night"), write=True) as workspace:
        workspace.record(PhaseStarted("match"))
        workspace.record(
            DecisionMade("i", "field", SECRET, SECRET, "choose", 0.9, calls=2, prompt_tokens=70, seconds=1.5)
        )
        workspace.record(DecisionMade("j", "field", SECRET, SECRET, "rule", 0.9))
        workspace.record(PhaseStarted("load"))
        workspace.record(BatchCommitted("people", 0, 1, 1, read=5, inserted=5, seconds=0.5))
        workspace.record(QuarantineSeen("people", SECRET, "cast date", "born", 2))
        workspace.record(BatchCommitted("firms", 0, 1, 1, read=1, inserted=1, seconds=0.5), EntityCompleted("firms"))
    traces.end(1, JobFailedError(SECRET))
    traces.close()
    spans = {span.name: span for span in memory.get_finished_spans()}
    assert set(spans) == {"migrate run", "match", "load", "model field", "people", "firms", "batch 0"}
    call = spans["model field"]
    assert call.start_time is not None
    assert call.end_time is not None
    assert call.end_time - call.start_time == pytest.approx(1.5e9, rel=1e-3)
    assert call.attributes is not None
    assert call.attributes["packhorse.prompt_tokens"] == 70
    assert spans["people"].events[0].name == "quarantine_seen"
    assert spans["migrate run"].status.is_ok is False
    assert "PH-501" in str(spans["migrate run"].attributes)
    assert SECRET not in " ".join(span.to_json() for span in spans.values())
