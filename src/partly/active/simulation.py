"""How asking goes where the truth is known: answers from it, scores of a round, curves and what they come to.

Paper: C.-Y. Hsieh, W.-I. Lin, M. Xu, G. Niu, H.-T. Lin, M. Sugiyama. Active Refinement for Multi-Label Learning: A
Pseudo-Label Approach. arXiv 2109.14676, 2021. Section 4: P@k, the recover rate, the area under the progression curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from partly import metrics
from partly.active.loop import Measure, Round, Said
from partly.active.selection import Questions
from partly.clock import seed_for
from partly.data import Dataset
from partly.engine import FittedModel
from partly.labels import Labels
from partly.labels.matrix import blocks

RANKS = ("P@1", "P@3", "P@5")
# What answering is taken to cost: so many seconds an answer, and more for every screen of one label, of so many items.
SECONDS, SCREEN_SECONDS, SCREEN = 1.5, 3.0, 12


def from_truth(truth: Labels) -> Callable[[Questions], Said]:
    """Answers that are always right, as far as the truth is known."""

    def answer(questions: Questions) -> Said:
        z = truth.rows(questions.rows)[np.arange(len(questions)), questions.columns]
        return [None if one == 0 else bool(one == 1) for one in z]

    return answer


def from_people(truth: Labels, errors: float, seed: int) -> Callable[[Questions], Said]:
    """Answers of people who are wrong as often as this; about an entry always in the same way, whenever it is asked."""
    right = from_truth(truth)

    def answer(questions: Questions) -> Said:
        entries = zip(questions.rows.tolist(), questions.columns.tolist(), right(questions), strict=True)
        return [one if one is None else one is not _errs(errors, seed, row, column) for row, column, one in entries]

    return answer


def _errs(errors: float, seed: int, row: int, column: int) -> bool:
    return seed_for(seed, "error", row, column) / (1 << 63) < errors


def seconds(questions: Questions) -> float:
    """That people take to answer, label by label."""
    screens = np.ceil(np.bincount(questions.columns) / SCREEN).sum() if len(questions) else 0.0
    return float(SECONDS * len(questions) + SCREEN_SECONDS * screens)


def with_seconds(rounds: Sequence[Round], asked: Iterable[Questions]) -> list[Round]:
    """The rounds, each with the seconds that all answers before it took."""
    spent = np.concatenate([[0.0], np.cumsum([seconds(one) for one in asked])])
    return [one | {"seconds": float(spent[one["round"]])} for one in rounds]


def against(data: Dataset) -> Measure:
    """A measure: P@k and mAP on the test part, and how well what is unknown in training is recovered; each where the
    data have it."""

    def measure(fitted: FittedModel, labels: Labels) -> dict[str, float]:
        found: dict[str, float] = {}
        if data.test is not None:
            scores = metrics.evaluate(fitted.predict(data.test.items), data.test.labels)
            found |= {name: scores[name] for name in (*RANKS, "mAP")}
        if data.truth is not None:
            beliefs = fitted.predict(data.items) if fitted.beliefs is None else fitted.beliefs
            found |= recovered(beliefs, data.truth, labels)
        return found

    return measure


def recovered(beliefs: npt.NDArray[Any], truth: Labels, labels: Labels) -> dict[str, float]:
    """F1 of beliefs [N, L] (0.5 or more is yes) over the entries that are unknown in `labels`, all together; beside it
    that of yes everywhere, and of tossing a coin. NaN where nothing is unknown."""
    hits = claims = yes = total = 0
    for block in blocks(labels.shape):
        z = truth.rows(block)
        open_ = (labels.rows(block) == 0) & (z != 0)
        claimed, right = beliefs[block][open_] >= 0.5, z[open_] == 1
        hits, claims = hits + int((claimed & right).sum()), claims + int(claimed.sum())
        yes, total = yes + int(right.sum()), total + len(right)
    pairs = {"": (hits, claims), "_all_yes": (yes, total), "_coin": (yes / 2, total / 2)}
    return {f"recovered{k}": 2 * hit / (claim + yes) if claim + yes else math.nan for k, (hit, claim) in pairs.items()}


def area(rounds: Sequence[Round], name: str = "P@1") -> float:
    """Area under the progression curve: the mean of a score over the rounds after the first answers."""
    values = [one["scores"].get(name) for one in rounds if one["round"] > 0]
    return math.nan if not values or None in values else sum(values) / len(values)


def saved(rounds: Sequence[Round], random: Sequence[Round], name: str = "P@1") -> tuple[int | None, int]:
    """Answers needed to be as good as random questions ever were: (here, there); None where it never came to that."""
    goal = max(one["scores"][name] for one in random)
    there = next(one["answers"] for one in random if one["scores"][name] >= goal)
    return next((one["answers"] for one in rounds if one["scores"][name] >= goal), None), there


def told(one: Round) -> str:
    """A round in one line."""
    scores = ", ".join(f"{name} {value:.3f}" for name, value in one["scores"].items() if value is not None)
    return f"round {one['round']}: {one['answers']} answers, {one['implied']} more followed. {scores}"


def verdict(arms: Mapping[str, Sequence[Round]]) -> list[str]:
    """What came of asking, by P@1, or without a test part by what was recovered: the area of each arm, and what was
    saved against random questions, where they ran."""
    name = "P@1" if all("P@1" in one["scores"] for rounds in arms.values() for one in rounds) else "recovered"
    areas = {query: area(rounds, name) for query, rounds in arms.items()}
    lines = [f"{query}: area under the curve of {name} {value:.4f}" for query, value in areas.items()]
    for query, rounds in arms.items():
        if query != "random" and "random" in arms and not math.isnan(sum(areas.values())):
            here, there = saved(rounds, arms["random"], name)
            took = "never was as good" if here is None else f"needed {here}"
            lines.append(f"Random questions were best after {there} answers; {query} {took}{_share(here, there)}.")
    return lines


def _share(here: int | None, there: int) -> str:
    return "" if here is None or not there else f" ({1 - here / there:.0%} saved)" if here <= there else " (none saved)"
