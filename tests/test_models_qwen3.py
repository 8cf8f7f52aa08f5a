"""Qwen3's architecture through every path: a small GGUF of random weights, made here, that knows nothing but has the shape,
the template, the marks of a thought, and takes an adapter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from agent.models.backends import Offer, built, gap, offers
from agent.models.chat import Chat
from agent.models.check import check_model
from agent.models.embedded import embedded_model_path
from agent.models.gguf_file import read_header
from agent.models.llamacpp import THOUGHT, LlamaCpp, drawn
from agent.models.memory import need_of
from agent.models.protocol import Prompt
from bench.made_model import QWEN3_8B, TEMPLATE, TINY, Shape, write_adapter, write_model
from tests.cli_runner import migrate
from tests.gguf_writer import write_gguf
from workspace.errors import ModelError

OPTIONS = ("first name", "email", "city", "none of these")
PROMPT = Prompt("You match old columns to new fields.", "Which field holds the old column mail1?", "a@b.example")
GRAMMAR = 'root ::= "{\\"answer\\": " ("true" | "false") "}"'


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `model.gguf` and `adapter.gguf`."""
    folder = tmp_path_factory.mktemp("qwen3")
    write_model(folder / "model.gguf")
    write_adapter(folder / "adapter.gguf")
    return folder


@pytest.fixture
def model(files: Path) -> Iterator[LlamaCpp]:
    opened = LlamaCpp(files / "model.gguf", context=1024, form="listed")
    yield opened
    opened.close()


def test_chooses_and_writes_without_a_thought(model: LlamaCpp) -> None:
    assert not model.template_note
    choice = model.choose(PROMPT, OPTIONS)
    assert sum(choice.probabilities) == pytest.approx(1)
    assert choice.price.cached_tokens > 0
    assert model.choose(PROMPT, OPTIONS).index == choice.index
    text = model.write(PROMPT, GRAMMAR)
    assert text.text in ('{"answer": true}', '{"answer": false}')
    assert text.price.answer_tokens < 20
    pieces = b"".join(map(model.weights.piece, model._tokens(PROMPT, 64)))
    assert pieces.endswith(b"<think>\n\n</think>\n\n")  # told that it has thought already


def test_thinks_before_it_writes_where_it_may_and_never_before_it_chooses(files: Path) -> None:
    model = LlamaCpp(files / "model.gguf", context=1024, form="listed", think=True)
    text = model.write(PROMPT, GRAMMAR)
    assert text.text in ('{"answer": true}', '{"answer": false}')
    assert 20 < text.price.answer_tokens <= THOUGHT + 20  # weights that know nothing never end a thought
    assert model.write(PROMPT, GRAMMAR).text == text.text
    held = b"".join(map(model.weights.piece, model._context._held))
    assert held.count(b"<think>") == held.count(b"</think>") == 1
    assert held.index(b"</think>") < held.index(b'{"answer"')
    assert b"<|im_end|>" not in held
    choice = model.choose(PROMPT, OPTIONS)
    assert choice.price.answer_tokens == 0
    with pytest.raises(ModelError, match="the question takes"):
        model.write(Prompt("", "why? " * 300), GRAMMAR)  # no room for the thought
    model.close()


