"""Questions go out and come back as the same file; what does not fit is named with its line."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partly import Hierarchy, Labels
from partly.data.answers import Answers, read_answers, read_statements, write_questions
from partly.errors import DataError

NAMES = ("cat", "animal", "boat")
HIERARCHY = Hierarchy({"cat": "animal"})


def labels(z: object = None) -> Labels:
    return Labels.from_ternary(np.zeros((3, 3), int) if z is None else z, names=NAMES, ids=["x", "y, z", 'say "q"'])


def filled(path: Path, answers: list[str]) -> None:
    """What an annotator does: open the file, fill in a column, save it."""
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    at = header.index("answer")
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *([*row[:at], answer] for row, answer in zip(rows, answers, strict=True))])


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8).filter(
    str.strip
)


@settings(max_examples=30)
@given(ids=st.lists(words, min_size=1, max_size=5, unique=True), data=st.data())
def test_round_trip(ids: list[str], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    known = Labels.from_ternary(np.zeros((len(ids), 3), int), names=NAMES, ids=ids)
    entries = data.draw(st.lists(st.tuples(st.integers(0, len(ids) - 1), st.integers(0, 2)), unique=True))
    said = data.draw(st.lists(st.sampled_from(["1", "0", ""]), min_size=len(entries), max_size=len(entries)))
    rows, columns = np.array(entries, np.int64).reshape(-1, 2).T
    path = tmp_path_factory.mktemp("questions") / "q.csv"
    write_questions(path, known, rows, columns, {"score": np.arange(len(entries))})
    filled(path, said)
    answers = read_answers(path, known, asked=(rows, columns))
    found = dict(
        zip(zip(answers.rows.tolist(), answers.columns.tolist(), strict=True), answers.z.tolist(), strict=True)
    )
    assert found == {e: 1 if s == "1" else -1 for e, s in zip(entries, said, strict=True) if s}
    expected = np.zeros(known.shape, int)
    for (i, j), z in found.items():
        expected[i, j] = z
    assert answers.apply_to(known) == Labels.from_ternary(expected, names=NAMES, ids=ids)


def test_parquet_comes_back_too(tmp_path: Path) -> None:
    write_questions(tmp_path / "q.parquet", labels(), np.array([2]), np.array([1]), {"score": np.array([0.5])})
    assert len(read_answers(tmp_path / "q.parquet", labels()).z) == 0


def test_what_the_file_looks_like(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    write_questions(path, labels(), np.array([1, 0]), np.array([0, 2]), {"score": np.array([0.5, 0.25])})
    assert path.read_text() == '"item","label","score","answer"\n"y, z","cat",0.5,\n"x","boat",0.25,\n'


def test_told_keeps_what_is_known_and_takes_sparse_labels() -> None:
    import scipy.sparse as sp

    z = np.array([[1, 0, -1], [0, 0, 0]])
    answers = Answers(np.array([1, 0, 1]), np.array([2, 1, 0]), np.array([-1, 1, 1], np.int8))
    expected = [[1, 1, -1], [1, 0, -1]]
    assert answers.apply_to(Labels.from_ternary(z)).rows(slice(None)).tolist() == expected
    told = answers.apply_to(Labels.from_ternary(sp.csr_array(z)))
    assert told.sparse
    assert told.rows(slice(None)).tolist() == expected


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["x,cat,1", "w,cat,"], r"q.csv:3: 'w'"),
        (["x,cat,1", "x,Cat,0"], r"q.csv:3: 'Cat' Did you mean 'cat'\?"),
        (["x,cat,sure"], r"q.csv:2: 'sure'"),
        (["x,cat,1", "x,boat,1", "x,cat,0"], r"q.csv:4: no, but yes in .*q.csv:2"),
        (["x,boat,1"], r"q.csv:2: yes, but known to be no"),
        (["x,cat,1", "x,animal,0"], r"(?s)q.csv:2: 'cat' is yes and 'animal' is no.*q.csv:3"),
        (['"say ""q""",cat,1'], r"q.csv:2: 'cat' is yes and 'animal' is no"),
        (['"y, z",animal,0'], r"q.csv:2: 'cat' is yes and 'animal' is no"),
    ],
)
def test_faults_are_named_with_their_lines(tmp_path: Path, lines: list[str], message: str) -> None:
    path = tmp_path / "q.csv"
    path.write_text("\n".join(["item,label,answer", *lines, ""]))
    known = labels([[0, 0, -1], [1, 0, 0], [0, -1, 0]])
    with pytest.raises(DataError, match=message):
        read_answers(path, known, HIERARCHY)


def test_answers_to_what_was_not_asked(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text("item,label,answer\nx,cat,\nx,boat,1\n")
    with pytest.raises(DataError, match=r"not asked this time: 1\n  .*q.csv:3: 'x', 'boat'"):
        read_answers(path, labels(), asked=(np.array([0]), np.array([0])))
    assert read_answers(path, labels(), asked=(np.array([0]), np.array([2]))).z.tolist() == [1]


def test_the_same_answer_twice_is_one(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text("item,label,answer\nx,cat,1\nx,cat,1\nx,cat,\n")
    answers = read_answers(path, labels())
    assert (answers.rows.tolist(), answers.columns.tolist(), answers.z.tolist()) == ([0], [0], [1])


def test_a_file_without_answers(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text("item,label,score\nx,cat,1\n")
    with pytest.raises(DataError, match="needs the columns item, label, answer; missing: answer"):
        read_answers(path, labels())


def test_who_cannot_tell_has_said_so(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text("item,label,answer\nx,cat,cannot tell\nx,boat,1\nx,animal,\n")
    answers = read_answers(path, labels())
    assert (answers.columns.tolist(), answers.z.tolist(), answers.unsure) == ([2], [1], 1)
    assert read_statements(path) == (["x", "x"], ["cat", "boat"], [None, 1])
