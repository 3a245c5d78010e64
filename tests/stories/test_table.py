"""A user with tables: from files on disk, in the shapes that people have, through the command line to results."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import openpyxl
import pytest
from typer.testing import CliRunner

from partly.cli import main
from partly.errors import PartlyError

ITEMS, TRAIN = 80, 60
NAMES = ("label_cat", "label_dog")


class Done(NamedTuple):
    """What came of a command."""

    code: int
    stdout: str
    stderr: str


def partly(folder: Path, *words: object) -> Done:
    """Run a command in a folder, as the entry point does."""
    with chdir(folder):
        result = CliRunner().invoke(main.app, [str(word) for word in words])
    if isinstance(result.exception, PartlyError):
        return Done(2, result.stdout, f"{result.stderr}partly: {result.exception}")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


def succeeds(folder: Path, *words: object) -> Done:
    done = partly(folder, *words)
    assert done.code == 0, done.stderr
    return done


def rows() -> list[dict[str, Any]]:
    """Items whose labels follow from two features; a third of the entries is unknown."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ITEMS, 2))
    known = rng.random((ITEMS, 2)) < 0.67
    return [
        {
            "sample": f"s{i}",
            "width": round(float(x[i, 0]), 3),
            "height": round(float(x[i, 1]), 3),
            "z": [int(x[i, j] > 0) if known[i, j] else None for j in range(2)],
        }
        for i in range(ITEMS)
    ]


def text(rows: list[list[Any]], sign: str = ",") -> str:
    return "".join(sign.join(map(str, row)) + "\n" for row in rows)


def words(z: list[int | None], yes: str, no: str, unknown: str) -> list[str]:
    return [unknown if value is None else yes if value else no for value in z]


def tags(z: list[int | None]) -> list[str] | None:
    """All tags of an item, where both labels are known."""
    return None if None in z else [name for name, value in zip(NAMES, z, strict=True) if value]


