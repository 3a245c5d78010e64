"""`partly evaluate` at one threshold, and at those that a run has chosen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partly import Classifier, Labels, metrics
from partly.commands.evaluate import evaluate
from partly.data import write_labels, write_scores
from partly.errors import SettingError


def test_thresholds_are_those_of_the_run_in_the_order_of_the_labels(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 4)).astype(np.float32)
    truth = Labels.from_full((x[:, :3] + rng.normal(size=(80, 3)) > (0.5, 1, 0)).astype(int), names=["a", "b", "c"])
    model = Classifier("auto", progress=False, budget="5x").fit(x, truth)
    model.save(tmp_path / "auto")
    p = model.predict_proba(x)
    write_scores(tmp_path / "scores.csv", p, truth.ids, truth.names)
    turned = Labels.from_ternary(truth.ternary()[:, ::-1], names=["c", "b", "a"])
    write_labels(turned, tmp_path / "turned.csv")
    found = evaluate(tmp_path / "scores.csv", str(tmp_path / "turned.csv"), run=tmp_path / "auto")
    assert found["OF1"] == metrics.evaluate(p, truth, model.thresholds_)["OF1"]
    assert len(set(model.thresholds_.tolist())) > 1
    Classifier("bce", "linear", epochs=1, progress=False).fit(x, truth).save(tmp_path / "bce")
    with pytest.raises(SettingError, match="bce chooses no thresholds"):
        evaluate(tmp_path / "scores.csv", str(tmp_path / "turned.csv"), run=tmp_path / "bce")
