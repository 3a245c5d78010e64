"""Hierarchies from ontologies in the OBO format and from tables with several parents."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

import partly
from partly.data import read_hierarchy
from partly.errors import DataError

ONTOLOGY = """format-version: 1.4

[Term]
id: X:1
name: whole

[Term]
id: X:2
name: left half
is_a: X:1 ! whole

[Term]
id: X:3
name: corner
is_a: X:2 {source="by hand"} ! left half
relationship: part_of X:4 ! top
relationship: regulates X:1 ! whole

[Term]
id: X:4
name: top
is_a: X:1

[Term]
id: X:5
name: old
is_a: X:1
is_obsolete: true

[Typedef]
id: part_of
is_a: nothing
"""


def write(path: Path, text: str = ONTOLOGY) -> Path:
    path.write_text(text)
    return path


def test_terms_by_id(tmp_path: Path) -> None:
    hierarchy = read_hierarchy(write(tmp_path / "x.obo"))
    assert dict(hierarchy.parents) == {"X:2": "X:1", "X:3": ("X:2", "X:4"), "X:4": "X:1"}
    compressed = tmp_path / "x.obo.gz"
    compressed.write_bytes(gzip.compress(ONTOLOGY.encode()))
    assert read_hierarchy(compressed) == hierarchy


def test_terms_of_the_labels(tmp_path: Path) -> None:
    path = write(tmp_path / "x.obo")
    assert dict(read_hierarchy(path, ["X:3", "X:1", "other"]).parents) == {"X:3": "X:1"}
    assert dict(read_hierarchy(path, ["corner", "top", "whole"]).parents) == {
        "corner": ("top", "whole"),
        "top": "whole",
    }
    with pytest.raises(DataError, match=r"no label is below another one\n  cat"):
        read_hierarchy(path, ["cat"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no"),
        ("[Term]\nname: a\n", "1 terms have no id"),
        ("[Term]\nid: a\nis_a: b\n", "1 parents have no term\n  b"),
        ("[Term]\nid: a\nis_a: b\n[Term]\nid: b\nis_a: a\n", "a -> b -> a"),
        ("[Term]\nid: a\nnonsense\n", "line 3: 'nonsense'"),
    ],
)
def test_damage_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = write(tmp_path / "x.obo", text)
    with pytest.raises(DataError, match=words) as caught:
        read_hierarchy(path)
    assert str(path) in str(caught.value)
    path.write_bytes(b"[Term]\nid: \xff\n")
    with pytest.raises(DataError, match="line 2: is no UTF-8"):
        read_hierarchy(path)


def test_training_on_files_with_two_parents(tmp_path: Path) -> None:
    """From tables on disk to probabilities in which no label is above any of its parents."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 3))
    cat, pet = x[:, 0] > 0, x[:, 1] > 0
    truth = {"house cat": cat & pet, "cat": cat, "pet": pet}
    names = list(truth)
    lines = [["item", "x", "y", "z"], *([i, *row] for i, row in enumerate(x.round(4)))]
    labels = [["item", *names], *([i, *(int(truth[name][i]) for name in names)] for i in range(150))]
    for file, rows in (("x.csv", lines), ("y.csv", labels)):
        (tmp_path / file).write_text("\n".join(",".join(map(str, row)) for row in rows) + "\n")
    write(tmp_path / "parents.csv", "child,parent\nhouse cat,cat\nhouse cat,pet\n")
    data = partly.read(tmp_path / "x.csv", labels=tmp_path / "y.csv", hierarchy=tmp_path / "parents.csv")
    assert data.hierarchy is not None
    model = partly.Classifier("bce", head="linear", hierarchy=data.hierarchy, progress=False)
    model.fit(data.items, data.labels)
    p = model.predict_proba(data.items)
    assert (p[:, 0] <= p[:, 1:].min(axis=1)).all()
    assert (p[:, 1] > p[:, 2]).any()
    assert (p[:, 1] < p[:, 2]).any()
    model.save(tmp_path / "run")
    np.testing.assert_array_equal(partly.load(tmp_path / "run").predict_proba(data.items), p)
