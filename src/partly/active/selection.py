"""Question selection for `query`, `refine` and `annotate`: the unknown entries that a strategy ranks first.

Items are scored in blocks, so there is never a matrix of items x labels of scores. Labels and row numbers come from
`Labels`; only a strategy, or a caller that needs probabilities, reads items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from partly.active.strategies import Floats, Parts, find
from partly.active.strategies.uncertainty import entropy
from partly.clock import Clock
from partly.errors import PartlyError, SettingError
from partly.items import Items, prepare_like, scoring_batch_size
from partly.labels import Labels
from partly.labels.hierarchy import Hierarchy
from partly.method import Method
from partly.networks import eval_mode
from partly.pool import Pool

BLOCK_ITEMS = 1024  # scored at a time
Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
AncestorPairs = list[tuple[int, int]]  # (label, one of its ancestors)


@dataclass(frozen=True)
class Questions:
    """Entries to ask about, the best first: rows and columns [n], and scores by name, [n] each."""

    rows: Positions
    columns: Positions
    scores: dict[str, Floats]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class Block:
    """Scores by name of consecutive items, [B, L] each. eligible: unknown entries that were not asked before."""

    scores: dict[str, Floats]
    unknown: Mask
    eligible: Mask


Rank = Callable[[Block], Block]  # adds the score "value", by which entries are ordered
Combine = Callable[[Floats, slice], Floats]  # logits of a model for some rows -> these combined with the teachers'


def select_questions(
    strategy: str,
    method: Method,
    items: Items,
    labels: Labels,
    count: int,
    clock: Clock,
    *,
    hierarchy: Hierarchy | None = None,
    asked: tuple[Positions, Positions] | None = None,
    settings: Mapping[str, Any] | None = None,
    rank: Rank | None = None,
    combine: Combine | None = None,
) -> Questions:
    """Return the `count` unknown entries with the highest scores, or all if there are fewer; ties in reading order.

    Parameters
    ----------
    labels : Labels
        All known entries, including those that the hierarchy implies. They are never asked.
    hierarchy : Hierarchy, optional
        An answer about a label may decide its ancestor or descendant, so of such a pair only the one with the higher
        score is asked about an item.
    asked : pair of arrays, optional
        Rows and columns of entries that were asked before and are not asked again.
    settings : mapping, optional
        Settings of the strategy.
    rank : callable, optional
        Computes the score "value", which orders the entries instead of "score" and of the rule for the hierarchy. Its
        blocks also hold the score "probability".
    combine : callable, optional
        Combines logits of the model with its teachers. The entropy that is part of a score is then that of the combined
        prediction: what teachers know need not be asked.
    """
    if count < 1:
        raise SettingError(f"{count} questions: ask for 1 or more.")
    info = find(strategy)
    complete_settings = info.complete(dict(settings or {}))
    items = prepare_like(items, method.task.items)
    pool = Pool(items, labels, scoring_batch_size(items, BLOCK_ITEMS), str(method.device))
    ancestors = [] if hierarchy is None else hierarchy.lines(labels.names)
    key = "score" if rank is None else "value"
    best = Questions(np.empty(0, np.int64), np.empty(0, np.int64), {})
    with eval_mode(method):
        scored = info.make(method, pool, clock, **complete_settings)
        if combine is not None:
            scored = _combine_blocks(scored, combine)
        for start, block in _blocks(strategy, method, pool, scored, asked, with_probability=rank is not None):
            ranked = _drop_related(block, ancestors) if rank is None else rank(block)
            best = _merge(best, _candidates(ranked, start, best, count, key), count, key)
    return best


def _combine_blocks(scored: Iterator[Parts], combine: Combine) -> Iterator[Parts]:
    """Replace the probability and its entropy by those of model and teachers; leave a score without them alone."""
    start = 0
    for block in scored:
        stop = start + len(block["score"])
        if "probability" in block:
            model_logits = torch.logit(torch.as_tensor(_array(block["probability"])).double(), eps=1e-7)
            logits = torch.from_numpy(combine(model_logits.float().numpy(), slice(start, stop)))
            gain = (entropy(logits) - entropy(model_logits.float())).numpy()
            changed = {"score": _array(block["score"]) + gain, "probability": _array(logits.sigmoid())}
            if "entropy" in block:
                changed["entropy"] = _array(block["entropy"]) + gain
            block = {**block, **changed}
        yield block
        start = stop


def _blocks(
    strategy: str,
    method: Method,
    pool: Pool,
    scored: Iterator[Parts],
    asked: tuple[Positions, Positions] | None,
    with_probability: bool,
) -> Iterator[tuple[int, Block]]:
    """Yield the first row of each block with its scores and masks."""
    width = pool.labels.shape[1]
    before = np.empty(0, np.int64) if asked is None else np.sort(asked[0] * width + asked[1])
    start = 0
    for parts in scored:
        scores = {name: _array(part) for name, part in parts.items()}
        if not np.isfinite(scores["score"]).all():
            raise PartlyError(f"The query {strategy} gives scores that are not finite. Check the model's predictions.")
        stop = start + len(scores["score"])
        if not with_probability:
            scores.pop("probability", None)
        elif "probability" not in scores:
            scores["probability"] = _probability(method, pool, start, stop)
        unknown = pool.labels.rows(slice(start, stop)) == 0
        eligible = unknown.copy()
        low, high = np.searchsorted(before, (start * width, stop * width))
        eligible.reshape(-1)[before[low:high] - start * width] = False
        yield start, Block(scores, unknown, eligible)
        start = stop


def _probability(method: Method, pool: Pool, start: int, stop: int) -> Floats:
    batch = pool.take(torch.arange(start, stop))
    assert isinstance(batch.x, Tensor)  # selection runs in a single process
    return _array(method.logits(batch.x, batch.z).sigmoid())


def _drop_related(block: Block, ancestors: AncestorPairs) -> Block:
    """Keep the higher score of a label and each of its ancestors."""
    eligible, score = block.eligible.copy(), block.scores["score"]
    for child, ancestor in ancestors:
        both = block.eligible[:, child] & block.eligible[:, ancestor]
        child_wins = score[:, child] >= score[:, ancestor]
        eligible[both & child_wins, ancestor] = False
        eligible[both & ~child_wins, child] = False
    return replace(block, eligible=eligible)


def _candidates(block: Block, start: int, best: Questions, count: int, key: str) -> Questions:
    """Return the eligible entries of a block that beat the worst of `best`, if that is full."""
    eligible = block.eligible
    if len(best) == count:
        eligible = eligible & (block.scores[key] > best.scores[key][-1])
    rows, columns = np.nonzero(eligible)
    return Questions(rows + start, columns, {name: part[rows, columns] for name, part in block.scores.items()})


def _merge(best: Questions, more: Questions, count: int, key: str) -> Questions:
    """Return the first `count` of both, by value; ties in reading order."""
    rows, columns = (np.concatenate(pair) for pair in ((best.rows, more.rows), (best.columns, more.columns)))
    before = best.scores or dict.fromkeys(more.scores, np.empty(0, np.float32))
    scores = {name: np.concatenate([before[name], part]) for name, part in more.scores.items()}
    order = np.lexsort((columns, rows, -scores[key]))[:count]
    return Questions(rows[order], columns[order], {name: part[order] for name, part in scores.items()})


def _array(part: Tensor | Floats) -> Floats:
    return np.asarray(part.detach().cpu() if isinstance(part, Tensor) else part)
