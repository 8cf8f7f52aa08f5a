"""Opens a base model for training, with LoRA over its upper layers: the embedded one, a folder of Hugging Face's, a GGUF file,
or Qwen3 by name. What trains on it (encoder, ranker) is the same for all of them.

Runs in the environment that `make train` makes, never in a job.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer

from agent.models.catalogue import DEFAULT
from agent.models.embedded import FILE, embedded_model_path
from agent.models.kept import kept_models
from workspace.errors import UsageError

LINEAR = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
ON_THE_HUB = {
    DEFAULT: ("Qwen/Qwen3-8B", "b968826d9c46dd6066d109eabc6255188de91218"),
    "qwen3-4b": ("Qwen/Qwen3-4B", "1cfa9a7208912126459214e8b04321603b3df60c"),
}
"""Repository and revision of the weights that training takes, by the name that the catalogue has for the GGUF file of the same
model."""
ARCHITECTURES = ("llama", "qwen3")
"""What an adapter can be written for: of others it isn't known how llama.cpp has their rows."""


@dataclass(frozen=True)
class Lora:
    """What is trained: the `layers` upper ones of the base, at this rank and alpha."""

    layers: int = 16
    rank: int = 8
    alpha: int = 16


@dataclass(frozen=True)
class Hardware:
    """Where it is trained. `device` is cpu (float32) or cuda (bfloat16); `bits` 4 keeps the base's weights in four bits, 0 as
    the device has them; `checkpointing` computes activations twice in the place of keeping them."""

    device: str = "cpu"
    bits: int = 0
    checkpointing: bool = False


@dataclass(frozen=True)
class Base:
    """A base that is ready to be trained. `name` is what an adapter says it was trained on; `gguf` is the same model as
    llama.cpp reads it, None where none is here."""

    name: str
    tokenizer: Any
    model: Any
    device: str
    gguf: Path | None

    @property
    def architecture(self) -> str:
        """As GGUF names it."""
        return str(self.model.config.model_type)


def open_base(
    given: str | Path | None = None, lora: Lora | None = None, hardware: Hardware | None = None, *, head: bool = False
) -> Base:
    """Opens the embedded model (None), a GGUF file, a folder, or a name of ON_THE_HUB (fetched where the cache hasn't it). The
    model gives hidden states, or with `head` logits. What torch draws for the adapter follows torch's seed. UsageError
    where the base, the device or four bits can't be had."""
    lora, hardware = lora or Lora(), hardware or Hardware()
    _check(hardware)
    name, source, gguf = _found(given)
    kind = AutoModelForCausalLM if head else AutoModel
    told: dict[str, Any] = {"dtype": torch.float32 if hardware.device == "cpu" else torch.bfloat16}
    if source.is_file():
        if hardware.bits:
            raise UsageError(
                "a GGUF file can't be opened in four bits",
                where=str(source),
                advice="give its folder of Hugging Face's",
            )
        where, own = str(source.parent), {"gguf_file": source.name}
    else:
        where, own = str(source), {}
    if hardware.bits:
        told |= {"quantization_config": _four_bits(), "device_map": {"": hardware.device}}
    tokenizer = AutoTokenizer.from_pretrained(where, **own)
    model = kind.from_pretrained(where, **own, **told)
    if model.config.model_type not in ARCHITECTURES:
        raise UsageError(
            f"its architecture is {model.config.model_type}, and adapters are written for {' and '.join(ARCHITECTURES)}",
            where=str(source), advice="take a base of one of these",
        )  # fmt: skip
    adapted = get_peft_model(model, LoraConfig(r=lora.rank, lora_alpha=lora.alpha, target_modules=_aimed(model, lora)))
    if not hardware.bits:
        adapted = adapted.to(hardware.device)
    if hardware.checkpointing:
        adapted.train()  # transformers checkpoints only what trains; there is no dropout in it
        adapted.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return Base(name, tokenizer, adapted, hardware.device, gguf)


def _aimed(model: Any, lora: Lora) -> str:
    count = model.config.num_hidden_layers
    upper = "|".join(map(str, range(max(0, count - lora.layers), count)))
    return rf"(?:.*\.)?layers\.({upper})\..*\.({'|'.join(LINEAR)})"


def _check(hardware: Hardware) -> None:
    if hardware.device not in ("cpu", "cuda"):
        raise UsageError(f"no device is called {hardware.device[:40]!r}", advice="say --device cpu or cuda")
    if hardware.device == "cuda" and not torch.cuda.is_available():
        raise UsageError("torch sees no GPU", advice="say --device cpu, or install a build of torch for this GPU")
    if hardware.bits not in (0, 4):
        raise UsageError(f"{hardware.bits} bits are not among what can be had", advice="say --bits 4, or leave it out")
    if hardware.bits and importlib.util.find_spec("bitsandbytes") is None:
        raise UsageError("four bits want bitsandbytes, which isn't installed", advice="uv pip install bitsandbytes")


def _four_bits() -> Any:
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16,
    )


def _found(given: str | Path | None) -> tuple[str, Path, Path | None]:
    """Name, weights (a file or a folder) and the same model as GGUF."""
    if given is None:
        path = embedded_model_path()
        return FILE.removesuffix(".gguf"), path, path
    named = str(given).casefold()
    path = Path(given)
    if named in ON_THE_HUB and not path.exists():
        return named, _fetched(*ON_THE_HUB[named]), next((k.path for k in kept_models() if k.name == named), None)
    if path.is_file() and path.suffix == ".gguf":
        return path.stem, path, path
    if (path / "config.json").is_file():
        files = sorted(path.glob("*.gguf"))
        return path.resolve().name, path, files[0] if len(files) == 1 else None
    raise UsageError(
        "no model to train on", where=str(given)[:200],
        advice=f"give a folder with config.json, a GGUF file, or {' or '.join(ON_THE_HUB)}",
    )  # fmt: skip


def _fetched(repository: str, revision: str) -> Path:
    from huggingface_hub import snapshot_download

    wanted = ["*.json", "*.safetensors", "merges.txt"]
    try:
        return Path(snapshot_download(repository, revision=revision, allow_patterns=wanted))
    except OSError as error:  # what the hub's library raises, and what the network does, are such
        told = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise UsageError(
            f"can't be fetched from the hub: {told}", where=f"{repository} at {revision[:12]}",
            advice="fetch it where there is a network, and give its folder",
        ) from None  # fmt: skip
