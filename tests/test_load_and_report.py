"""`partly.load` opens whatever was saved, and `Classifier.report` writes a page about any labelled items."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import partly
from partly.errors import CheckpointError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
Y = np.where(RNG.random((80, 2)) < 0.7, (X[:, :2] > 0).astype(float), np.nan)


@pytest.mark.parametrize(
    "model",
    [
        partly.Classifier("bce", head="linear", progress=False),
        partly.PerLabel(LogisticRegression(), progress=False),
    ],
    ids=lambda model: type(model).__name__,
)
def test_load_returns_what_was_saved(model: partly.Classifier | partly.PerLabel, tmp_path: Path) -> None:
    model.fit(X, Y).save(tmp_path / "model")
    loaded = partly.load(tmp_path / "model")
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_load_refuses_what_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="not a folder"):
        partly.load(tmp_path / "nothing")
    with pytest.raises(CheckpointError):
        partly.load(tmp_path)


def test_a_report_of_new_items(tmp_path: Path) -> None:
    labels = partly.Labels.from_nan(Y, names=["left", "<right>"])
    model = partly.Classifier("bce", head="linear", progress=False).fit(X[:60], labels[np.arange(60)])
    new = labels[np.arange(60, 80)]
    html = model.report(X[60:], new, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text("utf-8") == html
    score = partly.metrics.evaluate(model.predict_proba(X[60:]), new)["mAP"]
    assert f"{score:.3f}" in html
    assert "20 items" in html
    assert "&lt;right&gt;" in html
    assert "<right>" not in html
    loaded = model.report(X[60:], new)
    model.save(tmp_path / "model")
    again = partly.load(tmp_path / "model")
    assert isinstance(again, partly.Classifier)
    assert f"{score:.3f}" in again.report(X[60:], new)
    assert loaded == html
