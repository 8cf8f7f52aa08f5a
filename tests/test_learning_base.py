"""A base of another architecture is trained and served by the same code: torch and llama.cpp agree on a tiny Qwen3 with its
adapter. Wants what `make train` installs: `make test-train` runs it; elsewhere it is skipped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="make test-train has it")

from agent.models.encoder import LlamaEncoder  # noqa: E402
from agent.models.native import Context, Weights  # noqa: E402
from learning.__main__ import main  # noqa: E402
from learning.base import Hardware, Lora, open_base  # noqa: E402
from learning.leaks import Denied  # noqa: E402
from learning.recipe import Recipe  # noqa: E402
from learning.run import export  # noqa: E402
from learning.schemas import TablePair, pairs  # noqa: E402
from learning.tiny import write_tiny  # noqa: E402
from learning.train import Biencoder, loss_of, texts  # noqa: E402
from workspace.errors import UsageError  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable

RECIPE = Recipe(layers=2, rank=4, alpha=8)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("tiny") / "tiny-qwen3")


@pytest.fixture(scope="module")
def tables() -> list[TablePair]:
    return list(pairs("train", 2, Denied(frozenset(), frozenset())))


def test_torch_and_llama_cpp_agree_with_a_strong_adapter_of_every_matrix(
    tiny: Path, tables: list[TablePair], tmp_path: Path
) -> None:
    encoder = Biencoder(RECIPE, tiny)
    plain = encoder.vectors([" city: Leeds"]).detach().numpy()
    _strengthen(encoder.model)
    assert float((plain @ encoder.vectors([" city: Leeds"]).detach().numpy().T).item()) < 0.95
    gguf = encoder.base.gguf
    assert gguf is not None
    path = export(encoder, RECIPE, tmp_path / "encoder.gguf", "none")
    shown = texts(tables[0])[:12]
    native = LlamaEncoder(gguf, threads=1, adapter=path)
    theirs = native.encode(shown)
    native.close()
    ours = encoder.vectors(shown).detach().numpy()
    assert float((ours * theirs).sum(axis=1).min()) > 0.999


def test_logits_agree_too(tiny: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    base = open_base(tiny, Lora(2, 4, 8), head=True)
    tokens = base.tokenizer("date of birth").input_ids
    with torch.no_grad():
        ours = base.model(input_ids=torch.tensor([tokens])).logits[0, -1].numpy()
    assert base.gguf is not None
    weights = Weights(base.gguf)
    context = Context(weights, 64, 1)
    theirs, _ = context.prompt(tokens)
    context.close()
    weights.close()
    assert np.corrcoef(ours, theirs)[0, 1] > 0.999


def test_checkpointing_gives_the_same_gradients(tiny: Path, tables: list[TablePair]) -> None:
    found = []
    for hardware in (Hardware(), Hardware(checkpointing=True)):
        encoder = Biencoder(RECIPE, tiny, hardware)
        loss_of(encoder, tables).backward()
        found.append([p.grad.numpy() for p in encoder.trained()])
    assert any(np.abs(one).max() > 0 for one in found[0])
    assert all(np.allclose(a, b, atol=1e-6) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize(
    ("opening", "told"),
    [
        (lambda tiny: open_base(tiny / "none"), "no model to train on"),
        (lambda tiny: open_base(tiny, hardware=Hardware("tpu")), "no device is called"),
        (lambda tiny: open_base(tiny, hardware=Hardware(bits=3)), "3 bits"),
    ],
)
def test_what_cannot_be_had_is_one_error(tiny: Path, opening: Callable[[Path], object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        opening(tiny)


def test_the_command_says_it_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(
        "sys.argv", ["learning", "train", "--small", "--base", str(tmp_path / "none"), "-o", str(tmp_path)]
    )
    assert main() == 2
    assert capsys.readouterr().err.startswith("PH-101 no model to train on")


def _strengthen(model: object) -> None:
    random = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, value in model.named_parameters():  # type: ignore[attr-defined]
            if "lora_B" in name:
                value.normal_(0, 0.3, generator=random)
