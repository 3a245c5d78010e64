"""Reasons for an entry: by hand for a linear model, the nearest by a loop, and from the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

from partly import Classifier, Labels
from partly.cli.explain import explain, page, record_source
from partly.cli.options import DataOptions
from partly.data import LabelSemantics, write_labels
from partly.data.formats.feature_table import write_numbers
from partly.errors import DataError, LabelError, PartlyError, SettingError

N, NAMES = 60, ("a", "b")


def data() -> tuple[np.ndarray, Labels]:
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(N, 4)) * (1, 5, 1, 0) + 3).astype(np.float32)  # the last feature is always the same
    y = np.where(rng.random((N, 2)) < 0.6, x[:, :2] > 3, np.nan)
    return x, Labels.from_nan(y, names=NAMES, ids=[f"i{k}" for k in range(N)])


@pytest.fixture(scope="module")
def model() -> Classifier:
    return Classifier("bce", head="linear", progress=False).fit(*data())


def test_features_are_those_without_which_the_logit_is_lower(model: Classifier) -> None:
    x, labels = data()
    told = model.explain(x, labels, 7, "b")
    base = model.decision_function(x[7:8])[0, 1]
    expected = {}
    for j in range(3):
        other = x[7:8].copy()
        other[0, j] = x[:, j].mean()
        expected[str(j)] = base - model.decision_function(other)[0, 1]
    assert [one["feature"] for one in told["features"]] == sorted(expected, key=lambda j: -abs(expected[j]))
    assert {one["feature"]: one["adds"] for one in told["features"]} == pytest.approx(expected, abs=1e-4)
    assert told["probability"] == pytest.approx(expit(base))
    assert (told["item"], told["label"], told["threshold"]) == ("i7", "b", 0.5)
    assert told["called"] == ("yes" if base >= 0 else "no")


def test_neighbours_are_the_nearest_of_which_the_label_is_known(model: Classifier) -> None:
    x, labels = data()
    told = model.explain(x, labels, 7, "a", most=4)
    scale = np.where(x.std(axis=0) > 1e-6, x.std(axis=0), np.inf)
    far = [(float(np.linalg.norm((x[k] - x[7]) / scale)), k) for k in range(N) if k != 7 and labels.known[k, 0]]
    for one, (distance, k) in zip(told["neighbours"], sorted(far), strict=False):
        assert one["item"] == f"i{k}"
        assert one["distance"] == pytest.approx(distance, rel=1e-3)
        assert one["given"] == ("yes" if labels.positive[k, 0] else "no")
    assert len(told["neighbours"]) == 4


def test_sparse_features_and_a_method_with_reasons_of_its_own() -> None:
    x, labels = data()
    x = np.where(x > 3, x, 0)
    rows = sp.csr_array(x)
    model = Classifier("imcl", head="linear", epochs=2, progress=False).fit(rows, labels)
    told = model.explain(rows, labels, 7, "a")
    assert {one["feature"] for one in told["features"]} == {str(j) for j in np.flatnonzero(x[7])}
    assert told["paths"]
    assert {one["label"] for one in told["paths"]} <= set(NAMES)
    assert "according to the method" in page(told)


def test_what_cannot_be_explained_is_refused(model: Classifier) -> None:
    x, labels = data()
    with pytest.raises(LabelError, match="no label 'c'"):
        model.explain(x, labels, 0, "c")
    with pytest.raises(SettingError, match="item = 60"):
        model.explain(x, labels, N, "a")
    pictures = np.random.default_rng(0).integers(0, 255, (6, 16, 16, 1), dtype=np.uint8)
    seen = Classifier("bce", head="linear", epochs=1, progress=False).fit(pictures, labels[:6])
    with pytest.raises(SettingError, match="takes pictures as they are"):
        seen.explain(pictures, labels[:6], 0, "a")


def test_the_command_finds_the_data_of_the_run(model: Classifier, tmp_path: Path) -> None:
    x, labels = data()
    write_labels(labels, tmp_path / "y.csv")
    write_numbers(tmp_path / "x.csv", labels.ids, [f"f{j}" for j in range(4)], [x])
    model.save(tmp_path / "run")
    with pytest.raises(DataError, match="Give --data and --labels"):
        explain(tmp_path / "run", "i7", "a")
    record_source(tmp_path / "run", str(tmp_path / "x.csv"), tmp_path / "y.csv", LabelSemantics(), None, 0)
    told = explain(tmp_path / "run", "i7", "a", count=2)
    assert told == explain(
        tmp_path / "run", "i7", "a", str(tmp_path / "x.csv"), reading=DataOptions(tmp_path / "y.csv"), count=2
    )
    assert told["features"][0]["feature"].startswith("f")
    assert "i7, a:" in page(told)
    for item, label in (("i99", "a"), ("i7", "A")):
        with pytest.raises(PartlyError, match="there is no"):
            explain(tmp_path / "run", item, label)
    write_labels(labels[:30], tmp_path / "some.csv")  # an item that no row of the labels names has reasons too
    told = explain(tmp_path / "run", "i40", "a", str(tmp_path / "x.csv"), reading=DataOptions(tmp_path / "some.csv"))
    assert told["given"] == "unknown"
