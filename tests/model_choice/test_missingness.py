"""Whether entries are missing at random: how often it is said, and how well yes and no are weighted where it is not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from partly import Labels, priors
from partly.calibration import fit_calibration
from partly.model_choice.missingness import EntrySums, Missingness, missingness

Floats = npt.NDArray[np.float64]
SHARES = np.array([0.05, 0.1, 0.2, 0.3, 0.5])


def drawn(seed: int, items: int = 1000) -> tuple[Floats, Floats]:
    """Logits that tell yes from no moderately well, and the truth."""
    rng = np.random.default_rng(seed)
    truth = (rng.random((items, len(SHARES))) < SHARES).astype(float)
    return rng.normal(size=truth.shape) + 2 * truth - 2, truth


def known(truth: Floats, yes: float | Floats, no: float | Floats, seed: int) -> Labels:
    chance = np.where(truth == 1, yes, no)
    return Labels.from_nan(np.where(np.random.default_rng(1000 + seed).random(truth.shape) < chance, truth, np.nan))


def test_entries_missing_at_random_are_seldom_called_otherwise() -> None:
    kinds = []
    for seed in range(200):
        logits, truth = drawn(seed, 300)
        rates = np.full(len(SHARES), 0.3) if seed % 2 else np.array([0.9, 0.5, 0.3, 0.1, 0.03])  # by label is fine
        kinds.append(missingness(logits, known(truth, rates, rates, seed)).kind)
    assert sum(kind != "at-random" for kind in kinds) <= 8  # 2 are expected


@pytest.mark.parametrize(("yes", "no"), [(1.0, 0.15), (0.6, 0.2), (0.15, 0.6), (0.9, 0.6)])
def test_rates_of_yes_and_no_are_estimated(yes: float, no: float) -> None:
    for seed in range(5):
        logits, truth = drawn(seed, 3000)
        found = missingness(logits, known(truth, yes, no, seed))
        assert found.kind == "by-answer"
        assert found.yes_known == pytest.approx(yes, rel=0.25)
        assert found.no_known == pytest.approx(no, rel=0.1)
        of_yes, of_no = found.weights or (np.empty(0), np.empty(0))
        assert of_no == pytest.approx(1 / no, rel=0.25)
        assert (of_yes >= 1).all()


def test_what_is_said_of_it() -> None:
    logits, truth = drawn(0)
    said = " ".join(missingness(logits, known(truth, 1, 0.15, 0)).describe())
    assert said.startswith("Labels are not missing at random (p = ")
    assert "100% of all yes and 15% of all no are known" in said
    assert "assumes that, within a label, yes and no are each known at random" in said
    assert missingness(logits, known(truth, 0.3, 0.3, 0)).describe() == []


@pytest.mark.parametrize("seed", range(5))
def test_hard_negatives_are_not_explained_by_the_answer(seed: int) -> None:
    logits, truth = drawn(seed)
    found = missingness(logits, known(truth, 1, 1 / (1 + np.exp(-2 * logits - 2)), seed))
    assert found.kind == "unexplained"
    assert found.weights is None
    assert "withheld" in " ".join(found.describe())


def test_nothing_is_said_of_labels_that_cannot_tell() -> None:
    logits, truth = drawn(0)
    assert missingness(logits, Labels.from_full(truth)).kind == "complete"
    assert missingness(logits, Labels.from_positives(truth)).kind == "untested"
    assert missingness(logits[:30], known(truth[:30], 1, 0.15, 0)).kind == "untested"  # too few items
    assert Missingness("at-random").weights is None


def test_blocks_in_any_order_give_the_same_sums() -> None:
    logits, truth = drawn(0)
    labels, p = known(truth, 0.6, 0.2, 0), 1 / (1 + np.exp(-logits))
    whole = EntrySums(labels)
    whole.add(np.arange(len(p)), p)
    parts, order = EntrySums(labels), np.random.default_rng(0).permutation(len(p))
    assert [len(block) for _, block in parts.pass_through((rows, p[rows]) for rows in np.array_split(order, 7))]
    np.testing.assert_allclose(parts.sums, whole.sums)
    np.testing.assert_allclose(parts.missingness.hidden_yes, whole.missingness.hidden_yes)


def test_hidden_yes_are_counted_where_all_yes_are_known() -> None:
    """The share among known entries would say that a third of the unknown entries are yes."""
    logits, truth = drawn(0, 2000)
    labels = known(truth, 1, 0.15, 0)
    shares = priors.estimate(logits, labels)
    assert shares == pytest.approx(truth.mean(axis=0), abs=0.03)
    assert (priors.estimate(logits, labels, "observed") > 2 * truth.mean(axis=0))[:4].all()
    at_random = known(truth, 0.3, 0.3, 0)
    assert (priors.estimate(logits, at_random) == priors.estimate(logits, at_random, "observed")).all()


def test_thresholds_and_probabilities_are_those_of_all_entries() -> None:
    logits, truth = drawn(0, 4000)
    fair, biased = (fit_calibration(logits, labels, "platt", "f1") for labels in (truth, known(truth, 1, 0.15, 0)))
    assert biased.thresholds == pytest.approx(fair.thresholds, abs=0.1)
    for j, share in enumerate(truth.mean(axis=0)):
        calibrated = 1 / (1 + np.exp(-biased(logits)[:, j]))
        assert calibrated.mean() == pytest.approx(share, abs=0.04)
