"""Known entries that label names contradict."""

from __future__ import annotations

import numpy as np
import pytest

from partly import Labels, items
from partly.doctor import CheckContext, model_checks
from partly.doctor.model_checks import teacher_contradicts

NAMES = ["cat", "dog", "cow"]


def context(monkeypatch: pytest.MonkeyPatch, scores: np.ndarray, y: np.ndarray) -> CheckContext:
    """A context whose teacher has these scores."""
    config = model_checks.TrainConfig
    monkeypatch.setattr(model_checks, "TrainConfig", lambda seed: config(teacher=scores, seed=seed))
    x = items.features(np.random.default_rng(1).normal(size=(len(y), 4)))
    return CheckContext(Labels.from_nan(y, names=NAMES), x)


def test_wrong_entries_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(2000, 3)).astype(np.float32)
    y = (scores + 0.2 * rng.normal(size=scores.shape) > 0.5).astype(float)
    wrong = {(int(np.argsort(scores[:, j])[-1 - k]), j) for j in range(3) for k in range(2)}
    for i, j in wrong:
        y[i, j] = 0.0
    (finding,) = teacher_contradicts(context(monkeypatch, scores, y))
    listed = [(int(entry["item"]), NAMES.index(entry["label"])) for entry in finding.entries]
    assert wrong <= set(listed)
    assert all(entry["given"] == "no" for entry, at in zip(finding.entries, listed, strict=True) if at in wrong)
    probabilities = [entry["probability"] for entry in finding.entries]
    assert probabilities == sorted(probabilities, reverse=True)
    assert len(listed) < 100
    assert finding.numbers["known"] == 6000


def test_a_useless_teacher_contradicts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    y = (rng.random((400, 3)) < 0.3).astype(float)
    assert teacher_contradicts(context(monkeypatch, rng.normal(size=(400, 3)).astype(np.float32), y)) == []


def test_where_only_yes_is_known_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    y = np.where(rng.random((400, 3)) < 0.3, 1.0, np.nan)
    assert teacher_contradicts(context(monkeypatch, rng.normal(size=(400, 3)).astype(np.float32), y)) == []
