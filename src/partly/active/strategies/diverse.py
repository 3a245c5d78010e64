"""Uncertain predictions about items that differ from each other, so that no two questions are redundant.

Paper: K. Brinker. Incorporating Diversity in Active Learning with Support Vector Machines. ICML 2003.

Differs: entries are selected greedily among the `among` entries with the highest entropy. Each selected entry discounts
those of the same label by exp(-squared distance / scale) of their items. The paper weighs the largest cosine against
the margin. Items are compared by their standardized features; images and texts by the predicted probabilities of all
labels.

Defaults: `among` is a few times the questions of a round; the remaining entries are ranked by entropy alone. `near`
scales the distance, as a share of the median squared distance: there an item has lost about two thirds of its value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch

from partly.active.strategies.uncertainty import entropy, predict_logits
from partly.clock import Clock
from partly.errors import within
from partly.items import Items
from partly.method import Method
from partly.pool import Pool

Floats = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]
EXCLUDED = -np.inf
NEIGHBOR_DISTANCE = 0.1  # share of the median squared distance


def scores(
    method: Method, pool: Pool, clock: Clock, *, among: int = 400, near: float = NEIGHBOR_DISTANCE
) -> Iterator[dict[str, Floats]]:
    """Yield the discounted entropy of selected entries; entropy minus 1, which is negative, for all others."""
    within(1, float("inf"), among=among)
    within(0, float("inf"), near=near)
    uncertainty, precise, probability, unknown = map(np.concatenate, zip(*_predict(method, pool), strict=True))
    candidates = np.flatnonzero(unknown)
    best = candidates[np.argsort(-uncertainty.reshape(-1)[candidates], kind="stable")[:among]]
    rows, columns = np.divmod(best, uncertainty.shape[1])
    vectors = scale_features(pool.items, rows) if pool.items.kind == "features" else precise[rows]
    selected, values = select_diverse(uncertainty[rows, columns], columns, vectors, len(rows), near=near)
    score = uncertainty - 1.0  # an entropy is less than one nat
    score[rows[selected], columns[selected]] = values
    for start in range(0, len(pool), pool.batch_size):
        block = slice(start, start + pool.batch_size)
        yield {"score": score[block], "entropy": uncertainty[block], "probability": probability[block]}


def select_diverse(
    values: Floats,
    columns: Positions,
    vectors: Floats,
    count: int,
    excluded_by: Callable[[int], Sequence[int]] = lambda _: (),
    near: float = NEIGHBOR_DISTANCE,
) -> tuple[Positions, Floats]:
    """Select up to `count` candidates greedily; discount those close to a selected one with the same label.

    Parameters
    ----------
    values : array of shape [n]
        Value of each candidate.
    vectors : array of shape [n, D]
        Position of the item of each candidate.
    excluded_by : callable
        Returns the candidates that cannot be selected together with a given one.

    Returns
    -------
    tuple
        Positions of the selected candidates, the best first, and their values when they were selected.
    """
    remaining = values - min(values.min(initial=0.0), 0.0) + 1e-9
    scale = _distance_scale(vectors, near)
    selected: list[int] = []
    selected_values: list[float] = []
    while len(selected) < count and remaining.max(initial=EXCLUDED) > EXCLUDED:
        k = int(remaining.argmax())
        selected.append(k)
        selected_values.append(float(remaining[k]))
        same_label = (columns == columns[k]) & (remaining > EXCLUDED)
        distance = ((vectors[same_label] - vectors[k]) ** 2).sum(axis=1)
        remaining[same_label] *= 1 - np.exp(-distance / scale)
        remaining[[*excluded_by(k), k]] = EXCLUDED
    return np.array(selected, np.int64), np.array(selected_values)


def _distance_scale(vectors: Floats, near: float) -> float:
    """Return `near` times the median squared distance of shifted pairs."""
    if len(vectors) < 2:
        return 1.0
    median = float(np.median(((vectors - np.roll(vectors, len(vectors) // 2, axis=0)) ** 2).sum(axis=1)))
    return near * median or 1.0


def _predict(
    method: Method, pool: Pool
) -> Iterator[tuple[Floats, Floats, npt.NDArray[np.float32], npt.NDArray[np.bool_]]]:
    """Yield entropy, probability (in double and single precision) and the mask of unknown entries by block."""
    for batch in pool.in_order():
        logits = predict_logits(method, batch)
        precise = logits.double()
        tensors = (entropy(precise), precise.sigmoid(), logits.sigmoid(), batch.z == 0)
        yield tuple(tensor.cpu().numpy() for tensor in tensors)  # type: ignore[misc]


def scale_features(items: Items, rows: Positions) -> Floats:
    """Return the standardized features of these rows, [n, D]."""
    usual = items.statistics.keeping_size
    unique, inverse = np.unique(rows, return_inverse=True)
    x = (items.take(torch.from_numpy(unique)).double() - usual.mean) / torch.where(usual.scale > 0, usual.scale, 1.0)
    scaled: Floats = x.numpy()[inverse]
    return scaled
