"""Labels from lists of tags."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import partly
from partly.errors import LabelError
from partly.labels import Labels

EXPECTED = {
    "unknown": [[1, 1, 0], [0, 1, 1], [0, 0, 0], [0, 0, 0]],
    "no": [[1, 1, -1], [-1, 1, 1], [-1, -1, -1], [0, 0, 0]],
}
ROWS: dict[str, Any] = {
    "lists": [["cat", "dog"], ["dog", "sun"], [], None],
    "tuples and sets": [("cat", "dog"), {"sun", "dog"}, set(), float("nan")],
    "texts": ["cat;dog", "dog; sun;", "[]", ""],
    "texts with |": ["cat|dog", "dog|sun", "[]", None],
    "texts with ,": ["cat, dog", "dog,sun", "[]", " "],
    "lists in quotes": ["['cat', 'dog']", '["dog", "sun"]', "[ ]", ""],
    "pandas": pd.Series([["cat", "dog"], ["dog", "sun"], [], None]),
    "pandas texts": pd.Series(["cat;dog", "dog;sun", "[]", None]),
    "polars": pl.Series([["cat", "dog"], ["dog", "sun"], [], None]),
    "Arrow": pa.array([["cat", "dog"], ["dog", "sun"], [], None]),
    "Arrow, chunked": pa.chunked_array(
        [pa.array([["cat", "dog"], ["dog", "sun"]]), pa.array([[], None], pa.list_(pa.string()))]
    ),
    "a generator": (row for row in [["cat", "dog"], ["dog", "sun"], [], None]),
}


@pytest.mark.parametrize("case", ROWS)
def test_tags_are_yes_and_silence_is_what_the_caller_says(case: str) -> None:
    rows = list(ROWS[case]) if case == "a generator" else ROWS[case]
    for absent, expected in EXPECTED.items():
        labels = Labels.from_tags(rows, absent=absent)
        assert labels.names == ("cat", "dog", "sun")
        assert labels.rows(slice(None)).tolist() == expected


def test_names_and_ids() -> None:
    rows = pd.Series([["b"], ["a"]], index=["x", "y"])
    labels = Labels.from_tags(rows, absent="no", names=["a", "b", "c"])
    assert (labels.names, labels.ids) == (("a", "b", "c"), ("x", "y"))
    assert labels.ternary().tolist() == [[-1, 1, -1], [1, -1, -1]]
    assert Labels.from_tags([[1, 20]], absent="no", ids=["p"]).names == ("1", "20")
    assert Labels.from_tags(["a b", "b"], absent="no", separator=" ").names == ("a", "b")


REFUSED: dict[str, tuple[Any, dict[str, Any], list[str]]] = {
    "silence": ([["a"]], {"absent": None}, ["absent='unknown'", "absent='no'"]),
    "another word": ([["a"]], {"absent": "yes"}, ["absent = 'yes'"]),
    "two separators": (["a;b", "b, c"], {}, ["';' in 'a;b'", "',' in 'b, c'", "separator="]),
    "no separator": (["a;b"], {"separator": ""}, ["separator"]),
    "unknown tags": ([["a"], ["dgo"]], {"names": ["a", "dog"]}, ["item 1: 'dgo'", "Did you mean 'dog'"]),
    "names that differ by case": ([["Cat"], ["cat"]], {}, ["'Cat' and 'cat'"]),
    "a text": ("cat", {}, ["got 'cat'", "[['cat', 'dog']]"]),
    "a number": (3, {}, ["got 3"]),
    "a number as row": ([["a"], 3], {}, ["item 1: 3"]),
    "a list without quotes": (["['a', b]"], {}, ["item 0", "quotes"]),
    "a list that never ends in quotes": (["[" + "'a'," * 50_000 + "'b]"], {}, ["item 0"]),
    "None inside": ([["a", None]], {}, ["item 0", "None"]),
    "a table": (pd.DataFrame({"a": ["x"], "b": ["y"]}), {}, ["one column"]),
    "too few ids": ([["a"], ["b"]], {"ids": ["x"]}, ["1 ids for 2 items"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_tag_is_refused_with_its_place(case: str) -> None:
    rows, how, words = REFUSED[case]
    with pytest.raises(LabelError) as caught:
        Labels.from_tags(rows, **{"absent": "no"} | how)
    for word in words:
        assert word in str(caught.value)


def test_the_order_of_names_does_not_depend_on_the_process() -> None:
    program = "import partly; print(partly.Labels.from_tags([set('qwertyuiop')], absent='no').names)"
    found = {
        subprocess.run(
            [sys.executable, "-c", program], env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert b"'e', 'i'" in found.pop()


@pytest.mark.parametrize(
    "y", [[["a"], ["b"], []], ["a;b", "b", "c"], [{"a"}, set(), {"b"}], pd.Series([["a"], [], ["b"]])]
)
def test_fit_names_the_constructor_for_tags(y: Any) -> None:
    with pytest.raises(LabelError, match=r"Labels\.from_tags\(\.\.\., absent='unknown'\)"):
        partly.Classifier("bce", progress=False).fit(np.eye(3), y)


def test_pandas_and_back() -> None:
    labels = Labels.from_ternary([[1, -1, 0], [0, 1, 1]], names=["cat", "dog", "boat"], ids=["a", "b"])
    table = labels.to_pandas()
    assert list(table.columns) == ["cat", "dog", "boat"]
    assert list(table.index) == ["a", "b"]
    assert table.fillna(-9).to_numpy().tolist() == [[1, 0, -9], [-9, 1, 1]]
    assert Labels.from_nan(table) == labels
    assert Labels.from_nan(Labels.from_full([[1, 0]]).to_pandas()) == Labels.from_full([[1, 0]])
