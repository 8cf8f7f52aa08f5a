"""Models that are kept and pulled: what is listed, what decides by default, and a pull through every mishap.

No hub can be reached where these run: FakeHub stands in for it, and one test meets the missing network itself.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from agent.models import kept
from agent.models.catalogue import CATALOGUE, DEFAULT, EMBEDDED_SHA256, EMBEDDED_SIZE, named
from agent.models.embedded import embedded_model_path
from agent.models.gguf_file import sha256_of
from tests.cli_runner import MIGRATE, environment, migrate
from tests.fake_hub import COMMIT, FakeHub
from tests.gguf_writer import write_gguf
from workspace.errors import ModelError, UsageError

ON_THE_HUB = "acme/tiny/tiny.gguf"
CHUNK = 10 * 2**20  # the hub's library writes so much at a time: what is less is lost with the connection


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A sound GGUF file of 26 MB."""
    return write_gguf(tmp_path_factory.mktemp("hub") / "tiny.gguf", values=6_500_000).read_bytes()


def test_pulls_lists_and_checks_again(tmp_path: Path, content: bytes) -> None:
    with FakeHub(content) as hub:
        env = hub.environment(tmp_path / "home")
        done = migrate("model", "pull", ON_THE_HUB, "--json", cwd=tmp_path, env=env)
        assert done.code == 0, done
        pulled = Path(done.json["path"])
        assert pulled == tmp_path / "home" / "models" / "tiny.gguf"
        assert done.json["sha256"] == hashlib.sha256(content).hexdigest()
        assert done.json["verified"]
        assert done.json["origin"] == f"acme/tiny@{COMMIT[:12]}"
        assert pulled.read_bytes() == content
        assert not list(pulled.parent.glob("*.part"))
        asked = len(hub.ranges)
    listed = migrate("model", "list", "--json", cwd=tmp_path, env=env).json
    assert [(each["name"], each["verified"], each["default"]) for each in listed["models"]] == [
        ("embedded", True, True), ("tiny", True, False),
    ]  # fmt: skip
    assert {each["name"] for each in listed["to_pull"]} == set(CATALOGUE)
    again = migrate("model", "pull", ON_THE_HUB, cwd=tmp_path, env=env)  # the hub is gone: the file is all it needs
    assert (again.code, again.out.strip()) == (0, str(pulled))
    assert len(hub.ranges) == asked

    with pulled.open("r+b") as file:
        file.seek(1000)
        file.write(b"x")
    shown = migrate("model", "list", cwd=tmp_path, env=env).out
    assert "NOT VERIFIED" in shown
    migrate("model", "pull", ON_THE_HUB, cwd=tmp_path, env=env).refused("PH-301", "another file of that name is there")


def test_a_cut_connection_is_taken_up_at_once_where_it_can_be(tmp_path: Path, content: bytes) -> None:
    with FakeHub(content, cut_at=[CHUNK + 5_000_000]) as hub:
        done = migrate("model", "pull", ON_THE_HUB, cwd=tmp_path, env=hub.environment(tmp_path / "home"))
    assert done.code == 0, done
    assert hub.ranges == ["", f"bytes={CHUNK}-"]
    assert Path(done.out.strip()).read_bytes() == content


def test_a_pull_that_failed_goes_on_from_there(tmp_path: Path, content: bytes) -> None:
    with FakeHub(content, cut_at=[CHUNK + 5_000_000, 0, 0, 0, 0, 0, 0, 0]) as hub:
        env = hub.environment(tmp_path / "home")
        failed = migrate("model", "pull", ON_THE_HUB, cwd=tmp_path, env=env)
        failed.refused("PH-301", f"was cut after {CHUNK:,} bytes", "run it again")
        assert not (tmp_path / "home" / "models" / "tiny.gguf").exists()
        hub.cut_at.clear()
        hub.ranges.clear()
        done = migrate("model", "pull", ON_THE_HUB, cwd=tmp_path, env=env)
        assert done.code == 0, done
        assert hub.ranges == [f"bytes={CHUNK}-"]
        assert Path(done.out.strip()).read_bytes() == content


