"""What the README and the guides show, runs as it stands there."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from partly import methods

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md"))]
PYTHON = [
    pytest.param(page, block, id=f"{page}-{number}")
    for page in PAGES
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.S), 1)
    if "class Method" not in block  # the contract, shown in outline
]


@pytest.mark.parametrize(("page", "block"), PYTHON)
def test_the_python_examples_run(page: str, block: str, tmp_path: Path) -> None:
    strict = [] if "import lightning" in block else ["-W", "error"]  # it uses what torch has deprecated
    done = subprocess.run([sys.executable, *strict, "-c", block], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, f"{page}:\n{block}\n{done.stderr}"


def test_the_python_example_of_the_readme_is_short_and_there() -> None:
    (first, *_) = [values for values in PYTHON if values.id == "README.md-1"]
    assert len([line for line in first.values[1].splitlines() if line.strip()]) <= 20
    assert re.search(r"model\.save\(.*, overwrite=True\)", first.values[1])  # so that it can be run again


def test_the_first_commands_of_the_start_run(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "start.md").read_text("utf-8")
    section = text.split("## See it work first")[1].split("\n## ")[0]
    commands = re.search(r"```\n(.*?)```", section, re.S).group(1).strip().splitlines()
    assert len(commands) == 4
    for command in commands:
        program, *words = shlex.split(command)
        assert program == "partly"
        done = subprocess.run([sys.executable, "-m", "partly", *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert "mAP" in done.stdout
    assert (tmp_path / "runs/scenes/report.html").stat().st_size > 10_000


@pytest.mark.parametrize("script", ["generate", "front"])
def test_generated_pages_are_up_to_date(script: str) -> None:
    spec = importlib.util.spec_from_file_location(script, ROOT / "docs" / f"{script}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main(check=True) == 0, "run `make docs`"


def test_every_method_says_when_to_take_it_and_its_formula() -> None:
    for name, info in methods.discover().items():
        assert re.search(r"^Take it: ", info.text, re.M), name
        assert re.search(r"^Formula:\n\n    \S", info.text, re.M), name


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
