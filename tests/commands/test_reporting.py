"""The report of what a command trained."""

from __future__ import annotations

import numpy as np
import pytest

from partly import Classifier, Dataset, Labels, run
from partly.commands.reporting import report, scores
from partly.items import as_items


def data(test: bool) -> Dataset:
    x = np.random.default_rng(0).normal(size=(30, 3))
    whole = Dataset(as_items(x), Labels.from_full((x > 0).astype(int)))
    return Dataset(whole.items, whole.labels, test=whole[20:] if test else None)


@pytest.fixture
def model() -> Classifier:
    one = data(test=False)
    return Classifier("bce", head="linear", epochs=1, progress=False).fit(one.items, one.labels)


@pytest.mark.parametrize("test", [False, True])
def test_items_are_predicted_and_scored_once(model: Classifier, monkeypatch: pytest.MonkeyPatch, test: bool) -> None:
    predicted: list[int] = []
    original = run.Fitted.predict

    def predict(self: run.Fitted, items: object) -> object:
        predicted.append(len(items))
        return original(self, items)

    monkeypatch.setattr(run.Fitted, "predict", predict)
    made = report("title", {"mine": model}, data(test), np.arange(18), np.arange(18, 30))
    assert predicted == ([10, 12] if test else [12])  # the test part and the examples, or both at once
    assert made.scored is made.scored
    assert scores(made)["mine"] is made.scored[0].scores


def test_who_saw_more_is_named(model: Classifier) -> None:
    for truth, upper, privilege in ((False, "", ""), (True, "", "the truth"), (False, "mine", "all labels")):
        model.fitted_.method.needs_truth = truth
        made = report("title", {"mine": model}, data(test=True), np.arange(18), np.arange(18, 30), upper)
        assert made.runs[0].privilege == privilege
