"""Draws docs/demo.svg: what `migrate demo` shows on a terminal, recorded and drawn by Rich.

`python docs/picture.py [CONTACTS]` runs the demo in a folder of its own and ends its PostgreSQL. What stands between a
step's live view and the next step is left out, and marked.
"""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.text import Text

from sample_data.servers import DemoServer

PICTURE = Path(__file__).parent / "demo.svg"
COLUMNS, ROWS = 116, 60
_DEMO = [sys.executable, "-c", "from cli.app import main; main()", "demo"]
_CODES = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b\][^\x07]*\x07|(\r)|(\n)|([^\x1b\r\n]+)")
_BLANK, _CELL = "&#160;", 12.2  # as Rich writes them
_PIECE = re.compile(rf'x="([\d.]+)"([^<>]*)textLength="([\d.]+)"([^<>]*>)((?:{_BLANK})+)')
_HEADLINE = re.compile(r"\d of \d  ")


def main() -> int:
    """Draws the picture."""
    with tempfile.TemporaryDirectory(prefix="packhorse-picture-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # a server run for root reaches its data through it
        server = DemoServer(folder / ".demo" / "postgres")
        try:
            said = record([*_DEMO, *(["--contacts", sys.argv[1]] if len(sys.argv) > 1 else [])], folder)
        finally:
            _end(server)
        said = said.replace(f"{folder}/", "")
    console = Console(record=True, file=io.StringIO(), force_terminal=True, color_system="truecolor", width=COLUMNS)
    console.print(Text("$ make demo", style="bold"))
    for line in told(screen(said)):
        console.print(line, no_wrap=True, crop=True, overflow="ellipsis")
    console.save_svg(str(PICTURE), title="Packhorse")
    text = _PIECE.sub(_placed, PICTURE.read_text(encoding="utf-8"))
    PICTURE.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")
    return 0


def record(command: list[str], folder: Path) -> str:
    """What a command writes to a terminal of COLUMNS by ROWS. RuntimeError where it fails."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (ROWS, COLUMNS))
    steering = ("PACKHORSE_", "PG", "NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(steering)}
    environment |= {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    # no keyboard: nobody is there to be asked
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, cwd=folder, env=environment
    )
    os.close(theirs)
    written = bytearray()
    with contextlib.suppress(OSError):  # how a terminal says that nobody writes to it any more
        while block := os.read(ours, 65536):
            written += block
    os.close(ours)
    if process.wait():
        raise RuntimeError(f"the demo ended with {process.returncode}:\n{written[-2000:].decode(errors='replace')}")
    return written.decode("utf-8", "replace")


def screen(said: str) -> list[Text]:
    """The lines that stand there in the end, scrolled ones included: what was drawn over is gone."""
    lines: list[list[tuple[str, str]]] = [[]]
    row = column = 0
    style = ""
    for match in _CODES.finditer(said):
        arguments, code, back, down, text = match.groups()
        if back:
            column = 0
        elif down:
            row += 1
        elif code == "A":
            row = max(0, row - int(arguments or 1))
        elif code == "K":
            lines[row] = []
        elif code == "m":
            style = "" if arguments in ("", "0") else style + match[0]
        for character in text or "":
            line = lines[row]
            line += [(" ", "")] * (column + 1 - len(line))
            line[column] = (character, style)
            column += 1
        while len(lines) <= row:
            lines.append([])
    return [Text.from_ansi("".join(_runs(line))) for line in lines]


def _runs(line: list[tuple[str, str]]) -> Iterator[str]:
    """The characters of a line, those of one style together."""
    for style, run in groupby(line, key=lambda cell: cell[1]):
        yield f"\x1b[0m{style}{''.join(character for character, _ in run)}"


def _placed(match: re.Match[str]) -> str:
    """A piece of text that begins at its first character: not every viewer keeps blanks at a beginning."""
    blanks = len(match[5]) // len(_BLANK)
    start, length = float(match[1]) + blanks * _CELL, float(match[3]) - blanks * _CELL
    return f'x="{start:g}"{match[2]}textLength="{length:g}"{match[4]}'


def told(lines: list[Text]) -> list[Text]:
    """The lines of the picture: headlines, live views, and the reconciliation at the end."""
    kept: list[Text] = []
    last = max(n for n, line in enumerate(lines) if _HEADLINE.match(line.plain))
    cut = False
    for n, line in enumerate(lines):
        cut = not _HEADLINE.match(line.plain) and (cut or (n < last and line.plain.startswith("demo: ")))
        if not cut:
            kept.append(line)
        elif kept[-1].plain:
            kept += [Text("  ...", style="dim"), Text()]
        if n > last and line.plain.startswith("demo: "):
            break
    return [
        line for n, line in enumerate(kept)
        if line.plain.strip() or (n and kept[n - 1].plain.strip() and n + 1 < len(kept))
    ]  # fmt: skip


def _end(server: DemoServer) -> None:
    if server.pid:
        os.kill(server.pid, signal.SIGINT)
        for _ in range(100):
            if not server.pid:
                break
            time.sleep(0.1)
    shutil.rmtree(server.socket_folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
