"""The documentation: each command that it shows runs and says what is shown, links lead somewhere, messages name
pages that are there.

A page's ```console blocks are run in order by one shell, in a folder with a small sample CRM (`legacy.db`) and with
LEGACY and CLOUD naming it and an empty cloud database. Words after `console`: `exit=3` or `exit=0,4` for the block's
last command (0 without it), `needs=mariadb`, `needs=ssh`, and `shown:` with the reason why a block isn't run. What stands below a
command is in its output, in that order; `...` stands for anything. A block such as ```yaml plan.yaml is that file.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sample_data import CLOUD_SQL, write_sample
from sample_data.servers import Database, MariadbServer, NotInstalledError, PostgresServer
from tests.cli_runner import environment
from tests.ssh_host import SshHost

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
CONTACTS = 600
SECONDS = 500  # a page; one takes a minute or two on two busy cores

_FENCE = re.compile(r"^```(\w+)?[ ]*(.*)$")
_LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
_MARK = "packhorse-docs-mark"


@dataclass(frozen=True)
class Command:
    """A command, the exit codes it may end with, and the lines shown below it."""

    text: str
    line: int
    exits: tuple[int, ...] = (0,)
    shown: tuple[str, ...] = ()


@dataclass(frozen=True)
class File:
    """A block that is a file of the page's folder."""

    name: str
    text: str


@dataclass
class Block:
    """A fenced block: its language, the words after it, its lines."""

    language: str
    words: str
    line: int
    lines: list[str] = field(default_factory=list)


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    block: Block | None = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if fence and block is None:
            block = Block(fence[1] or "", fence[2].strip(), number)
        elif fence and block is not None:
            yield block
            block = None
        elif block is not None:
            block.lines.append(line)
    assert block is None, f"{page}: a block is not closed"


def steps(page: Path, mariadb: bool, ssh: bool = True) -> list[Command | File]:
    """What the page's test does, in order."""
    found: list[Command | File] = []
    for block in blocks(page):
        if block.language == "console":
            if not block.words.startswith("shown:") and (mariadb or "needs=mariadb" not in block.words):
                if "needs=ssh" in block.words and not ssh:
                    continue
                found += commands(block)
        elif block.words:
            found.append(File(block.words, "\n".join(block.lines) + "\n"))
    return found


def commands(block: Block) -> list[Command]:
    """The commands of a block: `$ ` begins one, `> ` or a backslash at a line's end goes on with it."""
    found: list[tuple[list[str], int, list[str]]] = []
    for number, line in enumerate(block.lines, block.line + 1):
        if line.startswith("$ "):
            found.append(([line[2:]], number, []))
        elif found and (line.startswith("> ") or found[-1][0][-1].endswith("\\")) and not found[-1][2]:
            found[-1][0].append(line.removeprefix("> "))
        else:
            assert found, f"line {number}: a block begins with a command"
            found[-1][2].append(line)
    codes = re.search(r"exit=([\d,]+)", block.words)
    last = tuple(map(int, codes[1].split(","))) if codes else (0,)
    return [
        Command("\n".join(text), number, last if i == len(found) - 1 else (0,), tuple(shown))
        for i, (text, number, shown) in enumerate(found)
    ]


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small legacy CRM, to be copied."""
    file = tmp_path_factory.mktemp("sample") / "legacy.db"
    write_sample("sqlite", file, CONTACTS)
    return file


@pytest.fixture(scope="module")
def old_server() -> Iterator[MariadbServer | None]:
    """MariaDB where this machine has it."""
    try:
        server = MariadbServer()
    except NotInstalledError:
        yield None
        return
    yield server
    server.remove()


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHost | None]:
    """A host called gate.example.com to go through, where this machine has an sshd."""
    try:
        host = SshHost(tmp_path_factory.mktemp("gate"))
    except NotInstalledError:
        yield None
        return
    yield host
    host.stop()


@pytest.fixture
def old_database(old_server: MariadbServer | None) -> Iterator[Database | None]:
    """A database of the old server with the sample in it, made when a page names it."""
    if old_server is None:
        yield None
        return
    database = old_server.new_database()
    yield database
    old_server.drop(database)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short path, since sockets lie in it; servers that a page started there are ended."""
    place = Path(tempfile.mkdtemp(prefix="ph-docs-", dir="/tmp"))
    yield place
    for file in place.rglob("postmaster.pid"):
        os.kill(int(file.read_text().splitlines()[0]), signal.SIGINT)
    shutil.rmtree(place, ignore_errors=True)


