"""Estimate the reliability of each source: a model of Dawid and Skene (1979) with three answers, fitted by EM.

Each entry is yes or no. A source answers yes, no or "cannot tell" with probabilities that depend on the truth:

    confusion[source, label, truth, answer]

The confusions of a source and label are shrunk toward those of the source, and these toward a source that is mostly
right: without that prior, "all sources are wrong" explains the answers as well. The weight of a vote is the
log-likelihood ratio of the statement. A source that is wrong on purpose gets weight zero; its answers are not inverted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from partly.ledger.resolve import Statements

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

YES, NO, UNSURE = 0, 1, 2  # answers; the first two are truths too
PRIOR_ANSWERS = 10.0  # weight of the prior of a source, in answers
PRIOR = np.array([[0.7, 0.15, 0.15], [0.15, 0.7, 0.15]])
LABEL_ANSWERS = 20.0  # weight of the source in the confusion of a label, in answers
PREVALENCE_ANSWERS = 2.0  # weight of the overall prevalence in that of a label
MIN_ENTRIES = 30  # with yes or no of at least two sources
MIN_VOICES = 3  # of two sources, the answers alone cannot show which is right
MAX_STEPS = 100
TOLERANCE = 1e-4


@dataclass(frozen=True)
class SourceQuality:
    """Estimates for one source, over all labels and per label.

    `sensitivity` and `specificity`: share of true yes that it calls yes, and of true no that it calls no, when it
    decides. `unsure`: share of "cannot tell". `weight`: mean weight of its votes; 0: it does not vote.
    `shared`: entries that another source has answered, too.
    """

    source: tuple[str, str, str]
    statements: int
    shared: int
    sensitivity: float
    specificity: float
    unsure: float
    weight: float
    label_weights: dict[str, float]


@dataclass(frozen=True)
class Confusions:
    """Confusion of each source, [S, 2, 3], and of each source and label, [S, L, 2, 3]; and truths of entries."""

    pooled: Floats
    per_label: Floats
    chance: Floats  # probability of yes of each entry, [E]

    @property
    def weights(self) -> Floats:
        """Votes [S, L, 2]: at least 0 for a yes, at most 0 for a no."""
        ratio = np.log(self.per_label[:, :, YES]) - np.log(self.per_label[:, :, NO])
        return np.stack([np.maximum(ratio[:, :, YES], 0.0), np.minimum(ratio[:, :, NO], 0.0)], axis=2)


def select_shared(statements: Statements) -> tuple[Statements, Ints]:
    """Return the latest statement of each voice about entries with several voices, and its entry number."""
    width = int(statements.label.max(initial=0)) + 1
    key = statements.item * width + statements.label
    order = np.lexsort((np.arange(len(key)), statements.voice, key))
    last = np.ones(len(order), bool)
    same = (key[order][1:] == key[order][:-1]) & (statements.voice[order][1:] == statements.voice[order][:-1])
    last[:-1] = ~same
    latest = order[last]
    entry, counts = np.unique(key[latest], return_inverse=True, return_counts=True)[1:]
    shared = counts[entry] > 1
    return statements[latest[shared]], np.unique(entry[shared], return_inverse=True)[1]


def fit(statements: Statements, entry: Ints, voices: int, labels: int) -> Confusions | None:
    """Fit confusions to statements about shared entries; None if there are too few; then the majority decides.

    entry: number of the entry of each statement, from 0 on.
    """
    definite = statements.z != 0
    count = int(entry.max(initial=-1)) + 1
    several = int((np.bincount(entry[definite], minlength=count) > 1).sum())
    if several < MIN_ENTRIES or len(np.unique(statements.voice[definite])) < MIN_VOICES:
        return None
    answer = np.where(statements.z == 1, YES, np.where(statements.z == -1, NO, UNSURE))
    label = np.zeros(count, np.int64)
    label[entry] = statements.label
    votes = np.bincount(entry, statements.z, count)
    chance = 1 / (1 + np.exp(-votes))
    for _ in range(MAX_STEPS):
        confusions = _maximize(statements, entry, answer, chance, voices, labels)
        prevalence = _prevalence(chance, label, labels)
        ratio = np.log(confusions.per_label[:, :, YES]) - np.log(confusions.per_label[:, :, NO])
        evidence = np.bincount(entry, ratio[statements.voice, statements.label, answer], count)
        logit = evidence + np.log(prevalence / (1 - prevalence))[label]
        new = 1 / (1 + np.exp(-np.clip(logit, -30, 30)))
        change, chance = np.abs(new - chance).max(), new
        if change < TOLERANCE:
            break
    return _maximize(statements, entry, answer, chance, voices, labels)


def _maximize(
    statements: Statements, entry: Ints, answer: Ints, chance: Floats, voices: int, labels: int
) -> Confusions:
    """Return the most probable confusions, given the entries' probabilities of yes."""
    place = (statements.voice * labels + statements.label) * 3 + answer
    size = voices * labels * 3
    yes = np.bincount(place, chance[entry], size).reshape(voices, labels, 3)
    no = np.bincount(place, 1 - chance[entry], size).reshape(voices, labels, 3)
    counts = np.stack([yes, no], axis=2)  # [S, L, truth, answer]
    pooled = counts.sum(axis=1) + PRIOR_ANSWERS * PRIOR
    pooled /= pooled.sum(axis=2, keepdims=True)
    per_label = counts + LABEL_ANSWERS * pooled[:, None]
    per_label /= per_label.sum(axis=3, keepdims=True)
    return Confusions(pooled, per_label, chance)


def _prevalence(chance: Floats, label: Ints, labels: int) -> Floats:
    """Return the share of yes of each label, shrunk toward the overall share."""
    totals, counts = np.bincount(label, chance, labels), np.bincount(label, minlength=labels)
    overall = (chance.sum() + 0.5) / (len(chance) + 1)
    shares: Floats = (totals + PREVALENCE_ANSWERS * overall) / (counts + PREVALENCE_ANSWERS)
    return np.clip(shares, 1e-4, 1 - 1e-4)


def describe(
    confusions: Confusions, shared: Statements, sources: list[tuple[str, str, str]], counts: Ints, names: dict[int, str]
) -> list[SourceQuality]:
    """Describe each source that shares entries with others, those of the largest weight first.

    sources and counts: source and number of statements of each voice. names: visible labels by number.
    """
    described = []
    for voice in np.unique(shared.voice).tolist():
        own_statements = shared[shared.voice == voice]
        pooled, strength = confusions.pooled[voice], np.abs(confusions.weights[voice]).mean(axis=1)
        answered = np.bincount(own_statements.label, minlength=len(strength))
        described.append(
            SourceQuality(
                sources[voice],
                int(counts[voice]),
                len(own_statements.z),
                float(pooled[YES, YES] / pooled[YES, :UNSURE].sum()),
                float(pooled[NO, NO] / pooled[NO, :UNSURE].sum()),
                float((own_statements.z == 0).mean()),
                float(np.average(strength, weights=answered)),
                {names[k]: float(strength[k]) for k in np.flatnonzero(answered).tolist() if k in names},
            )
        )
    return sorted(described, key=lambda quality: -quality.weight)
