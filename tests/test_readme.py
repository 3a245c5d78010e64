"""What the README and the guides show, runs as it stands there."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md"))]
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


def test_the_commands_of_the_readme_run(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    section = text.split("## The same on the command line")[1].split("\n## ")[0]
    commands = re.search(r"```\n(.*?)```", section, re.S).group(1).strip().splitlines()
    assert len(commands) == 4
    for command in commands:
        program, *words = shlex.split(command)
        assert program == "partly"
        done = subprocess.run([sys.executable, "-m", "partly", *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert "mAP" in done.stdout
    assert (tmp_path / "runs/scenes/report.html").stat().st_size > 10_000


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
