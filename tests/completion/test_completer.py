"""`complete` from end to end, with a quick model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partly
import partly.completion
from partly import Labels
from partly.completion import Terms
from partly.completion.certificate import ZoneDecision
from partly.completion.downstream import Benefit, compare_scores, measure_benefit
from partly.completion.entry_scores import EntryScores
from partly.completion.preview import preview
from partly.completion.result import compute_filling
from partly.errors import LabelError, SettingError

NAMES = ("animal", "cat", "dog", "boat")
HIERARCHY = {"cat": "animal", "dog": "animal"}


def world(items: int = 700, seed: int = 0) -> tuple[np.ndarray, Labels]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(items, 6)).astype(np.float32)
    cat, dog, boat = (x[:, k] + 0.15 * rng.normal(size=items) > 0.3 for k in range(3))
    return x, Labels.from_full(np.stack([cat | dog, cat, dog, boat], axis=1).astype(int), names=NAMES)


X, TRUTH = world()
Z = TRUTH.rows(slice(None))
OBSERVED = partly.scenarios.uniform(TRUTH, 0.5, 0)
MODEL = partly.Classifier("bce", head="linear", progress=False)


@pytest.fixture(scope="module")
def found() -> partly.completion.Completion:
    return partly.complete(MODEL, X, OBSERVED, 0.9, hierarchy=HIERARCHY, missing="at-random")


def test_known_entries_are_never_touched(found: partly.completion.Completion) -> None:
    before, after = OBSERVED.rows(slice(None)), found.labels.rows(slice(None))
    assert (after[before != 0] == before[before != 0]).all()


def test_what_is_filled_in_is_counted_and_right_enough(found: partly.completion.Completion) -> None:
    rows, columns, z, chance = found.entries()
    assert found.certified
    assert found.filled == len(rows) == sum(side.filled for side in found.sides) > 500
    assert (found.known.rows(slice(None))[rows, columns] == 0).all()
    assert (found.labels.rows(slice(None))[rows, columns] == z).all()
    assert (Z[rows, columns][z == 1] == 1).mean() >= 0.9
    hidden_yes = ((found.known.rows(slice(None)) == 0) & (Z == 1)).sum()
    assert (z == -1).sum() > 0
    assert (Z[rows, columns][z == -1] == 1).sum() <= 0.05 * hidden_yes
    assert 0 <= found.expected_errors <= 0.1 * found.filled
    assert ((chance >= 0.5) & (chance <= 1)).all()


def test_no_child_is_above_its_parent(found: partly.completion.Completion) -> None:
    z = found.labels.rows(slice(None))
    for child in (1, 2):
        assert not ((z[:, child] == 1) & (z[:, 0] == -1)).any()
    filled = np.zeros(Z.shape, bool)
    filled[found.entries()[:2]] = True
    assert ((z[:, 0] == 1) | ~filled[:, 1] | (z[:, 1] != 1)).all()  # a filled yes has its parent's yes beside it


def test_what_follows_from_the_hierarchy_is_known_but_not_counted_as_a_sample(
    found: partly.completion.Completion,
) -> None:
    follows = (found.known.rows(slice(None)) != 0) & (OBSERVED.rows(slice(None)) == 0)
    assert follows.any()
    assert not found.entry_scores.candidates[follows].any()
    assert (found.entry_scores.observed[follows] == 0).all()


def test_it_says_what_it_did(found: partly.completion.Completion) -> None:
    words = " ".join(found.words)
    assert "Certified: with 95.0% confidence, both hold" in words
    assert f"{found.sides[0].filled} entries are filled in" in words
    line = found.table[1]
    assert line["label"] == "cat"
    assert line["calibration"] in ("own", "pooled")
    assert sum(one["filled_yes"] + one["filled_no"] for one in found.table) == found.filled
    assert sum(one["unknown"] for one in found.table) == (found.labels.rows(slice(None)) == 0).sum()


def test_an_entry_can_be_explained(found: partly.completion.Completion) -> None:
    rows, columns, *_ = found.entries()
    told = found.model.explain(X, found.known, int(rows[0]), NAMES[columns[0]])
    assert told["given"] == "unknown"
    assert told["features"]


def test_only_yes_is_certified_by_answers_alone() -> None:
    observed = partly.scenarios.single_positive(TRUTH, 0)
    model = partly.Classifier("assume-negative", head="linear", progress=False)
    first = partly.complete(model, X, observed, 0.8, budget=120, max_missed=0.2)
    rows, columns = first.questions
    assert "only yes is known" in first.words[0]
    assert not first.certified
    assert first.filled == 0
    assert first.labels == observed
    assert len(rows)
    answers, second = Labels.from_ternary(np.zeros(Z.shape, int), names=NAMES), first
    while len(second.questions[0]):
        rows, columns = second.questions
        answers = answers.with_entries(rows, columns, Z[rows, columns])
        second = partly.complete(model, X, observed, 0.8, budget=120, max_missed=0.2, answers=answers)
    assert second.certified
    assert (second.labels.rows(slice(None))[rows, columns] == Z[rows, columns]).all()
    assert second.filled > 0
    assert sum(side.asked for side in second.sides) <= 120
    estimates = second.certification.estimates
    left = second.known.rows(slice(None)) == 0
    assert estimates.hidden_yes.low <= (left & (Z == 1)).sum() <= estimates.hidden_yes.high
    assert estimates.words in second.words
    assert first.certification.estimates is None  # the pilot is open
    forced = partly.complete(model, X, observed, 0.8, budget=120, force=True)
    assert forced.filled > 0
    assert not forced.certified
    assert "NOT certified" in " ".join(forced.words)


def test_missing_at_random_is_never_assumed_silently() -> None:
    """No test rejects it, and still only answers or the caller's word certify."""
    asked = partly.complete(MODEL, X, OBSERVED, 0.9, budget=100)
    assert asked.filled == 0
    assert len(asked.questions[0])
    assert "no test can show that entries are missing at random" in asked.words[0]
    assert not any("No questions are open" in sentence for sentence in asked.words)
    assumed = partly.complete(MODEL, X, OBSERVED, 0.9, missing="at-random")
    assert "rest on the assumption that entries are missing at random" in assumed.words[0]


