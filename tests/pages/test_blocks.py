"""Every code block of README and the guides runs as it stands there, page after page, block after block."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import socket
import tomllib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from evidence import __main__ as evidence
from pages.blocks import PAGES, ROOT, Block, blocks
from pages.prepared import prepare
from partly.cli import main

ELSEWHERE = ("extend.md",)  # its blocks are files of a tree, which tests/test_extend.py makes
CODE = [page for page in PAGES if page.name not in ELSEWHERE and any(block.language for block in blocks(page))]
MARKED = 14  # blocks that say that they are not run, and why


@pytest.fixture(scope="session")
def small_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    prepare(folder)
    return folder


@pytest.fixture
def queue(small_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one's own with the small files, and pages for people that close as soon as they are open."""
    shutil.copytree(small_files, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: server.config.load())
    monkeypatch.setattr("partly.annotate.server.listen", lambda host, _: socket.create_server((host, 0)))
    monkeypatch.setattr("partly.engine.resolution.MAX_DEFAULT_STEPS", 6)  # where a page does not say how long to train
    return tmp_path


@pytest.mark.parametrize("page", CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_run(page: Path, queue: Path) -> None:
    run = [block for block in blocks(page) if block.language and not block.not_run]
    make_run("".join(block.body for block in run))
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in run:
        with told_where(block):
            if block.language == "python":
                run_python(block, names)
            else:
                for words in block.commands:
                    PROGRAMS[words[0]](words[1:])


def make_run(said: str) -> None:
    """The run of which pages speak that do not train it themselves."""
    if "runs/mine" in said and "--run runs/mine" not in said:
        run_partly(shlex.split("train features.csv --labels labels.csv --run runs/mine --method bce --head linear"))


def run_python(block: Block, names: dict[str, Any]) -> None:
    lines = "\n" * (block.line - 1)  # so that a traceback names the line of the page
    with warnings.catch_warnings():
        if "import lightning" in block.body:  # it uses what torch has deprecated
            warnings.simplefilter("ignore")
        exec(compile(lines + block.body, block.page, "exec"), names)  # noqa: S102, the pages are ours


def run_partly(words: list[str]) -> None:
    if words[0] == "demo":
        words = [*words, "--items", "300"]  # in its full size: .ci/installed
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # words to whoever has called
        done = CliRunner().invoke(main.app, words)
    if done.exception and not (isinstance(done.exception, SystemExit) and done.exit_code == 0):
        raise AssertionError(f"partly {' '.join(words)}\n{done.output}") from done.exception


def extra_is_there(words: list[str]) -> None:
    """What is to be installed is the package, with extras that it has."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    verb, *what = words
    assert verb == "install"
    for word in what:
        package, named = re.fullmatch(r"([\w.]+)(?:\[([\w,]+)\])?", word).groups()
        assert package in ("partly", ".")
        assert set(named.split(",") if named else ()) <= set(extras), word


def target_is_there(words: list[str]) -> None:
    assert set(words) <= set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)), words


def run_evidence(words: list[str]) -> None:
    assert words[:2] == ["-m", "evidence"], words
    assert evidence.main(words[2:]) == 0


PROGRAMS: dict[str, Callable[[list[str]], None]] = {
    "partly": run_partly,
    "pip": extra_is_there,
    "make": target_is_there,
    "python": run_evidence,
}


@contextlib.contextmanager
def told_where(block: Block) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"{block.page.relative_to(ROOT)}:{block.line}\n{block.body}")
        raise


def test_blocks_that_are_not_run_are_counted() -> None:
    """Each says why. A block more is a decision: mark it, and count it here."""
    marked = [
        f"{block.page.name}:{block.line}: {block.not_run}" for page in CODE for block in blocks(page) if block.not_run
    ]
    assert len(marked) == MARKED, "\n".join(marked)
