"""Which keys and elements a JSON document has, without reading more of it than that takes."""

from __future__ import annotations

import json
import re
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from partly import data
from partly.data.json_stream import elements, open_checked, top_keys
from partly.errors import DataError


@pytest.mark.parametrize(
    ("document", "keys"),
    [
        ({"a": 1, "b": [1, {"c": 2}], "d": {"e": 3}}, ["a", "b", "d"]),
        ([{"a": {"b": [{"c": 1}]}, "d": 2}, {"e": 3}], [None, "a", "d"]),
        ({}, []),
        ([], [None]),
        ([{}], [None]),
        ([1, {"a": 2}], [None]),
        ([[{"a": 1}]], [None]),
        (None, []),
        ("a", []),
    ],
)
def test_keys(tmp_path: Path, document: Any, keys: list[str | None]) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document))
    assert list(top_keys(path)) == keys


@pytest.mark.parametrize(("opens", "closes"), [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("ask", [top_keys, partial(elements, where=""), partial(elements, where="a")])
def test_what_is_nested_deeply_is_refused_at_once(tmp_path: Path, opens: str, closes: str, ask: Any) -> None:
    """200,000 brackets took minutes and gigabytes, by their square."""
    path = tmp_path / "a.json"
    path.write_text(opens * 200_000 + "1" + closes * 200_000)
    begun = time.process_time()
    with pytest.raises(DataError, match=rf"{re.escape(str(path))}: brackets are nested more than 100 deep"):
        list(ask(path))
    assert time.process_time() - begun < 10


@pytest.mark.parametrize("part", ["images", "annotations", "categories"])
def test_also_inside_a_coco_file(tmp_path: Path, part: str) -> None:
    path = tmp_path / "a.json"
    whole = {"images": [], "annotations": [], "categories": [], part: ["deep"]}
    path.write_text(json.dumps(whole).replace('"deep"', "[" * 200_000 + "]" * 200_000))
    with pytest.raises(DataError, match="more than 100 deep"):
        data.read_labels(path, absent="no")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1 << 16])
@pytest.mark.parametrize("text", ["[" * 300, '"' + "{" * 300, "\\" * 5 + "[" * 300, '\\"[' * 200, "é\n\\" + "]" * 9])
def test_brackets_in_strings_are_no_depth(tmp_path: Path, text: str, size: int) -> None:
    """However the parts are cut that are read."""
    path = tmp_path / "a.json"
    deep: Any = {text: text}
    for _ in range(97):
        deep = [deep, {}]
    path.write_text(json.dumps([deep, text, [deep]]))
    read_by(size, path)
    assert list(elements(path, "")) == json.loads(path.read_text())
    path.write_text(json.dumps([text, [[deep]]]))
    with pytest.raises(DataError, match="more than 100 deep"):
        read_by(size, path)


def read_by(size: int, path: Path) -> None:
    with open_checked(path) as file:
        while file.read(size):
            pass
