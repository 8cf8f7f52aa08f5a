"""Models behind a server: llama-cpp-python's own one with a small Qwen3 on loopback, and a stand-in that fails in every way a server
can; what goes to another machine, and what doesn't."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.job import JobRequest, run_job
from agent.models import openai_http
from agent.models.masked import masked
from agent.models.openai_server import OpenAiServer
from agent.models.options import ModelOptions
from agent.models.protocol import Match, Prompt
from bench.made_model import write_adapter, write_model
from tests.cli_runner import migrate
from workspace.errors import ModelError, WaitingForPersonError

PROMPT = Prompt("You match.", "Which field holds mail1?", "a@b.example", Match(old_column="mail1"))
OPTIONS = ("email", "phone", "none of these")
GRAMMAR = 'root ::= "{\\"answer\\": " ("true" | "false") "}"'
REMOTE = ModelOptions(allow_remote=True)


@pytest.fixture(scope="module")
def llama_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """llama-cpp-python's server over a small Qwen3 of random weights: the address up to the model's name."""
    path = write_model(tmp_path_factory.mktemp("server") / "tiny.gguf")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "llama_cpp.server",
        "--model",
        str(path),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    child = subprocess.Popen(
        [*command, "--n_ctx", "2048", "--logits_all", "True"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5).read()
            break
        except OSError:
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.2)
    yield f"http://127.0.0.1:{port}"
    os.kill(child.pid, signal.SIGTERM)
    child.wait(30)


def test_a_real_server_chooses_and_writes_under_a_grammar(llama_server: str) -> None:
    model = OpenAiServer(f"{llama_server}#tiny")  # /v1 is taken for granted
    choice = model.choose(PROMPT, OPTIONS)
    assert sum(choice.probabilities) == pytest.approx(1)
    assert choice.price.calls == 3
    assert choice.price.prompt_tokens > 60
    assert model.choose(PROMPT, OPTIONS).index == choice.index
    text = model.write(PROMPT, GRAMMAR)
    assert text.text in ('{"answer": true}', '{"answer": false}')


def test_a_job_is_decided_by_a_real_server_and_knows_what_it_cost(
    llama_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prices = ModelOptions(price_in=1e6, price_out=2e6)
    _run(tmp_path, f"{llama_server}/v1#tiny", prices, monkeypatch)
    status = migrate("status", "j", "--json", cwd=tmp_path).json
    spent = status["progress"]["decisions"].values()
    assert status["money"] == sum(rung["prompt_tokens"] + 2 * rung["answer_tokens"] for rung in spent)
    assert "of money" in migrate("status", "j", cwd=tmp_path).out


def _run(folder: Path, model: str, options: ModelOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole job, in which the model's word counts for enough to be asked for."""
    monkeypatch.setattr("agent.reliability._UNMEASURED", 0.97)
    _systems(folder)
    with contextlib.suppress(WaitingForPersonError):
        run_job(
            JobRequest(
                f"sqlite:///{folder / 'old.db'}", f"sqlite:///{folder / 'new.db'}", job="j", yes=True, base=folder,
                model=model, model_options=options,
            )
        )  # fmt: skip


def _systems(folder: Path) -> None:
    """An old system whose every value is known, with two columns that only a model can tell apart, and a new one."""
    with sqlite3.connect(folder / "old.db") as old:
        old.execute(
            "create table contacts (id integer primary key, first_name text, email text, fld_a text, fld_b text)"
        )
        rows = [
            (n, f"Zebediah{n}", f"zebediah{n}@secret.example", f"+49 170 55512{n:02}", f"+49 30 44412{n:02}")
            for n in range(60)
        ]
        old.executemany("insert into contacts values (?, ?, ?, ?, ?)", rows)
    with sqlite3.connect(folder / "new.db") as new:
        new.execute(
            "create table contacts (id integer primary key, first_name text, email text, work_phone text, mobile text)"
        )


