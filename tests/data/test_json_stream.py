"""Which keys a JSON document has, without reading more of it than that takes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from partly.data.json_stream import top_keys


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
def test_what_is_nested_deeply_takes_by_its_length(tmp_path: Path, opens: str, closes: str) -> None:
    """And not by its square: 200,000 brackets took minutes."""
    path = tmp_path / "a.json"
    path.write_text(opens * 200_000 + "1" + closes * 200_000)
    begun = time.process_time()
    list(top_keys(path))
    assert time.process_time() - begun < 10
