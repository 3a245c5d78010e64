"""Simulate active learning with a known truth: answers, scores of a round, learning curves and their summary.

Reference
    C.-Y. Hsieh, W.-I. Lin, M. Xu, G. Niu, H.-T. Lin, M. Sugiyama. Active Refinement for Multi-Label Learning: A
    Pseudo-Label Approach. arXiv 2109.14676, 2021. Section 4: P@k, recover rate, area under the progression curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from partly import metrics
from partly.active.loop import AnswerValues, Measure, Round
from partly.active.selection import Questions
from partly.clock import seed_for
from partly.data import Dataset
from partly.engine import FittedModel
from partly.labels import Labels
from partly.labels.matrix import blocks
from partly.moved import make_getattr

PRECISION_METRICS = ("P@1", "P@3", "P@5")
SCORE_NAMES = {
    "recovered": "F1 on unknown entries",
    "recovered_all_yes": "F1 of all yes",
    "recovered_coin": "F1 of a coin flip",
}
# Assumed cost of answering: per answer, and per screen of up to so many items with one label.
SECONDS_PER_ANSWER, SECONDS_PER_SCREEN, ITEMS_PER_SCREEN = 1.5, 3.0, 12


def answers_from_truth(truth: Labels) -> Callable[[Questions], AnswerValues]:
    """Return an answer function that is always right, where the truth is known."""

    def answer(questions: Questions) -> AnswerValues:
        z = truth.rows(questions.rows)[np.arange(len(questions)), questions.columns]
        return [None if value == 0 else bool(value == 1) for value in z]

    return answer


def answers_with_errors(truth: Labels, error_rate: float, seed: int) -> Callable[[Questions], AnswerValues]:
    """Return an answer function with random errors; the same entry always gets the same answer."""
    right = answers_from_truth(truth)

    def answer(questions: Questions) -> AnswerValues:
        entries = zip(questions.rows.tolist(), questions.columns.tolist(), right(questions), strict=True)
        return [
            value if value is None else value is not _is_error(error_rate, seed, row, column)
            for row, column, value in entries
        ]

    return answer


def _is_error(error_rate: float, seed: int, row: int, column: int) -> bool:
    return seed_for(seed, "error", row, column) / (1 << 63) < error_rate


def answer_seconds(questions: Questions) -> float:
    """Return the assumed time to answer, label by label."""
    screens = np.ceil(np.bincount(questions.columns) / ITEMS_PER_SCREEN).sum() if len(questions) else 0.0
    return float(SECONDS_PER_ANSWER * len(questions) + SECONDS_PER_SCREEN * screens)


def add_seconds(rounds: Sequence[Round], questions: Iterable[Questions]) -> list[Round]:
    """Return the rounds with the total time of all answers before each."""
    elapsed = np.concatenate([[0.0], np.cumsum([answer_seconds(asked) for asked in questions])])
    return [record | {"seconds": float(elapsed[record["round"]])} for record in rounds]


def make_measure(data: Dataset) -> Measure:
    """Return a measure of a round: P@k and mAP on the test part, and recovery of unknown training entries.

    Scores whose part of the data is missing are left out.
    """

    def measure(fitted: FittedModel, labels: Labels) -> dict[str, float]:
        scores: dict[str, float] = {}
        if data.test is not None:
            test_scores = metrics.evaluate(fitted.predict(data.test.items), data.test.labels)
            scores |= {name: test_scores[name] for name in (*PRECISION_METRICS, "mAP")}
        if data.truth is not None:
            beliefs = fitted.predict(data.items) if fitted.beliefs is None else fitted.beliefs
            scores |= recovery_scores(beliefs, data.truth, labels)
        return scores

    return measure


def recovery_scores(beliefs: npt.NDArray[Any], truth: Labels, labels: Labels) -> dict[str, float]:
    """Return the micro F1 of beliefs [N, L] on entries unknown in `labels`, and of two baselines.

    The baselines are yes everywhere and a fair coin. NaN if nothing is unknown.
    """
    hits = claims = yes = total = 0
    for block in blocks(labels.shape):
        z = truth.rows(block)
        unknown = (labels.rows(block) == 0) & (z != 0)
        claimed, right = beliefs[block][unknown] >= 0.5, z[unknown] == 1
        hits, claims = hits + int((claimed & right).sum()), claims + int(claimed.sum())
        yes, total = yes + int(right.sum()), total + len(right)
    pairs = {"": (hits, claims), "_all_yes": (yes, total), "_coin": (yes / 2, total / 2)}
    return {f"recovered{k}": 2 * hit / (claim + yes) if claim + yes else math.nan for k, (hit, claim) in pairs.items()}


def area(rounds: Sequence[Round], name: str = "P@1") -> float:
    """Return the area under the progression curve: the mean score of the rounds after the first answers."""
    values = [record["scores"].get(name) for record in rounds if record["round"] > 0]
    return math.nan if not values or None in values else sum(values) / len(values)


def answers_to_match(rounds: Sequence[Round], random: Sequence[Round], name: str = "P@1") -> tuple[int | None, int]:
    """Return the answers until `rounds` match the best of `random` (None if never), and those that `random` needed."""
    goal = max(record["scores"][name] for record in random)
    random_answers = next(record["answers"] for record in random if record["scores"][name] >= goal)
    return next((record["answers"] for record in rounds if record["scores"][name] >= goal), None), random_answers


def describe_round(record: Round) -> str:
    """Return a round as one line of text."""
    scores = ", ".join(
        f"{SCORE_NAMES.get(name, name)} {value:.3f}" for name, value in record["scores"].items() if value is not None
    )
    return (
        f"round {record['round']}: {record['answers']} answers, {record['implied']} implied entries. {scores}".rstrip()
    )


def summarize(arms: Mapping[str, Sequence[Round]]) -> list[str]:
    """Return lines with the area of each strategy and the answers saved against random questions.

    Scores are P@1, or the recovered share if there is no test part.
    """
    name = "P@1" if all("P@1" in record["scores"] for rounds in arms.values() for record in rounds) else "recovered"
    areas = {query: area(rounds, name) for query, rounds in arms.items()}
    title = SCORE_NAMES.get(name, name)
    lines = [f"{query}: {title} {value:.3f}, mean over the rounds" for query, value in areas.items()]
    for query, rounds in arms.items():
        if query != "random" and "random" in arms and not math.isnan(sum(areas.values())):
            needed, random_needed = answers_to_match(rounds, arms["random"], name)
            if needed is None:
                lines.append(f"{query} never reached the best score of random questions ({random_needed} answers).")
                continue
            saved = _format_savings(needed, random_needed)
            lines.append(
                f"{query} reached the best score of random questions after {needed} answers; random questions needed "
                f"{random_needed}{saved}."
            )
    return lines


def _format_savings(needed: int, random_needed: int) -> str:
    if not random_needed:
        return ""
    return f" ({1 - needed / random_needed:.0%} saved)" if needed <= random_needed else " (none saved)"


_FORMER = {"from_truth": "answers_from_truth", "from_people": "answers_with_errors", "against": "make_measure"}
__getattr__ = make_getattr(__name__, _FORMER)
