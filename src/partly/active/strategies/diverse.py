"""Unsure predictions about items that are unlike each other, so that no two questions are about the same thing.

Paper: K. Brinker. Incorporating Diversity in Active Learning with Support Vector Machines. ICML 2003.

Differs: of the `among` entries with the highest entropy one is chosen after the other; each time those of the same
label lose of their worth, the more the nearer their item lies to the one that was chosen (exp of minus the squared
distance). The paper weighs the largest cosine against the margin. Items lie where their features are, each at its
scale; what has no features (pictures, texts) lies where the model's probabilities of all labels are.

Defaults: `among` is a few times the questions of a round; what lies behind comes by its entropy alone. `near`, as a
share of the middle squared distance: there an item has lost about two thirds of its worth beside another.
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
BLOCKED = -np.inf
NEAR = 0.1


def scores(
    method: Method, pool: Pool, clock: Clock, *, among: int = 400, near: float = NEAR
) -> Iterator[dict[str, Floats]]:
    """What is left of the entropy of an entry when it is its turn; less than 0 where it does not come to that."""
    within(1, float("inf"), among=among)
    within(0, float("inf"), near=near)
    unsure, chance, probability, unknown = map(np.concatenate, zip(*_predicted(method, pool), strict=True))
    open_ = np.flatnonzero(unknown)
    best = open_[np.argsort(-unsure.reshape(-1)[open_], kind="stable")[:among]]
    rows, columns = np.divmod(best, unsure.shape[1])
    vectors = scaled(pool.items, rows) if pool.items.kind == "features" else chance[rows]
    chosen, worth = spread(unsure[rows, columns], columns, vectors, len(rows), near=near)
    found = unsure - 1.0  # an entropy is less than one, in nats
    found[rows[chosen], columns[chosen]] = worth
    for start in range(0, len(pool), pool.batch_size):
        block = slice(start, start + pool.batch_size)
        yield {"score": found[block], "entropy": unsure[block], "probability": probability[block]}


def spread(
    value: Floats,
    columns: Positions,
    vectors: Floats,
    count: int,
    out: Callable[[int], Sequence[int]] = lambda _: (),
    near: float = NEAR,
) -> tuple[Positions, Floats]:
    """At most so many candidates, the best first and no near-twins for one label: their places, and what each was worth
    when it was chosen. vectors: of the item of each, [n, D]. out: places that go out along with one that is chosen."""
    left = value - min(value.min(initial=0.0), 0.0) + 1e-9
    scale = _scale(vectors, near)
    chosen: list[int] = []
    worth: list[float] = []
    while len(chosen) < count and left.max(initial=BLOCKED) > BLOCKED:
        k = int(left.argmax())
        chosen.append(k)
        worth.append(float(left[k]))
        same = (columns == columns[k]) & (left > BLOCKED)
        distance = ((vectors[same] - vectors[k]) ** 2).sum(axis=1)
        left[same] *= 1 - np.exp(-distance / scale)
        left[[*out(k), k]] = BLOCKED
    return np.array(chosen, np.int64), np.array(worth)


def _scale(vectors: Floats, near: float) -> float:
    """The squared distance at which two items are near, by that of items some places apart."""
    if len(vectors) < 2:
        return 1.0
    middle = float(np.median(((vectors - np.roll(vectors, len(vectors) // 2, axis=0)) ** 2).sum(axis=1)))
    return near * middle or 1.0


def _predicted(
    method: Method, pool: Pool
) -> Iterator[tuple[Floats, Floats, npt.NDArray[np.float32], npt.NDArray[np.bool_]]]:
    """Yield entropy, probability (in double and as the model gives it) and the mask of unknown entries by block."""
    for batch in pool.in_order():
        logits = predict_logits(method, batch)
        precise = logits.double()
        tensors = (entropy(precise), precise.sigmoid(), logits.sigmoid(), batch.z == 0)
        yield tuple(tensor.cpu().numpy() for tensor in tensors)  # type: ignore[misc]


def scaled(items: Items, rows: Positions) -> Floats:
    """Where items lie: their features, each at its scale, [n, D]."""
    usual = items.statistics.keeping_size
    at, back = np.unique(rows, return_inverse=True)
    x = (items.take(torch.from_numpy(at)).double() - usual.mean) / torch.where(usual.scale > 0, usual.scale, 1.0)
    found: Floats = x.numpy()[back]
    return found