def names(text: str, cloud: Database, old: Database | None) -> str:
    """The page's text with the servers of its examples exchanged for those of the test."""
    text = text.replace("crm:${CLOUD_PASSWORD}@new", f"{cloud.server.user}:${{CLOUD_PASSWORD}}@new")
    text = text.replace("@new.example.com/crm", f"@127.0.0.1:{cloud.server.port}/{cloud.name}")
    if old is None:
        return re.sub(r"mysql://[^@\s']*@old\.example\.com/crm", "sqlite:///legacy.db", text)
    return text.replace("@old.example.com/crm", f"@127.0.0.1:{old.server.port}/{old.name}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_command_runs_and_says_what_is_shown(
    page: Path,
    folder: Path,
    sample: Path,
    postgres: PostgresServer,
    postgres_database: Database,
    old_database: Database | None,
    gate: SshHost | None,
) -> None:
    todo = steps(page, old_database is not None, gate is not None)
    if not any(isinstance(step, Command) for step in todo):
        pytest.skip("no commands")
    shutil.copy(sample, folder / "legacy.db")
    postgres_database.run(CLOUD_SQL.read_text(encoding="utf-8"))
    if old_database is not None and "old.example.com" in page.read_text(encoding="utf-8"):
        write_sample("mariadb", old_database.dsn, CONTACTS)
    done = run(todo, folder, postgres, postgres_database, old_database, gate.settings if gate is not None else {})
    for command in (step for step in todo if isinstance(step, Command)):
        code, said = done.get(command.line, (None, ""))
        where = f"{page.relative_to(ROOT)}:{command.line}: {command.text}\n{said[-3000:]}"
        assert code in command.exits, f"exit code {code}: {where}"
        assert "Traceback" not in said, where
        missing = not_said(command.shown, said)
        assert missing is None, f"not in its output: {missing!r}: {where}"


def run(
    todo: list[Command | File],
    folder: Path,
    server: PostgresServer,
    cloud: Database,
    old: Database | None,
    ssh: dict[str, str],
) -> dict[int, tuple[int, str]]:
    """Exit code and output of each command, by its line; one shell runs them all."""
    script = []
    for step in todo:
        if isinstance(step, File):
            script.append(f"cat > '{step.name}' <<'END-OF-FILE'\n{names(step.text, cloud, old)}END-OF-FILE")
        else:
            script.append(f"echo '{_MARK} {step.line}'\n{names(step.text, cloud, old)}\necho \"{_MARK} $?\"")
    path = [str(Path(sys.executable).parent), os.environ["PATH"], str(server.binaries)]
    more = {
        "PATH": ":".join(path), "HOME": str(folder), "LEGACY": "sqlite:///legacy.db", "CLOUD": cloud.socket_dsn,
        **ssh, "NEW_DSN": cloud.dsn, "CRM_PASSWORD": server.password, "CLOUD_PASSWORD": server.password,
        # a keyring in a file under HOME: the one of whoever runs the tests is theirs
        "PYTHON_KEYRING_BACKEND": "keyrings.alt.file.PlaintextKeyring", "XDG_DATA_HOME": str(folder / "keyring"),
    }  # fmt: skip
    with (folder / "said").open("w+", encoding="utf-8", errors="replace") as said:
        subprocess.run(
            ["bash", "--noprofile", "--norc", "-c", "\n".join(script)],
            cwd=folder, env=environment(folder, more), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
            timeout=SECONDS, check=False,
        )  # fmt: skip
        said.seek(0)
        text = said.read()
    found = re.findall(rf"{_MARK} (\d+)\n(.*?){_MARK} (\d+)\n", text, re.DOTALL)
    return {int(line): (int(code), said) for line, said, code in found}


def not_said(shown: tuple[str, ...], said: str) -> str | None:
    """The first of the lines shown that isn't in the output after those before it; None where all are."""
    left = " ".join(said.split())
    for line in shown:
        parts = [re.escape(" ".join(part.split())) for part in line.split("...")]
        found = re.search(r".*?".join(parts), left)
        if found is None:
            return line
        left = left[found.end() :]
    return None


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for match in _LINK.finditer(text):
        link = match[1] or match[2]
        if "://" in link:
            continue
        file, _, anchor = link.partition("#")
        goal = (page.parent / file).resolve() if file else page
        assert goal.exists(), f"{page.name}: {link}"
        assert goal.is_relative_to(ROOT), f"{page.name}: {link}"
        if anchor:
            assert anchor in anchors(goal), f"{page.name}: {link}"


def test_generated_pages_are_current() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_messages_and_code_name_pages_that_are_there() -> None:
    rooms = ("packhorse", "cli", "agent", "engine", "connectors", "workspace", "sample_data", "bench")
    for room in rooms:
        for file in (ROOT / room).rglob("*.py"):
            for name in re.findall(r"docs/[\w/-]+\.\w+", file.read_text(encoding="utf-8")):
                assert (ROOT / name).exists(), f"{file.relative_to(ROOT)} names {name}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    todo = [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in seen:
            continue
        seen.add(page)
        for match in _LINK.finditer(page.read_text(encoding="utf-8")):
            goal = (page.parent / (match[1] or match[2]).partition("#")[0]).resolve()
            if goal.suffix == ".md":
                todo.append(goal)
    assert {page for page in PAGES if page not in seen} == set()


def test_blocks_that_are_not_run_say_why() -> None:
    shown = [
        (page, block) for page in PAGES for block in blocks(page)
        if block.language == "console" and block.words.startswith("shown:")
    ]  # fmt: skip
    assert all(len(block.words.removeprefix("shown:").split()) > 2 for _, block in shown)
    assert len(shown) <= 8
