"""What docs/extend.md tells people to write is put where it says, and used as it shows."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

from partly.cli.app import app
from partly.data import formats

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "extend.md").read_text("utf-8")
PARTS = re.findall(r"^## (A .*?)\n(.*?)(?=^## )", TEXT, re.S | re.M)
BLOCK = re.compile(r'```python title="(.*?)"\n(.*?)```', re.S)


@pytest.mark.parametrize(("title", "text"), PARTS, ids=[title for title, _ in PARTS])
def test_an_example_works_as_it_is_shown(title, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(app, "registered_commands", [*app.registered_commands])  # an example adds one
    formats.discover.cache_clear()
    names = set()
    try:
        for place, code in BLOCK.findall(text):
            if place.startswith("src/"):
                names.add(_put(place, code, tmp_path, monkeypatch))
            else:
                space = {"__name__": place}
                exec(compile(code, place, "exec"), space)  # noqa: S102 - it is the documentation
                for test in [value for name, value in space.items() if name.startswith("test_")]:
                    test()
    finally:
        formats.discover.cache_clear()
        for name in names:
            del sys.modules[name]
    assert names


def _put(place, code, folder, monkeypatch):
    """Write a file of the package beside it, into a folder that its package is read from too."""
    (folder / Path(place).name).write_text(code, "utf-8")
    package = ".".join(Path(place).parent.parts[1:])
    path = importlib.import_module(package).__path__
    monkeypatch.setattr(sys.modules[package], "__path__", [*path, str(folder)])
    return f"{package}.{Path(place).stem}"


def test_every_kind_is_there():
    assert [title for title, _ in PARTS] == [
        "A method",
        "A head",
        "A backbone",
        "A question strategy",
        "A format",
        "A command",
    ]
    assert not re.search(r"```python\n", TEXT)  # each block has a title, and so is run above
