"""What is promised of labels that were completed, as data and in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.completion.certificate import ZoneDecision
from partly.completion.entry_scores import EntryScores
from partly.errors import SettingError
from partly.labels import Labels

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Terms:
    """What is asked for: precision of what is filled in, with which confidence, recall of yes, and most questions."""

    precision: float = 0.95
    confidence: float = 0.95
    recall: float | None = None
    budget: int = 200

    def __post_init__(self) -> None:
        shares = {"precision": self.precision, "confidence": self.confidence, "recall": self.recall}
        wrong = [f"{name} = {value}" for name, value in shares.items() if value is not None and not 0.5 <= value < 1]
        if wrong:
            raise SettingError(f"{', '.join(wrong)}: should be at least 0.5 and below 1; nothing is ever certain.")
        if self.budget < 0:
            raise SettingError(f"budget = {self.budget}: should be a number of questions, 0 or more.")

    @property
    def risk(self) -> float:
        return 1 - self.confidence


@dataclass(frozen=True, eq=False)
class Found:
    """What can be promised of yes and of no. why: known entries do not speak for unknown ones, and answers were asked
    for; questions: (rows, columns) of those that are still open."""

    sides: tuple[ZoneDecision, ZoneDecision]
    why: str = ""
    questions: tuple[Positions, Positions] = (np.empty(0, np.int64), np.empty(0, np.int64))
    recall_certified: bool | None = None


@dataclass(frozen=True, eq=False)
class Completion:
    """Labels that were completed, and the promise: with the stated confidence both yes and no are filled in with at
    least the stated precision, each over all labels together.

    labels: what was known, what people answered, and what was filled in; where nothing is certified and nobody forced
    it, nothing is. filled: how many entries were. expected_errors: how many of them are likely wrong. sides: of yes and
    of no, what was filled in and what that rests on. found: what could be promised, and the open questions. known: the
    labels without what was filled in. model: fitted to these, for reasons (`model.explain`).
    """

    labels: Labels
    certified: bool
    filled: int
    expected_errors: float
    terms: Terms
    found: Found
    sides: tuple[ZoneDecision, ...]
    board: EntryScores = field(repr=False)
    known: Labels = field(repr=False)
    model: Any = field(repr=False)

    @property
    def questions(self) -> tuple[Positions, Positions]:
        """Rows and columns of the entries to ask people about next; empty where nothing is to be asked."""
        return self.found.questions

    def entries(self) -> tuple[Positions, Positions, npt.NDArray[np.int8], npt.NDArray[np.float64]]:
        """What was filled in, in reading order: row, column, +1 or -1, and the chance that it is right."""
        z = filling(self.board, self.sides, self.known)
        rows, columns = np.nonzero(z)
        said, chance = z[rows, columns], self.board.chance[rows, columns]
        return rows, columns, said, np.where(said == 1, chance, 1 - chance)

    @property
    def words(self) -> list[str]:
        """All of this in sentences."""
        return sentences(self)

    @property
    def table(self) -> list[dict[str, Any]]:
        """Label by label, as plain data."""
        return lines(self)


def filling(board: EntryScores, sides: tuple[ZoneDecision, ...], known: Labels) -> npt.NDArray[np.int8]:
    """What is filled in, z [N, L]: 0 where nothing is. Known entries are left alone."""
    z = np.zeros(board.chance.shape, np.int8)
    free = board.open & board.fills & (known.rows(slice(None)) == 0)
    for side in sides:
        if side.threshold is not None:
            z[free & (board.of(side.value)[0] >= side.threshold)] = side.value
    return z


def sentences(of: Completion) -> list[str]:
    """What was filled in, what is promised of it, and what that rests on."""
    terms, questions = of.terms, len(of.questions[0])
    found = []
    if of.found.why:
        asked = sum(side.asked for side in of.sides)
        found.append(
            f"Known entries do not speak for unknown ones ({of.found.why}), so answers of people do: "
            f"{asked} of at most {terms.budget} questions are answered."
        )
    else:
        found.append(
            "The promise is for unknown entries that are like the known ones: known by chance, whatever they are."
        )
    found += [_side(side, terms) for side in of.sides]
    if of.found.recall_certified is not None:
        can = "is certified too" if of.found.recall_certified else "cannot be certified together with the precision"
        found.append(f"That at least {terms.recall:.1%} of the hidden yes are filled in {can}.")
    if of.certified:
        both = "both of these hold" if all(side.certified for side in of.sides) else "this holds"
        found.append(
            f"Certified: with {terms.confidence:.1%} confidence {both}. "
            f"About {of.expected_errors:.0f} of {of.filled} filled entries are likely wrong."
        )
    elif of.filled:
        guess = f"by the model's own estimate {of.expected_errors:.0f} are wrong"
        found.append(f"NOT certified, {of.filled} entries filled in by force: {guess}.")
    else:
        found.append("Not certified: nothing is filled in.")
    if questions:
        more = "fill in more" if of.certified else "certify"
        found.append(f"{questions} questions are open; their answers may {more}.")
    left = [name for name, fills in zip(of.board.names, of.board.fills, strict=True) if not fills]
    if left:
        found.append(f"Too little is known of {_named(left)} to fill in any of it.")
    return found


def _side(side: ZoneDecision, terms: Terms) -> str:
    if side.threshold is None:
        return f"{side.word}: nothing can be filled in with a precision of {terms.precision:.1%}."
    if side.forced:
        return f"{side.word}: {side.filled} entries with a chance of {side.threshold:.1%} or more, by force."
    judged = "answers" if side.asked else "known entries"
    alone = f"; for {len(side.labels)} labels it holds by itself" if side.labels else ""
    return (
        f"{side.word}: {side.filled} entries are filled in, with a precision of at least {terms.precision:.1%} "
        f"({side.errors} of {side.known} {judged} among them say the opposite{alone})."
    )


def lines(of: Completion) -> list[dict[str, Any]]:
    """Label by label: what is known, what was filled in, whether its calibration is that of all labels together, and
    for which of yes and no the promise holds by itself."""
    _, columns, z, _ = of.entries()
    names = of.board.names
    filled = {value: np.bincount(columns[z == value], minlength=len(names)) for value in (1, -1)}
    known = (of.board.said != 0).sum(axis=0)
    alone = {side.value: set(side.labels) for side in of.sides}
    return [
        {
            "label": name,
            "known": int(known[j]),
            "filled_yes": int(filled[1][j]),
            "filled_no": int(filled[-1][j]),
            "unknown": int((of.labels.rows(slice(None))[:, j] == 0).sum()),
            "calibration": "pooled" if of.board.pooled[j] else "own",
            "certified_alone": [word for value, word in ((1, "yes"), (-1, "no")) if name in alone[value]],
        }
        for j, name in enumerate(names)
    ]


def _named(names: list[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
