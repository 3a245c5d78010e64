"""Estimates for all entries: against complete labels, brute force over all completions, and slow loops."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit

from partly import Labels
from partly.errors import DataError, SettingError
from partly.metrics import estimate, matrix_pass, measure


def population(seed, items=400, labels=4, decimals=6):
    rng = np.random.default_rng(seed)
    y = rng.random((items, labels)) < rng.uniform(0.1, 0.5, labels)
    return expit(rng.normal(size=y.shape) + 1.5 * y - 0.7).round(decimals), y, rng


def hide(y, known):
    return Labels.from_ternary(np.where(known, np.where(y, 1, -1), 0))


@pytest.mark.parametrize("decimals", [1, 6])
def test_complete_labels_give_the_metrics_themselves(decimals):
    scores, y, _ = population(0, decimals=decimals)
    found = estimate(scores, y)
    expected = measure(scores, y).values | {"prevalence": y.mean()}
    assert found.mechanism == "complete"
    for name, result in found.estimates.items():
        assert result.value == pytest.approx(expected[name]), name
        if name != "mAP":  # it has no bounds
            assert (result.lowest, result.highest) == pytest.approx((expected[name],) * 2), name


@pytest.mark.parametrize("seed", range(6))
def test_bounds_are_the_extremes_over_all_completions(seed):
    rng = np.random.default_rng(seed)
    scores = rng.random((4, 3)).round(1)
    z = rng.choice([-1, 0, 1], (4, 3), p=[0.3, 0.4, 0.3])
    z[0], z[1] = 1, -1  # every label has a known yes and a known no
    values = []
    unknown = np.argwhere(z == 0)
    for answers in product([-1, 1], repeat=len(unknown)):
        complete = z.copy()
        complete[tuple(unknown.T)] = answers
        values.append(measure(scores, complete == 1).values | {"prevalence": (complete == 1).mean()})
    found = estimate(scores, Labels.from_ternary(z)).estimates
    for name in ("AUROC", "OP", "OR", "OF1", "CP", "CR", "macro_f1", "prevalence", "P@1", "P@3"):
        extremes = min(v[name] for v in values), max(v[name] for v in values)
        assert (found[name].lowest, found[name].highest) == pytest.approx(extremes), name


def test_at_random_by_a_slow_loop():
    scores, y, rng = population(1)
    known = rng.random(y.shape) < [0.2, 0.4, 0.6, 0.8]
    hits = yes = predicted = top = 0.0
    for j in range(4):
        weight = len(y) / known[:, j].sum()
        for i in np.flatnonzero(known[:, j]):
            called = scores[i, j] >= 0.5
            hits += weight * (called and y[i, j])
            yes += weight * y[i, j]
            predicted += weight * called
            top += weight * (y[i, j] and (scores[i] > scores[i, j]).sum() < 3)
    found = estimate(scores, hide(y, known), mechanism="at-random")
    expected = {
        "OP": hits / predicted,
        "OR": hits / yes,
        "OF1": 2 * hits / (predicted + yes),
        "prevalence": yes / y.size,
        "P@3": top / (3 * len(y)),
    }
    assert {name: found.estimates[name].value for name in expected} == pytest.approx(expected)
    on_known = measure(scores, hide(y, known)).values
    for name in ("mAP", "AUROC", "CP", "CR", "macro_f1"):
        assert found.estimates[name].value == pytest.approx(on_known[name])
    assert {e.assumption for e in found.estimates.values()} <= {"at-random", ""}


def test_positives_only_by_a_slow_loop():
    scores, y, rng = population(2)
    known = y & (rng.random(y.shape) < 0.4)
    prior = y.mean(axis=0)
    found = estimate(scores, Labels.from_positives(known), prior=prior)
    precisions, aps, aucs = [], [], []
    for j in range(4):
        s, positives = scores[:, j], prior[j] * len(y)
        own = s[known[:, j]]
        rest = s[~known[:, j]]
        precisions.append(min(positives * (own >= 0.5).mean() / (s >= 0.5).sum(), 1))
        aps.append(np.mean([min(positives * (own >= a).mean() / (s >= a).sum(), 1) for a in own]))
        hidden = (positives - len(own)) / len(rest)
        against = np.mean([(a > b) + (a == b) / 2 for a in own for b in rest])
        aucs.append((against - hidden / 2) / (1 - hidden))
    expected = {"CP": np.mean(precisions), "mAP": np.mean(aps), "AUROC": np.mean(aucs), "prevalence": prior.mean()}
    assert {name: found.estimates[name].value for name in expected} == pytest.approx(expected)
    assert found.mechanism == "positives-only"
    assert "cannot be tested" in found.notes[0]


def test_positives_only_recovers_the_truth_where_plain_precision_cannot():
    scores, y, rng = population(3, items=20_000)
    known = y & (rng.random(y.shape) < 0.3)
    truth = measure(scores, y).values
    found = estimate(scores, Labels.from_positives(known), prior=y.mean(axis=0)).estimates
    for name in ("mAP", "AUROC", "OP", "OF1", "P@1"):
        assert found[name].value == pytest.approx(truth[name], abs=0.03), name
    assert abs(measure(scores, known).values["OP"] - truth["OP"]) > 0.2  # unknown counted as no


def test_an_audit_of_everything_is_the_truth():
    scores, y, rng = population(4)
    known = y & (rng.random(y.shape) < 0.4)
    audit = hide(y, ~known)
    found = estimate(scores, Labels.from_positives(known), audit=audit)
    truth = measure(scores, y).values | {"prevalence": y.mean()}
    for name in ("OP", "OR", "OF1", "prevalence"):
        assert found.estimates[name].value == pytest.approx(truth[name]), name
        assert found.estimates[name].assumption == "audit"
    assert np.isnan(found.estimates["mAP"].value)


def test_an_audit_is_matched_by_id_and_name():
    scores, y, rng = population(4)
    known, names, ids = y & (rng.random(y.shape) < 0.4), list("abcd"), [f"item {i}" for i in range(len(y))]
    asked = ~known & (rng.random(y.shape) < 0.2)
    labels = Labels.from_ternary(known.astype(int), names=names, ids=ids)
    expected = estimate(scores, labels, audit=hide(y, asked)).estimates["OF1"]
    table = pd.DataFrame(np.where(asked, y, np.nan), ids, names)
    for audit in (table.iloc[::-1, ::-1], table[asked.any(axis=1)].drop(columns="a")):
        found = estimate(scores, labels, audit=audit).estimates["OF1"]
        if audit.shape == y.shape:
            assert found == expected
        else:  # without the answers of one label
            assert found == estimate(scores, labels, audit=hide(y, asked & [0, 1, 1, 1])).estimates["OF1"]
    with pytest.raises(DataError, match="1 of its 400 items are not among those of the labels"):
        estimate(scores, labels, audit=table.rename({"item 3": "item x"}))


def test_audits_are_right_on_average_and_their_intervals_hold():
    scores, y, rng = population(5, items=1000)
    known = y & (rng.random(y.shape) < 0.2)
    truth = measure(scores, y).values | {"prevalence": y.mean()}
    unknown = np.flatnonzero(~known)
    values, hits = {name: [] for name in ("OP", "OR", "prevalence")}, 0
    for _ in range(200):
        asked = np.isin(np.arange(y.size), rng.choice(unknown, 200, replace=False)).reshape(y.shape)
        found = estimate(scores, Labels.from_positives(known), audit=hide(y, asked)).estimates
        for name, results in values.items():
            results.append(found[name].value)
            hits += found[name].low <= truth[name] <= found[name].high
    for name, results in values.items():
        assert np.mean(results) == pytest.approx(truth[name], abs=0.015), name
    assert 0.91 <= hits / 600 <= 0.985


def test_an_audit_that_is_no_random_draw_is_refused():
    scores, y, rng = population(6, items=2000)
    known = y & (rng.random(y.shape) < 0.2)
    asked = ~known & (scores > 0.7)
    found = estimate(scores, Labels.from_positives(known), audit=hide(y, asked))
    assert found.mechanism == ""
    assert "not a random draw" in found.notes[1]
    assert np.isnan(found.estimates["OP"].value)
    assert found.estimates["OP"].lowest < measure(scores, y).values["OP"] < found.estimates["OP"].highest


def test_what_the_test_rejects_is_refused_or_corrected():
    scores, y, rng = population(7, items=3000)
    by_answer = hide(y, rng.random(y.shape) < np.where(y, 0.7, 0.1))
    refused = estimate(scores, by_answer, mechanism="at-random")
    assert refused.mechanism == ""
    assert "not missing at random" in refused.notes[0]
    assert all(np.isnan(e.value) and not e.assumption for e in refused.estimates.values())
    corrected = estimate(scores, by_answer)
    truth = measure(scores, y).values
    assert corrected.mechanism == "by-answer"
    assert corrected.estimates["OP"].value == pytest.approx(truth["OP"], abs=0.1)
    easy = hide(y, (np.abs(scores - 0.5) > 0.3) & (rng.random(y.shape) < 0.7))
    assert estimate(scores, easy).mechanism == ""


def test_nothing_known_and_one_sided_labels():
    scores, y, _ = population(8)
    nothing = estimate(scores, Labels.from_ternary(np.zeros(y.shape, np.int8)))
    assert nothing.mechanism == ""
    assert "nothing can be estimated" in nothing.notes[0]
    assert "cannot be missing at random" in estimate(scores, Labels.from_positives(y), mechanism="at-random").notes[0]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("whole", [True, False])
def test_blocks_and_sparse_labels_give_the_same(monkeypatch, sparse, whole):
    scores, y, rng = population(9)
    known = rng.random(y.shape) < 0.3
    z = np.where(known, np.where(y, 1, -1), 0)
    expected = estimate(scores, Labels.from_ternary(z)).estimates
    if not whole:
        monkeypatch.setattr(matrix_pass, "MAX_ENTRIES", 0)
    labels = Labels.from_ternary(sp.csr_array(z) if sparse else z)
    found = estimate(iter([scores[:150], scores[150:]]), labels).estimates
    for name, result in expected.items():
        got = found[name]
        assert (got.value, got.low, got.high) == pytest.approx((result.value, result.low, result.high)), name


def test_the_jackknife_covers_the_truth():
    shares = np.array([0.2, 0.4])
    hits, rng = 0, np.random.default_rng(10)
    truth = None
    for draw in range(101):
        items = 100_000 if not draw else 500
        y = rng.random((items, 2)) < shares
        scores = expit(rng.normal(size=y.shape) + 1.5 * y - 0.7)
        if not draw:
            truth = measure(scores, y).values["OF1"]
            continue
        result = estimate(scores, hide(y, rng.random(y.shape) < 0.3), mechanism="at-random").estimates["OF1"]
        hits += result.low <= truth <= result.high
    assert 89 <= hits <= 99


def test_wrong_settings_are_refused():
    scores, y, _ = population(11)
    labels = Labels.from_positives(y)
    with pytest.raises(SettingError, match="no mechanism 'at-randon'"):
        estimate(scores, labels, mechanism="at-randon")
    with pytest.raises(SettingError, match="needs an audit"):
        estimate(scores, labels, mechanism="audit")
    with pytest.raises(SettingError, match="takes no audit"):
        estimate(scores, labels, mechanism="at-random", audit=labels)
    with pytest.raises(DataError, match="more known yes than the prior"):
        estimate(scores, labels, prior=0.01)
    with pytest.raises(DataError, match="20 or more are needed"):
        estimate(scores, labels, audit=labels)
    with pytest.raises(DataError, match="takes probabilities"):
        estimate(scores * 9, labels)


def test_labels_of_which_nothing_is_known_are_left_out_and_named():
    scores, y, rng = population(9)
    known = y & (rng.random(y.shape) < 0.5)
    known[:, 2] = False
    found = estimate(scores, Labels.from_positives(known), prior=y.mean(axis=0))
    assert found.estimates["prevalence"].value == pytest.approx(y.mean(axis=0)[[0, 1, 3]].mean())
    assert np.isnan(found.estimates["P@1"].value)
    assert any("Labels without a known yes: 1 of 4" in note for note in found.notes)
    complete = estimate(
        scores[:, [0, 1, 3]], Labels.from_positives(known[:, [0, 1, 3]]), prior=y.mean(axis=0)[[0, 1, 3]]
    )
    assert not any("Labels without" in note for note in complete.notes)
