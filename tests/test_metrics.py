"""Scores on known entries: against scikit-learn where nothing is unknown, against slow loops elsewhere."""

# Long because each score has its slow twin beside it.

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import average_precision_score, precision_recall_fscore_support

from partly import Labels, metrics
from partly.errors import DataError, LabelError, SettingError
from partly.labels import matrix, scored
from partly.metrics import average_precision, both, by_group, by_label, evaluate, grouped

SCORES = ["mAP", "CF1", "OF1", "CP", "CR", "OP", "OR", "macro_f1", "micro_f1", "exact_match", "P@1", "P@3", "P@5"]
COUNTS = ["labels_counted", "labels_undefined", "labels_with_yes", "items_counted", "entries_known", "yes", "no"]

shapes = st.tuples(st.integers(0, 9), st.integers(0, 8))
known_to_all = settings(max_examples=50, deadline=None)


@st.composite
def cases(draw, entries=(-1, 0, 1), shape=shapes, dtypes=(np.float16, np.float32, np.float64)):
    """(scores in 0..1 with many ties, ternary matrix)."""
    size = draw(shape)
    eighths = draw(hnp.arrays(np.int64, size, elements=st.integers(0, 8)))
    z = draw(hnp.arrays(np.int8, size, elements=st.sampled_from(entries)))
    return (eighths / 8).astype(draw(st.sampled_from(dtypes))), z


def sparse(z):
    return Labels.from_ternary(sp.csr_array(z))


def main_scores(*given):
    result = evaluate(*given)
    return {key: result[key] for key in SCORES + COUNTS}


def same(a, b):
    return a.keys() == b.keys() and all(np.array_equal(a[key], b[key], equal_nan=True) for key in a)


# -------------------------------------------------------------------- the slow, obvious way


def slow_average_precision(scores, z):
    """Lower the threshold score by score: sum of (recall gained) x (precision there)."""
    yes, no = scores[z == 1], scores[z == -1]
    if len(yes) == 0 or len(no) == 0:
        return math.nan
    result = recall = 0.0
    for threshold in sorted(set(scores[z != 0].tolist()), reverse=True):
        hits, claims = sum(yes >= threshold), sum(yes >= threshold) + sum(no >= threshold)
        result += (hits / len(yes) - recall) * hits / claims
        recall = hits / len(yes)
    return result


def slow_precision_at(k, scores, z):
    """The mean over all orders of the known entries that are sorted by score."""
    known = [j for j in range(len(z)) if z[j] != 0]
    shares = []
    for order in itertools.permutations(known):
        if all(scores[a] >= scores[b] for a, b in itertools.pairwise(order)):
            top = order[:k]
            shares.append(sum(z[j] == 1 for j in top) / len(top))
    return sum(shares) / len(shares)


def mean(values):
    return sum(values) / len(values) if values else math.nan


def slow_evaluate(scores, z, threshold):
    items, labels = z.shape
    aps = [slow_average_precision(scores[:, j], z[:, j]) for j in range(labels)]
    precision, recall, f1 = [], [], []
    hits = claims = 0
    for j in range(labels):
        own_hits = sum(scores[i, j] >= threshold and z[i, j] == 1 for i in range(items))
        own_claims = sum(scores[i, j] >= threshold and z[i, j] != 0 for i in range(items))
        hits, claims = hits + own_hits, claims + own_claims
        yes = sum(z[:, j] == 1)
        if yes:
            recall.append(own_hits / yes)
            if (z[:, j] == -1).any() or not (z[:, j] == 0).any():  # else whatever is predicted would be right
                precision.append(own_hits / own_claims if own_claims else 0.0)
                both = precision[-1] + recall[-1]
                f1.append(2 * precision[-1] * recall[-1] / both if both else 0.0)
    cp, cr, yes = mean(precision), mean(recall), (z == 1).sum()
    only_yes = not (z == -1).any() and (z == 0).any()
    op = math.nan if not yes or only_yes else hits / claims if claims else 0.0
    overall = math.nan if not yes else hits / yes
    harmonic = [
        math.nan if math.isnan(p) else 2 * p * r / (p + r) if p + r else 0.0 for p, r in ((cp, cr), (op, overall))
    ]
    told = [i for i in range(items) if z[i].any()]
    right = [all((scores[i, j] >= threshold) == (z[i, j] == 1) for j in range(labels) if z[i, j]) for i in told]
    defined = [ap for ap in aps if not math.isnan(ap)]
    return {
        "mAP": mean(defined),
        "CF1": harmonic[0],
        "OF1": harmonic[1],
        "CP": cp,
        "CR": cr,
        "OP": op,
        "OR": overall,
        "macro_f1": mean(f1),
        "micro_f1": harmonic[1],
        "exact_match": math.nan if only_yes else mean(right),
        **{
            f"P@{k}": math.nan if only_yes else mean([slow_precision_at(k, scores[i], z[i]) for i in told])
            for k in (1, 3, 5)
        },
        "labels_counted": len(defined),
        "labels_undefined": labels - len(defined),
        "labels_with_yes": len(recall),
        "items_counted": len(told),
        "entries_known": (z != 0).sum(),
        "yes": yes,
        "no": (z == -1).sum(),
    }


