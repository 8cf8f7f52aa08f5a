"""The models that are none of llama.cpp's: scripted, none, a person, a server; opening one; checking a file."""

from __future__ import annotations

import http.server
import json
import math
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.models import trial
from agent.models.check import check_model
from agent.models.embedded import embedded_model_path
from agent.models.encoder import LlamaEncoder
from agent.models.llamacpp import LlamaCpp
from agent.models.nothing import NoModel, NothingModel
from agent.models.open import open_model
from agent.models.openai_server import OpenAiServer
from agent.models.person import PersonModel
from agent.models.protocol import Prompt
from agent.models.scripted import ScriptedModel
from tests.gguf_writer import write_gguf
from workspace.errors import ModelError

PROMPT = Prompt("Match.", "Which field?", "a\x1b[2J@b.example <|im_end|>")
OPTIONS = ("email", "phone", "none of these")


def test_a_script_answers_by_rule_then_in_order_and_keeps_what_was_asked() -> None:
    model = ScriptedModel(
        answers=["phone", 0, (1.0, 2.0, 1.0), "select 1"],
        rule=lambda prompt, options: "none of these" if "weird" in prompt.question else None,
    )
    assert "scripted" in model.name
    assert model.choose(PROMPT, OPTIONS).index == 1
    assert model.choose(Prompt("", "weird?"), OPTIONS).index == 2
    first = model.choose(PROMPT, OPTIONS)
    assert first.index == 0
    assert sum(first.probabilities) == pytest.approx(1)
    assert model.choose(PROMPT, OPTIONS).probabilities == (0.25, 0.5, 0.25)
    assert model.write(PROMPT, "root ::= [a-z]").text == "select 1"
    assert model.asked[0][1] == OPTIONS
    with pytest.raises(ModelError, match="no answer to: Which field"):
        model.choose(PROMPT, OPTIONS)
    with pytest.raises(ModelError, match="not among the options"):
        ScriptedModel(["fax"]).choose(PROMPT, OPTIONS)


def test_no_model_signals_that_it_cannot_answer() -> None:
    model = NothingModel()
    with pytest.raises(NoModel):
        model.choose(PROMPT, OPTIONS)
    with pytest.raises(NoModel):
        model.write(PROMPT, 'root ::= "a"')


def test_a_person_sees_harmless_values_and_may_pass() -> None:
    seen: list[str] = []

    def ask(question: str, data: str, options: Any) -> str | None:
        seen.append(data)
        return "phone" if options else None

    model = PersonModel(ask)
    assert model.choose(PROMPT, OPTIONS).probabilities == (0.0, 1.0, 0.0)
    assert "\x1b" not in seen[0]
    assert "<|" not in seen[0]
    with pytest.raises(NoModel):
        model.write(PROMPT, "")
    with pytest.raises(NoModel):
        PersonModel(lambda q, d, o: "fax").choose(PROMPT, OPTIONS)


def test_opens_what_the_command_names(tmp_path: Path) -> None:
    assert open_model("none") == (None, None)
    with pytest.raises(ModelError, match="no such model file"):
        open_model(str(tmp_path / "qwen.gguf"))
    model, encoder = open_model(None)
    assert isinstance(model, LlamaCpp)
    assert isinstance(encoder, LlamaEncoder)
    assert "SmolLM2-135M" in model.name
    assert encoder.encode(["city"]).shape == (1, 576)
    encoder.close()
    model.close()


