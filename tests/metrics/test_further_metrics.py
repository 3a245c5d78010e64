"""Further metrics: against scikit-learn on complete labels and slow loops on partly known ones; simulated intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    coverage_error,
    label_ranking_average_precision_score,
    label_ranking_loss,
    log_loss,
    ndcg_score,
    roc_auc_score,
)

from partly import Labels
from partly.errors import DataError, SettingError
from partly.metrics import both, compare, evaluate, intervals, label_intervals, measure, propensities
from partly.metrics.intervals import holm


def draw(seed, items=60, labels=7, known=1.0, decimals=1):
    rng = np.random.default_rng(seed)
    y = rng.random((items, labels)) < rng.uniform(0.1, 0.5, labels)
    scores = expit(rng.normal(size=y.shape) + 1.5 * y).round(decimals)
    z = np.where(rng.random(y.shape) < known, np.where(y, 1, -1), 0).astype(np.int8)
    return scores, y, z


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("decimals", [1, 8])
def test_equal_scikit_learn_on_complete_labels(seed, decimals):
    scores, y, _ = draw(seed, decimals=decimals)
    y[0], y[1] = False, True  # items without a yes and without a no
    found = evaluate(scores, Labels.from_full(y))
    expected = {
        "AUROC": roc_auc_score(y, scores, average="macro"),
        "weighted_AUROC": roc_auc_score(y, scores, average="weighted"),
        "pooled_AUROC": roc_auc_score(y.ravel(), scores.ravel()),
        "pooled_AP": average_precision_score(y.ravel(), scores.ravel()),
        "log_loss": log_loss(y.ravel(), scores.ravel()),
        "macro_log_loss": np.mean([log_loss(y[:, j], scores[:, j], labels=[0, 1]) for j in range(y.shape[1])]),
        "brier": brier_score_loss(y.ravel(), scores.ravel()),
        "LRAP": label_ranking_average_precision_score(y, scores),
        "ranking_loss": label_ranking_loss(y, scores),
        "coverage_error": coverage_error(y, scores),
        **{f"nDCG@{k}": ndcg_score(y, scores, k=k) for k in (1, 3, 5)},
    }
    assert {key: found[key] for key in expected} == pytest.approx(expected, abs=1e-9)


def slow_item_metrics(scores, z, p):
    """Loop over items; scores have no ties."""
    sums = {"R@3": [], "nDCG@3": [], "LRAP": [], "ranking_loss": [], "coverage_error": []}
    above, below = np.zeros(2), np.zeros(2)  # PSP@3, PSnDCG@3
    for s, row in zip(scores, z, strict=True):
        known = [j for j in np.argsort(-s) if row[j]]
        yes = [j for j in known if row[j] == 1]
        if not yes:
            assert not (row != 0).all()
            continue
        top = known[:3]
        best = sum(1 / math.log2(i + 2) for i in range(min(3, len(yes))))
        sums["R@3"].append(len([j for j in top if j in yes]) / len(yes))
        sums["nDCG@3"].append(sum((j in yes) / math.log2(i + 2) for i, j in enumerate(top)) / best)
        sums["coverage_error"].append(max(known.index(j) + 1 for j in yes))
        gains = [(j in yes) / p[j] for j in top]
        ideal = sorted((1 / p[j] for j in yes), reverse=True)[:3]
        for values, total in ((gains, above), (ideal, below)):
            total += [sum(values), sum(v / math.log2(i + 2) for i, v in enumerate(values)) / best]
        if len(yes) < len(known):
            no = [j for j in known if j not in yes]
            precisions = [sum(s[b] >= s[a] for b in yes) / sum(s[b] >= s[a] for b in known) for a in yes]
            sums["LRAP"].append(np.mean(precisions))
            sums["ranking_loss"].append(np.mean([s[a] <= s[b] for a in yes for b in no]))
    means = {key: np.mean(values) for key, values in sums.items()}
    return means | dict(zip(("PSP@3", "PSnDCG@3"), above / below, strict=True))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sparse", [False, True])
def test_equal_slow_loops_on_partly_known_labels(seed, sparse):
    scores, _, z = draw(seed, known=0.6, decimals=12)
    z[:, 0] = np.where((z != 0).all(axis=1), 0, z[:, 0])  # no item is complete
    p = np.linspace(0.2, 0.9, z.shape[1])
    labels = Labels.from_ternary(sp.csr_array(z) if sparse else z)
    found = evaluate(scores, labels, propensity=p)
    expected = slow_item_metrics(scores, z, p)
    expected["AUROC"] = np.mean(
        [np.mean(scores[z[:, j] == 1, j][:, None] > scores[z[:, j] == -1, j]) for j in range(z.shape[1])]
    )
    known, y = z != 0, z == 1
    expected["brier"] = np.mean([(scores[i, j] - y[i, j]) ** 2 for i, j in np.argwhere(known)])
    expected["one_error"] = 1 - found["P@1"]
    assert {key: found[key] for key in expected} == pytest.approx(expected, abs=1e-9)


def test_ece_by_hand():
    scores = np.repeat([0.1, 0.8], 10)[:, None]
    y = np.array([1] * 3 + [0] * 7 + [1] * 6 + [0] * 4)[:, None]
    assert evaluate(scores, y)["ECE"] == pytest.approx((2 + 2) / 20)  # |3 - 1| and |6 - 8|


def test_propensities_by_hand():
    c = (math.log(1000) - 1) * 2.5**0.55
    expected = [1 / (1 + c * (n + 1.5) ** -0.55) for n in (0, 10)]
    assert propensities([0, 10], 1000).tolist() == pytest.approx(expected)
    with pytest.raises(SettingError, match="propensities"):
        propensities([-1], 10)
    with pytest.raises(DataError, match="one number in"):
        evaluate([[0.5, 0.5]], [[1, 0]], propensity=[0.5])


@pytest.mark.parametrize("seed", range(3))
def test_influence_is_the_derivative_by_the_weight_of_an_item(seed):
    """One more copy of an item among 400 of each."""
    scores, _, z = draw(seed, items=9, labels=4, known=0.7, decimals=2)
    p, copies = np.full(4, 0.5), 400
    measured = measure(scores, Labels.from_ternary(z), propensity=p, influence=True)
    names = [name for name in measured.influences if "ECE" not in name]
    assert len(names) > 30
    many = np.tile(np.arange(9), copies)
    for item in range(9):
        rows = np.append(many, item)
        moved = measure(scores[rows], Labels.from_ternary(z[rows]), propensity=p).values
        slopes = {name: (moved[name] - measured.values[name]) * copies for name in names}
        found = {name: measured.influences[name][item] for name in names}
        assert found == pytest.approx(slopes, abs=0.01, nan_ok=True)


@pytest.mark.parametrize("name", ["mAP", "AUROC", "OF1", "P@3"])
def test_intervals_contain_the_truth_about_as_often_as_they_say(name):
    """300 draws, so 95 % +- 2.5 standard errors; benchmarks/interval_coverage.py has 1,000."""
    rng = np.random.default_rng(0)
    shares = rng.uniform(0.1, 0.5, 5)

    def sample(count):
        y = rng.random((count, 5)) < shares
        return expit(rng.normal(size=y.shape) + 1.5 * y - 0.5), y

    truth = both(*sample(300_000))[0][name] if name != "AUROC" else evaluate(*sample(300_000))[name]
    hits = 0
    for _ in range(300):
        low, high = evaluate(*sample(200), confidence=0.95)["intervals"][name]
        hits += low <= truth <= high
    assert 0.918 <= hits / 300 <= 0.982


def test_the_exact_interval_of_a_perfect_score_rests_on_its_units():
    """Three labels with one, two and four known yes, all of them ranked first: 30 items are not 30 successes."""
    y = np.zeros((30, 3), int)
    y[:1, 0] = y[:2, 1] = y[:4, 2] = 1
    measured = measure(np.where(y, 0.9, 0.1), y, influence=True)
    found = intervals(measured, 0.9)
    of_mean = 9 / (1 / 1 + 1 / 2 + 1 / 4)  # the variance of a mean of three proportions
    units = {"mAP": of_mean, "CR": of_mean, "macro_f1": of_mean, "OR": 7, "OF1": 7, "pooled_AP": 7, "LRAP": 30}
    units |= {"exact_match": 30, "R@3": 4, "PSP@3": 4}  # four items have a yes
    for name, count in units.items():
        assert found[name] == (pytest.approx(0.05 ** (1 / count)), 1.0), name
    assert found["ranking_loss"] == (0.0, pytest.approx(1 - 0.05 ** (1 / 30)))
    of_labels = label_intervals(measured, 0.9)
    for name in ("AP", "AUROC", "F1"):
        assert of_labels[name].tolist() == [[pytest.approx(0.05 ** (1 / count)), 1.0] for count in (1, 2, 4)]


def test_degrees_of_freedom_of_a_label_are_those_of_welch():
    """The AUROC is a difference of two means of structural components: by hand, as in a t-test."""
    rng = np.random.default_rng(3)
    y, s = np.arange(40) < 5, rng.normal(size=40)
    s[y] += 1
    measured = measure(s[:, None], y[:, None], 0.0, influence=True)
    beats = (s[y][:, None] > s[~y]).astype(float)
    parts = [beats.mean(axis=1).var(ddof=1) / 5, beats.mean(axis=0).var(ddof=1) / 35]
    assert measured.errors_by_label["AUROC"][0] == pytest.approx(math.sqrt(sum(parts)))
    expected = sum(parts) ** 2 / (parts[0] ** 2 / 4 + parts[1] ** 2 / 34)
    assert measured.freedom_by_label["AUROC"][0] == pytest.approx(expected)
    single = measure(s[4:, None], y[4:, None], 0.0, influence=True)  # one yes: no variance of the yes
    assert single.freedom_by_label["AUROC"][0] == 1


def test_intervals_of_perfect_scores_hold():
    """A label of which four yes are known: the AP is often 1, and its interval still contains the truth."""
    rng, hits = np.random.default_rng(0), 0
    scores, y = rng.normal(size=200_000), np.arange(200_000) < 20_000
    scores[y] += 2.5
    truth = measure(scores[:, None], y[:, None], 0.0).values["mAP"]
    for _ in range(300):
        rows = np.concatenate([rng.integers(0, 20_000, 4), rng.integers(20_000, 200_000, 36)])
        low, high = evaluate(scores[rows, None], y[rows, None], 0.0, confidence=0.95)["intervals"]["mAP"]
        hits += low <= truth <= high
    assert hits >= 0.93 * 300


def test_compare_pairs_the_items():
    rng = np.random.default_rng(0)
    y = rng.random((400, 4)) < 0.3
    base = rng.normal(size=y.shape) + y
    models = {"a": base + 0.3 * y, "b": base, "c": base + 1e-3 * rng.normal(size=y.shape)}
    measured = {name: measure(expit(s), y, influence=True) for name, s in models.items()}
    rows = {(row["a"], row["b"]): row for row in compare(measured, ["mAP"])}
    assert rows["a", "b"]["low"] > 0
    assert rows["a", "b"]["p"] < 1e-6
    assert rows["b", "c"]["p"] > 0.01
    width = rows["a", "b"]["high"] - rows["a", "b"]["low"]
    low, high = evaluate(expit(base), y, confidence=0.95)["intervals"]["mAP"]
    assert width < (high - low) / 2  # the same items: their chance cancels
    with pytest.raises(SettingError, match="no score 'map'"):
        compare(measured, ["map"])
    with pytest.raises(SettingError, match="d: comparisons need influences"):
        compare(measured | {"d": measure(expit(base), y)})
    for rows in (slice(0, 300), slice(None, None, -1)):
        other = measure(expit(base[rows]), y[rows, ::-1], influence=True)
        with pytest.raises(DataError, match="measured on different labels"):
            compare(measured | {"d": other})


def test_holm_by_hand():
    assert holm([0.01, math.nan, 0.04, 0.03]) == pytest.approx([0.03, math.nan, 0.06, 0.06], nan_ok=True)
