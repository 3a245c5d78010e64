"""Items to look at in a report: what people said of them, what a run predicts, what is true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.labels import Labels, Ternary

FAIR, SURPRISING = 8, 4  # items at even distances, and items whose truth is the greatest surprise
LINES = 9  # labels of one item, at most


@dataclass(frozen=True, eq=False)
class Examples:
    """Items to choose from. Of training items, `given` is what people said and `truth` what a simulation knows."""

    probabilities: tuple[npt.NDArray[Any], ...]  # [K, L], one a run
    truth: Labels | None = None
    given: Labels | None = None
    pictures: npt.NDArray[np.uint8] | None = None  # [K, H, W, 1 or 3]


@dataclass(frozen=True)
class Line:
    """One entry. given, truth: +1 yes, -1 no, 0 unknown."""

    name: str
    probability: float
    given: int
    truth: int

    @property
    def predicted(self) -> int:
        return 1 if self.probability >= 0.5 else -1

    @property
    def wrong(self) -> bool:
        """Against the truth, or, where that is unknown, against what people said."""
        return (self.truth or self.given) == -self.predicted


@dataclass(frozen=True)
class Card:
    """One item. lines: the labels worth a look, the most probable first; words: what is to be said of all labels."""

    item: int
    id: str
    surprising: bool
    lines: tuple[Line, ...]
    words: str


def cards(examples: Examples, names: tuple[str, ...]) -> list[Card]:
    """Cards of the first run: a fair sample, then the surprises."""
    p = examples.probabilities[0]
    truth, given = (_rows(labels, p.shape) for labels in (examples.truth, examples.given))
    source = examples.truth or examples.given
    fair = spread(len(p), FAIR)
    surprise = np.where((truth != 0) & (given == 0), np.abs(p - (truth == 1)), 0.0).max(axis=1, initial=0.0)
    surprise[fair] = 0.0
    odd = [i for i in np.argsort(-surprise, kind="stable")[:SURPRISING] if surprise[i] >= 0.5]
    result = []
    for place, i in enumerate((*fair, *odd)):
        lines = [Line(names[j], float(p[i, j]), int(given[i, j]), int(truth[i, j])) for j in range(len(names))]
        name = source.ids[i] if source else str(i)
        result.append(Card(int(i), name, place >= len(fair), _worth_a_look(lines), _words(lines)))
    return result


def spread(count: int, most: int) -> npt.NDArray[np.intp]:
    """At most so many of `count` positions, at even distances."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))


def _rows(labels: Labels | None, shape: tuple[int, ...]) -> Ternary:
    return np.zeros(shape, np.int8) if labels is None else labels.rows(slice(None))


def _worth_a_look(lines: list[Line]) -> tuple[Line, ...]:
    """First what is wrong, then every yes, then what was given; of these the first few, the most probable on top."""

    def rank(line: Line) -> tuple[bool, bool, float]:
        return not line.wrong, 1 not in (line.predicted, line.truth, line.given), -line.probability

    some = [line for line in lines if line.given or 1 in (line.predicted, line.truth)]
    return tuple(sorted(sorted(some, key=rank)[:LINES], key=lambda line: -line.probability))


def _words(lines: list[Line]) -> str:
    known = [line for line in lines if line.truth or line.given]
    wrong = sum(line.wrong for line in known)
    if not known:
        return "nothing known"
    return f"wrong: {wrong} of {len(known)} known" if wrong else f"right: all {len(known)} known"
