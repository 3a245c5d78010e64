"""Metrics of the ranking of each item's known entries.

For one item with n known entries, Y of them yes; r(a) is the number of known entries that score at least as high as a:

- R@k = (yes among the top k) / Y. nDCG@k = DCG@k / (best DCG@k), DCG@k = sum over ranks i <= k of y(i) / log2(i + 1).
- LRAP = mean over yes a of (yes that score at least as high as a) / r(a).
- ranking loss = share of (yes, no) pairs in which the no scores at least as high.
- coverage error = max over yes a of r(a).
- PSP@k = sum over items of (sum of y(i) / p(i) over the top k), over the largest such sum that any ranking reaches; p
  is the propensity of the label. PSnDCG@k is the same ratio for DCG@k / (best DCG@k without propensities).

Where equal scores straddle rank k, the value is the mean over their orders. Items without a known yes have no R@k.
For the others, as in scikit-learn, an item whose entries are all known and without a yes counts as nDCG 0, LRAP 1,
ranking loss 0 and coverage 0, and one with nothing but yes as LRAP 1 and ranking loss 0. A partly known item of these
kinds is left out, because its unknown entries may hold the missing yes or no.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from partly.labels.matrix import Matrix, Ternary, blocks
from partly.labels.scored import KnownScores, Scores
from partly.metrics.top_ranks import RANKS, pack_known
from partly.metrics.validation import Floats

DEPTH = max(RANKS)
DISCOUNTS = 1 / np.log2(np.arange(2, DEPTH + 2))
RATIOS = tuple(f"{name}@{k}" for name in ("PSP", "PSnDCG") for k in RANKS)  # sums over items, each with its maximum
MEANS = (*(f"{name}@{k}" for name in ("R", "nDCG") for k in RANKS), "LRAP", "ranking_loss", "coverage_error")


def ranking_table(scores: KnownScores, z: Matrix, inverse_propensity: Floats) -> dict[str, Floats]:
    """Return the metrics of each item [N], NaN where undefined; a ratio `x` also has its maximum, `x max`."""
    names = (*MEANS, *RATIOS, *(f"{name} max" for name in RATIOS))
    table = {name: np.full(z.shape[0], np.nan) for name in names}
    for block in blocks(z.shape):
        s, known_z = scores[block], z[block]
        weights = np.broadcast_to(inverse_propensity, s.shape)
        if sp.issparse(known_z):
            s, known_z, weights = pack_known(s, known_z, inverse_propensity)
        has_known = known_z.any(axis=1)
        if has_known.any():
            metrics = _rank_items(s[has_known], known_z[has_known], weights[has_known], z.shape[1])
            for name, values in metrics.items():
                table[name][block][has_known] = values
    return table


def _rank_items(s: Scores, z: Ternary, weights: Floats, labels: int) -> dict[str, Floats]:
    """Return the metrics of items that all have a known entry. s, z, weights: [B, M]."""
    keys = np.where(z != 0, -s.astype(np.float64), np.nan)  # NaN sorts last
    order = np.argsort(keys, axis=1, kind="stable")
    keys, ranked_z, weights = (np.take_along_axis(part, order, axis=1) for part in (keys, z, weights))
    yes, known = ranked_z == 1, (ranked_z != 0).sum(axis=1)
    first, last = _tied_ranges(keys)
    at_or_above = np.take_along_axis(np.cumsum(yes, axis=1), last, axis=1)
    total, rank = yes.sum(axis=1), last + 1
    negative = known - total
    complete, has_yes = known == labels, total > 0
    ordered = has_yes & (negative > 0)
    lrap = np.where(yes, at_or_above / rank, 0).sum(axis=1) / np.maximum(total, 1)
    loss = np.where(yes, rank - at_or_above, 0).sum(axis=1) / np.maximum(total * negative, 1)
    coverage = np.where(yes, rank, 0).max(axis=1)
    gains = _mean_gains(yes.astype(np.float64), first, last)
    result = _gains_at_ranks(gains, total, has_yes, complete)
    result["LRAP"] = np.where(ordered, lrap, np.where(complete, 1.0, np.nan))
    result["ranking_loss"] = np.where(ordered, loss, np.where(complete, 0.0, np.nan))
    result["coverage_error"] = np.where(has_yes | complete, coverage, np.nan)
    return result | _propensity_scored(np.where(yes, weights, 0.0), first, last, total)


def _tied_ranges(keys: Floats) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the first and the last position of the entries that tie with each entry, [B, M]; rows are sorted."""
    places = np.broadcast_to(np.arange(keys.shape[1]), keys.shape)
    changes = keys[:, 1:] != keys[:, :-1]
    edge = np.ones((len(keys), 1), bool)
    first = np.maximum.accumulate(np.where(np.hstack([edge, changes]), places, 0), axis=1)
    ends = np.where(np.hstack([changes, edge]), places, keys.shape[1])
    return first, np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]


def _mean_gains(gains: Floats, first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]) -> Floats:
    """Return the gains of the top ranks [B, DEPTH], averaged over entries that tie, 0 beyond the last entry."""
    sums = np.hstack([np.zeros((len(gains), 1)), np.cumsum(gains, axis=1)])
    top = slice(0, min(DEPTH, gains.shape[1]))
    start, stop = first[:, top], last[:, top] + 1
    means = (np.take_along_axis(sums, stop, axis=1) - np.take_along_axis(sums, start, axis=1)) / (stop - start)
    return np.pad(means, ((0, 0), (0, DEPTH - means.shape[1])))


def _gains_at_ranks(
    gains: Floats, total: npt.NDArray[np.int64], has_yes: npt.NDArray[np.bool_], complete: npt.NDArray[np.bool_]
) -> dict[str, Floats]:
    result = {}
    for k in RANKS:
        best = _best_dcg(total, k)
        ndcg = (gains[:, :k] * DISCOUNTS[:k]).sum(axis=1) / np.maximum(best, DISCOUNTS[-1])
        result[f"R@{k}"] = np.where(has_yes, gains[:, :k].sum(axis=1) / np.maximum(total, 1), np.nan)
        result[f"nDCG@{k}"] = np.where(has_yes, ndcg, np.where(complete, 0.0, np.nan))
    return result


def _best_dcg(total: npt.NDArray[np.int64], k: int) -> Floats:
    return np.concatenate([[0.0], np.cumsum(DISCOUNTS)])[np.minimum(total, k)]


def _propensity_scored(
    weighted: Floats, first: npt.NDArray[np.int64], last: npt.NDArray[np.int64], total: npt.NDArray[np.int64]
) -> dict[str, Floats]:
    """Return PSP@k and PSnDCG@k of each item with their maxima. weighted: y / p of ranked entries, [B, M]."""
    gains = _mean_gains(weighted, first, last)
    depth = min(DEPTH, weighted.shape[1])
    best = np.sort(np.partition(weighted, -depth, axis=1)[:, -depth:], axis=1)[:, ::-1]
    best = np.pad(best, ((0, 0), (0, DEPTH - depth)))
    result = {}
    for k in RANKS:
        reachable = np.maximum(_best_dcg(total, k), DISCOUNTS[-1])
        for suffix, values in (("", gains), (" max", best)):
            result[f"PSP@{k}{suffix}"] = values[:, :k].sum(axis=1) / k
            result[f"PSnDCG@{k}{suffix}"] = (values[:, :k] * DISCOUNTS[:k]).sum(axis=1) / reachable
    return result
