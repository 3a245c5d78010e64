"""The README is short, generated pages are up to date, links lead somewhere. That code blocks run: tests/pages."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest

from pages.blocks import blocks
from partly import methods
from partly.registry import sections

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]


def test_the_python_example_of_the_readme_is_short_and_there() -> None:
    first = next(block.body for block in blocks(ROOT / "README.md") if block.language == "python")
    assert len([line for line in first.splitlines() if line.strip()]) <= 20
    assert re.search(r"model\.save\(.*, overwrite=True\)", first)  # so that it can be run again


@pytest.mark.parametrize("script", ["generate", "front"])
def test_generated_pages_are_up_to_date(script: str) -> None:
    spec = importlib.util.spec_from_file_location(script, ROOT / "docs" / f"{script}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main(check=True) == 0, "run `make docs`"


def test_every_method_has_the_sections_of_the_template() -> None:
    wanted = ["When to use", "Formula", "Reference", "Known negatives", "Differences from the paper", "Defaults"]
    for name, info in methods.discover().items():
        assert [heading for heading in sections(info.text) if heading in wanted] == wanted, name


def test_notebooks_are_kept_without_output_and_are_all_listed() -> None:
    listed = (ROOT / "docs" / "notebooks.md").read_text("utf-8") + (ROOT / "mkdocs.yml").read_text("utf-8")
    for path in (ROOT / "docs" / "notebooks").glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert not any(cell.outputs or cell.execution_count for cell in code), path.name
        assert notebook.cells[0].source.startswith("# "), path.name
        assert f"notebooks/{path.stem}.ipynb" in listed, path.name
        assert f"notebooks/{path.stem}.md" in listed, path.name


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / page).read_text("utf-8")):
            assert (ROOT / page).parent.joinpath(target).exists(), f"{page} -> {target}"


def test_every_kind_of_reader_has_a_start() -> None:
    text, site = (ROOT / "docs" / "start.md").read_text("utf-8"), (ROOT / "mkdocs.yml").read_text("utf-8")
    tutorials = {f"tutorials/{path.name}" for path in (ROOT / "docs" / "tutorials").glob("*.md")}
    assert len(tutorials) == 7
    assert set(re.findall(r"\]\((tutorials/\w+\.md)\)", text)) == tutorials
    assert all(f": {name}\n" in site for name in tutorials)