# -------------------------------------------------------------------- properties


@known_to_all
@given(cases(shape=st.tuples(st.integers(0, 9), st.integers(0, 6))), st.sampled_from([0.25, 0.5, 0.6]))
def test_equals_the_slow_loops_on_partly_known_labels(case, threshold):
    scores, z = case
    fast = both(scores, Labels.from_ternary(z), threshold)[0]
    assert fast == pytest.approx(slow_evaluate(scores, z, threshold), abs=1e-12, nan_ok=True)
    assert list(fast) == SCORES + COUNTS


@known_to_all
@given(
    cases(entries=(-1, 1), shape=st.tuples(st.integers(2, 40), st.integers(1, 6))), st.randoms(use_true_random=False)
)
def test_equals_scikit_learn_on_full_labels(case, random):
    scores, z = case
    for j in range(z.shape[1]):  # where scikit-learn and this module mean the same: a yes and a no in every label
        z[random.sample(range(len(z)), 2), j] = 1, -1
    y, predicted = z == 1, scores >= 0.5
    expected = {"mAP": np.mean([average_precision_score(y[:, j], scores[:, j]) for j in range(z.shape[1])])}
    for names, average in ((("CP", "CR", "macro_f1"), "macro"), (("OP", "OR", "OF1"), "micro")):
        if z.shape[1] == 1:  # scikit-learn averages over no and yes where there is one column
            average = "binary"
        values = precision_recall_fscore_support(y, predicted, average=average, zero_division=0.0)
        expected |= dict(zip(names, values, strict=False))
    expected["exact_match"] = (y == predicted).all(axis=1).mean()
    result = evaluate(scores, Labels.from_full(y))
    assert {key: result[key] for key in expected} == pytest.approx(expected, abs=1e-9)
    assert result["micro_f1"] == result["OF1"]


def test_equals_scikit_learn_on_many_scores():
    rng = np.random.default_rng(0)
    y = rng.random((3000, 7)) < rng.uniform(0.01, 0.6, 7)
    for scores in (rng.normal(size=y.shape) + y, (rng.normal(size=y.shape) + y).round(1).astype(np.float32)):
        expected = [average_precision_score(y[:, j], scores[:, j]) for j in range(7)]
        np.testing.assert_allclose(average_precision(scores, y), expected, rtol=0, atol=1e-9)


@known_to_all
@given(cases(), st.randoms(use_true_random=False))
def test_order_of_items_and_labels_changes_no_bit(case, random):
    scores, z = case
    items, labels = (random.sample(range(n), n) for n in z.shape)
    mixed_scores, mixed_z = scores[items][:, labels], z[items][:, labels]
    before, after = (by_label(*pair) for pair in ((scores, sparse(z)), (mixed_scores, Labels.from_ternary(mixed_z))))
    assert same({key: value[labels] for key, value in before.items()}, after)
    whole, mixed = evaluate(scores, Labels.from_ternary(z)), evaluate(mixed_scores, sparse(mixed_z))
    assert same({key: whole[key] for key in SCORES}, {key: mixed[key] for key in SCORES})
    assert whole == pytest.approx(mixed, abs=1e-12, nan_ok=True)


