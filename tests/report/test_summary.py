"""Words about scores: worked by hand, or by the slow and obvious way."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partly import metrics
from partly.labels import Labels
from partly.report import summary
from partly.report.summary import RunView, find_best, jackknife_margin, score_runs, summarize

NOTHING = {"data": {"labels_sha256": "a"}, "validation": None}


def truth_of(items: int, labels: int = 4, seed: int = 0) -> Labels:
    return Labels.from_full(np.random.default_rng(seed).integers(0, 2, (items, labels)))


def guesses(truth: Labels, skill: float, seed: int = 0) -> Any:
    noise = np.random.default_rng(seed).normal(size=truth.shape)
    return 1 / (1 + np.exp(-(skill * np.asarray(truth.ternary(), float) + noise)))


def words(
    truth: Labels | None, *runs: tuple[str, Any, str], description: dict[str, Any] | None = None, epochs: int = 2
) -> str:
    history = [{"epoch": epoch + 1} for epoch in range(epochs)]
    views = [RunView(t, description or NOTHING, history, probabilities=p, privilege=v) for t, p, v in runs]
    return " ".join(
        str(s).replace("<b><bdi>", "").replace("</bdi></b>", "") for s in summarize(score_runs(views, truth), truth)
    )


def test_margin_is_a_jackknife_over_every_20th_item() -> None:
    truth = truth_of(90)
    a, b = guesses(truth, 1.0), guesses(truth, 2.0, 1)

    def mean_ap(p: Any, kept: list[int]) -> float:
        return float(np.mean(metrics.average_precision(p[kept], truth[kept])))

    single, paired = [], []
    for group in range(20):
        kept = [i for i in range(90) if i % 20 != group]
        single.append(mean_ap(a, kept))
        paired.append(mean_ap(a, kept) - mean_ap(b, kept))
    for found, values in ((jackknife_margin(truth, a), single), (jackknife_margin(truth, a, b), paired)):
        middle = sum(values) / 20
        expected = 2.093024 * math.sqrt(19 / 20 * sum((v - middle) ** 2 for v in values))
        assert found == pytest.approx(expected, rel=1e-6)


def test_margin_covers_the_truth_about_as_often_as_it_says() -> None:
    def difference(items: int, seed: int) -> tuple[float, float]:
        truth = truth_of(items, 5, seed)
        a, b = guesses(truth, 0.5, seed), guesses(truth, 0.6, seed + 10_000)
        ap = [float(np.mean(metrics.average_precision(p, truth))) for p in (a, b)]
        return ap[1] - ap[0], jackknife_margin(truth, b, a) if items < 1000 else 0.0

    real = difference(100_000, 0)[0]
    hits = [abs(gap - real) <= wide for gap, wide in (difference(200, seed) for seed in range(1, 61))]
    assert np.mean(hits) >= 0.85
    spread = np.std([difference(200, seed)[0] for seed in range(100, 160)])
    assert 0.7 < difference(200, 1)[1] / (1.96 * spread) < 1.5  # and not by being too wide


def test_margin_of_a_part_is_scaled_to_all_items(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = truth_of(400)
    p = guesses(truth, 1.0)
    monkeypatch.setattr(summary, "MAX_JACKKNIFE_ENTRIES", 400)  # a quarter of 400 x 4
    part = np.arange(0, 400, 4)
    with monkeypatch.context() as all_of_it:
        all_of_it.setattr(summary, "MAX_JACKKNIFE_ENTRIES", 1 << 24)
        expected = jackknife_margin(truth[part], p[part]) / 2
    assert jackknife_margin(truth, p) == pytest.approx(expected)


def test_too_few_items_have_no_margin() -> None:
    truth = truth_of(1)
    assert math.isnan(jackknife_margin(truth, guesses(truth, 1.0)))


@settings(max_examples=10)
@given(st.integers(0, 1000), st.floats(0.2, 3.0))
def test_margin_of_a_run_against_itself_is_nothing(seed: int, skill: float) -> None:
    truth = truth_of(60, seed=seed)
    p = guesses(truth, skill, seed)
    assert jackknife_margin(truth, p, p) == 0.0


def test_best_has_no_privilege() -> None:
    truth = truth_of(60)
    views = [
        RunView(title, NOTHING, [], probabilities=guesses(truth, skill), privilege=privilege)
        for title, skill, privilege in (("a", 0.5, ""), ("b", 1.5, ""), ("c", 5.0, "all labels"))
    ]
    found = find_best(score_runs(views, truth))
    assert found is not None
    assert found.view.title == "b"
    assert find_best(score_runs(views, None)) is None
    assert find_best(score_runs(views[2:], truth)) is None


def test_a_clear_winner_and_its_upper_bound() -> None:
    truth = truth_of(300)
    p = {title: guesses(truth, skill, k) for k, (title, skill) in enumerate({"a": 0.3, "b": 1.5, "c": 4.0}.items())}
    said = words(truth, ("a", p["a"], ""), ("b", p["b"], ""), ("c", p["c"], "all labels"))
    ap = {title: metrics.evaluate(scores, truth)["mAP"] for title, scores in p.items()}
    lead = f"{ap['b'] - ap['a']:.3f} ± {jackknife_margin(truth, p['b'], p['a']):.3f}"
    assert f"b is best: mAP {ap['b']:.3f}, {lead} above a." in said
    gap = f"{ap['c'] - ap['b']:.3f} ± {jackknife_margin(truth, p['c'], p['b']):.3f}"
    assert f"c saw <bdi>all labels</bdi> and reaches {ap['c']:.3f}: b is {gap} below this upper bound." in said
    shares = [float(np.mean(np.asarray(truth.ternary())[:, j] == 1)) for j in range(4)]
    assert f"Random guessing would reach {np.mean(shares):.3f}." in said


def test_what_is_within_noise_is_called_so() -> None:
    truth = truth_of(100)
    runs = [(title, guesses(truth, 1.0, k), "") for k, title in enumerate("abc", 10)]
    said = words(truth, *runs)
    assert "do not differ significantly" in said
    assert "The same holds for 1 more." in said
    assert "is best" not in said


def test_a_bound_that_is_none() -> None:
    truth = truth_of(300)
    low, high = guesses(truth, 0.3), guesses(truth, 3.0, 1)
    assert "above what should be an upper bound" in words(truth, ("a", high, ""), ("b", low, "all labels"))
    assert "b saw <bdi>all labels</bdi> and reaches" in words(truth, ("a", high, ""), ("b", high, "all labels"))
    assert "does not differ significantly from a: a difference of 0.000 ± 0.000" in words(
        truth, ("a", high, ""), ("b", high, "all labels")
    )


def test_one_run_is_not_called_the_best() -> None:
    truth = truth_of(50)
    p = guesses(truth, 1.0)
    said = words(truth, ("only", p, ""))
    assert said.startswith(f"only: mAP {metrics.evaluate(p, truth)['mAP']:.3f} ± {jackknife_margin(truth, p):.3f}.")
    assert "best" not in said


def test_where_nothing_can_be_compared() -> None:
    truth = Labels.from_positives(np.eye(5, dtype=int))
    p = np.full((5, 5), 0.5)
    assert words(None, ("a", p, "")).startswith("No scores")
    assert words(truth, ("a", p, ""), ("b", p, "")).startswith("No mAP: no label has both")
    assert words(truth_of(5), ("a", np.full((5, 4), 0.5), "the truth")).startswith("No mAP: every run had access")


def test_flattering_evaluations_are_named() -> None:
    truth = truth_of(50)
    p, digest = guesses(truth, 1.0), truth.digest()
    on_training = {"data": {"labels_sha256": digest}, "validation": None}
    on_validation = {"data": {"labels_sha256": "a"}, "validation": {"labels_sha256": digest}}
    assert "training items" in words(truth, ("a", p, ""), description=on_training)
    assert "used to choose the best epoch" in words(truth, ("a", p, ""), description=on_validation)
    assert "used to choose the best epoch" not in words(truth, ("a", p, ""), description=on_validation, epochs=1)
    plain = words(truth, ("a", p, ""))
    assert "training items" not in plain
    assert "used to choose the best epoch" not in plain
    only_yes = Labels.from_positives(np.eye(5, dtype=int))
    assert "every prediction of yes would count as right" in words(only_yes, ("a", np.full((5, 5), 0.5), ""))


def test_titles_are_escaped() -> None:
    truth = truth_of(50)
    assert "&lt;i&gt;: mAP" in words(truth, ("<i>", guesses(truth, 1.0), ""))
