from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from comparison.making import Record, line, lines
from evidence.claims import cells, footing, rules, specs
from evidence.claims.rules import FAILS, HOLDS, OPEN, UNFIT
from evidence.papers import Figure
from partly import methods
from partly.comparison import results as result_lines
from partly.comparison.plan import SCIKIT, method_and_settings
from partly.comparison.protocol import PROTOCOL, ProtocolError
from partly.errors import DataError

BASE = [0.50, 0.51, 0.52]
HIGH = [0.540, 0.551, 0.559]  # 0.040, 0.041, 0.039 above: t = 0.04 / (0.001 / sqrt 3) = 69, p = 0.0002


@pytest.fixture(autouse=True)
def few_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three seeds are enough here, intervals are as wide as the seeds say, and no method has a setting of its own."""
    monkeypatch.setattr(rules, "SEEDS", 3)
    monkeypatch.setattr(rules, "MANY_SEEDS", 5)
    monkeypatch.setattr(rules, "widening", lambda: 1.0)
    monkeypatch.setattr(footing, "OWN_SETTING", {})


def claim(**changes: Any) -> specs.Claim:
    usual: dict[str, Any] = {"id": "x", "paper": "Hsieh et al. 2021", "where": "", "says": "", "experiment": "e"}
    usual |= {"data": ("tiny",), "scenarios": ("uniform:0.5",), "heads": ("linear",), "a": ("em",), "b": ("bce",)}
    return specs.Claim(**usual | changes)


def scikit(scores: list[float], **changes: Any) -> list[Record]:
    name, settings = method_and_settings(SCIKIT)
    usual = {"head": "auto", "settings": methods.find(name).complete(settings)}
    return [line(name, seed, score, **usual | changes) for seed, score in enumerate(scores)]


def rows(scores: dict[str, list[float]], **changes: Any) -> list[Record]:
    """Lines as `lines` makes them, with all settings spelled out, as real ones have them."""
    made = []
    for text, values in scores.items():
        name, settings = method_and_settings(text)
        made += lines({name: values}, settings=methods.find(name).complete(settings), **changes)
    return made


def one(found: list[Record], **changes: Any) -> rules.Decided:
    (decided,) = rules.decide([claim(**changes)], cells.Cells({"e": found}))
    return decided


def test_holds_where_the_difference_is_clear_of_0() -> None:
    decided = one(rows({"bce": BASE, "em": HIGH}))
    (decision,) = decided.decisions
    assert (decided.verdict, decided.why) == (HOLDS, "")
    assert decision.best.found is not None
    assert decision.best.found.value == pytest.approx(0.04)
    # 4.303 is Student's t at 97.5 % with 2 degrees of freedom
    assert decision.best.found.margin == pytest.approx(4.303 * 0.001 / 3**0.5, rel=1e-3)
    assert decision.best.found.count == 3


def test_does_not_hold_where_every_setting_is_below_a_checked_baseline() -> None:
    found = rows({"bce": HIGH, "em": BASE, "em[alpha=0.2]": BASE}) + scikit(HIGH)
    assert one(found, a=("em[alpha=0.2]", "em")).verdict == FAILS


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (rows({"bce": HIGH}), "not run"),
        (rows({"bce": BASE[:2], "em": HIGH[:2]}), "too few seeds"),
        (rows({"bce": BASE, "em": [0.505, 0.515, 0.525]}), "too few seeds"),  # within a point: 5 are needed
        (rows({"bce": BASE, "em": [0.60, 0.48, 0.55]}), "the interval spans the margin"),
        (rows({"bce": BASE, "em": HIGH}) + scikit([0.51, 0.52, 0.53]), "baseline not at its best"),
        (rows({"bce": HIGH, "em": BASE}), "baseline not checked"),
    ],
)
def test_undecided_with_the_reason(found: list[Record], why: str) -> None:
    decided = one(found)
    assert decided.verdict == OPEN
    assert decided.why == why


def test_a_baseline_half_a_point_below_scikit_learn_is_at_its_best() -> None:
    found = rows({"bce": BASE, "em": HIGH}) + scikit([0.5049, 0.5149, 0.5249])
    assert one(found).verdict == HOLDS


def test_a_method_is_not_refuted_at_one_setting() -> None:
    found = rows({"bce": HIGH, "em": BASE}) + scikit(HIGH)
    decided = one(found, a=("em", "em[alpha=0.2]"))
    assert (decided.verdict, decided.why) == (OPEN, "the interval spans the margin")  # the other setting might do it
    both = found + rows({"em[alpha=0.2]": [score + 0.08 for score in BASE]})
    assert one(both, a=("em", "em[alpha=0.2]")).verdict != FAILS


def test_validation_chooses_the_setting_and_not_the_test_part() -> None:
    good = rows({"em[alpha=0.2]": HIGH}, validation_score=0.1)
    poor = rows({"em": [score - 0.04 for score in BASE]}, validation_score=0.9)
    (decision,) = one(rows({"bce": BASE}) + good + poor, a=("em[alpha=0.2]", "em")).decisions
    assert decision.best.row == "em"
    assert decision.verdict == OPEN


def reports(monkeypatch: pytest.MonkeyPatch, points: float | None) -> None:
    """Let the paper report a gain of so many points; None: no figures."""
    figures = tuple(Figure("", "", "", "", "", "mAP", value, None) for value in (60.0 + (points or 0.0), 60.0))
    monkeypatch.setattr(specs.Claim, "_theirs", lambda *_: () if points is None else (figures,))


WOBBLE = (0.002, -0.001, 0.001, 0.0, -0.001)  # mean 0.0002; 2.776 * 0.0013 / sqrt 5 = 0.0016 to both sides


def test_one_margin_in_both_directions(monkeypatch: pytest.MonkeyPatch) -> None:
    base = [0.50, 0.51, 0.52, 0.53, 0.54]

    def gains(gain: float) -> rules.Decided:
        em = [score + gain + wobble for score, wobble in zip(base, WOBBLE, strict=True)]
        return one(rows({"bce": base, "em": em}) + scikit(base))

    for points in (None, 20.0):  # half a point: half of 20 would be more
        reports(monkeypatch, points)
        assert gains(0.010).verdict == HOLDS
        assert (gains(0.0).verdict, gains(0.0).why) == (FAILS, "no difference: within the margin")
        assert (gains(0.002).verdict, gains(0.005).verdict) == (FAILS, OPEN)
        assert (gains(-0.010).verdict, gains(-0.010).why) == (FAILS, "the other way round")
        assert (gains(-0.005).verdict, gains(-0.005).why) == (FAILS, "below the margin")
    reports(monkeypatch, 0.4)  # half of it is 0.2 points
    assert gains(0.005).verdict == HOLDS
    assert gains(0.002).verdict == OPEN


def test_intervals_are_widened_for_other_data(monkeypatch: pytest.MonkeyPatch) -> None:
    found = rows({"bce": BASE, "em": SO_SO})
    (narrow,) = one(found).decisions
    monkeypatch.setattr(rules, "widening", lambda: 2.0)
    (wide,) = one(found).decisions
    assert narrow.best.found is not None
    assert wide.best.found is not None
    assert wide.best.found.margin == pytest.approx(2 * (narrow.best.found.margin or 0.0))
    assert (narrow.verdict, wide.verdict) == (HOLDS, OPEN)


def test_the_factor_is_measured() -> None:
    text = Path(rules.__file__).parents[1].joinpath("results/resampling.json").read_text("utf-8")
    assert max(part["ratio"] or 0 for part in json.loads(text)) > 1


def ran(**changes: Any) -> dict[str, Any]:
    return {"epochs": 10, "batch_size": 64, "head_settings": {}} | changes


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"ran": ran(start="solved")}, "start: random against solved"),
        ({"ran": ran(epochs=20)}, "epochs: 10 against 20"),
        ({"ran": ran(batch_size=8)}, "batch size: 64 against 8"),
        ({"ran": ran(backbone="resnet", backbone_settings={"freeze": 0})}, "features: fixed against resnet"),
        ({"best_epoch": 10}, "other side: best epoch among the last tenth"),
        ({"best_epoch": 1}, "other side: best at its start or after the first epoch"),
    ],
)
def test_a_planted_unfair_comparison_is_not_comparable(changes: dict[str, Any], why: str) -> None:
    method = rows({"em": HIGH}, ran=ran())
    fair = one(method + rows({"bce": BASE}, ran=ran()))
    assert fair.verdict == HOLDS
    unfair = one(method + rows({"bce": BASE}, **{"ran": ran()} | changes))
    (decision,) = unfair.decisions
    assert (unfair.verdict, decision.unfit, decision.outcome) == (UNFIT, (why,), HOLDS)
    assert unfair.p is None  # it corrects nothing


@pytest.mark.parametrize(("curve", "verdict"), [((0.40, 0.4995, 0.50), HOLDS), ((0.40, 0.45, 0.50), UNFIT)])
def test_a_flat_curve_may_be_best_at_its_end(curve: tuple[float, ...], verdict: str) -> None:
    late = {"best_epoch": 10, "validation_score": 0.5, "validation_curve": [*np.linspace(*curve[:2], 9), curve[2]]}
    assert one(rows({"bce": BASE}, ran=ran()) + rows({"em": HIGH}, ran=ran(), **late)).verdict == verdict


def test_a_baseline_that_no_epoch_changes_is_solved() -> None:
    em = rows({"em": HIGH}, ran=ran(start="solved"))
    solved = {"ran": ran(head_settings={"solve": True}), "best_epoch": 1}
    assert one(em + rows({"bce": BASE}, validation_curve=[0.5] * 10, **solved)).verdict == HOLDS
    assert one(em + rows({"bce": BASE}, validation_curve=[0.5] * 9 + [0.4], **solved)).verdict == UNFIT


def test_what_a_claim_is_about_may_differ() -> None:
    found = rows({"em": HIGH}, ran=ran()) + rows({"em": BASE}, ran=ran(epochs=20), recipe={"epochs": 20})
    assert one(found, b=("em",), against={"recipe": {"epochs": 20}}).verdict == HOLDS


def test_a_paper_on_whole_networks_is_not_decided_on_fixed_features_nor_at_fewer_epochs() -> None:
    def decide(**changes: Any) -> rules.Decided:
        return one(rows({"bce": BASE, "em": HIGH}, ran=ran(**changes)), paper="Zhou et al. 2022")

    network = {"backbone": "resnet", "backbone_settings": {"freeze": 0}}
    assert decide().verdict == UNFIT
    assert decide(**network, epochs=9).verdict == UNFIT
    assert decide(**network, epochs=10).verdict == HOLDS


@pytest.mark.parametrize(("a", "b"), [("em", "bce"), ("bce", "em")])
def test_the_papers_own_setting_is_needed_on_whichever_side(a: str, b: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footing, "OWN_SETTING", {"em": "alpha="})
    found = rows({a: HIGH, b: BASE})
    assert one(found, a=(a,), b=(b,)).why == "em was not run at its paper's setting"


def test_a_forced_outcome_decides_nothing() -> None:
    assert one(rows({"bce": BASE, "em": HIGH}), forced="it cannot differ").verdict == UNFIT


def test_seeds_that_were_seen_are_not_tested() -> None:
    found = rows({"bce": [*BASE, 0.5, 0.5], "em": [*HIGH, 0.4, 0.4]})
    decided = one(found, looked=3)
    assert decided.decisions[0].best.found is not None
    assert decided.decisions[0].best.found.value == pytest.approx(-0.1)
    assert decided.why == "too few seeds"
    assert one(found, looked=5).why == "no fresh seeds"  # shown, and not tested


def test_a_weak_side_b_is_noticed_beside_a_good_naive_row() -> None:
    found = rows({"bce": BASE, "assume-negative": HIGH, "em": [0.6, 0.61, 0.62]}) + scikit(HIGH)
    assert one(found).why == "baseline not at its best"  # bce itself, though assume-negative is level
    assert one(found, b=("assume-negative",)).verdict == HOLDS


def test_a_weak_method_counts_only_at_a_rate_of_its_own() -> None:
    found = rows({"bce": HIGH, "em": [0.6, 0.61, 0.62], "focal": BASE}) + scikit(HIGH)
    decided = one(found, b=("focal",))
    assert (decided.verdict, decided.why) == (OPEN, "baseline not at its best")
    assert decided.decisions[0].why.startswith("baseline not at its best: focal, 4.0 points")
    at_own_rates = rules.decide([claim(experiment="equal-x", b=("focal",))], cells.Cells({"equal-x": found}))
    assert at_own_rates[0].verdict == HOLDS
    below = one(found, kind="below", a=("focal",), b=("bce",))
    assert (below.verdict, below.why) == (OPEN, "baseline not at its best")


def test_faults_count_in_half_of_the_runs() -> None:
    late, fine = line("em", 0, 0.5, ran=ran(), best_epoch=10), line("em", 1, 0.5, ran=ran(), best_epoch=5)
    first = line("em", 2, 0.5, ran=ran(), best_epoch=0)
    budgets = [footing.read(runs).budget for runs in ([late, fine], [late, fine, fine], [late, first, fine])]  # type: ignore[union-attr]
    assert [bool(budget) for budget in budgets] == [True, False, True]


def test_gains_over_a_weak_baseline_alone_are_no_gains() -> None:
    weak = rows({"bce": [0.2, 0.21, 0.22], "em": HIGH}, optimizer="sgd", validation_score=0.1)
    level = rows({"bce": HIGH, "em": [score - 0.02 for score in HIGH]}, validation_score=0.9)
    decided = one(weak + level + scikit(HIGH), a=("sgd: em", "em"))
    assert (decided.verdict, decided.why) == (OPEN, "baseline not at its best")
    assert "that of em (sgd)" in decided.decisions[0].why


# Differences 0.02, 0.03, 0.04 less 0.005: t = 0.025 / (0.01 / sqrt 3) = 4.3, p = 0.049 (2 degrees of freedom).
SO_SO = [0.52, 0.54, 0.56]
LEVEL_WITH = [0.60, 0.48, 0.55]  # of BASE, as far as three seeds can tell


def test_what_a_claim_needs_all_of_is_not_corrected_for() -> None:
    found = rows({"bce": BASE, "assume-negative": BASE, "em": SO_SO})
    decided = one(found, b=("bce", "assume-negative"))
    assert decided.verdict == HOLDS
    assert decided.p == pytest.approx(0.049, abs=5e-4)  # of the margin; the larger one of two that are the same


def test_one_against_a_claim_is_corrected_for_its_comparisons() -> None:
    found = rows({"bce": SO_SO, "focal": LEVEL_WITH, "em": BASE}) + scikit(SO_SO)
    alone = one(found)
    assert (alone.verdict, alone.why) == (FAILS, "the other way round")
    assert alone.p == pytest.approx(0.026, abs=5e-4)  # of half a point or more
    among = one(found, b=("bce", "focal"))
    assert among.verdict == OPEN
    assert among.decisions[0].why == "clear only by itself, not among its comparisons"
    assert among.p == pytest.approx(0.052, abs=1e-3)  # twice: two could have been against it


def test_claims_are_corrected_for_one_another() -> None:
    found = rows({"bce": BASE, "em": SO_SO, "focal": LEVEL_WITH, "role": HIGH})
    others = [claim(id="y", a=("focal",))]
    decided = rules.decide([claim(), *others], cells.Cells({"e": found}))
    assert decided[0].verdict == OPEN
    assert decided[0].why == "clear only by itself, not after the correction for all claims"
    assert decided[0].q == pytest.approx(0.099, abs=1e-3)  # the first of two
    # Among three of which one is far clearer it is the second: 3 / 2 of its p.
    decided = rules.decide([claim(), *others, claim(id="z", a=("role",))], cells.Cells({"e": found}))
    assert [one.verdict for one in decided] == [OPEN, OPEN, HOLDS]
    assert decided[0].q == pytest.approx(0.0494 * 3 / 2, abs=1e-3)


def test_what_could_not_be_decided_corrects_nothing() -> None:
    few = rows({"role": HIGH[:2]})
    found = rows({"bce": BASE, "em": SO_SO}) + few
    decided = rules.decide(
        [claim(), claim(id="y", a=("role",)), claim(id="z", a=("focal",))], cells.Cells({"e": found})
    )
    assert [one.verdict for one in decided] == [HOLDS, OPEN, OPEN]
    assert [one.p is None for one in decided] == [False, True, True]
    assert decided[0].q == decided[0].p


def test_a_conjunction_needs_all_its_comparisons_and_falls_with_one() -> None:
    found = rows({"bce": BASE, "focal": [0.62, 0.63, 0.641], "em": HIGH}) + scikit(BASE)
    assert one(found, b=("bce", "focal"), conjunction=True).verdict == FAILS
    mixed = one(found, b=("bce", "focal"))
    assert (mixed.verdict, mixed.why) == (OPEN, "its comparisons disagree")
    found = rows({"bce": BASE, "focal": [0.60, 0.48, 0.55], "em": HIGH})
    decided = one(found, b=("bce", "focal"), conjunction=True)
    assert decided.verdict == OPEN
    assert [decision.verdict for decision in decided.decisions] == [HOLDS, OPEN]


def test_below_is_above_the_other_way_round() -> None:
    assert one(rows({"bce": HIGH, "em": BASE}), kind="below").verdict == HOLDS


def test_near_needs_the_whole_interval_inside() -> None:
    base = [0.50, 0.51, 0.52, 0.53, 0.54]
    near = [score + wobble for score, wobble in zip(base, (0.001, -0.001, 0.001, 0.0, -0.001), strict=True)]
    found = rows({"bce": base, "em": near})
    assert one(found, kind="near", within=0.5).verdict == HOLDS
    assert one(found, kind="near", within=0.05).verdict == OPEN
    far = rows({"bce": base, "em": [score + 0.05 for score in base]}) + scikit(base)
    decided = one(far, kind="near", within=0.5)
    assert (decided.verdict, decided.why) == (FAILS, "further apart")


def test_a_trend_is_the_change_along_a_line() -> None:
    gained = np.array([[0.00, 0.01], [0.02, 0.02], [0.04, 0.06]])  # three steps, two seeds
    # By hand: slopes (0.04 - 0.00) / 2 and (0.06 - 0.01) / 2 a step, and there are two steps.
    assert rules._slope(gained) == pytest.approx([0.04, 0.05])
    shares = ("uniform:0.5", "uniform:0.3", "uniform:0.1")
    found = []
    for step, share in enumerate(shares):
        found += rows({"bce": BASE, "em": [x + 0.02 * step + 0.001 * i for i, x in enumerate(BASE)]}, scenario=share)
    decided = one(found, kind="trend", scenarios=shares)
    (decision,) = decided.decisions
    assert decided.verdict == HOLDS
    assert decision.best.found is not None
    assert decision.best.found.value == pytest.approx(0.04)


def test_tuned_rows_are_set_against_tuned_ones() -> None:
    found = rows({"bce": BASE, "em": BASE}) + rows({"em": HIGH}, tune=3, validation_score=0.9)
    (decision,) = one(found, a=("em", "em, tuned 3")).decisions
    assert [setting.row for setting in decision.settings] == ["em"]  # bce was not tuned
    tuned = found + rows({"bce": BASE}, tune=3)
    assert one(tuned, a=("em", "em, tuned 3")).verdict == HOLDS


def test_other_places_of_a_line_are_read() -> None:
    found = rows({"em": HIGH}) + rows({"bce": BASE})
    for made in found:
        made["last"] = {"mAP": made["test"]["mAP"] - 0.1}
    decided = one(found, b=("em",), against={"metric": "last: mAP"})
    assert decided.decisions[0].best.found is not None
    assert decided.decisions[0].best.found.value == pytest.approx(0.1)


def test_cells_are_told_apart_by_what_the_experiment_fixed() -> None:
    found = rows({"bce": BASE, "em": HIGH}) + rows({"em": [0.1, 0.1, 0.1]}, recipe={"epochs": 9})
    assert one(found).verdict == HOLDS
    assert one(found, a=("bce",), b=("em",), against={"recipe": {"epochs": 9}}).verdict == HOLDS
    with pytest.raises(ProtocolError, match="same seed"):
        one(found + rows({"em": HIGH}, size=64))


def test_lines_of_other_protocols_do_not_count(tmp_path: Any) -> None:
    result_lines.append(tmp_path / "new.jsonl", line())
    result_lines.append(tmp_path / "old.jsonl", line(protocol=PROTOCOL - 1))
    assert list(cells.read(tmp_path)) == ["new"]
    with pytest.raises(DataError, match="no result lines"):
        cells.read(tmp_path / "nowhere")


def test_the_reference_is_found_in_any_experiment_on_the_same_known_entries() -> None:
    others = [*scikit([0.1, 0.2], data="other"), line("per-label", 0, 0.9, head="auto")]  # the last one is not tuned
    found = cells.Cells({"a": rows({"bce": BASE}), "b": [*scikit([0.5, 0.6]), *others]})
    assert found.reference("tiny", "uniform:0.5") == {0: 0.5, 1: 0.6}
    assert found.reference("other", "uniform:0.5") == {0: 0.1, 1: 0.2}
    assert found.reference("tiny", "uniform:0.1") == {}
    assert found.reference("tiny", "uniform:0.5", "partial") == {}
