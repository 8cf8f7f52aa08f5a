"""The documentation as a site: it shows what GitHub shows, a mistake in it is an error, and it needs no network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from markdown_it import MarkdownIt
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parent.parent
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")
PAGES = sorted((ROOT / "docs").rglob("*.md"))
LOOKED_AT = ["index.html", "tutorial.html", "how-to/quarantine.html", "reference/cli.html", "reference/functions.html"]
WIDTHS = {"desktop": (1280, 900), "phone": (390, 844)}
_KINDS = ("li", "ul", "ol", "td", "th", "pre", "h1", "h2", "h3", "h4", "img", "a", "blockquote")


def build(root: Path, to: Path) -> subprocess.CompletedProcess[str]:
    """What `make site` does, of that root's pages, into that folder."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-f", str(root / "mkdocs.yml"), "-d", str(to)],
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built."""
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module", params=["file", "http"])
def address(request: pytest.FixtureRequest, site: Path) -> Iterator[str]:
    """Where the site is read: as files, and from a server in a folder of its."""
    if request.param == "file":
        yield site.as_uri()
        return
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium: apt install chromium")
    with sync_playwright() as playwright:
        # as root Chromium runs without a sandbox only; what it opens here is our own site
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def opened(browser: Browser, address: str, width: str = "desktop") -> tuple[Page, list[str]]:
    """A page to look with, and what goes amiss in it: errors, and each request to anywhere but the site."""
    across, down = WIDTHS[width]
    page, amiss = browser.new_page(viewport={"width": across, "height": down}), []
    page.on("console", lambda message: amiss.append(message.text))
    page.on("pageerror", lambda error: amiss.append(str(error)))
    page.on("request", lambda request: None if request.url.startswith(address) else amiss.append(request.url))
    return page, amiss


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_open_without_an_error_a_foreign_request_or_scrolling_sideways(
    browser: Browser, address: str, width: str
) -> None:
    page, amiss = opened(browser, address, width)
    for name in LOOKED_AT:
        page.goto(f"{address}/{name}")
        page.wait_for_load_state("networkidle")
        assert page.locator("article h1").count() == 1
        assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[width][0], name
    assert not amiss


def test_the_search_finds_a_page(browser: Browser, address: str) -> None:
    page, amiss = opened(browser, address)
    page.goto(f"{address}/how-to/scope.html")
    page.locator(".md-search__input").first.click()
    page.keyboard.type("watermark")  # it searches as keys are let go
    found = page.locator(".md-search-result__link[href*='how-to/sync.html']").first
    found.wait_for()
    page.goto(str(found.evaluate("link => link.href")))
    assert page.locator("article h1").inner_text().startswith("Catch up, and cut over")
    assert not amiss


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_site_can_be_read_by_all(browser: Browser, site: Path, scheme: str) -> None:
    page = browser.new_page(color_scheme=scheme)
    for name in LOOKED_AT:
        page.goto(f"{site.as_uri()}/{name}")
        found = Axe().run(page).response["violations"]
        grave = [each["id"] for each in found if each["impact"] in ("serious", "critical")]
        assert not grave, f"{name}: {grave}"


class Shown(HTMLParser):
    """The text of a piece of HTML without its blanks, and how often each kind of element stands in it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.kinds: Counter[str] = Counter()
        self.pieces: list[str] = []
        self.feed(html)
        self.text = re.sub(r"\s+", "", "".join(self.pieces))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _KINDS and (tag != "a" or "href" in dict(attrs)):
            self.kinds[tag] += 1

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_site_shows_what_github_shows(page: Path, site: Path) -> None:
    made = (site / page.relative_to(ROOT / "docs")).with_suffix(".html").read_text(encoding="utf-8")
    article = re.search(r"<article[^>]*>(.*?)</article>", made, re.DOTALL)
    assert article
    # what the site adds: the name over a block, a link at each heading
    own = re.sub(r'<span class="filename">.*?</span>|<a class="headerlink".*?</a>', "", article[1])
    there, here = Shown(MarkdownIt("gfm-like", {"linkify": False}).render(page.read_text(encoding="utf-8"))), Shown(own)
    assert here.text == there.text
    assert here.kinds == there.kinds


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("docs/how-to/scope.md", "[x](nowhere.md)", "nowhere.md"),
        ("docs/how-to/scope.md", "[x](sync.md#nothing-called-so)", "nothing-called-so"),
        ("docs/how-to/scope.md", "[x](../../cli/app.py)", "cli/app.py"),
        ("CONTRIBUTING.md", "[x](docs/nowhere.md)", "nowhere.md"),
        ("docs/how-to/forgotten.md", "# In no menu", "how-to/forgotten.md"),
    ],
)
def test_a_mistake_is_an_error(file: str, line: str, said: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    for name in ("mkdocs.yml", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "sample_data/README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    with (tmp_path / file).open("a", encoding="utf-8") as page:
        page.write(f"\n{line}\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode == 1
    assert said in done.stdout + done.stderr
