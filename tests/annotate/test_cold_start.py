"""First questions with a teacher: uncertain entries come first, and keep the teacher's probability."""

from __future__ import annotations

import numpy as np
import pytest

from partly import Labels, engine, items
from partly.annotate.question_selection import cold_start
from partly.items import Origin, PrecomputedFeatures
from partly.teachers import Scores, label_names


def test_uncertain_entries_come_first() -> None:
    x = items.features(np.random.default_rng(0).normal(size=(40, 3)))
    entries = [(i, i % 2) for i in range(40)]
    probabilities = np.full(40, 0.01)
    probabilities[[7, 21, 30]] = [0.5, 0.45, 0.6]
    drafts = cold_start(entries, x, 3, probabilities)
    assert {draft.row for draft in drafts} == {7, 21, 30}
    assert {draft.probability for draft in drafts} == {0.5, 0.45, 0.6}
    assert all(draft.probability is None for draft in cold_start(entries, x, 3))


def test_teachers_without_training() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(50, 4))
    x, nothing = items.features(np.zeros((50, 3))), Labels.from_nan(np.full((50, 4), np.nan), names=list("abcd"))
    found = engine.zero_shot(engine.TrainConfig(teacher=Scores(scores)), x, nothing)
    assert found is not None
    assert found.shape == (50, 4)
    assert np.corrcoef(found.ravel(), scores.ravel())[0, 1] > 0.7
    assert engine.zero_shot(engine.TrainConfig(), x, nothing) is None
    codes = PrecomputedFeatures(x, Origin("texts", (9,), "minilm", {}, None, ""))
    assert engine.zero_shot(engine.TrainConfig(), codes, nothing) is None  # names of single letters say nothing


def test_without_a_sentence_encoder_names_are_no_default(monkeypatch: pytest.MonkeyPatch) -> None:
    x = items.features(np.ones((3, 384), np.float32))
    texts = PrecomputedFeatures(x, Origin("texts", (9,), "minilm", {}, None, ""))
    labels = Labels.from_nan(np.full((3, 3), np.nan), names=["cat", "dog", "cow"])
    monkeypatch.setattr(label_names.minilm, "PACKAGE", "no_such_package")
    assert engine.zero_shot(engine.TrainConfig(), texts, labels) is None
