"""The scenarios: functions that decide which entries of the truth stay known."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from partly.labels import Labels, as_labels
from partly.labels.hierarchy import Hierarchy
from partly.labels.matrix import Ternary, blocks
from partly.labels.names import Names
from partly.scenarios.draws import (
    NEVER_DRAWN,
    Draws,
    check_seed,
    check_share,
    choose_items,
    draw_rows,
    smallest_per_row,
)


def uniform(truth: Any, share: float, seed: int, *, per_entry: bool = False) -> Labels:
    """Keep round(share x L) entries of each item.

    Halves round to even. With `per_entry`, each entry is known with probability `share` instead.

    Parameters
    ----------
    truth : Labels, or array of [N, L]
        The true labels; entries that are unknown stay unknown.
    share : float
        Share of the labels of each item that stays known, from 0 to 1.
    seed : int
        Random seed. The result is the same on every machine.
    per_entry : bool
        Keep each entry independently with probability `share`.

    Returns
    -------
    Labels
        Labels of the same items, partly known.

    Examples
    --------
    >>> import partly
    >>> truth = partly.Labels.from_full([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0]])
    >>> partly.scenarios.uniform(truth, 0.5, seed=0).ternary()
    array([[ 0,  0,  1, -1],
           [-1,  0,  1,  0],
           [ 1,  0,  0, -1]], dtype=int8)
    """
    share, seed = check_share(share, "uniform"), check_seed(seed)
    labels = as_labels(truth, "truth")
    count = round(share * labels.shape[1])

    def rule(z: Ternary, rows: slice) -> Ternary:
        draws = np.where(z == 0, NEVER_DRAWN, draw_rows("uniform", seed, rows, z.shape[1]))
        if per_entry:
            return np.where(draws < share, z, 0)
        keep = np.zeros(z.shape, bool)
        if count:
            np.put_along_axis(keep, np.argpartition(draws, count - 1, axis=1)[:, :count], True, axis=1)
        return np.where(keep, z, 0)

    return labels.mapped(rule)


def positives(truth: Any, share: float, seed: int, *, keep_at_least_one: bool = False) -> Labels:
    """Keep a share of all yes entries; everything else is unknown.

    An item may lose all its yes, unless `keep_at_least_one`: then one yes of each item is kept first, even if that
    exceeds the share.

    Parameters
    ----------
    truth : Labels, or array of [N, L]
        The true labels; entries that are unknown stay unknown.
    share : float
        Share of all yes that stays known, from 0 to 1.
    seed : int
        Random seed. The result is the same on every machine.
    keep_at_least_one : bool
        Keep at least one yes of each item.

    Returns
    -------
    Labels
        Labels of the same items, partly known.

    Examples
    --------
    >>> import partly
    >>> truth = partly.Labels.from_full([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0]])
    >>> partly.scenarios.positives(truth, 0.5, seed=0).ternary()
    array([[1, 0, 0, 0],
           [0, 1, 0, 1],
           [1, 0, 0, 0]], dtype=int8)
    """
    share, seed = check_share(share, "positives"), check_seed(seed)
    labels = as_labels(truth, "truth")

    def yes_draws(z: Ternary, rows: slice) -> Draws:
        draws = draw_rows("positives", seed, rows, z.shape[1])
        if keep_at_least_one:
            draws -= smallest_per_row(z == 1, draws)  # before all others
        return np.where(z == 1, draws, NEVER_DRAWN)

    blockwise = (yes_draws(labels.rows(block), block) for block in blocks(labels.shape))
    all_draws = np.concatenate([draws[draws < NEVER_DRAWN] for draws in blockwise])
    count = max(round(share * len(all_draws)), int((all_draws < 0).sum()))
    limit = np.partition(all_draws, count - 1)[count - 1] if count else -np.inf
    return labels.mapped(lambda z, rows: np.where(yes_draws(z, rows) <= limit, z, 0))


def propensity(truth: Any, share: float | None = None, seed: int = 0) -> Labels:
    """Keep a yes with a probability that grows with the frequency of its label; everything else is unknown.

    Entries are not missing at random. For a label with n yes among N items the probability is
    1 / (1 + C (n + 1.5)^-0.55), with C = (log N - 1) 2.5^0.55 (H. Jain, Y. Prabhu, M. Varma. Extreme Multi-label Loss
    Functions for Recommendation, Tagging, Ranking & Other Missing Label Applications. KDD 2016, with its constants for
    tagging). With a `share`, all probabilities are scaled by a common factor and clipped at 1, so that this share of
    all yes is known on average.

    Parameters
    ----------
    truth : Labels, or array of [N, L]
        The true labels; entries that are unknown stay unknown.
    share : float, optional
        Expected share of all yes that stays known.
    seed : int
        Random seed. The result is the same on every machine.

    Returns
    -------
    Labels
        Labels of the same items, partly known.

    Examples
    --------
    >>> import partly
    >>> truth = partly.Labels.from_full([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0]])
    >>> partly.scenarios.propensity(truth, 0.5, seed=0).ternary()
    array([[1, 0, 0, 0],
           [0, 0, 0, 1],
           [0, 0, 0, 0]], dtype=int8)
    """
    share, seed = None if share is None else check_share(share, "propensity"), check_seed(seed)
    labels = as_labels(truth, "truth")
    chance = propensities(labels.counts()[0], len(labels), share)

    def rule(z: Ternary, rows: slice) -> Ternary:
        return np.where((z == 1) & (draw_rows("propensity", seed, rows, z.shape[1]) < chance), z, 0)

    return labels.mapped(rule)


def propensities(yes: npt.NDArray[np.int64], items: int, share: float | None = None) -> Draws:
    """Return the probability that a yes of each label is known, [L]; yes: number of yes per label, [L]."""
    rest = max(np.log(max(items, 1)) - 1, 0)  # with one or two items the formula would pass 1
    chance: Draws = 1 / (1 + rest * ((yes + 1.5) / 2.5) ** -0.55)
    if share is None or not yes.any():
        return chance
    order = np.argsort(-chance, kind="stable")
    known = yes[order].astype(np.float64)
    certain = np.cumsum(known) - known  # known yes if all previous labels are clipped at 1
    expected = np.cumsum((known * chance[order])[::-1])[::-1]  # of this label and the following ones, unscaled
    with np.errstate(divide="ignore", invalid="ignore"):  # labels without yes come last
        factor = (share * yes.sum() - certain) / expected
    first = np.argmax(factor * chance[order] <= 1 + 1e-9)  # the first label that is not clipped
    return np.asarray(np.minimum(chance * factor[first], 1), np.float64)


def single_positive(truth: Any, seed: int) -> Labels:
    """Keep one random yes of each item and no negatives; an item without a yes is unknown.

    Parameters
    ----------
    truth : Labels, or array of [N, L]
        The true labels; entries that are unknown stay unknown.
    seed : int
        Random seed. The result is the same on every machine.

    Returns
    -------
    Labels
        Labels of the same items, partly known.

    Examples
    --------
    >>> import partly
    >>> truth = partly.Labels.from_full([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0]])
    >>> partly.scenarios.single_positive(truth, seed=0).ternary()
    array([[0, 0, 1, 0],
           [0, 1, 0, 0],
           [1, 0, 0, 0]], dtype=int8)
    """
    seed = check_seed(seed)

    def rule(z: Ternary, rows: slice) -> Ternary:
        return np.where(smallest_per_row(z == 1, draw_rows("single_positive", seed, rows, z.shape[1])), z, 0)

    return as_labels(truth, "truth").mapped(rule)


def one_yes_all_no(truth: Any, seed: int) -> Labels:
    """Keep the yes of `single_positive` and every no; only the other yes are unknown.

    Parameters
    ----------
    truth : Labels, or array of [N, L]
        The true labels; entries that are unknown stay unknown.
    seed : int
        Random seed. The result is the same on every machine.

    Returns
    -------
    Labels
        Labels of the same items, partly known.

    Examples
    --------
    >>> import partly
    >>> truth = partly.Labels.from_full([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0]])
    >>> partly.scenarios.one_yes_all_no(truth, seed=0).ternary()
    array([[ 0, -1,  1, -1],
           [-1,  1,  0,  0],
           [ 1,  0, -1, -1]], dtype=int8)
    """
    seed = check_seed(seed)

    def rule(z: Ternary, rows: slice) -> Ternary:
        keep = smallest_per_row(z == 1, draw_rows("single_positive", seed, rows, z.shape[1]))
        return np.where(keep | (z == -1), z, 0)

    return as_labels(truth, "truth").mapped(rule)


def dense(truth: Any, share: float, seed: int) -> Labels:
    """Keep all entries of round(share x N) items and nothing of the others.

    Parameters
    ----------
    truth : Labels, or array of [N, L]
        The true labels; entries that are unknown stay unknown.
    share : float
        Share of the items that stay known, from 0 to 1.
    seed : int
        Random seed. The result is the same on every machine.

    Returns
    -------
    Labels
        Labels of the same items, partly known.

    Examples
    --------
    >>> import partly
    >>> truth = partly.Labels.from_full([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0]])
    >>> partly.scenarios.dense(truth, 0.34, seed=0).ternary()
    array([[ 0,  0,  0,  0],
           [ 0,  0,  0,  0],
           [ 1,  1, -1, -1]], dtype=int8)
    """
    share, seed = check_share(share, "dense"), check_seed(seed)
    labels = as_labels(truth, "truth")
    whole = choose_items("dense", seed, len(labels), round(share * len(labels)))
    return labels.mapped(lambda z, rows: np.where(whole[rows, None], z, 0))


def noisy(truth: Any, share: float, seed: int) -> Labels:
    """Keep every entry, correct with probability `share` and flipped otherwise.

    Parameters
    ----------
    truth : Labels, or array of [N, L]
        The true labels; entries that are unknown stay unknown.
    share : float
        Probability that an entry is correct, from 0 to 1.
    seed : int
        Random seed. The result is the same on every machine.

    Returns
    -------
    Labels
        Labels of the same items, partly known.

    Examples
    --------
    >>> import partly
    >>> truth = partly.Labels.from_full([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0]])
    >>> partly.scenarios.noisy(truth, 0.8, seed=0).ternary()
    array([[ 1, -1,  1, -1],
           [-1,  1, -1,  1],
           [ 1,  1, -1, -1]], dtype=int8)
    """
    share, seed = check_share(share, "noisy"), check_seed(seed)

    def rule(z: Ternary, rows: slice) -> Ternary:
        return np.where(draw_rows("noisy", seed, rows, z.shape[1]) < share, z, -z)

    return as_labels(truth, "truth").mapped(rule)


def noisy_plus(truth: Any, seed: int) -> Labels:
    """Keep one yes of each item and set every other known entry to no, correct or not.

    Parameters
    ----------
    truth : Labels, or array of [N, L]
        The true labels; entries that are unknown stay unknown.
    seed : int
        Random seed. The result is the same on every machine.

    Returns
    -------
    Labels
        Labels of the same items, partly known.

    Examples
    --------
    >>> import partly
    >>> truth = partly.Labels.from_full([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0]])
    >>> partly.scenarios.noisy_plus(truth, seed=0).ternary()
    array([[ 1, -1, -1, -1],
           [-1, -1,  1, -1],
           [-1,  1, -1, -1]], dtype=int8)
    """
    seed = check_seed(seed)

    def rule(z: Ternary, rows: slice) -> Ternary:
        keep = smallest_per_row(z == 1, draw_rows("noisy_plus", seed, rows, z.shape[1]))
        return np.where(keep | (z == 0), z, -1)

    return as_labels(truth, "truth").mapped(rule)


def coarse_only(truth: Any, hierarchy: Hierarchy, share: float, seed: int) -> Labels:
    """Keep coarse labels, fine labels below a coarse no, and all entries of a share of the items.

    Coarse labels are those with children in the hierarchy; a coarse no without a column follows from its children.
    Labels outside the hierarchy count as fine. round(share x N) items are completely known, at least one unless share
    is 0.

    Parameters
    ----------
    truth : Labels, or array of [N, L]
        The true labels; entries that are unknown stay unknown.
    hierarchy : Hierarchy
        Hierarchy of the labels.
    share : float
        Share of the items that are completely known, from 0 to 1.
    seed : int
        Random seed. The result is the same on every machine.

    Returns
    -------
    Labels
        Labels of the same items, partly known.

    Examples
    --------
    >>> import partly
    >>> truth = partly.Labels.from_full([[1, 0, 1], [0, 1, 1], [0, 0, 0]], names=["cat", "dog", "animal"])
    >>> animals = partly.Hierarchy({"cat": "animal", "dog": "animal"})
    >>> partly.scenarios.coarse_only(truth, animals, 0, seed=0).ternary()
    array([[ 0,  0,  1],
           [ 0,  0,  1],
           [-1, -1, -1]], dtype=int8)
    """
    share, seed = check_share(share, "coarse_only"), check_seed(seed)
    labels = as_labels(truth, "truth")
    count = min(len(labels), max(round(share * len(labels)), int(share > 0)))
    whole = choose_items("coarse_only", seed, len(labels), count)
    coarse = _select_columns(hierarchy.coarsen(labels), hierarchy.names)
    follows = _select_columns(hierarchy.deduce(coarse), labels.names)
    return labels.mapped(lambda z, rows: np.where((follows.rows(rows) != 0) | whole[rows, None], z, 0))


def _select_columns(labels: Labels, wanted: Names) -> Labels:
    """Return the labels with these columns; missing ones are unknown."""
    column = {name: j for j, name in enumerate(labels.names)}
    have = [i for i, name in enumerate(wanted) if name in column]

    def rule(z: Ternary, _: slice) -> Ternary:
        result = np.zeros((len(z), len(wanted)), np.int8)
        result[:, have] = z[:, [column[wanted[i]] for i in have]]
        return result

    return labels.mapped(rule, wanted)
