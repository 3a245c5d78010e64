"""What makes probabilities and calls of the scores of a model, label by label, how each label came by it, and the words
for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from partly.calibration.judged import Floats
from partly.calibration.maps import Map, as_plain, from_plain

# Held-out known yes, and as many of what stands against them, from which on a label has its own: docs/thresholds.md.
FEWEST = {"platt": 20, "isotonic": 100, "threshold": 20}
From = Literal["own", "pooled", "none"]


@dataclass(frozen=True)
class LabelCalibration:
    """One label: the map from scores to calibrated logits, the probability from which on it is called yes, and where
    both come from. yes, rest: entries that it was judged by; share: of yes, where that takes the place of no's."""

    map: Map
    map_from: From
    threshold: float
    threshold_from: From
    yes: int
    rest: int
    share: float | None = None
    reached: bool = True  # whether any threshold reaches the goal; where none does, the label is never called yes


@dataclass(frozen=True)
class Calibration:
    """Of all labels. method: how scores became probabilities, None where they were left as they are; goal: what
    thresholds are for, None where the model's own were kept."""

    method: str | None
    goal: str | None
    labels: tuple[LabelCalibration, ...]

    @property
    def thresholds(self) -> Floats:
        """[L]."""
        return np.array([label.threshold for label in self.labels])

    def __call__(self, logits: Floats) -> Floats:
        """Calibrated logits [N, L] of those of the model; the array itself where nothing is to be changed."""
        if self.method is None:
            return logits
        columns = [label.map(logits[:, j]) for j, label in enumerate(self.labels)]
        return np.stack(columns, axis=1) if columns else logits

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        lines = [vars(label) | {"map": as_plain(label.map)} for label in self.labels]
        return {"method": self.method, "goal": self.goal, "labels": lines}

    @classmethod
    def read(cls, said: dict[str, Any]) -> Calibration:
        """The inverse of `plain`."""
        lines = (LabelCalibration(**(line | {"map": from_plain(line["map"])})) for line in said["labels"])
        return cls(said["method"], said["goal"], tuple(lines))

    def told(self, names: Sequence[str]) -> list[str]:
        """What was done, and for which labels it could not be: sentences."""
        pairs = list(zip(names, self.labels, strict=True))
        found = [f"Probabilities are calibrated ({self.method}) on held-out entries."] if self.method else []
        found += [f"Thresholds are chosen for {self.goal} on held-out entries."] if self.goal else []
        by_prior = [name for name, label in pairs if label.share is not None]
        if by_prior:
            found.append(f"No no is known of {_named(by_prior)}: an estimated share of yes takes the place of no's.")
        if self.method is not None:
            of = [(name, label.map_from) for name, label in pairs]
            found += _fallbacks("calibration", FEWEST[self.method], of, "probabilities stay as they are")
        if self.goal is not None:
            of = [(name, label.threshold_from) for name, label in pairs]
            found += _fallbacks("threshold", FEWEST["threshold"], of, "yes is called from 0.5 on")
        missed = [name for name, label in pairs if not label.reached]
        if missed:
            found.append(f"No threshold reaches {self.goal} for {_named(missed)}: never called yes.")
        return found


def _fallbacks(what: str, fewest: int, labels: Sequence[tuple[str, From]], otherwise: str) -> list[str]:
    """Which labels have none of their own, and what is taken instead."""
    why = f"fewer than {fewest} known entries of a kind, or scores that do not rise with yes"
    found = []
    for source, instead in (("pooled", "that of all labels together is taken"), ("none", otherwise)):
        few = [name for name, own in labels if own == source]
        if few:
            found.append(f"No {what} of its own for {_named(few)} ({why}): {instead}.")
    return found


def _named(names: Sequence[str], most: int = 5) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