def test_a_result_without_questions_says_why() -> None:
    """So few entries are unknown that no number of answers certifies the precision."""
    few = partly.complete(MODEL, X[:40], OBSERVED[np.arange(40)], 0.9)
    assert (few.filled, len(few.questions[0])) == (0, 0)
    assert "No questions are open: none is likely to certify a threshold." in few.words[4]


def test_no_no_is_filled_in_where_none_is_wanted() -> None:
    done = partly.complete(MODEL, X, OBSERVED, 0.9, max_missed=None, missing="at-random")
    assert (done.entries()[2] == 1).all()
    assert done.terms.yes_risk == pytest.approx(0.05)
    assert "no: nothing is filled in, as requested." in done.words


def test_answers_certify_yes_alone_where_no_no_is_wanted() -> None:
    answers = Labels.from_ternary(np.zeros(Z.shape), names=NAMES)
    for _ in range(20):
        done = partly.complete(MODEL, X, OBSERVED, 0.9, max_missed=None, answers=answers, budget=300)
        rows, columns = done.questions
        if not len(rows):
            break
        answers = answers.with_entries(rows, columns, Z[rows, columns])
    assert done.certified
    assert (done.entries()[2] == 1).all()
    assert "no: nothing is filled in, as requested." in done.words


def test_a_preview_shows_the_trade_off() -> None:
    done = partly.complete(MODEL, X, OBSERVED, 0.9, missing="at-random")
    expected = preview(done.entry_scores, done.terms)
    filled = [target.filled for target in expected.yes]
    assert filled == sorted(filled, reverse=True)
    assert all(target.wrong <= (1 - target.precision) * target.filled + 1e-9 for target in expected.yes)
    assert all(target.lost_yes <= target.max_missed * expected.hidden_yes + 1e-9 for target in expected.no)
    assert expected.proposal in {target.precision for target in expected.yes}
    guesses = replace(done.entry_scores, chance=np.full(Z.shape, 0.3))
    assert preview(guesses, done.terms).proposal is None


