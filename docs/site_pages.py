"""Makes the site's pages of those that GitHub shows (`make site`, mkdocs.yml): a hook of mkdocs.

The pages know no site. So here the words after a fence's language become the block's title where they name a file, links
between docs/ and the few pages that lie elsewhere in the repository are turned to where the site has those, and a `|` that
GitHub wants escaped within code is none to escape here; a comment above the heading would hide the title. Nothing else changes, and no file is written.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parent.parent
ELSEWHERE = "repository"  # the folder of the site that pages outside docs/ have, each by its path
PAGES = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "sample_data/README.md")

_FENCE = re.compile(r"^( *```)(\w+) *(.*)$")
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_COMMENT = re.compile(r"\A<!--.*?-->\s*", re.DOTALL)
_CODE = re.compile(r"`[^`]*`")


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages outside docs/."""
    for name in PAGES:
        files.append(File.generated(config, f"{ELSEWHERE}/{name}", abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Any, files: Any, **_: Any) -> str:
    """The page as the site's parser reads it."""
    there = PurePosixPath(page.file.src_uri)
    own = there.relative_to(ELSEWHERE) if there.is_relative_to(ELSEWHERE) else "docs" / there
    lines, fenced = [], False
    for line in _COMMENT.sub("", markdown).splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
            line = _FENCE.sub(_fence, line)
        elif not fenced:
            if line.startswith("|"):
                line = _CODE.sub(lambda code: code[0].replace("\\|", "|"), line)
            line = _outside_code(line, lambda text: _LINK.sub(lambda link: _turned(link, own, there), text))
        lines.append(line)
    return "\n".join(lines) + "\n"


def _fence(found: re.Match[str]) -> str:
    if found[2] == "console":  # what is said there isn't to be pasted
        return f"{found[1]} {{ .console .no-copy }}"
    return f'{found[1]}{found[2]} title="{found[3]}"' if found[3] else found[1] + found[2]


def _outside_code(line: str, change: Callable[[str], str]) -> str:
    parts = re.split(r"(`[^`]*`)", line)
    # what a link shows may hold code; its goal never does
    return "".join(part if part.startswith("`") else change(part) for part in parts)


def _turned(link: re.Match[str], own: PurePosixPath, there: PurePosixPath) -> str:
    """The link with its goal where the site has it; what the site doesn't have stays, and is warned of."""
    goal, mark, anchor = link[2].partition("#")
    if not goal or "://" in goal or goal.startswith("mailto:"):
        return link[0]
    path = PurePosixPath(os.path.normpath(own.parent / goal))
    if path.is_relative_to("docs"):
        at = path.relative_to("docs")
    elif str(path) == "README.md":
        at = PurePosixPath("index.md")
    elif str(path) in PAGES:
        at = ELSEWHERE / path
    else:
        return link[0]
    return f"{link[1]}{os.path.relpath(at, there.parent)}{mark}{anchor}{link[3]}"


def on_post_page(output: str, **_: Any) -> str:
    """The page with a name for the search, which the theme leaves without one for those who listen to pages."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"', 1)