@known_to_all
@given(cases())
def test_average_precision_sees_only_the_order_of_the_scores(case):
    scores, z = case
    labels = Labels.from_ternary(z)
    ap = average_precision(scores, labels)
    for changed in (3 * scores.astype(float) - 7, scores.astype(float) ** 3, (8 * scores).astype(np.int64)):
        np.testing.assert_array_equal(average_precision(changed, labels), ap)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(average_precision(np.log(scores), labels), ap)  # log 0 is -inf: the last rank
        np.testing.assert_array_equal(average_precision(-np.log1p(-scores), labels), ap)  # and +inf the first


@known_to_all
@given(cases(), st.randoms(use_true_random=False))
def test_the_scores_of_unknown_entries_change_nothing(case, random):
    scores, z = case
    other = scores.copy()
    other[z == 0] = [random.random() for _ in range((z == 0).sum())]
    for labels in (Labels.from_ternary(z), sparse(z)):
        assert same(evaluate(scores, labels), evaluate(other, labels))
        assert same(by_label(scores, labels), by_label(other, labels))


@known_to_all
@given(cases(), st.sampled_from([1, 5, 20]))
def test_dense_sparse_blocks_and_memory_order_agree_to_the_bit(case, block):
    scores, z = case
    whole = evaluate(scores, Labels.from_ternary(z))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix, "BLOCK", block)
        assert same(evaluate(scores, Labels.from_ternary(z)), whole)
        assert same(evaluate(np.asfortranarray(scores), sparse(z)), whole)
        assert same(evaluate(scores, Labels.from_ternary(z).to_nan()), whole)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_precision_of_the_scores_is_their_own(dtype):
    z = np.array([[1, -1, 1], [-1, 1, 1], [1, 1, -1]])
    scores = np.array([[0.1, 0.7, 0.3], [0.6, 0.1, 0.2], [0.1, 0.9, 0.8]], dtype)
    result = evaluate(scores, Labels.from_ternary(z), threshold=0.1)
    assert result["OR"] == 1.0  # 0.1 rounded to any precision is not below the threshold 0.1
    assert result == pytest.approx(evaluate(scores.astype(float), Labels.from_ternary(z), threshold=0.05))


def test_tensors_are_scores_too():
    z = Labels.from_ternary(np.array([[1, -1], [-1, 1], [1, 0]]))
    scores = torch.tensor([[0.5, 0.25], [0.75, 0.5], [1.0, 0.0]], requires_grad=True)
    whole = main_scores(scores.detach().numpy(), z)
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        assert same(main_scores(scores.to(dtype), z), whole)


# -------------------------------------------------------------------- worked by hand


def test_worked_example():
    z = np.array([[1, -1, 0], [1, 1, -1], [-1, 0, -1], [0, 0, 0]])
    scores = np.array([[0.9, 0.6, 0.9], [0.4, 0.6, 0.2], [0.4, 0.1, 0.7], [0.9, 0.9, 0.9]])
    table = by_label(scores, Labels.from_ternary(z))
    # label 0: yes .9 .4, no .4: precision 1 at .9, 2/3 at .4. label 1: yes and no level at .6. label 2: no yes.
    np.testing.assert_allclose(table["AP"], [5 / 6, 1 / 2, np.nan])
    np.testing.assert_allclose(table["precision"], [1, 1 / 2, np.nan])
    np.testing.assert_allclose(table["recall"], [1 / 2, 1, np.nan])
    np.testing.assert_allclose(table["F1"], [2 / 3, 2 / 3, np.nan])
    counts = {"yes": [2, 1, 0], "no": [1, 1, 2], "predicted": [1, 2, 1], "hits": [1, 1, 0]}
    assert {key: table[key].tolist() for key in counts} == counts
    assert main_scores(scores, Labels.from_ternary(z)) == pytest.approx(
        {
            "mAP": 2 / 3,
            "CF1": 3 / 4,  # of 3/4 and 3/4
            "OF1": 4 / 7,  # 2 hits, 4 claims, 3 yes
            "CP": 3 / 4,
            "CR": 3 / 4,
            "OP": 1 / 2,
            "OR": 2 / 3,
            "macro_f1": 2 / 3,
            "micro_f1": 4 / 7,
            "exact_match": 0,
            "P@1": 2 / 3,  # yes, yes, no; the item of which nothing is known is not asked
            "P@3": (1 / 2 + 2 / 3 + 0) / 3,  # two, three and two known entries
            "P@5": (1 / 2 + 2 / 3 + 0) / 3,
            "labels_counted": 2,
            "labels_undefined": 1,
            "labels_with_yes": 2,
            "items_counted": 3,
            "entries_known": 7,
            "yes": 3,
            "no": 4,
        }
    )