def test_labels_that_are_missing_by_features_are_not_taken_for_granted() -> None:
    known = np.random.default_rng(0).random(Z.shape) < np.where(X[:, :1] > 0, 0.9, 0.1)
    observed = Labels.from_ternary(np.where(known, Z, 0), names=NAMES)
    asked = partly.complete(MODEL, X, observed, 0.9, budget=50)
    assert "Features predict which entries are known" in asked.certification.why
    assert not asked.certified
    told = partly.complete(MODEL, X, observed, 0.9, missing="at-random")
    assert told.certified


def test_a_fold_of_models_does_where_a_model_has_no_scores_of_its_own() -> None:
    from sklearn.linear_model import LogisticRegression

    model = partly.PerLabel(LogisticRegression(), progress=False)
    assert partly.complete(model, X, OBSERVED, 0.9, missing="at-random").certified


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.floats(0.5, 0.99), st.floats(0.5, 0.99))
def test_filling_leaves_alone_what_is_known(seed: int, yes: float, no: float) -> None:
    rng = np.random.default_rng(seed)
    said = rng.integers(-1, 2, (12, 3)).astype(np.int8)
    chance = rng.random((12, 3))
    of = EntryScores(chance, said, said == 0, np.zeros(3, bool), ("a", "b", "c"))
    known = Labels.from_ternary(said)
    z = compute_filling(of, (ZoneDecision(1, yes), ZoneDecision(-1, no)), known)
    assert (z[said != 0] == 0).all()
    for i, j in np.ndindex(z.shape):
        if said[i, j] == 0 and of.fillable[j]:
            assert z[i, j] == (1 if chance[i, j] >= yes else -1 if 1 - chance[i, j] >= no else 0)


def test_completing_that_hurts_is_called_so() -> None:
    rng = np.random.default_rng(0)
    labels = Labels.from_full(rng.integers(0, 2, (300, 2)))
    z = labels.rows(slice(None))
    good, bad = 0.5 + 0.4 * z + 0.05 * rng.random(z.shape), rng.random(z.shape)
    assert "HURT the predicted probabilities" in compare_scores(good, bad, labels, 0).words
    assert "helped" in compare_scores(bad, good, labels, 0).words
    assert "no significant difference" in compare_scores(good, good, labels, 0).words


def test_the_two_models_are_trained_and_judged(found: partly.completion.Completion) -> None:
    value = measure_benefit(MODEL, X, OBSERVED, found, partly.Hierarchy(HIERARCHY))
    assert isinstance(value, Benefit)
    assert value.low <= value.high
    assert value.criterion == "log-loss"


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"precision": 1.0}, "precision = 1.0"),
        ({"confidence": 0.2, "recall": 2.0}, "confidence = 0.2, recall = 2.0"),
        ({"budget": -1}, "budget = -1"),
        ({"max_missed": 0.95}, "share of the hidden yes that may become no"),
    ],
)
def test_impossible_terms_are_refused_together(how: dict[str, float], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        Terms(**how)


def test_other_bad_input_is_refused_with_the_way_out() -> None:
    with pytest.raises(SettingError, match=r"missing = 'random'.*at-random"):
        partly.complete(MODEL, X, OBSERVED, missing="random")
    with pytest.raises(SettingError, match="model must be"):
        partly.complete("bce", X, OBSERVED)
    with pytest.raises(LabelError, match="no entry is known"):
        partly.complete(MODEL, X, Labels.from_ternary(np.zeros(Z.shape, int)))
    with pytest.raises(SettingError, match=r"recall = 0\.9: answers about filled entries do not measure recall"):
        partly.complete(MODEL, X, partly.scenarios.single_positive(TRUTH, 0), recall=0.9)
    fewer = Labels.from_ternary(np.zeros((2, 4), int), names=NAMES)
    with pytest.raises(LabelError, match="answers are of 2 items"):
        partly.complete(MODEL, X, OBSERVED, missing="not-at-random", answers=fewer)
    rows, columns, said = OBSERVED.entries()
    wrong = Labels.from_ternary(np.zeros(Z.shape, int), names=NAMES)
    wrong = wrong.with_entries(rows[:1], columns[:1], 1 - 2 * said[:1])
    with pytest.raises(LabelError, match="answers contradict"):
        partly.complete(MODEL, X, OBSERVED, missing="not-at-random", answers=wrong)
