"""Select the questions of a round: informative per second of work, diverse, with a random control group.

- Value: the score of the query strategy, plus the scores of entries that the answer may settle through the hierarchy.
  A no to a parent settles all labels below it; a yes to a child settles all above.
- Cost: the value is divided by the mean seconds per answer of the label.
- Diversity: greedy selection that discounts items close to a selected one with the same label.
- Bundles: for the view of one item, some questions are about items with several informative labels.
- Random control group: random unknown entries at random places in the queue. Annotators cannot recognize them. They
  measure what selection gains (`query_gain`).
- Repeats: some questions are asked again, to the same person or to another, to measure agreement.
- Audits: some questions are about entries that models have filled in (`auditing`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.active.selection import AncestorPairs, Block, Combine, select_questions
from partly.active.strategies.diverse import scale_features, select_diverse
from partly.clock import Clock
from partly.items import Items
from partly.labels import Labels
from partly.method import Method

Positions = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Entry = tuple[int, int]  # row, column
POOL_FACTOR = 8  # candidates per question that is selected for diversity
MAX_BUNDLE_SIZE = 6  # questions about one item
FIELDS = ("rows", "columns", "value", "score", "probability")


@dataclass(frozen=True)
class Candidates:
    """Unknown entries that could be asked, arrays of shape [n]."""

    rows: Positions
    columns: Positions
    value: Floats  # expected value per second
    score: Floats  # of the query strategy
    probability: Floats

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Any) -> Candidates:
        return Candidates(*(getattr(self, name)[index] for name in FIELDS))


NO_CANDIDATES = Candidates(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0), np.empty(0))


@dataclass(frozen=True)
class QuestionDraft:
    """A question that is not posed yet."""

    row: int
    column: int
    random: bool
    score: float | None = None
    probability: float | None = None
    repeats: int | None = None  # id of the question that is asked again
    own: bool | None = None  # of a repeat: for the person who answered before


def select_candidates(
    query: str,
    method: Method,
    items: Items,
    labels: Labels,
    count: int,
    clock: Clock,
    *,
    ancestors: AncestorPairs,
    seconds: Floats,
    asked: Collection[Entry] = (),
    settings: Mapping[str, Any] | None = None,
    combine: Combine | None = None,
) -> Candidates:
    """Return the `count` unknown entries with the highest value per second that were not asked before.

    Parameters
    ----------
    labels : Labels
        All known entries, including those that the hierarchy implies.
    seconds : array of shape [L]
        Seconds per answer of each label.
    combine : callable, optional
        See `select_questions`.
    """

    def rank(block: Block) -> Block:
        score, probability = (block.scores[name].astype(np.float64) for name in ("score", "probability"))
        value = compute_expected_value(score, probability, block.unknown, ancestors) / seconds
        return replace(block, scores={"value": value, "score": score, "probability": probability})

    rows, columns = np.array(list(asked), np.int64).reshape(-1, 2).T
    questions = select_questions(
        query, method, items, labels, count, clock, asked=(rows, columns), settings=settings, rank=rank, combine=combine
    )
    scores = (np.asarray(questions.scores[name], np.float64) for name in FIELDS[2:])
    return Candidates(questions.rows, questions.columns, *scores)


def compute_expected_value(
    score: Floats, probability: Floats, unknown: npt.NDArray[np.bool_], ancestors: AncestorPairs
) -> Floats:
    """Return scores [B, L] plus the expected scores of entries that the answer settles."""
    value, settled = score.copy(), np.where(unknown, score, 0.0)
    for child, ancestor in ancestors:
        value[:, ancestor] += (1 - probability[:, ancestor]) * settled[:, child]
        value[:, child] += probability[:, child] * settled[:, ancestor]
    return value


def diversify(candidates: Candidates, vectors: Floats, count: int, ancestors: AncestorPairs) -> Candidates:
    """Select up to `count` diverse candidates, the best first; vectors: one per candidate [n, D].

    A label and its ancestor may settle each other, so an item is never asked about both.
    """
    related = _both_directions(ancestors)

    def find_excluded(k: int) -> list[int]:
        same_item = np.flatnonzero(candidates.rows == candidates.rows[k]).tolist()
        return [i for i in same_item if (int(candidates.columns[i]), int(candidates.columns[k])) in related]

    return candidates[select_diverse(candidates.value, candidates.columns, vectors, count, find_excluded)[0]]


def bundle_by_item(
    candidates: Candidates, count: int, ancestors: AncestorPairs, size: int = MAX_BUNDLE_SIZE
) -> Candidates:
    """Select up to `count` candidates in bundles about one item each, the most valuable bundles first.

    A label and its ancestor are never in one bundle.
    """
    related = _both_directions(ancestors)
    bundles: dict[int, list[int]] = {}
    for k in np.argsort(-candidates.value, kind="stable").tolist():
        bundle = bundles.setdefault(int(candidates.rows[k]), [])
        column = int(candidates.columns[k])
        if len(bundle) < size and not any((column, int(candidates.columns[i])) in related for i in bundle):
            bundle.append(k)
    best = sorted(bundles.values(), key=lambda bundle: -candidates.value[bundle].sum())
    selected = [k for bundle in best if len(bundle) > 1 for k in bundle]
    return candidates[np.array(selected[:count], np.int64)]


def _both_directions(ancestors: AncestorPairs) -> set[tuple[int, int]]:
    return {pair for line in ancestors for pair in (line, line[::-1])}


def concatenate(*parts: Candidates) -> Candidates:
    """Join candidates in order; keep the first of each entry."""
    joined = Candidates(*(np.concatenate([getattr(part, name) for part in parts]) for name in FIELDS))
    width = int(joined.columns.max(initial=0)) + 1
    _, first = np.unique(joined.rows * width + joined.columns, return_index=True)
    return joined[np.sort(first)]


def sample_unknown(labels: Labels, count: int, rng: np.random.Generator, asked: Collection[Entry] = ()) -> list[Entry]:
    """Draw unknown entries uniformly, without those asked before; fewer if there are not enough."""
    unknown = labels.shape[1] - labels.known_per_item()
    excluded, sample = set(asked), []
    tries = 20 * count + 100  # when nearly everything was asked, a sample may be short
    if not unknown.sum():
        return []
    for row in rng.choice(len(labels), tries, p=unknown / unknown.sum()).tolist():
        entry = (row, int(rng.choice(np.flatnonzero(labels.rows([row])[0] == 0))))
        if entry not in excluded:
            excluded.add(entry)
            sample.append(entry)
        if len(sample) == count:
            break
    return sample


def cold_start(
    entries: Sequence[Entry], items: Items, count: int, probabilities: Floats | None = None
) -> list[QuestionDraft]:
    """Select diverse entries before there is a model: by features, or by row number, since neighbors may be alike.

    probabilities: of the entries, by a teacher; uncertain entries are more valuable, and keep their probability.
    """
    rows, columns = np.array(entries, np.int64).reshape(-1, 2).T
    vectors = scale_features(items, rows) if items.kind == "features" else rows[:, None].astype(np.float64)
    value = np.ones(len(rows)) if probabilities is None else 4 * probabilities * (1 - probabilities)
    selected, values = select_diverse(value, columns, vectors, count)
    drafts = [
        QuestionDraft(int(rows[k]), int(columns[k]), False, float(v)) for k, v in zip(selected, values, strict=True)
    ]
    if probabilities is None:
        return drafts
    return [replace(draft, probability=float(probabilities[k])) for draft, k in zip(drafts, selected, strict=True)]


def interleave(
    selected: Sequence[QuestionDraft],
    random: Sequence[QuestionDraft],
    repeated: Sequence[QuestionDraft],
    rng: np.random.Generator,
) -> list[QuestionDraft]:
    """Return one queue: selected questions in order, the others spread evenly, each at a random place in its part."""
    total = len(selected) + len(random) + len(repeated)
    others = [*random, *repeated]
    rng.shuffle(others)
    ends = np.linspace(0, total, len(others) + 1)
    places = [int(rng.integers(int(low), max(int(low) + 1, int(high)))) for low, high in pairwise(ends)]
    placed = dict(zip(places, others, strict=True))
    rest = iter(selected)
    return [placed[place] if place in placed else next(rest) for place in range(total)]