def test_both_are_evaluate_and_by_label_from_one_look(monkeypatch):
    rng = np.random.default_rng(0)
    scores, labels = rng.random((20, 4)), Labels.from_ternary(rng.integers(-1, 2, (20, 4)))
    for threshold in (0.5, 0.3):
        separate = main_scores(scores, labels, threshold), by_label(scores, labels, threshold)
        assert all(same(*pair) for pair in zip(both(scores, labels, threshold), separate, strict=True))
    looks = []
    look = metrics.evaluation.label_table
    monkeypatch.setattr(metrics.evaluation, "label_table", lambda *given: looks.append(given) or look(*given))
    both(scores, labels)
    assert len(looks) == 1


def test_groups_by_hand_where_the_ap_is_known_already():
    ap = np.array([0.5, np.nan, 0.25, 1.0, np.nan])
    found = grouped(ap, [9, 1, 3, 3, 7], groups=3)  # of equal counts the first label is the lower
    np.testing.assert_array_equal(found, [0.25, 1.0, 0.5])
    with pytest.raises(DataError, match="one a label is needed"):
        grouped(ap, [1, 2])


def test_precision_at_k_on_full_labels_divides_by_k():
    y = np.array([[1, 0, 0, 1, 0, 1], [0, 0, 0, 0, 0, 0]])
    scores = np.array([[0.9, 0.8, 0.7, 0.6, 0.5, 0.4], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]])
    result = evaluate(scores, y)
    assert [result[f"P@{k}"] for k in (1, 3, 5)] == pytest.approx([1 / 2, 1 / 6, 2 / 10])


def test_infinite_scores_rank_last_among_the_known_only():
    scores = np.array([[-np.inf, -np.inf, -np.inf, 1.0, -np.inf]])
    result = evaluate(scores, Labels.from_ternary(np.array([[1, -1, 0, -1, 1]])), threshold=0)
    # after the 1.0 two of three places go to three known entries that are level, two of them yes
    assert [result[f"P@{k}"] for k in (1, 3, 5)] == pytest.approx([0, 2 * (2 / 3) / 3, 2 / 4])


def test_a_label_without_yes_is_left_out_and_reported_never_zero():
    rng = np.random.default_rng(1)
    z = np.where(rng.random((50, 3)) < 0.4, 1, -1)
    z[:2] = [[1, 1, 1], [-1, -1, -1]]
    scores = rng.random(z.shape)
    without = np.column_stack([z, -np.ones(50, int), np.ones(50, int), np.zeros(50, int)])  # no yes; no no; nothing
    result = evaluate(np.column_stack([scores, scores]), Labels.from_ternary(without))
    alone = evaluate(scores, Labels.from_ternary(z))
    assert result["mAP"] == alone["mAP"]
    assert (result["labels_counted"], result["labels_undefined"], result["labels_with_yes"]) == (3, 3, 4)
    for key, all_yes in (("CP", 1.0), ("CR", (scores[:, 1] >= 0.5).mean())):
        assert result[key] == pytest.approx((3 * alone[key] + all_yes) / 4)


