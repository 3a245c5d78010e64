"""Questions of a model with teachers: what a teacher knows is not asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partly import Classifier, Labels, items
from partly.active import Loop, LoopConfig
from partly.active.selection import select_questions
from partly.clock import Clock
from partly.teachers import Scores

ITEMS, LABELS = 60, 4


def data(known: float) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x, truth = rng.normal(size=(ITEMS, 3)).astype(np.float32), rng.random((ITEMS, LABELS)) < 0.4
    z = np.where(rng.random(truth.shape) < known, 2 * truth - 1, 0).astype(np.int8)
    return x, z, truth, 4.0 * truth + rng.normal(size=truth.shape)


@pytest.mark.parametrize("query", ["uncertainty", "look-ahead"])
def test_entropy_is_that_of_model_and_teacher(query: str) -> None:
    x, z, _, scores = data(known=0.4)
    labels = Labels.from_ternary(z)
    model = Classifier("bce", head="mlp", epochs=2, progress=False, teacher=Scores(scores)).fit(x, labels).fitted_
    prepared = model.prepare_items(items.features(x))
    chosen: dict[bool, Any] = {}
    for taught in (False, True):
        combine = model.combiner(prepared) if taught else None
        chosen[taught] = select_questions(query, model.method, prepared, labels, 9999, Clock(0), combine=combine)
    p = model.predict(items.features(x)).astype(np.float64)
    found = chosen[True]
    assert (z[found.rows, found.columns] == 0).all()
    entry = p[found.rows, found.columns]
    entropy = -entry * np.log(entry) - (1 - entry) * np.log(1 - entry)
    score, before = found.scores["score"], {}
    for i, j, parts in zip(chosen[False].rows, chosen[False].columns, np.arange(len(chosen[False])), strict=True):
        before[i, j] = parts
    order = np.array([before[i, j] for i, j in zip(found.rows, found.columns, strict=True)])
    if query == "uncertainty":
        np.testing.assert_allclose(score, entropy, atol=1e-4)
    else:  # the other part of the score is that of the model
        np.testing.assert_allclose(found.scores["entropy"], entropy, atol=1e-4)
        divergence = chosen[False].scores["score"][order] - chosen[False].scores["entropy"][order]
        np.testing.assert_allclose(score - entropy, divergence, atol=1e-4)
    assert not np.allclose(chosen[False].scores["score"][order], score, atol=1e-3)


def test_rounds_begin_without_any_label(tmp_path: Path) -> None:
    x, _, truth, scores = data(known=0.0)
    nothing = Labels.from_ternary(np.zeros((ITEMS, LABELS), np.int8))
    model = Classifier(progress=False, teacher=Scores(scores))
    loop = Loop(model, x, nothing, tmp_path / "rounds", LoopConfig("look-ahead", questions=12))
    questions = loop.ask()
    assert len(questions) == 12
    probability = loop.train().predict_proba(x, teacher=Scores(scores))[questions.rows, questions.columns]
    entropy = -probability * np.log(probability) - (1 - probability) * np.log(1 - probability)
    np.testing.assert_allclose(questions.scores["score"], entropy, atol=1e-4)
    loop.answer([bool(truth[i, j]) for i, j in zip(questions.rows, questions.columns, strict=True)])
    assert loop.train().teacher_ is not None
    assert len(loop.ask()) == 12