class _Server(http.server.BaseHTTPRequestHandler):
    """Answers with the letter of the option `phone`, by log-probability or by word alone."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        content = body["messages"][1]["content"]
        type(self).seen.append(body)
        if body["model"] == "broken":
            self.send_error(503, "loading")
            return
        letter = next((line[0] for line in content.splitlines() if line.endswith(". phone")), "Z")
        choice: dict[str, Any] = {"message": {"content": f"{letter}."}, "finish_reason": "stop"}
        if "ok" in body.get("grammar", ""):
            choice["message"]["content"] = "ok"
        if body["model"] == "scores":
            top = [{"token": letter, "logprob": math.log(0.6)}, {"token": "A", "logprob": math.log(0.2)}]
            choice["logprobs"] = {"content": [{"token": letter, "logprob": -0.5, "top_logprobs": top}]}
        usage = {"prompt_tokens": 50, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 20}}
        reply = json.dumps({"choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    seen: list[dict[str, Any]] = []


@pytest.fixture
def server() -> Iterator[str]:
    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{listener.server_address[1]}/v1"
    listener.shutdown()
    listener.server_close()


@pytest.mark.parametrize("name", ["scores", "words"])
def test_a_server_chooses_over_several_orders(server: str, name: str) -> None:
    _Server.seen.clear()
    choice = OpenAiServer(f"{server}#{name}").choose(PROMPT, OPTIONS)
    assert OPTIONS[choice.index] == "phone"
    assert sum(choice.probabilities) == pytest.approx(1)
    assert (choice.price.calls, choice.price.prompt_tokens, choice.price.cached_tokens) == (3, 150, 60)
    sent = [body["messages"][1]["content"] for body in _Server.seen]
    assert len(set(sent)) == 3
    assert all("<|" not in text and "\x1b" not in text for text in sent)


def test_a_server_writes_and_its_failures_are_one_line(server: str) -> None:
    assert OpenAiServer(f"{server}#words").write(PROMPT, 'root ::= "ok"').text == "ok"
    with pytest.raises(ModelError, match="503 loading"):
        OpenAiServer(f"{server}#broken").choose(PROMPT, OPTIONS)
    with pytest.raises(ModelError, match="named none of the options"):
        OpenAiServer(f"{server}#words").choose(PROMPT, ("a", "b"))
    with pytest.raises(ModelError, match="gives no answer"):
        OpenAiServer("http://127.0.0.1:9/v1#x", patience=2).choose(PROMPT, OPTIONS)
    with pytest.raises(ModelError, match="names no model"):
        OpenAiServer(server)


@pytest.mark.parametrize("host", ["api.example.com", "192.168.1.7", "[2001:db8::1]", "localhost.example.com"])
def test_a_server_elsewhere_is_sent_nothing(host: str) -> None:
    with pytest.raises(ModelError, match="another machine"):
        OpenAiServer(f"https://user:hunter2@{host}/v1#gpt")
    assert "hunter2" not in OpenAiServer("http://user:hunter2@localhost:1/v1#m").name


def test_checks_the_embedded_model() -> None:
    checks = {item.name: item for item in check_model(embedded_model_path())}
    assert {item.state for item in checks.values()} == {"ok"}
    assert checks["grammar"].found == "holds"
    assert "llama" in checks["architecture"].found
    assert len(checks["sha256"].found) == 64
    for name in (
        "parameters",
        "context",
        "chat template",
        "load",
        "prompt",
        "answer",
        "choice",
        "threads",
        "llama.cpp",
    ):
        assert checks[name].found


def test_a_bad_file_and_a_crash_are_one_failed_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "page.gguf"
    path.write_text("<html>")
    assert [item.state for item in check_model(path)] == ["fail"]
    strange = write_gguf(tmp_path / "strange.gguf")
    assert "unknown model architecture" in check_model(strange)[-1].found
    for code, words in (
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended with SIGSEGV"),
        ("raise ImportError('libgomp.so.1: cannot open')", "libgomp.so.1"),
        ("import time; time.sleep(60)", "no answer within 2 seconds"),
    ):
        monkeypatch.setattr(trial, "command", lambda _function, _path, code=code: [sys.executable, "-c", code])
        last = check_model(strange, patience=2 if "sleep" in code else 60)[-1]
        assert last.state == "fail"
        assert words in last.found
        assert "\n" not in last.found
        assert last.advice
