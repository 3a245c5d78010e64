"""The second part of `partly demo`: texts without any label, scored by the names of their topics, then ten answers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from partly import metrics
from partly.active.selection import select_questions
from partly.clock import Clock
from partly.data import Dataset, split_holdout
from partly.data.demo_texts import demo_texts
from partly.engine.feature_cache import cached_features
from partly.estimators.classifier import Classifier
from partly.labels import Labels
from partly.teachers.label_names import is_installed

QUESTIONS, HELD_OUT = 10, 0.5
NAMES_ONLY, NAMES_AND_ANSWERS = "label names, no answers", f"label names and {QUESTIONS} answers"
Scores = dict[str, float]


def is_encoder_installed() -> bool:
    """Tell whether the sentence encoder that reads names is installed."""
    return is_installed("minilm")


def run(seed: int) -> tuple[Dataset, Scores]:
    """Return the texts, and mAP on held-out texts: with names alone, after ten answers, and with all labels known."""
    data = demo_texts()
    rows, held_out = split_holdout(len(data.items), HELD_OUT, seed)
    x, truth = data.items[rows], data.labels[rows]
    test = data[held_out]
    nothing = Labels.from_ternary(np.zeros(truth.shape, np.int8), names=truth.names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few labels are the point here
        names = _model(seed).fit(x, nothing)
        answered = _answer(names, x, nothing, truth, seed)
        return data, {
            f"{QUESTIONS} answers, no label names": _score(_model(seed, "none").fit(x, answered), test),
            NAMES_ONLY: _score(names, test),
            NAMES_AND_ANSWERS: _score(_model(seed).fit(x, answered), test),
            f"all labels of {len(rows)} texts, no label names": _score(_model(seed, "none").fit(x, truth), test),
        }


def _model(seed: int, teacher: Any = "names") -> Classifier:
    return Classifier(seed=seed, progress=False, teacher=teacher)


def _answer(model: Classifier, x: Any, known: Labels, truth: Labels, seed: int) -> Labels:
    """Return the labels after answers to the questions of which the model is least sure."""
    fitted = model.fitted_
    items = cached_features(fitted.prepare_items(x))
    questions = select_questions(
        "uncertainty", fitted.method, items, known, QUESTIONS, Clock(seed), combine=fitted.combiner(items)
    )
    z = truth.ternary()[questions.rows, questions.columns]
    return known.with_entries(questions.rows, questions.columns, z)


def _score(model: Classifier, test: Dataset) -> float:
    return float(np.nanmean(metrics.average_precision(model.predict_proba(test.items), test.labels)))