def test_nothing_predicted_is_precision_zero_where_there_is_a_yes():
    result = evaluate(np.full((2, 2), 0.1), np.array([[1, 0], [0, 0]]))
    zero = ["CP", "CR", "CF1", "macro_f1", "OP", "OR", "OF1"]
    assert [result[key] for key in zero] == [0.0] * 7
    assert result["labels_with_yes"] == 1


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 1), (2, 5)])
@pytest.mark.parametrize("make", [Labels.from_ternary, sparse])
def test_nothing_known_is_nan_and_counts_nothing(shape, make):
    result = evaluate(np.full(shape, 0.5), make(np.zeros(shape, np.int8)))
    assert all(math.isnan(result[key]) for key in SCORES)
    assert {key: result[key] for key in COUNTS} == dict.fromkeys(COUNTS, 0) | {"labels_undefined": shape[1]}
    assert (
        np.isnan(average_precision(np.full(shape, 0.5), make(np.zeros(shape, np.int8)))).tolist() == [True] * shape[1]
    )


def test_one_item_and_one_label():
    row = evaluate([[0.9, 0.8, 0.2]], Labels.from_ternary(np.array([[1, -1, 0]])))
    assert math.isnan(row["mAP"])
    assert [row[key] for key in ("P@1", "P@3", "exact_match", "OP", "OR")] == [1, 0.5, 0, 0.5, 1]
    column = evaluate([[0.9], [0.8], [0.2]], Labels.from_ternary(np.array([[1], [-1], [0]])))
    assert [column[key] for key in ("mAP", "P@1", "exact_match", "CP", "CR")] == [1, 0.5, 0.5, 0.5, 1]


def test_only_yes_or_only_no_known():
    scores = np.array([[0.9, 0.2], [0.4, 0.6]])
    yes = evaluate(scores, Labels.from_positives(np.ones((2, 2))))
    assert math.isnan(yes["mAP"])
    assert (yes["CP"], yes["OR"], yes["P@1"], yes["no"]) == (1, 0.5, 1, 0)
    no = evaluate(scores, np.zeros((2, 2)))
    assert [key for key in SCORES if not math.isnan(no[key])] == ["exact_match", "P@1", "P@3", "P@5"]
    assert (no["exact_match"], no["P@1"], no["items_counted"]) == (0, 0, 2)


def test_where_only_yes_is_known_a_constant_predictor_scores_nothing():
    labels = Labels.from_positives(np.eye(4, dtype=int))
    found = evaluate(np.full((4, 4), 0.99), labels)
    assert [key for key in SCORES if not math.isnan(found[key])] == ["CR", "OR"]
    assert (found["OR"], found["items_counted"], found["labels_with_yes"]) == (1, 4, 4)
    mixed = evaluate(np.full((4, 2), 0.99), np.array([[1, 1], [np.nan, 1], [np.nan, 0], [np.nan, 0]]))
    assert (mixed["CP"], mixed["CR"]) == (0.5, 1)  # the first label has no precision


# -------------------------------------------------------------------- missing not at random


