"""The README is short, generated pages are up to date, links lead somewhere. That code blocks run: tests/pages."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from pages.blocks import blocks

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))]


def test_the_python_example_of_the_readme_is_short_and_there() -> None:
    first = next(block.body for block in blocks(ROOT / "README.md") if block.language == "python")
    assert len([line for line in first.splitlines() if line.strip()]) <= 20
    assert re.search(r"model\.save\(.*, overwrite=True\)", first)  # so that it can be run again


def test_generated_pages_are_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    readme = (ROOT / "README.md").read_text("utf-8")
    assert generate.with_table(readme) == readme, "run `make docs`"
    assert generate.recipes() == (ROOT / "docs" / "recipes.md").read_text("utf-8"), "run `make docs`"
    assert generate.page() == (ROOT / "docs" / "methods.md").read_text("utf-8"), "run `make docs`"


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text("utf-8")):
            assert (ROOT / page).parent.joinpath(target).exists(), f"{page} -> {target}"
