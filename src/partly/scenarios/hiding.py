"""The scenarios: which entries of the truth stay known, one function each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from partly.labels import Labels, as_labels
from partly.labels.hierarchy import Hierarchy
from partly.labels.matrix import Ternary, blocks
from partly.labels.names import Names
from partly.scenarios.draws import NEVER, Draws, checked_seed, checked_share, chosen_items, drawn, smallest


def uniform(truth: Any, share: float, seed: int, *, per_entry: bool = False) -> Labels:
    """round(share x L) entries of each item are known, or all that the truth knows where that is less.

    Python's round: a half goes to the even number. With `per_entry` each entry is known with probability `share`.

    Parameters
    ----------
    truth : Labels, or array of [N, L]
        Complete labels, or as complete as they are.
    share : float
        Of the labels of each item.
    seed : int
        Same truth, same seed: the same entries, on every machine.
    per_entry : bool
        Each entry by itself, with this chance, instead of so many of each item.

    Returns
    -------
    Labels
        The same items and labels, of which less is known.

    Examples
    --------
    >>> import partly
    >>> truth = partly.Labels.from_full([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0]])
    >>> partly.scenarios.uniform(truth, 0.5, seed=0).ternary()
    array([[ 0,  0,  1, -1],
           [-1,  0,  1,  0],
           [ 1,  0,  0, -1]], dtype=int8)
    """
    share, seed = checked_share(share, "uniform"), checked_seed(seed)
    labels = as_labels(truth, "truth")
    count = round(share * labels.shape[1])

    def rule(z: Ternary, rows: slice) -> Ternary:
        draws = np.where(z == 0, NEVER, drawn("uniform", seed, rows, z.shape[1]))
        if per_entry:
            return np.where(draws < share, z, 0)
        keep = np.zeros(z.shape, bool)
        if count:
            np.put_along_axis(keep, np.argpartition(draws, count - 1, axis=1)[:, :count], True, axis=1)
        return np.where(keep, z, 0)

    return labels.mapped(rule)


def positives(truth: Any, share: float, seed: int, *, keep_at_least_one: bool = False) -> Labels:
    """round(share x their number) of all yes entries are known, wherever they are; all else is unknown.

    `positives` with share 0.25 is "25 % left". An item may lose all its yes; `keep_at_least_one` keeps one of
    each item first, even where that is more than the share.

    Parameters
    ----------
    truth : Labels, or array of [N, L]
        Complete labels, or as complete as they are.
    share : float
        Of all yes.
    seed : int
        Same truth, same seed: the same entries, on every machine.
    keep_at_least_one : bool
        No item loses its last yes.

    Returns
    -------
    Labels
        The same items and labels, of which less is known.

    Examples
    --------
    >>> import partly
    >>> truth = partly.Labels.from_full([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0]])
    >>> partly.scenarios.positives(truth, 0.5, seed=0).ternary()
    array([[1, 0, 0, 0],
           [0, 1, 0, 1],
           [1, 0, 0, 0]], dtype=int8)
    """
    share, seed = checked_share(share, "positives"), checked_seed(seed)
    labels = as_labels(truth, "truth")

    def yes_draws(z: Ternary, rows: slice) -> Draws:
        draws = drawn("positives", seed, rows, z.shape[1])
        if keep_at_least_one:
            draws -= smallest(z == 1, draws)  # before all others
        return np.where(z == 1, draws, NEVER)

    blockwise = (yes_draws(labels.rows(block), block) for block in blocks(labels.shape))
    found = np.concatenate([draws[draws < NEVER] for draws in blockwise])
    count = max(round(share * len(found)), int((found < 0).sum()))
    limit = np.partition(found, count - 1)[count - 1] if count else -np.inf
    return labels.mapped(lambda z, rows: np.where(yes_draws(z, rows) <= limit, z, 0))


def propensity(truth: Any, share: float | None = None, seed: int = 0) -> Labels:
    """A yes is known with a chance that grows with the number of its label's yes: rare labels are named less often.

    Not missing at random. For a label with n yes among N items the chance is 1 / (1 + C (n + 1.5)^-0.55), with C =
    (log N - 1) 2.5^0.55 (H. Jain, Y. Prabhu, M. Varma. Extreme Multi-label Loss Functions for Recommendation, Tagging,
    Ranking & Other Missing Label Applications. KDD 2016, with its constants for tagging). With a `share` all chances
    are multiplied by one number, and cut at 1, so that this share of all yes is known on average. All else is unknown.

    Parameters
    ----------
    truth : Labels, or array of [N, L]
        Complete labels, or as complete as they are.
    share : float, optional
        Of all yes, on average.
    seed : int
        Same truth, same seed: the same entries, on every machine.

    Returns
    -------
    Labels
        The same items and labels, of which less is known.

    Examples
    --------
    >>> import partly
    >>> truth = partly.Labels.from_full([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0]])
    >>> partly.scenarios.propensity(truth, 0.5, seed=0).ternary()
    array([[1, 0, 0, 0],
           [0, 0, 0, 1],
           [0, 0, 0, 0]], dtype=int8)
    """
    share, seed = None if share is None else checked_share(share, "propensity"), checked_seed(seed)
    labels = as_labels(truth, "truth")
    chance = propensities(labels.counts()[0], len(labels), share)

    def rule(z: Ternary, rows: slice) -> Ternary:
        return np.where((z == 1) & (drawn("propensity", seed, rows, z.shape[1]) < chance), z, 0)

    return labels.mapped(rule)


def propensities(yes: npt.NDArray[np.int64], items: int, share: float | None = None) -> Draws:
    """The chance that a yes of each label is named, [L]; yes: how many each label has, [L]. See `propensity`."""
    rest = max(np.log(max(items, 1)) - 1, 0)  # with one or two items the formula would pass 1
    chance: Draws = 1 / (1 + rest * ((yes + 1.5) / 2.5) ** -0.55)
    if share is None or not yes.any():
        return chance
    order = np.argsort(-chance, kind="stable")
    known = yes[order].astype(np.float64)
    certain = np.cumsum(known) - known  # yes that are known if all labels before this one are cut at 1
    expected = np.cumsum((known * chance[order])[::-1])[::-1]  # of this one and those after it, not multiplied yet
    with np.errstate(divide="ignore", invalid="ignore"):  # labels without yes come last
        factor = (share * yes.sum() - certain) / expected
    first = np.argmax(factor * chance[order] <= 1 + 1e-9)  # the first label that need not be cut
    return np.asarray(np.minimum(chance * factor[first], 1), np.float64)


def single_positive(truth: Any, seed: int) -> Labels:
    """One yes of each item, any of them with equal chance; no no. An item without yes stays unknown.

    Parameters
    ----------
    truth : Labels, or array of [N, L]
        Complete labels, or as complete as they are.
    seed : int
        Same truth, same seed: the same entries, on every machine.

    Returns
    -------
    Labels
        The same items and labels, of which less is known.

    Examples
    --------
    >>> import partly
    >>> truth = partly.Labels.from_full([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0]])
    >>> partly.scenarios.single_positive(truth, seed=0).ternary()
    array([[0, 0, 1, 0],
           [0, 1, 0, 0],
           [1, 0, 0, 0]], dtype=int8)
    """
    seed = checked_seed(seed)

    def rule(z: Ternary, rows: slice) -> Ternary:
        return np.where(smallest(z == 1, drawn("single_positive", seed, rows, z.shape[1])), z, 0)

    return as_labels(truth, "truth").mapped(rule)


def one_yes_all_no(truth: Any, seed: int) -> Labels:
    """The yes that `single_positive` keeps of each item, and every no; only the other yes are unknown.

    Parameters
    ----------
    truth : Labels, or array of [N, L]
        Complete labels, or as complete as they are.
    seed : int
        Same truth, same seed: the same entries, on every machine.

    Returns
    -------
    Labels
        The same items and labels, of which less is known.

    Examples
    --------
    >>> import partly
    >>> truth = partly.Labels.from_full([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0]])
    >>> partly.scenarios.one_yes_all_no(truth, seed=0).ternary()
    array([[ 0, -1,  1, -1],
           [-1,  1,  0,  0],
           [ 1,  0, -1, -1]], dtype=int8)
    """
    seed = checked_seed(seed)

    def rule(z: Ternary, rows: slice) -> Ternary:
        kept = smallest(z == 1, drawn("single_positive", seed, rows, z.shape[1]))
        return np.where(kept | (z == -1), z, 0)

    return as_labels(truth, "truth").mapped(rule)


def dense(truth: Any, share: float, seed: int) -> Labels:
    """round(share x N) items are known as far as the truth knows them, of the others nothing.

    Parameters
    ----------
    truth : Labels, or array of [N, L]
        Complete labels, or as complete as they are.
    share : float
        Of the items.
    seed : int
        Same truth, same seed: the same entries, on every machine.

    Returns
    -------
    Labels
        The same items and labels, of which less is known.

    Examples
    --------
    >>> import partly
    >>> truth = partly.Labels.from_full([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0]])
    >>> partly.scenarios.dense(truth, 0.34, seed=0).ternary()
    array([[ 0,  0,  0,  0],
           [ 0,  0,  0,  0],
           [ 1,  1, -1, -1]], dtype=int8)
    """
    share, seed = checked_share(share, "dense"), checked_seed(seed)
    labels = as_labels(truth, "truth")
    whole = chosen_items("dense", seed, len(labels), round(share * len(labels)))
    return labels.mapped(lambda z, rows: np.where(whole[rows, None], z, 0))


def noisy(truth: Any, share: float, seed: int) -> Labels:
    """Every entry is known, and right with probability `share`: the others say the opposite of the truth.

    Parameters
    ----------
    truth : Labels, or array of [N, L]
        Complete labels, or as complete as they are.
    share : float
        The chance of an entry to be right.
    seed : int
        Same truth, same seed: the same entries, on every machine.

    Returns
    -------
    Labels
        The same items and labels, of which less is known.

    Examples
    --------
    >>> import partly
    >>> truth = partly.Labels.from_full([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0]])
    >>> partly.scenarios.noisy(truth, 0.8, seed=0).ternary()
    array([[ 1, -1,  1, -1],
           [-1,  1, -1,  1],
           [ 1,  1, -1, -1]], dtype=int8)
    """
    share, seed = checked_share(share, "noisy"), checked_seed(seed)

    def rule(z: Ternary, rows: slice) -> Ternary:
        return np.where(drawn("noisy", seed, rows, z.shape[1]) < share, z, -z)

    return as_labels(truth, "truth").mapped(rule)


def noisy_plus(truth: Any, seed: int) -> Labels:
    """One yes of each item is kept and every other known entry says no, rightly or not.

    Parameters
    ----------
    truth : Labels, or array of [N, L]
        Complete labels, or as complete as they are.
    seed : int
        Same truth, same seed: the same entries, on every machine.

    Returns
    -------
    Labels
        The same items and labels, of which less is known.

    Examples
    --------
    >>> import partly
    >>> truth = partly.Labels.from_full([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0]])
    >>> partly.scenarios.noisy_plus(truth, seed=0).ternary()
    array([[ 1, -1, -1, -1],
           [-1, -1,  1, -1],
           [-1,  1, -1, -1]], dtype=int8)
    """
    seed = checked_seed(seed)

    def rule(z: Ternary, rows: slice) -> Ternary:
        kept = smallest(z == 1, drawn("noisy_plus", seed, rows, z.shape[1]))
        return np.where(kept | (z == 0), z, -1)

    return as_labels(truth, "truth").mapped(rule)


def coarse_only(truth: Any, hierarchy: Hierarchy, share: float, seed: int) -> Labels:
    """All coarse labels are known, of the fine ones only those below a coarse no; and some items wholly.

    Coarse are the names that have children in the hierarchy; where the truth has no column for one, its no is worked
    out from its children. Labels outside the hierarchy count as fine. Wholly known are round(share x N)
    items, one at least unless share is 0.

    Parameters
    ----------
    truth : Labels, or array of [N, L]
        Complete labels, or as complete as they are.
    hierarchy : Hierarchy
        Which labels are coarse, and what is below them.
    share : float
        Of the items, known wholly.
    seed : int
        Same truth, same seed: the same entries, on every machine.

    Returns
    -------
    Labels
        The same items and labels, of which less is known.

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
    share, seed = checked_share(share, "coarse_only"), checked_seed(seed)
    labels = as_labels(truth, "truth")
    count = min(len(labels), max(round(share * len(labels)), int(share > 0)))
    whole = chosen_items("coarse_only", seed, len(labels), count)
    coarse = _under(hierarchy.coarsen(labels), hierarchy.names)
    follows = _under(hierarchy.deduce(coarse), labels.names)
    return labels.mapped(lambda z, rows: np.where((follows.rows(rows) != 0) | whole[rows, None], z, 0))


def _under(labels: Labels, wanted: Names) -> Labels:
    """The same under the names that are wanted: other columns go, those that are missing are unknown."""
    column = {name: j for j, name in enumerate(labels.names)}
    have = [i for i, name in enumerate(wanted) if name in column]

    def rule(z: Ternary, _: slice) -> Ternary:
        result = np.zeros((len(z), len(wanted)), np.int8)
        result[:, have] = z[:, [column[wanted[i]] for i in have]]
        return result

    return labels.mapped(rule, wanted)