class StandIn:
    """A stand-in for a server: answers each request by what `script` says for its number, else with the letter A."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.script: Callable[[int, dict[str, Any]], tuple[int, dict[str, str], Any] | None] = lambda number, body: None
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.seen.append(body)
                outer.headers.append(dict(self.headers))
                code, headers, reply = outer.script(len(outer.seen), body) or (200, {}, outer.answer("A"))
                if code == 0:  # gone in the middle of an answer
                    self.connection.close()
                    return
                raw = json.dumps(reply).encode()
                self.send_response(code)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object) -> None:
                """Says nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @staticmethod
    def answer(text: str) -> dict[str, Any]:
        """A reply that says the text."""
        return {
            "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 40, "completion_tokens": 1},
        }

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    server = StandIn()
    yield server
    server.close()


def test_tries_again_while_a_server_is_busy_or_goes_away(stand_in: StandIn) -> None:
    failures = {1: (429, {"Retry-After": "1"}, {}), 2: (503, {}, {}), 3: (0, {}, {})}
    stand_in.script = lambda number, body: failures.get(number)
    started = time.monotonic()
    assert OpenAiServer(f"{stand_in.url}#m").write(PROMPT, GRAMMAR).text == "A"
    assert len(stand_in.seen) == 4
    assert time.monotonic() - started >= 1  # as the server asked
    stand_in.script = lambda number, body: (503, {}, {})
    before = len(stand_in.seen)
    with pytest.raises(ModelError, match="503"):
        OpenAiServer(f"{stand_in.url}#m").write(PROMPT, GRAMMAR)
    assert len(stand_in.seen) - before == openai_http.ATTEMPTS