def test_a_killed_pull_goes_on_from_there_and_two_at_once_are_told(tmp_path: Path, content: bytes) -> None:
    with FakeHub(content, still_at=CHUNK + 1_000_000) as hub:
        env = hub.environment(tmp_path / "home")
        child = subprocess.Popen([MIGRATE, "model", "pull", ON_THE_HUB], cwd=tmp_path, env=environment(tmp_path, env))
        deadline = time.monotonic() + 60
        folder = tmp_path / "home" / "models"
        while not any(part.stat().st_size >= CHUNK for part in folder.glob("*.part")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        migrate("model", "pull", ON_THE_HUB, cwd=tmp_path, env=env).refused("PH-301", "another process pulls it")
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        hub.still_at = 0
        hub.ranges.clear()
        done = migrate("model", "pull", ON_THE_HUB, cwd=tmp_path, env=env)
        assert done.code == 0, done
        assert hub.ranges == [f"bytes={CHUNK}-"]
        assert Path(done.out.strip()).read_bytes() == content


def test_what_has_a_wrong_hash_is_removed_and_never_used(tmp_path: Path, content: bytes) -> None:
    spoilt = bytearray(content)
    spoilt[-1] ^= 1
    with FakeHub(bytes(spoilt), etag=hashlib.sha256(content).hexdigest()) as hub:
        env = hub.environment(tmp_path / "home")
        migrate("model", "pull", ON_THE_HUB, cwd=tmp_path, env=env).refused("PH-301", "it was removed")
        assert not [file for file in (tmp_path / "home" / "models").iterdir() if file.suffix in (".gguf", ".part")]
        hub.content = content
        assert migrate("model", "pull", ON_THE_HUB, cwd=tmp_path, env=env).code == 0


def test_another_file_under_a_pinned_name_is_refused_before_a_byte_comes(tmp_path: Path, content: bytes) -> None:
    with FakeHub(content) as hub:
        env = hub.environment(tmp_path / "home")
        migrate("model", "pull", DEFAULT, cwd=tmp_path, env=env).refused("PH-301", "5,027,783,488 are pinned")
        hub.size = CATALOGUE[DEFAULT].size
        migrate("model", "pull", DEFAULT, cwd=tmp_path, env=env).refused("PH-301", "another file there")
        hub.size = 10**15
        migrate("model", "pull", ON_THE_HUB, cwd=tmp_path, env=env).refused("PH-301", "931322.6 GiB are to come")
        hub.etag = "not-a-hash"
        migrate("model", "pull", ON_THE_HUB, cwd=tmp_path, env=env).refused("PH-301", "gives no SHA-256")
        nowhere = "acme/tiny/nowhere.gguf"
        migrate("model", "pull", nowhere, cwd=tmp_path, env=env).refused("PH-301", "no such file")
        assert hub.ranges == []


def test_without_a_network_it_says_what_to_do_and_checks_what_was_carried_here(tmp_path: Path) -> None:
    env = {"HF_ENDPOINT": "http://127.0.0.1:9"}
    failed = migrate("model", "pull", DEFAULT, cwd=tmp_path, env=env)
    failed.refused("PH-301", "cannot be reached", CATALOGUE[DEFAULT].sha256, "without a network")
    folder = tmp_path / "data-home" / "models"
    write_gguf(folder / CATALOGUE[DEFAULT].file)
    migrate("model", "pull", DEFAULT, cwd=tmp_path, env=env).refused("PH-301", "another file of that name is there")
    offline = {"HF_HUB_OFFLINE": "1"}
    migrate("model", "pull", "qwen3-4b", cwd=tmp_path, env=offline).refused("PH-301", "cannot be reached")


def test_what_was_pulled_decides_by_default_where_memory_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PACKHORSE_DATA_HOME", str(tmp_path))
    assert kept.path_of(None) == embedded_model_path()
    folder = tmp_path / "models"
    folder.mkdir()
    path = write_gguf(folder / CATALOGUE[DEFAULT].file)
    assert kept.default_model()[1] == "qwen3-8b is not pulled"  # a file that nobody looked at is nothing to rely on
    kept.write_note(path, CATALOGUE[DEFAULT], COMMIT, sha256_of(path))
    assert kept.path_of(None) == path
    assert kept.path_of("Qwen3-8B") == path
    assert kept.path_of("embedded") == embedded_model_path()
    with pytest.raises(ModelError, match="not on this machine"):
        kept.path_of("qwen3-4b")
    os.truncate(path, 10**13)  # sparse: no machine has the memory
    kept.write_note(path, CATALOGUE[DEFAULT], COMMIT, "")
    assert kept.path_of(None) == embedded_model_path()
    assert "needs 11641.5 GiB" in kept.default_model()[1]


def test_the_embedded_model_is_the_one_that_is_named() -> None:
    path = embedded_model_path()
    assert path.stat().st_size == EMBEDDED_SIZE
    assert sha256_of(path) == EMBEDDED_SHA256


@pytest.mark.parametrize("name", ["qwen", "a/b", "a/b/c.bin", "a/b/../../c.gguf", "https://x/y.gguf", ""])
def test_only_names_and_gguf_files_can_be_pulled(name: str) -> None:
    with pytest.raises(UsageError, match="no model is called"):
        named(name)
