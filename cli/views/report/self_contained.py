"""One HTML file out of a room's template, styles and script: all of it is inside, and it may fetch nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup


def render(package: str, styles: Sequence[str], filters: dict[str, Callable[..., Any]], **values: Any) -> str:
    """`page.html.j2` of the package with its `page.js`, and `page.css` of each package that `styles` names. Values are
    escaped; only that script may run, since nothing that a record value might smuggle in has its hash."""
    folder = files(package)
    script = (folder / "page.js").read_text("utf-8")
    style = "".join((files(name) / "page.css").read_text("utf-8") for name in styles)
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(filters)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.from_string((folder / "page.html.j2").read_text("utf-8")).render(
        script=Markup(script),
        style=Markup(style),
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        **values,
    )
