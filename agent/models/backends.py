"""What the installed build of llama.cpp can compute on, what this machine could, and the command that closes the gap.

`built` loads llama.cpp; the rest only looks at the machine.
"""

from __future__ import annotations

import ctypes
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Device:
    """Something that llama.cpp computes on: `backend` is CPU, CUDA, Metal, Vulkan, …; memory in bytes."""

    backend: str
    name: str
    free: int
    total: int


@dataclass(frozen=True)
class Offer:
    """A backend that this machine could use. `card` is what it would compute on, empty for none; `tools` what a build needs
    and has, empty where it is missing; `get` says how to have it."""

    backend: str
    make: str
    card: str
    tools: str
    get: str


def built() -> tuple[list[str], list[Device]]:
    """The backends compiled into llama.cpp, and the devices that they found here."""
    from agent.models import native  # loads llama.cpp, and its backends with it

    library = native.library()
    for name in ("reg_get", "reg_name", "dev_get", "dev_name", "dev_description", "dev_backend_reg"):
        getattr(library, f"ggml_backend_{name}").restype = (
            ctypes.c_char_p if name.endswith(("name", "tion")) else ctypes.c_void_p
        )
    for name in ("reg_count", "dev_count"):
        getattr(library, f"ggml_backend_{name}").restype = ctypes.c_size_t
    size, pointer = ctypes.c_size_t, ctypes.c_void_p

    def registry_name(registry: int) -> str:
        return _text(library.ggml_backend_reg_name(pointer(registry)))

    names = [
        registry_name(library.ggml_backend_reg_get(size(number))) for number in range(library.ggml_backend_reg_count())
    ]
    devices = []
    for number in range(library.ggml_backend_dev_count()):
        device = pointer(library.ggml_backend_dev_get(size(number)))
        free, total = size(), size()
        library.ggml_backend_dev_memory(device, ctypes.byref(free), ctypes.byref(total))
        backend = registry_name(library.ggml_backend_dev_backend_reg(device))
        devices.append(
            Device(backend, _text(library.ggml_backend_dev_description(device)), int(free.value), int(total.value))
        )
    return names, devices


def offers() -> list[Offer]:
    """What could be built here besides the CPU's, and what is missing for it."""
    found = []
    if platform.system() == "Darwin":
        chip = "Apple silicon" if platform.machine() == "arm64" else ""
        tools = "Xcode's tools" if shutil.which("xcrun") else ""
        found.append(Offer("Metal", "metal", chip, tools, "xcode-select --install"))
    cards = [_model_of(each) for each in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))]
    nvcc = shutil.which("nvcc") or next((str(p) for p in Path("/usr/local").glob("cuda*/bin/nvcc")), "")
    found.append(Offer("CUDA", "cuda", ", ".join(cards), nvcc, "install the CUDA toolkit (developer.nvidia.com)"))
    render = sorted(Path("/dev/dri").glob("renderD*"))
    glslc = shutil.which("glslc") or ""
    card = "a graphics card" if render and not cards else ""
    found.append(Offer("Vulkan", "vulkan", card, glslc, "apt install libvulkan-dev glslc"))
    return found


def gap(names: list[str], machine: list[Offer]) -> tuple[str, str]:
    """In one line each: what is there, and the command that would make more of it; empty where nothing would."""
    has = {name.upper() for name in names}
    parts = [f"the build has {', '.join(names)}"]
    advice = ""
    for offer in machine:
        if offer.backend.upper() in has or (offer.backend == "Metal" and "MTL" in has):
            continue
        if offer.card:
            parts.append(f"{offer.card} could compute with {offer.backend}")
            first = "" if offer.tools else f"{offer.get}; "
            advice = advice or f"{first}rm -rf .venv; make venv GPU={offer.make}"
        elif offer.tools:
            parts.append(f"{offer.backend} could be built ({offer.tools}), and there is no card for it")
    return "; ".join(parts), advice


def _model_of(information: Path) -> str:
    try:
        lines = information.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return "NVIDIA card"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("Model:")), "NVIDIA card")


def _text(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", "replace")