def test_a_thought_that_ends_itself_is_ended_once(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = LlamaCpp(files / "model.gguf", context=1024, think=True)
    said = iter([*model.weights.tokens("so be it", special=False), *model.weights.tokens("</think>", special=True)])
    monkeypatch.setattr("agent.models.llamacpp.drawn", lambda scores, random: next(said))
    model.write(PROMPT, GRAMMAR)
    held = b"".join(map(model.weights.piece, model._context._held))
    assert b"<think>\nso be it</think>\n\n{" in held
    model.close()


def test_a_model_that_cannot_think_is_not_made_to() -> None:
    with pytest.raises(ModelError, match="knows no thinking"):
        LlamaCpp(embedded_model_path(), context=256, think=True)
    assert Chat(TEMPLATE, "", "", lambda text, special: [1]).thinks
    assert not Chat("{% if %}", "", "", lambda text, special: [1]).thinks


def test_draws_from_the_likely_ones_and_the_same_from_the_same_seed() -> None:
    scores = np.full(1000, -20.0, np.float32)
    scores[[7, 8, 9]] = (-1.0, -1.1, -9.0)
    tokens = [drawn(scores, np.random.default_rng(seed)) for seed in range(50)]
    assert set(tokens) == {7, 8}
    assert tokens == [drawn(scores, np.random.default_rng(seed)) for seed in range(50)]


def test_an_adapter_changes_what_is_said_and_the_name(files: Path, model: LlamaCpp) -> None:
    plain = model.choose(PROMPT, OPTIONS)
    adapted = LlamaCpp(files / "model.gguf", context=1024, form="listed", adapter=files / "adapter.gguf")
    assert adapted.choose(PROMPT, OPTIONS).probabilities != pytest.approx(plain.probabilities, abs=1e-3)
    assert adapted.name.startswith("adapter.gguf ")
    assert model.name in adapted.name
    adapted.close()


def test_an_adapter_for_nothing_here_is_refused(files: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="an adapter for qwen3, and the model is llama"):
        LlamaCpp(embedded_model_path(), context=256, adapter=files / "adapter.gguf")
    with pytest.raises(ModelError, match="holds no LoRA adapter"):
        LlamaCpp(files / "model.gguf", context=256, adapter=files / "model.gguf")
    with pytest.raises(ModelError, match="no such model file"):
        LlamaCpp(files / "model.gguf", context=256, adapter=tmp_path / "none.gguf")
    other = Shape(layers=2, width=32, heads=2, kv_heads=1, head_width=16, inner=64)
    wrong = write_adapter(tmp_path / "wrong.gguf", other)
    with pytest.raises(ModelError, match="cannot load the adapter"):
        LlamaCpp(files / "model.gguf", context=256, adapter=wrong)


def test_what_it_takes_is_told_from_its_header(files: Path, tmp_path: Path) -> None:
    header = read_header(files / "model.gguf")
    need = need_of(header, 1024)
    assert need.weights == header.size
    assert need.cache == 1024 * TINY.layers * TINY.kv_heads * 2 * TINY.head_width * 2
    assert need_of(header, 10**6).cache == 2 * need.cache  # no more than it was trained for
    assert header.vocabulary == 49_154
    # Qwen3-8B: 36 layers of 8 heads of 128, keys and values, two bytes each
    big = {"general.architecture": "qwen3", "qwen3.block_count": 36, "qwen3.attention.head_count_kv": 8,
           "qwen3.attention.key_length": 128, "qwen3.attention.value_length": 128, "tokenizer.ggml.tokens": ["a", "b"]}  # fmt: skip
    cache = need_of(read_header(write_gguf(tmp_path / "big.gguf", big)), 4096).cache
    assert cache == 4096 * 147_456
    assert QWEN3_8B.layers * QWEN3_8B.kv_heads * QWEN3_8B.head_width * 4 == 147_456


def test_checks_it_and_says_whether_it_fits(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = {item.name: item for item in check_model(files / "model.gguf")}
    assert {item.state for item in checks.values()} == {"ok"}
    assert checks["architecture"].found.startswith("qwen3")
    assert "--think" in checks["chat template"].found
    assert "KV cache" in checks["memory"].found
    gib = 2**30
    for free, whole, state in ((2 * gib, 3 * gib, "ok"), (gib // 10, 3 * gib, "warn"), (gib // 10, gib // 9, "fail")):
        monkeypatch.setattr("agent.models.check.memory", lambda free=free, whole=whole: (free, whole))
        monkeypatch.setattr("agent.models.check.in_child", _not_run)
        found = {item.name: item for item in check_model(files / "model.gguf")}
        assert found["memory"].state == state
        assert ("trial" in found) == (state != "fail")  # what doesn't fit is not tried


def _not_run(*_: object) -> None:
    raise ModelError("not run")


def test_measures_it(files: Path, tmp_path: Path) -> None:
    found = migrate("model", "bench", files / "model.gguf", "--json", cwd=tmp_path)
    assert found.code == 0, found
    for name in ("load_seconds", "memory_mib", "prompt_rate", "answer_rate", "decision_seconds", "decisions_rate"):
        assert found.json[name] > 0
    assert 0 < found.json["cached"] < 1
    assert found.json["parameters"] == 3_219_968
    shown = migrate("model", "bench", files / "model.gguf", cwd=tmp_path).out
    assert "decisions" in shown
    migrate("model", "bench", tmp_path / "none.gguf", cwd=tmp_path).refused("PH-301", "no such model file")


def test_says_what_the_build_has_and_what_closes_the_gap() -> None:
    names, devices = built()
    assert "CPU" in names
    assert any(device.total > 0 for device in devices)
    assert {offer.backend for offer in offers()} >= {"CUDA", "Vulkan"}
    card = Offer("CUDA", "cuda", "RTX 3090", "/usr/bin/nvcc", "install the toolkit")
    assert gap(["CPU"], [card])[1] == "rm -rf .venv; make venv GPU=cuda"
    assert gap(["CPU"], [Offer("CUDA", "cuda", "RTX 3090", "", "install the toolkit")])[1].startswith(
        "install the toolkit; rm"
    )
    assert gap(["CPU", "CUDA"], [card]) == ("the build has CPU, CUDA", "")
    said, advice = gap(["CPU"], [Offer("CUDA", "cuda", "", "/usr/bin/nvcc", "")])
    assert "there is no card for it" in said
    assert not advice
