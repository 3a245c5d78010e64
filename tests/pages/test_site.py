"""The site of the documentation, as `make site` builds it, is searched from disk, without a server or a network."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PAGE = "# {}\n\nThe word {} is on this page alone.\n"


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")
def test_the_site_is_searched_from_disk(tmp_path: Path) -> None:
    site = _site(tmp_path)
    playwright = pytest.importorskip("playwright.sync_api")
    fetched = []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: fetched.append(request.url))
        page.goto((site / "index.html").as_uri())
        page.locator("label[for=__search]").first.dispatch_event("click")
        page.locator("input.md-search__input").press_sequentially("walrus")
        found = page.locator(".md-search-result__link").first
        found.wait_for()
        assert found.get_attribute("href").partition("?")[0] == (site / "other.html").as_uri()
        browser.close()
    assert [url for url in fetched if not url.startswith(("file:", "data:", "about:"))] == []


def _site(folder: Path) -> Path:
    """Two pages, with the theme, the plugins and the scripts of the site."""
    kept = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[0]
    lines = [line for line in kept.splitlines() if not line.startswith("hooks:")]  # no notebooks are run
    (folder / "mkdocs.yml").write_text("\n".join([*lines, "nav: [index.md, other.md]"]), "utf-8")
    pages = folder / "docs"
    shutil.copytree(ROOT / "docs" / "assets", pages / "assets")
    for name, word in (("index", "penguin"), ("other", "walrus")):
        (pages / f"{name}.md").write_text(PAGE.format(name.title(), word), "utf-8")
    (folder / "src").mkdir()  # the generated reference is none of this
    subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet"], cwd=folder, check=True)
    return folder / "site"
