"""Result of completing labels: what was filled in, and what is guaranteed, as data and in sentences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.completion.certificate import ZoneDecision
from partly.completion.entry_scores import EntryScores
from partly.errors import SettingError, list_names
from partly.labels import Labels

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Terms:
    """Requested guarantee: precision of filled entries, confidence, recall of yes, and number of questions."""

    precision: float = 0.95
    confidence: float = 0.95
    recall: float | None = None
    budget: int = 200

    def __post_init__(self) -> None:
        shares = {"precision": self.precision, "confidence": self.confidence, "recall": self.recall}
        wrong = [f"{name} = {value}" for name, value in shares.items() if value is not None and not 0.5 <= value < 1]
        if wrong:
            raise SettingError(f"{', '.join(wrong)}: should be at least 0.5 and below 1.")
        if self.budget < 0:
            raise SettingError(f"budget = {self.budget}: should be a number of questions, 0 or more.")

    @property
    def risk(self) -> float:
        return 1 - self.confidence


@dataclass(frozen=True, eq=False)
class Certification:
    """Decisions for yes and for no.

    why: reason why known entries are not a random sample, so that people are asked; questions: rows and columns of the
    open questions.
    """

    sides: tuple[ZoneDecision, ZoneDecision]
    why: str = ""
    questions: tuple[Positions, Positions] = (np.empty(0, np.int64), np.empty(0, np.int64))
    recall_certified: bool | None = None


@dataclass(frozen=True, eq=False)
class Completion:
    """Completed labels and their guarantee.

    With the requested confidence, the entries filled in as yes and as no each have at least the requested precision,
    over all labels together.

    Attributes
    ----------
    labels : Labels
        Known, answered and filled entries. Nothing is filled in unless it is certified or forced.
    certified : bool
        Whether the guarantee holds.
    filled : int
        Number of filled entries.
    expected_errors : float
        Expected number of wrong entries among them.
    terms : Terms
        Requested guarantee.
    certification : Certification
        Decisions and open questions.
    sides : tuple of ZoneDecision
        What was filled in as yes and as no, and why.
    entry_scores : EntryScores
        Cross-fitted probabilities of all entries.
    known : Labels
        The labels without filled entries.
    model : estimator
        Fitted to `known`, for explanations (`model.explain`).
    """

    labels: Labels
    certified: bool
    filled: int
    expected_errors: float
    terms: Terms
    certification: Certification
    sides: tuple[ZoneDecision, ...]
    entry_scores: EntryScores = field(repr=False)
    known: Labels = field(repr=False)
    model: Any = field(repr=False)

    @property
    def questions(self) -> tuple[Positions, Positions]:
        """Rows and columns of the entries to ask people about next."""
        return self.certification.questions

    def entries(self) -> tuple[Positions, Positions, npt.NDArray[np.int8], npt.NDArray[np.float64]]:
        """Return the filled entries, row by row: row, column, +1 or -1, and the probability that it is right."""
        z = compute_filling(self.entry_scores, self.sides, self.known)
        rows, columns = np.nonzero(z)
        values, chance = z[rows, columns], self.entry_scores.chance[rows, columns]
        return rows, columns, values, np.where(values == 1, chance, 1 - chance)

    @property
    def words(self) -> list[str]:
        """Sentences on what was filled in, its guarantee, and the evidence."""
        parts = [_describe_basis(self), *(_describe_side(side, self.terms) for side in self.sides)]
        if self.certification.recall_certified is not None:
            verdict = "is" if self.certification.recall_certified else "cannot be"
            parts.append(f"A recall of at least {self.terms.recall:.1%} of the hidden yes {verdict} certified as well.")
        parts.append(_describe_certificate(self))
        open_questions = len(self.questions[0])
        if open_questions:
            effect = "fill in more" if self.certified else "certify a threshold"
            parts.append(f"{open_questions} questions are open; their answers may {effect}.")
        names, fillable = self.entry_scores.names, self.entry_scores.fillable
        skipped = [name for name, usable in zip(names, fillable, strict=True) if not usable]
        if skipped:
            parts.append(f"Not filled in, because too few entries are known: {list_names(skipped)}.")
        return parts

    @property
    def table(self) -> list[dict[str, Any]]:
        """Counts for each label: known, filled and unknown entries, its calibration, and separate certificates."""
        _, columns, z, _ = self.entries()
        names = self.entry_scores.names
        filled = {value: np.bincount(columns[z == value], minlength=len(names)) for value in (1, -1)}
        known = (self.entry_scores.observed != 0).sum(axis=0)
        separately = {side.value: set(side.labels) for side in self.sides}
        return [
            {
                "label": name,
                "known": int(known[j]),
                "filled_yes": int(filled[1][j]),
                "filled_no": int(filled[-1][j]),
                "unknown": int((self.labels.rows(slice(None))[:, j] == 0).sum()),
                "calibration": "pooled" if self.entry_scores.pooled[j] else "own",
                "certified_alone": [word for value, word in ((1, "yes"), (-1, "no")) if name in separately[value]],
            }
            for j, name in enumerate(names)
        ]


def compute_filling(entries: EntryScores, sides: tuple[ZoneDecision, ...], known: Labels) -> npt.NDArray[np.int8]:
    """Return the filled values z [N, L], 0 elsewhere. Known entries are never changed."""
    z = np.zeros(entries.chance.shape, np.int8)
    free = entries.candidates & entries.fillable & (known.rows(slice(None)) == 0)
    for side in sides:
        if side.threshold is not None:
            z[free & (entries.for_value(side.value)[0] >= side.threshold)] = side.value
    return z


def _describe_basis(completion: Completion) -> str:
    if not completion.certification.why:
        return "The guarantee assumes that entries are missing at random, whatever their value."
    asked = sum(side.asked for side in completion.sides)
    return (
        f"Entries are not missing at random ({completion.certification.why}), so the guarantee rests on answers: "
        f"{asked} of at most {completion.terms.budget} questions are answered."
    )


def _describe_side(side: ZoneDecision, terms: Terms) -> str:
    if side.threshold is None:
        return f"{side.word}: nothing can be filled in with a precision of {terms.precision:.1%}."
    if side.forced:
        return f"{side.word}: {side.filled} entries with a probability of {side.threshold:.1%} or more, forced."
    evidence = "answers" if side.asked else "known entries"
    labels = f"{len(side.labels)} label{'s' * (len(side.labels) > 1)}"
    separately = f"; it also holds separately for {labels}" if side.labels else ""
    return (
        f"{side.word}: {side.filled} entries are filled in, with a precision of at least {terms.precision:.1%} "
        f"({side.errors} of {side.known} {evidence} among them disagree{separately})."
    )


def _describe_certificate(completion: Completion) -> str:
    if completion.certified:
        scope = "both hold" if all(side.certified for side in completion.sides) else "this holds"
        return (
            f"Certified: with {completion.terms.confidence:.1%} confidence, {scope}. "
            f"Expected: about {completion.expected_errors:.0f} of {completion.filled} filled entries are wrong."
        )
    if completion.filled:
        estimate = f"the model expects {completion.expected_errors:.0f} wrong ones"
        return f"NOT certified: {completion.filled} entries were filled in by force; {estimate}."
    return "Not certified: nothing is filled in."
