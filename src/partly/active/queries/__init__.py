"""Queries: which unknown entries to ask people about. One strategy per file; a file dropped in here is a strategy.

A file defines `scores(method, pool, clock, *, settings...)`. For block after block of `pool.in_order()` it yields a
dictionary of tensors [B, L] (or NumPy arrays): "score", of which more means ask first, and what else is worth
reporting of an entry. The method is in evaluation mode. What is known gets a score too; it is never asked. A file may
also define `check(method)`, which refuses a method that it cannot ask, trained or not.

`partly.queries()` lists the strategies.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from partly import catalogue
from partly.clock import Clock
from partly.errors import PartlyError, SettingError
from partly.items import Items, as_trained, at_once
from partly.labels import Labels
from partly.labels.hierarchy import Hierarchy
from partly.method import Method
from partly.networks import predicting
from partly.pool import Pool

BLOCK = 1024  # items that are scored at a time
Positions = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating[Any]]
Parts = Mapping[str, Tensor | Floats]
Strategy = Callable[..., Iterator[Parts]]


@dataclass(frozen=True)
class Questions:
    """Entries to ask about, the most wanted first: their rows and columns [n], and their scores by name, [n] each."""

    rows: Positions
    columns: Positions
    scores: dict[str, Floats]

    def __len__(self) -> int:
        return len(self.rows)


def discover() -> dict[str, catalogue.Info]:
    """Every strategy in the folder, by name (file name, `_` written `-`)."""
    return catalogue.folder(__name__, "query", _scores, catalogue.Info)


def _scores(module: types.ModuleType) -> Strategy:
    strategy: Strategy = module.scores
    return strategy


def find(name: str) -> catalogue.Info:
    return catalogue.find(name, discover(), "query")


def check(query: str, method: Method) -> None:
    """Refuse a method of which this query could make nothing, before it is trained."""
    refuse = getattr(find(query).module, "check", None)
    if refuse is not None:
        refuse(method)


def choose(
    query: str,
    method: Method,
    items: Items,
    labels: Labels,
    count: int,
    clock: Clock,
    *,
    hierarchy: Hierarchy | None = None,
    asked: tuple[Positions, Positions] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Questions:
    """The `count` unknown entries (or all, if there are fewer) with the highest scores; of equal ones the first.

    labels: all that is known, with what follows from the hierarchy. Never asked: what is known, and what was `asked`
    before. Of a label and one above it, which may decide each other, the same questions hold only the one with the
    higher score for an item. Scores exist for a block of items at a time, so there never is a matrix of items x labels
    of them.
    """
    if count < 1:
        raise SettingError(f"{count} questions: ask for 1 or more.")
    info = find(query)
    chosen = info.complete(dict(settings or {}))
    items = as_trained(items, method.task.items)
    pool = Pool(items, labels, at_once(items, BLOCK), str(method.device))
    before = np.empty(0, np.int64) if asked is None else np.sort(asked[0] * labels.shape[1] + asked[1])
    lines = [] if hierarchy is None else hierarchy.lines(labels.names)
    best, start = Questions(np.empty(0, np.int64), np.empty(0, np.int64), {}), 0
    with predicting(method):
        for parts in info.make(method, pool, clock, **chosen):
            found = _block(query, parts, labels, start, before, lines, best, count)
            best, start = _merged(best, found, count), start + len(next(iter(parts.values())))
    return best


def _block(
    query: str,
    parts: Parts,
    known: Labels,
    start: int,
    before: Positions,
    lines: list[tuple[int, int]],
    best: Questions,
    count: int,
) -> Questions:
    """The entries of one block that may be asked and could be among the best."""
    scores = {name: np.asarray(part.cpu() if isinstance(part, Tensor) else part) for name, part in parts.items()}
    score = scores["score"]
    if not np.isfinite(score).all():
        raise PartlyError(f"The query {query} gives scores that are not finite: look at the model's predictions.")
    able = known.rows(slice(start, start + len(score))) == 0
    low, high = np.searchsorted(before, (start * score.shape[1], (start + len(score)) * score.shape[1]))
    able.reshape(-1)[before[low:high] - start * score.shape[1]] = False
    wanted = able.copy()
    for child, parent in lines:
        both = able[:, child] & able[:, parent]
        higher = score[:, child] >= score[:, parent]
        wanted[both & higher, parent] = False
        wanted[both & ~higher, child] = False
    if len(best) == count:  # an equal score further down does not get in
        wanted &= score > best.scores["score"][-1] if count else False
    rows, columns = np.nonzero(wanted)
    return Questions(rows + start, columns, {name: part[rows, columns] for name, part in scores.items()})


def _merged(best: Questions, found: Questions, count: int) -> Questions:
    """The first `count` of both, by score, and where that is equal in reading order."""
    rows, columns = (np.concatenate(pair) for pair in ((best.rows, found.rows), (best.columns, found.columns)))
    before = best.scores or dict.fromkeys(found.scores, np.empty(0, np.float32))
    scores = {name: np.concatenate([before[name], part]) for name, part in found.scores.items()}
    order = np.lexsort((columns, rows, -scores["score"]))[:count]
    return Questions(rows[order], columns[order], {name: part[order] for name, part in scores.items()})


def queries() -> dict[str, dict[str, Any]]:
    """What queries there are: name -> summary, citation and settings with their defaults.

    Returns
    -------
    dict
        From a name to a dictionary.

    Examples
    --------
    >>> import partly
    >>> sorted(partly.queries())
    ['diverse', 'look-ahead', 'random', 'uncertainty']
    >>> partly.queries()["uncertainty"]["summary"]
    'The unknown entries whose prediction is closest to a toss-up: highest entropy first.'
    """
    return {name: info.words() for name, info in discover().items()}