def test_a_wrong_key_is_told_at_once_and_stands_in_no_message(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hunter2")
    stand_in.script = lambda number, body: (401, {}, {})
    with pytest.raises(ModelError) as caught:
        OpenAiServer(f"{stand_in.url}#m").choose(PROMPT, OPTIONS)
    assert len(stand_in.seen) == 1
    assert stand_in.headers[0]["Authorization"] == "Bearer sk-hunter2"
    assert "OPENAI_API_KEY" in caught.value.advice
    assert "hunter2" not in f"{caught.value} {caught.value.advice}"
    with pytest.raises(ModelError, match="in the clear"):
        OpenAiServer("http://models.example.com/v1#m", REMOTE)


def test_follows_no_redirect(stand_in: StandIn) -> None:
    other = StandIn()
    stand_in.script = lambda number, body: (307, {"Location": f"{other.url}/chat/completions"}, {})
    with pytest.raises(ModelError, match="refuses: 307"):
        OpenAiServer(f"{stand_in.url}#m").choose(PROMPT, OPTIONS)
    assert not other.seen
    other.close()


def test_a_server_that_takes_only_openais_own_gets_that(stand_in: StandIn) -> None:
    stand_in.script = lambda number, body: (400, {}, {}) if "chat_template_kwargs" in body else None
    model = OpenAiServer(f"{stand_in.url}#m")
    model.choose(PROMPT, OPTIONS)
    assert ["grammar" in body for body in stand_in.seen] == [True, False, False, False]
    assert all(body["messages"] for body in stand_in.seen)


def test_a_talkative_model_is_asked_for_json(stand_in: StandIn) -> None:
    def script(number: int, body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        if schema is None:
            return 200, {}, StandIn.answer("Certainly! The answer is")
        assert schema["properties"]["answer"]["enum"] == ["A", "B", "C"]
        letter = next(line[0] for line in body["messages"][1]["content"].splitlines() if line.endswith(". phone"))
        return 200, {}, StandIn.answer(f'<think>hm</think>{{"answer": "{letter}"}}')

    stand_in.script = script
    choice = OpenAiServer(f"{stand_in.url}#m").choose(PROMPT, OPTIONS)
    assert OPTIONS[choice.index] == "phone"
    assert choice.probabilities[1] == 1
    assert choice.price.calls == 6


def test_thinking_is_off_for_choices_and_on_where_it_was_asked_for(stand_in: StandIn) -> None:
    model = OpenAiServer(f"{stand_in.url}#m", ModelOptions(think=True))
    model.choose(PROMPT, OPTIONS)
    stand_in.script = lambda number, body: (200, {}, StandIn.answer("<think>\nlong\n</think>\n\ntrim(a)"))
    assert model.write(PROMPT, GRAMMAR).text == "trim(a)"
    thinks = [body["chat_template_kwargs"]["enable_thinking"] for body in stand_in.seen]
    assert thinks == [False, False, False, True]
    OpenAiServer(f"{stand_in.url}#m").write(PROMPT, GRAMMAR)
    assert stand_in.seen[-1]["chat_template_kwargs"]["enable_thinking"] is False


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes loopback count as another machine."""
    monkeypatch.setattr(openai_http, "is_local", lambda host: False)


@pytest.mark.usefixtures("elsewhere")
def test_values_go_as_shapes_unless_they_may_go(stand_in: StandIn) -> None:
    with pytest.raises(ModelError, match="another machine"):
        OpenAiServer(f"{stand_in.url}#m")
    quoted = Prompt(
        "Old CRM.",
        "Rows fail ('Ana Núñez', call +49 170 5551234, ana@b.example). Which?",
        "Ana Núñez | 1970-01-02",
        PROMPT.match,
    )
    OpenAiServer(f"{stand_in.url}#m", REMOTE).choose(quoted, OPTIONS)
    sent = json.dumps(stand_in.seen, ensure_ascii=False)
    assert "Aaa Aaaaa ¦ 9999-99-99" in sent
    for secret in ("Ana", "Núñez", "5551234", "1970", "b.example"):
        assert secret not in sent
    stand_in.seen.clear()
    OpenAiServer(f"{stand_in.url}#m", ModelOptions(allow_remote=True, send_values=True)).choose(quoted, OPTIONS)
    assert "Ana Núñez" in json.dumps(stand_in.seen, ensure_ascii=False)


@pytest.mark.usefixtures("elsewhere")
def test_a_question_about_a_value_that_may_not_go_is_not_asked(stand_in: StandIn) -> None:
    model = OpenAiServer(f"{stand_in.url}#m", REMOTE)
    choice = model.choose(Prompt("", "Which label means the same as the value?", "Techn."), OPTIONS)
    assert choice.probabilities == pytest.approx((1 / 3,) * 3)
    assert choice.price.calls == 0
    assert not stand_in.seen


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("values", [False, True])
def test_no_value_of_a_record_leaves_in_a_whole_job(
    stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: bool
) -> None:
    _run(tmp_path, f"{stand_in.url}#m", ModelOptions(allow_remote=True, send_values=values), monkeypatch)
    sent = json.dumps(stand_in.seen, ensure_ascii=False)
    assert "fld_a: +" in sent  # it was asked about the columns, by their names
    assert ("55512" in sent) == values
    assert ("fld_a: +99 999 9999999" in sent) == (not values)
    if not values:
        assert "ebediah" not in sent


def test_parts_of_a_match_are_left_out() -> None:
    match = Match(new_field="people.email", values={"mail1": ("ana@b.example",)})
    assert masked(Prompt("s", "q", "d1", match)).match is None


def test_what_can_not_be_done_is_told_before_anything_begins(tmp_path: Path) -> None:
    _systems(tmp_path)
    adapter, model = write_adapter(tmp_path / "a.gguf"), write_model(tmp_path / "m.gguf")
    run = ("run", "sqlite:///old.db", "sqlite:///new.db", "--yes")
    for options, words in (
        (("--model", "https://api.example.com/v1#gpt"), ("another machine", "--allow-remote")),
        (("--model", "https://api.example.com/v1", "--allow-remote"), ("names no model",)),
        (("--adapter", adapter), ("an adapter for qwen3",)),
        (("--think",), ("knows no thinking",)),
        (("--model", "none", "--think"), ("no model to think",)),
        (("--model", model, "--adapter", tmp_path / "none.gguf"), ("no such model file",)),
        (("--model", "http://127.0.0.1:1#x", "--adapter", adapter), ("can't be put over a server's",)),
    ):
        migrate(*run, *options, cwd=tmp_path).refused("PH-301", *words)
    assert not (tmp_path / ".packhorse").exists()


def test_a_job_runs_with_an_adapter_and_a_model_that_thinks(tmp_path: Path) -> None:
    _systems(tmp_path)
    adapter, model = write_adapter(tmp_path / "a.gguf"), write_model(tmp_path / "m.gguf")
    done = migrate(
        "run", "sqlite:///old.db", "sqlite:///new.db", "--job", "j", "--yes", "--model", model, "--adapter", adapter,
        "--think", "--autonomy", "0.6", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert done.code in (0, 4), done
    done.no_traceback()
    again = migrate("resume", "j", "--json", cwd=tmp_path)
    assert again.code in (0, 4), again
