"""CSV cells that a spreadsheet would run: warned of, and harmless where that is asked for."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import numpy as np
import pytest

from partly import data
from partly.labels import Labels

RUN = ("=cmd|' /C calc'!A0", "+1+cmd|x", "-2+3", "@SUM(A1)", "\t=1+1")
PLAIN = ("cat", "-5", "+3.5e2", "a=b", "'quoted", ".5")


def cells(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("word", RUN)
def test_a_formula_is_warned_of_and_made_harmless(tmp_path: Path, word: str) -> None:
    scores = np.zeros((2, 2), np.float32)
    with pytest.warns(UserWarning, match=r"a\.csv: 2 cells look like formulas .*--safe-csv"):
        data.write_scores(tmp_path / "a.csv", scores, ["one", word], [word, "b"])
    assert cells(tmp_path / "a.csv")[0][1] == word
    with data.for_spreadsheets():
        data.write_scores(tmp_path / "a.csv", scores, ["one", word], [word, "b"])
    found = cells(tmp_path / "a.csv")
    assert found[0] == ["item", f"'{word}", "b"]
    assert found[2][0] == f"'{word}"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data.write_scores(tmp_path / "a.parquet", scores, ["one", word], [word, "b"])
    assert data.read_scores(tmp_path / "a.parquet").ids == ("one", word)


def test_what_does_nothing_stays_as_it_is(tmp_path: Path) -> None:
    labels = Labels.from_full(np.eye(len(PLAIN)), ids=PLAIN, names=[f"l {name}" for name in PLAIN])
    for form in ("wide", "long"):
        data.write_labels(labels, tmp_path / "plain.csv", form=form)
        with data.for_spreadsheets():
            data.write_labels(labels, tmp_path / "safe.csv", form=form)
        assert cells(tmp_path / "plain.csv") == cells(tmp_path / "safe.csv")
    assert data.read_labels(tmp_path / "safe.csv").ids == PLAIN
