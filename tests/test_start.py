"""The commands of docs/start.md run as they stand there, a folder for each kind of reader."""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from partly.commands.cli import app

TEXT = (Path(__file__).resolve().parent.parent / "docs" / "start.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^## (I .*?)\n(.*?)(?=^## |\Z)", TEXT, re.S | re.M))
LABELS = ("Animal", "Cat", "Dog")
ITEMS = 60


@pytest.fixture
def there(tmp_path, monkeypatch):
    """A folder with all files that the commands name; a tenth of the entries is unknown."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ITEMS, 3))
    cat, dog = x[:, 0] > 0.3, x[:, 1] > 0.3
    z = np.stack([cat | dog, cat, dog], axis=1).astype(int)
    ids = [f"{i}.png" for i in range(ITEMS)]
    words = [["a house", *(name for name, yes in zip(LABELS, row, strict=True) if yes)] for row in z]
    cells = np.where(rng.random(z.shape) < 0.1, "", z.astype(str))
    _table("features.csv", ["item", "a", "b", "c"], zip(ids, *x.T.round(3), strict=True))
    _table("new.csv", ["item", "a", "b", "c"], [("new", 0.1, 0.2, 0.3)])
    _table("labels.csv", ["item", *LABELS], zip(ids, *cells.T, strict=True))
    _table("texts.csv", ["item", "text"], [(one, " and ".join(parts)) for one, parts in zip(ids, words, strict=True)])
    _table("tags.csv", ["item", "label"], [(ids[i], LABELS[j]) for i, j in np.argwhere(z)])
    _table("parents.csv", ["child", "parent"], [("Cat", "Animal"), ("Dog", "Animal")])
    Path("photos").mkdir()
    for name in ids:
        Image.fromarray(rng.integers(0, 256, (16, 16, 3), dtype=np.uint8)).save(Path("photos") / name)
    Path("instances.json").write_text(json.dumps(_coco(ids, z)), "utf-8")


def _table(name, header, rows):
    with open(name, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def _coco(ids, z):
    found = np.argwhere(z).tolist()
    return {
        "images": [{"id": i, "file_name": name, "width": 16, "height": 16} for i, name in enumerate(ids)],
        "categories": [{"id": j, "name": name} for j, name in enumerate(LABELS)],
        "annotations": [
            {"id": k, "image_id": i, "category_id": j, "bbox": [0, 0, 4, 4], "area": 16, "iscrowd": 0}
            for k, (i, j) in enumerate(found)
        ],
    }


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("title", SECTIONS)
def test_the_commands_of_a_section_run(title):
    lines = [line for block in re.findall(r"```\n(.*?)```", SECTIONS[title], re.S) for line in block.splitlines()]
    commands = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("partly ")]
    assert commands
    for words in commands:
        if words[0] == "annotate":  # a server, which does not end; tests/annotate has it
            continue
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, f"partly {shlex.join(words)}\n{done.output}\n{done.exception!r}"


def test_every_kind_of_reader_is_there():
    assert len(SECTIONS) == 7