def csv_of_words(path: Path, part: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """One CSV file: ids of another name, Y / N / NA and a spelling of one's own."""
    body = [[r["sample"], r["width"], *words(r["z"], "Y", "n", "not checked"), r["height"]] for r in part]
    path.with_suffix(".csv").write_text(text([["sample", "width", *NAMES, "height"], *body]))
    return path.stem + ".csv", ["--id-column", "sample", "--label-columns", "label_*", "--missing", "not checked"]


def csv_with_commas(path: Path, part: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """One file with semicolons and decimal commas, and no ids."""
    numbers = [[str(r["width"]).replace(".", ","), str(r["height"]).replace(".", ",")] for r in part]
    body = [[*x, *words(r["z"], "1", "0", "?")] for x, r in zip(numbers, part, strict=True)]
    path.with_suffix(".csv").write_text(text([["width", "height", *NAMES], *body], ";"))
    return path.stem + ".csv", ["--label-columns", "label_cat..label_dog"]


def json_with_tags(path: Path, part: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """JSON records with lists of tags."""
    found = [{"id": r["sample"], "width": r["width"], "height": r["height"], "kinds": tags(r["z"])} for r in part]
    path.with_suffix(".json").write_text(json.dumps(found))
    return path.stem + ".json", ["--label-columns", "kinds", "--absent", "no"]


def workbook(path: Path, part: list[dict[str, Any]]) -> tuple[str, list[str]]:
    """An Excel sheet."""
    book = openpyxl.Workbook()
    book.active.append(["id", "width", "height", *NAMES])
    for r in part:
        book.active.append([r["sample"], r["width"], r["height"], *words(r["z"], "yes", "no", "")])
    book.save(path.with_suffix(".xlsx"))
    return path.stem + ".xlsx", ["--label-columns", ",".join(NAMES)]


SHAPES = {one.__name__: one for one in (csv_of_words, csv_with_commas, json_with_tags, workbook)}


@pytest.mark.parametrize("shape", SHAPES)
def test_one_table_from_file_to_scores(tmp_path: Path, shape: str) -> None:
    data, how = SHAPES[shape](tmp_path / "train", rows()[:TRAIN])
    test, _ = SHAPES[shape](tmp_path / "test", rows()[TRAIN:])
    told = json.loads(succeeds(tmp_path, "doctor", data, *how, "--method", "bce", "--json").stdout)
    assert (told["known"]["items"], told["known"]["labels"]) == (TRAIN, 2)
    trained = succeeds(tmp_path, "train", data, *how, "--method", "bce", "--head", "linear", "--out", "run")
    assert f"{TRAIN} items, 2 labels" in trained.stderr
    succeeds(tmp_path, "predict", "run", test, *how, "--out", "scores.csv")
    lines = (tmp_path / "scores.csv").read_text().splitlines()
    assert sorted(lines[0].replace('"', "").split(",")[1:]) == list(NAMES)
    assert lines[1].split(",")[0] == ('"0"' if shape == "csv_with_commas" else f'"s{TRAIN}"')
    scored = json.loads(succeeds(tmp_path, "evaluate", "run", test, *how, "--json").stdout)
    assert scored["mAP"] > 0.9
    same = json.loads(succeeds(tmp_path, "evaluate", "scores.csv", test, *how, "--json").stdout)
    assert same["mAP"] == pytest.approx(scored["mAP"], abs=1e-4)
    found = json.loads(succeeds(tmp_path, "explain", "run", lines_id(shape), "label_cat", "--json").stdout)
    assert found["label"] == "label_cat"


def lines_id(shape: str) -> str:
    return "0" if shape == "csv_with_commas" else "s0"


def test_two_files_without_ids_are_matched_by_position(tmp_path: Path) -> None:
    made = rows()[:TRAIN]
    np.save(tmp_path / "x.npy", np.array([[r["width"], r["height"]] for r in made]))
    np.save(tmp_path / "y.npy", np.array([[np.nan if v is None else v for v in r["z"]] for r in made]))
    trained = succeeds(tmp_path, "train", "x.npy", "--labels", "y.npy", "--method", "bce", "--run", "run")
    assert f"Neither x.npy nor y.npy has ids: their {TRAIN} rows are matched by position." in trained.stderr
    np.save(tmp_path / "y.npy", np.ones((TRAIN - 1, 2)))
    refused = partly(tmp_path, "train", "x.npy", "--labels", "y.npy", "--method", "bce", "--run", "other")
    assert refused.code == 2
    assert f"y.npy: has {TRAIN - 1} rows, but x.npy has {TRAIN}" in refused.stderr


def test_what_is_ambiguous_is_refused_with_place_value_and_remedy(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item,x,cat\np,1,yes\nq,2,-\n")
    for command in (["doctor", "a.csv"], ["train", "a.csv", "--run", "run"], ["compare", "a.csv", "--methods", "bce"]):
        done = partly(tmp_path, *command, "--label-columns", "cat")
        assert done.code == 2
        assert "a.csv:3: label 'cat': '-'" in done.stderr
        assert "--missing VALUE" in done.stderr
    done = partly(tmp_path, "train", "a.csv", "--label-columns", "cut", "--run", "run")
    assert "no column is called 'cut'. Did you mean 'cat'?" in done.stderr


def test_compare_and_complete_take_one_table(tmp_path: Path) -> None:
    data, how = csv_of_words(tmp_path / "all", rows())
    compared = succeeds(
        tmp_path, "compare", data, *how, "--method", "bce", "--head", "linear", "--seeds", 1, "--run", "results"
    )
    assert "bce" in compared.stdout
    assert (tmp_path / "results" / "compare.html").exists()
    succeeds(
        tmp_path,
        *["complete", data, *how, "--method", "bce", "--out", "done.csv", "--precision", 0.6],
        *["--missing", "at-random", "--force", "--no-compare"],
    )
    assert (tmp_path / "done.csv").read_text().startswith('"item","label_cat","label_dog"')