def population(seed, yes_known, no_known, items=2000, labels=4):
    """Scores, what is known, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.random((items, labels)) < [0.1, 0.2, 0.3, 0.5][:labels]
    scores = 1 / (1 + np.exp(-rng.normal(size=truth.shape) - 2 * truth + 2))
    known = rng.random(truth.shape) < np.where(truth, yes_known, no_known)
    return scores, np.where(known, truth, np.nan), truth.astype(float)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("yes_known", "no_known"), [(1.0, 0.15), (0.2, 0.6), (0.6, 0.2)])
def test_scores_are_corrected_where_yes_and_no_are_known_at_different_rates(seed, yes_known, no_known):
    scores, known, truth = population(seed, yes_known, no_known)
    plain, right = evaluate(scores, known), evaluate(scores, truth)
    corrected = evaluate(scores, known, missing="auto")
    assert corrected["missing_p"] < 0.001
    assert abs(plain["mAP"] - right["mAP"]) > 0.08
    for key in ("mAP", "CF1", "OF1", "OP", "macro_f1"):
        assert corrected[key] == pytest.approx(right[key], abs=0.04), key
    assert corrected["OR"] == pytest.approx(right["OR"], abs=0.05)
    assert all(math.isnan(corrected[key]) for key in ("exact_match", "P@1", "P@3", "P@5"))
    blocks = evaluate(iter(np.array_split(scores, 7)), Labels.from_nan(known), missing="auto")
    assert {k: v for k, v in blocks.items() if v == v} == pytest.approx({k: v for k, v in corrected.items() if v == v})


def test_weighted_average_precision_is_that_of_repeated_entries():
    yes, no = np.array([0.9, 0.7, 0.7, 0.2]), np.array([0.8, 0.7, 0.1])
    repeated = scored.average_precision(yes, np.repeat(no, 3))
    assert scored.average_precision(yes, no, 3.0) == pytest.approx(repeated)


def test_where_entries_are_missing_at_random_nothing_is_corrected():
    scores, known, truth = population(0, 0.3, 0.3)
    found = evaluate(scores, known, missing="auto")
    assert found.pop("missing_p") > 0.01
    assert same(found, evaluate(scores, known))
    complete = evaluate(scores, truth, missing="auto")
    assert math.isnan(complete.pop("missing_p"))
    assert same(complete, evaluate(scores, truth))


def test_hard_negatives_cannot_be_corrected_and_are_withheld():
    scores, _, truth = population(0, 1, 1)
    rng = np.random.default_rng(1)
    hard = np.where(truth == 1, 1.0, scores**2)  # a no is known the more often, the higher it scores
    found = evaluate(scores, np.where(rng.random(truth.shape) < hard, truth, np.nan), missing="auto")
    assert all(math.isnan(found[key]) for key in SCORES)
    with pytest.raises(SettingError, match=r"missing = 'aut'\. Did you mean 'auto'"):
        evaluate(scores, truth, missing="aut")
    with pytest.raises(DataError, match="needs the scores of all entries"):
        evaluate(sp.csr_array(scores), truth, missing="auto")


# -------------------------------------------------------------------- the door


def test_shapes_that_differ_are_both_named():
    labels = Labels.from_ternary(np.ones((3, 2)))
    for scores in (np.ones((2, 3)), np.ones(3), np.ones((3, 2, 1))):
        for score in (average_precision, by_label, evaluate):
            with pytest.raises(DataError) as error:
                score(scores, labels)
            assert str(scores.shape) in str(error.value)
            assert "(3, 2)" in str(error.value)


def test_nan_is_refused_with_its_places(monkeypatch):
    monkeypatch.setattr(matrix, "BLOCK", 4)
    labels = Labels.from_ternary(np.zeros((8, 2)), names=["cat", "dog"], ids=list("abcdefgh"))
    scores = np.zeros((8, 2), np.float32)
    scores[5, 1] = scores[7, 0] = np.nan
    for score in (average_precision, by_label, evaluate):
        with pytest.raises(
            DataError, match=r"2 of 16 scores are NaN\n  item f, label dog: nan\n  item h, label cat: nan"
        ):
            score(scores, labels)
    scores[:] = np.nan
    with pytest.raises(DataError, match=r"16 of 16(?s:.*)item c, label cat: nan\n  ... and 11 more"):
        evaluate(scores, labels)


def test_logits_are_refused_where_the_threshold_takes_probabilities():
    logits = np.array([[3.0, -2.0], [-1.0, 0.5]])
    y = np.eye(2)
    with pytest.raises(DataError, match=r"3 of 4 scores are outside 0..1(?s:.*)item 0, label 0: 3(?s:.*)threshold=0"):
        evaluate(logits, y)
    probabilities = main_scores(1 / (1 + np.exp(-logits)), y)
    assert same(main_scores(logits, y, 0), probabilities)
    assert same(main_scores(np.where(y == 1, np.inf, -np.inf), y, 0), main_scores(y, y))
    assert math.isnan(evaluate(logits, y, threshold=0)["log_loss"])
    np.testing.assert_array_equal(average_precision(logits, y), [1, 1])
    assert evaluate([[1 + 2e-16, 0.0]], [[1, 0]])["OP"] == 1


@pytest.mark.parametrize("threshold", [math.nan, math.inf])
def test_a_threshold_is_a_number(threshold):
    with pytest.raises(SettingError, match="threshold must be a finite number"):
        evaluate(np.eye(2), np.eye(2), threshold)


def test_scores_and_labels_that_are_no_numbers():
    with pytest.raises(DataError, match="complex128"):
        evaluate(np.eye(2) * 1j, np.eye(2))
    with pytest.raises(DataError, match="object"):
        evaluate(np.array([[None, 1.0], [0.0, 1.0]]), np.eye(2))
    with pytest.raises(LabelError, match=r"Labels\.from_ternary"):
        evaluate(np.eye(2), np.array([[1, -1], [0, 1]]))


def test_nothing_is_written_to_what_the_caller_gave():
    rng = np.random.default_rng(2)
    scores, z = rng.random((20, 4)), rng.integers(-1, 2, (20, 4))
    before = scores.copy()
    scores.setflags(write=False)
    evaluate(scores, Labels.from_ternary(z))
    evaluate(scores, sparse(z))
    np.testing.assert_array_equal(scores, before)


# -------------------------------------------------------------------- groups of labels


def test_groups_by_hand():
    truth = np.array([[1, 1, 0, 0, 1], [0, 0, 1, 1, 0], [0, 1, 0, 0, np.nan]])
    scores = np.array([[0.9, 0.2, 0.1, 0.1, 0.5], [0.1, 0.8, 0.2, 0.3, 0.4], [0.2, 0.9, 0.3, 0.2, 0.9]])
    ap = average_precision(scores, truth)  # 1, 5/6, 1/2, 1, 1
    assert ap.tolist() == pytest.approx([1, 5 / 6, 1 / 2, 1, 1])
    found = by_group(scores, truth, [7, 3, 7, 0, 3], groups=2)  # labels 3, 1, 4 and then 0, 2
    assert found.tolist() == pytest.approx([(1 + 5 / 6 + 1) / 3, (1 + 1 / 2) / 2])
    assert by_group(scores, truth, [0, 1, 2, 3, 4]).tolist() == ap.tolist()


def test_a_group_without_a_defined_label_is_undefined():
    found = by_group([[0.1, 0.2], [0.3, 0.4]], [[1, 1], [0, 1]], [5, 1], groups=3)
    assert np.isnan(found).tolist() == [True, False, True]


def test_counts_must_be_one_a_label():
    with pytest.raises(DataError, match=r"shape \(3,\) for 2 labels"):
        by_group([[0.1, 0.2]], [[1, 0]], [1, 2, 3])
    with pytest.raises(SettingError, match="groups = 0"):
        by_group([[0.1, 0.2]], [[1, 0]], [1, 2], groups=0)


@pytest.mark.parametrize("sparse", [False, True])
def test_each_label_may_have_its_own_threshold(sparse: bool) -> None:
    """As if the scores of each label were moved so that its threshold is that of all."""
    rng = np.random.default_rng(0)
    p, z = rng.random((40, 5)), rng.integers(-1, 2, (40, 5))
    own = np.array([0.2, 0.4, 0.5, 0.6, 0.9])
    labels = Labels.from_ternary(sp.csr_array(z) if sparse else z)
    moved = metrics.evaluate((p - own + 1) / 2, labels)
    found = metrics.evaluate(p, labels, own)
    for name in ("CP", "CR", "OP", "OR", "CF1", "OF1", "macro_f1", "exact_match"):
        assert found[name] == moved[name]
    assert found["P@1"] == metrics.evaluate(p, labels)["P@1"]  # the order of labels is that of the scores
    assert found == metrics.evaluate(p, labels, own) != metrics.evaluate(p, labels, 0.5)


@pytest.mark.parametrize("wrong", [np.ones(4), np.full(5, np.nan), np.ones((1, 5))])
def test_thresholds_that_are_not_one_a_label_are_refused(wrong: np.ndarray) -> None:
    with pytest.raises(SettingError, match="a finite number, or one for each label"):
        metrics.evaluate(np.ones((3, 5)), np.ones((3, 5)), wrong)


def test_a_table_of_scores_is_matched_with_labels_by_id():
    scores = np.random.default_rng(0).random((6, 3))
    known = Labels.from_nan(np.array([[1.0, 0, np.nan]] * 3 + [[0, 1, 1]] * 3), ids=list("abcdef"))
    turned = pd.DataFrame(scores, list("abcdef")).loc[list("fbdace")]
    assert evaluate(turned, known) == evaluate(scores, known)
    with pytest.raises(LabelError, match="cannot be matched: 1 of the 6 items"):
        evaluate(turned.rename(index={"f": "g"}), known)


def test_a_table_of_scores_may_have_more_items_and_labels():
    rng = np.random.default_rng(0)
    known = pd.DataFrame(rng.choice([0, 1, np.nan], (20, 3)), [f"i{k}" for k in range(20)], list("abc"))
    scores = pd.DataFrame(rng.random((30, 5)), [f"i{k}" for k in range(30)], list("xcbay")).iloc[::-1]
    expected = evaluate(scores.loc[known.index, known.columns].to_numpy(), known)
    assert evaluate(scores, known) == expected
    labels = Labels.from_nan(known.to_numpy(), names=list("abc"), ids=list(known.index))
    assert evaluate(scores, labels, missing="auto").items() >= expected.items()
    with pytest.raises(LabelError, match="1 of the 20 items are not among the scores\n  'i7'"):
        evaluate(scores.drop("i7"), labels)
    with pytest.raises(LabelError, match="1 of the 3 labels are not among the scores"):
        evaluate(scores.drop(columns="b"), labels)
    with pytest.raises(LabelError, match="labels has 3 labels, and there are 5 scores"):
        evaluate(scores, known.to_numpy())


# -------------------------------------------------------------------- some items at a time


@known_to_all
@given(cases(), st.integers(1, 4), st.booleans())
def test_blocks_give_exactly_what_the_whole_gives(case, size, packed):
    scores, z = case
    known = sparse(z) if packed else Labels.from_ternary(z)

    def blocks():
        return (scores[start : start + size] for start in range(0, len(scores), size))

    assert same(evaluate(blocks(), known), evaluate(scores, known))
    assert same(by_label(blocks(), known, 0.25), by_label(scores, known, 0.25))
    np.testing.assert_array_equal(average_precision(blocks(), known), average_precision(scores, known))


def test_of_sparse_labels_only_scores_of_known_entries_are_kept():
    z = sp.csr_array(([1, -1, 1], ([0, 1, 2], [4, 0, 2])), shape=(3, 5), dtype=np.int8)
    scores = np.random.default_rng(0).random((3, 5))
    kept = scored.gather_known(scored.enumerate_rows(scores[i : i + 1] for i in range(3)), sparse(z))
    assert kept.data.tolist() == [scores[0, 4], scores[1, 0], scores[2, 2]]
    assert same(evaluate(kept, sparse(z)), evaluate(scores, sparse(z)))
    with pytest.raises(DataError, match="of the known entries"):
        evaluate(kept, sparse(z[::-1]))
    with pytest.raises(DataError, match="of the known entries"):
        evaluate(kept, Labels.from_ternary(z.toarray()))


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        ([np.ones((2, 3))], r"scores of 2 items and labels of 3"),
        ([np.ones((2, 3)), np.ones((2, 3))], r"shape \(2, 3\) where 1 of 3 items are left"),
        ([np.ones((3, 2))], r"shape \(3, 2\)"),
        ([np.ones((2, 3)), np.array([[1, np.nan, 1]])], r"item 2, label 1: nan"),
        ([np.full((3, 3), "a")], "real numbers"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(blocks, words):
    with pytest.raises(DataError, match=words):
        evaluate(iter(blocks), np.ones((3, 3)))
