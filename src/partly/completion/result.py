"""Result of completing labels: what was filled in, and what is guaranteed, as data and in sentences."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.completion.certificate import ZoneDecision
from partly.completion.entry_scores import EntryScores
from partly.completion.estimates import Estimates
from partly.errors import SettingError, list_names
from partly.labels import Labels

Positions = npt.NDArray[np.int64]


YES_SHARE = 0.8  # of the risk; the guarantee of no needs less evidence


@dataclass(frozen=True)
class Terms:
    """Requested guarantees.

    precision: of the entries filled in as yes; max_missed: largest share of the hidden yes that may be filled in as no,
    None to fill in no no; confidence: of all guarantees together; recall: share of the hidden yes to be filled in;
    budget: number of questions.
    """

    precision: float = 0.95
    confidence: float = 0.95
    max_missed: float | None = 0.05
    recall: float | None = None
    budget: int = 200

    def __post_init__(self) -> None:
        shares = {"precision": self.precision, "confidence": self.confidence, "recall": self.recall}
        wrong = [f"{name} = {value}" for name, value in shares.items() if value is not None and not 0.5 <= value < 1]
        if wrong:
            raise SettingError(f"{', '.join(wrong)}: should be at least 0.5 and below 1.")
        if self.max_missed is not None and not 0 < self.max_missed <= 0.5:
            raise SettingError(
                f"max_missed = {self.max_missed}: should be above 0 and at most 0.5, or None (--max-missed 0) to fill "
                "in no no. It is the share of the hidden yes that may become no. There is no precision of no: where "
                "most entries are no, it can be met while most hidden yes are lost."
            )
        if self.budget < 0:
            raise SettingError(f"budget = {self.budget}: should be a number of questions, 0 or more.")

    @property
    def risk(self) -> float:
        return 1 - self.confidence

    @property
    def yes_risk(self) -> float:
        """Risk of the guarantee of yes."""
        if self.max_missed is None and self.recall is None:
            return self.risk
        return YES_SHARE * self.risk

    @property
    def other_risk(self) -> float:
        """Risk of each other guarantee: of no, and of recall."""
        return (self.risk - self.yes_risk) / max((self.max_missed is not None) + (self.recall is not None), 1)


@dataclass(frozen=True, eq=False)
class Certification:
    """Decisions for yes and for no.

    why: reason why answers decide and not known entries, empty where entries are assumed to be missing at random;
    questions: rows and columns of the open questions; estimates: of recall and other shares, after a pilot.
    """

    sides: tuple[ZoneDecision, ZoneDecision]
    why: str = ""
    questions: tuple[Positions, Positions] = (np.empty(0, np.int64), np.empty(0, np.int64))
    recall_certified: bool | None = None
    estimates: Estimates | None = None


@dataclass(frozen=True, eq=False)
class Completion:
    """Completed labels and their guarantees.

    With the requested confidence, the entries filled in as yes have at least the requested precision, and at most the
    requested share of the hidden yes is filled in as no, over all labels together.

    Attributes
    ----------
    labels : Labels
        Known, answered and filled entries. Nothing is filled in unless it is certified or forced.
    certified : bool
        Whether the guarantees hold.
    filled : int
        Number of filled entries.
    expected_errors : float
        Expected number of wrong entries among them.
    terms : Terms
        Requested guarantees.
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
        sentences = [_describe_basis(self), *(_describe_side(side, self.terms) for side in self.sides)]
        if self.certification.recall_certified is not None:
            verdict = "is" if self.certification.recall_certified else "cannot be"
            sentences.append(
                f"A recall of at least {self.terms.recall:.1%} of the hidden yes {verdict} certified as well."
            )
        if self.certification.estimates is not None:
            sentences.append(self.certification.estimates.words)
        sentences.append(_describe_certificate(self))
        open_questions = len(self.questions[0])
        if open_questions:
            effect = "fill in more" if self.certified else "certify a threshold"
            sentences.append(f"{open_questions} questions are open. Their answers may {effect}.")
        elif self.certification.why and not self.filled and self.terms.budget:
            sentences.append(
                "No questions are open: none is likely to certify a threshold. Add known labels first, for example "
                "with `partly query`, or lower the precision."
            )
        names, fillable = self.entry_scores.names, self.entry_scores.fillable
        skipped = [name for name, usable in zip(names, fillable, strict=True) if not usable]
        if skipped:
            sentences.append(f"Not filled in, because too few entries are known: {list_names(skipped)}.")
        return sentences

    @property
    def table(self) -> list[dict[str, Any]]:
        """Counts for each label: known, filled and unknown entries, its calibration, and separate certificates."""
        _, columns, z, _ = self.entries()
        names = self.entry_scores.names
        filled = {value: np.bincount(columns[z == value], minlength=len(names)) for value in (1, -1)}
        known = (self.entry_scores.observed != 0).sum(axis=0)
        separately = {side.value: set(side.labels) for side in self.sides}
        completed = self.labels.rows(slice(None))
        return [
            {
                "label": name,
                "known": int(known[j]),
                "filled_yes": int(filled[1][j]),
                "filled_no": int(filled[-1][j]),
                "yes": int((completed[:, j] == 1).sum()),
                "no": int((completed[:, j] == -1).sum()),
                "unknown": int((completed[:, j] == 0).sum()),
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
        return (
            "The guarantees rest on the assumption that entries are missing at random, whatever their value. "
            "A few answers can replace it (missing='auto', --mechanism auto)."
        )
    asked = sum(side.asked for side in completion.sides)
    return (
        f"Certification needs answers, because {completion.certification.why}. Answered so far: {asked} of at most "
        f"{completion.terms.budget} questions."
    )


def _describe_side(side: ZoneDecision, terms: Terms) -> str:
    if side.value == -1:
        return _describe_no(side, terms)
    if side.threshold is None:
        return f"yes: no entries reach a certified precision of {terms.precision:.1%}."
    if side.forced:
        return f"yes: {side.filled} entries with a probability of {side.threshold:.1%} or more, forced."
    evidence = "answers" if side.asked else "known entries"
    labels = f"{len(side.labels)} label{'s' * (len(side.labels) > 1)}"
    separately = f"; it also holds separately for {labels}" if side.labels else ""
    return (
        f"yes: {side.filled} entries are filled in, with a precision of at least {terms.precision:.1%} "
        f"({side.errors} of {side.known} {evidence} among them disagree{separately})."
    )


def _describe_no(side: ZoneDecision, terms: Terms) -> str:
    if terms.max_missed is None:
        return "no: nothing is filled in, as requested."
    if side.threshold is None:
        lost = f"{terms.max_missed:.1%} of the hidden yes"
        return f"no: no entries are certified; more than {lost} might be lost."
    if side.forced:
        return f"no: {side.filled} entries with a probability of no of {side.threshold:.1%} or more, forced."
    if side.asked:
        evidence = f"{side.errors} of {side.known} answers among them are yes"
    else:
        evidence = f"{side.errors} of {side.known_yes} known yes are among them"
    precision = f", a precision of about {1 - side.expected / side.filled:.1%}" if side.filled else ""
    return (
        f"no: {side.filled} entries are filled in, with at most {terms.max_missed:.1%} of the hidden yes "
        f"({evidence}{precision})."
    )


def _describe_certificate(completion: Completion) -> str:
    if completion.certified:
        scope = "both hold" if all(side.certified for side in completion.sides) else "this holds"
        wrong = ", ".join(
            f"{side.expected:.0f} of {side.filled} filled in as {side.word}" for side in completion.sides if side.filled
        )
        certified = f"Certified: with {completion.terms.confidence:.1%} confidence, {scope}."
        return f"{certified} Expected to be wrong: about {wrong}."
    if completion.filled:
        estimate = f"the model expects {completion.expected_errors:.0f} wrong ones"
        return f"NOT certified: {completion.filled} entries were filled in by force; {estimate}."
    return "Not certified: nothing is filled in."
