"""Items to look at in a report: what people said of them, what a run predicts, what is true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from partly.items import Items
from partly.labels import Labels, Ternary
from partly.report.sights import Evidence

FAIR, WRONG, UNKNOWN = 6, 3, 3  # items of each kind, at most
LINES, ENOUGH = 9, 5  # labels of one item: at most, and where the rest are but a no that is called no
Kind = Literal["fair", "wrong", "unknown"]


@dataclass(frozen=True, eq=False)
class Examples:
    """Items to choose from. Of training items, `given` is what people said and `truth` what a simulation knows."""

    probabilities: tuple[npt.NDArray[Any], ...]  # [K, L], one a run
    truth: Labels | None = None
    given: Labels | None = None
    items: Items | None = None  # K, to be looked at: those that are chosen, and no others
    evidence: tuple[Evidence, ...] = ()  # one a run, where it is asked for


@dataclass(frozen=True)
class Line:
    """One entry. given, truth: +1 yes, -1 no, 0 unknown."""

    name: str
    probability: float
    given: int
    truth: int
    threshold: float = 0.5

    @property
    def predicted(self) -> int:
        return 1 if self.probability >= self.threshold else -1

    @property
    def wrong(self) -> bool:
        """Against the truth, or, where that is unknown, against what people said."""
        return (self.truth or self.given) == -self.predicted


@dataclass(frozen=True)
class Card:
    """One item. label: the one for which it was chosen, else its most probable; lines: the labels worth a look, the
    most probable first; words: what is to be said of all labels."""

    item: int
    id: str
    kind: Kind
    label: int
    lines: tuple[Line, ...]
    words: str


def cards(examples: Examples, names: tuple[str, ...], thresholds: npt.NDArray[Any] | None = None) -> list[Card]:
    """Cards of the first run: a fair sample, then what is most confidently wrong, then what nobody said and is most
    surely yes. Of the latter two each label comes once. thresholds [L]: from which probability on a label is yes."""
    p = examples.probabilities[0]
    cuts = np.full(len(names), 0.5) if thresholds is None else thresholds
    truth, given = (_rows(labels, p.shape) for labels in (examples.truth, examples.given))
    known, yes = np.where(truth != 0, truth, given), p >= cuts
    wrong = (known != 0) & (yes != (known == 1))
    chosen: dict[int, tuple[Kind, int]] = {int(i): ("fair", int(p[i].argmax())) for i in spread(len(p), FAIR)}
    _add(chosen, "wrong", np.where(wrong, np.abs(p - (known == 1)), 0.0), WRONG)
    if examples.given is not None:
        _add(chosen, "unknown", np.where((given == 0) & yes & ~wrong, p, 0.0), UNKNOWN)
    source = examples.truth or examples.given
    result = []
    for i, (kind, label) in chosen.items():
        entries = zip(names, p[i], given[i], truth[i], cuts, strict=True)
        lines = [Line(name, float(a), int(b), int(c), float(t)) for name, a, b, c, t in entries]
        name = source.id_at(i) if source else str(i)
        result.append(Card(i, name, kind, label, _worth_a_look(lines, label), _words(lines)))
    return result


def _add(chosen: dict[int, tuple[Kind, int]], kind: Kind, strength: npt.NDArray[Any], most: int) -> None:
    """Items that are not chosen yet, by their strongest entry, [K, L], above 0; the strongest item of each label."""
    rows = strength.argmax(axis=0)
    values, left = strength.max(axis=0), most
    for j in np.argsort(-values, kind="stable"):
        if not left or values[j] <= 0:
            return
        if int(rows[j]) not in chosen:
            chosen[int(rows[j])] = kind, int(j)
            left -= 1


def spread(count: int, most: int) -> npt.NDArray[np.intp]:
    """At most so many of `count` positions, at even distances."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(np.intp))


def _rows(labels: Labels | None, shape: tuple[int, ...]) -> Ternary:
    return np.zeros(shape, np.int8) if labels is None else labels.rows(slice(None))


def _worth_a_look(lines: list[Line], label: int) -> tuple[Line, ...]:
    """First the label for which the item is shown, then what is wrong, then every yes, and where these are few what
    else was given; the most probable on top."""

    def plain(line: Line) -> bool:
        return 1 not in (line.predicted, line.truth, line.given) and line is not lines[label]

    def rank(line: Line) -> tuple[bool, bool, bool, float]:
        return line is not lines[label], not line.wrong, plain(line), -line.probability

    some = sorted((line for line in lines if line.given or not plain(line)), key=rank)
    most = max(ENOUGH, sum(not plain(line) for line in some))
    return tuple(sorted(some[: min(most, LINES)], key=lambda line: -line.probability))


def _words(lines: list[Line]) -> str:
    known = [line for line in lines if line.truth or line.given]
    wrong = sum(line.wrong for line in known)
    if not known:
        return "nothing known"
    return f"wrong: {wrong} of {len(known)} known" if wrong else f"right: all {len(known)} known"
