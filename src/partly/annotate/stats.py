"""Statistics of a project: answers, pace, agreement, and the quality of its models."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import Row, select

from partly.annotate import tables
from partly.annotate.label_state import Answer
from partly.annotate.query_gain import AnswerSeries
from partly.annotate.question_queue import TERNARY, VIEWS, QuestionQueue, View

PRIOR_ANSWERS = 5.0  # pseudo-answers of each label at the usual pace
DEFAULT_SECONDS = 4.0  # per answer, before anybody has answered
MIN_SECONDS = 0.1
MIN_PROBABILITY = 1e-3  # in a log loss, so that one confident mistake does not dominate


def read_snapshot(queue: QuestionQueue) -> Snapshot:
    """Read the questions and rounds of a project in one transaction."""
    questions, rounds = tables.questions, tables.rounds
    asked = select(questions).where(questions.c.state != "withdrawn")
    with queue.ledger.store.reading() as connection:
        return Snapshot(
            queue,
            connection.execute(asked.order_by(questions.c.answered, questions.c.id)).all(),
            connection.execute(select(rounds).order_by(rounds.c.id)).all(),
        )


@dataclass(frozen=True)
class Snapshot:
    """Questions that are not withdrawn, in the order of their answers, and rounds."""

    queue: QuestionQueue
    questions: Sequence[Row[Any]]
    round_rows: Sequence[Row[Any]]

    @cached_property
    def answers(self) -> list[Row[Any]]:
        return [row for row in self.questions if row.state == "answered"]

    @cached_property
    def entries(self) -> list[Answer]:
        """Answers as (row, column, z), the latest of each entry last; z is 0 for "cannot tell"."""
        return self._entries(self.answers)

    def _entries(self, rows: Sequence[Row[Any]]) -> list[Answer]:
        positions = self.queue.rows, self.queue.columns
        return [
            (positions[0][row.item], positions[1][row.label], TERNARY[row.value])
            for row in rows
            if row.item in positions[0] and row.label in positions[1]
        ]

    def answer_series(self, random: bool) -> AnswerSeries:
        """Return the yes and no answers to random, or to selected, questions, without repeats and audits.

        Audits have no score. Random questions that another answer settled are included: without them the sample
        would consist of hard questions.
        """
        states = ("answered", "settled") if random else ("answered",)
        rows = [
            row
            for row in self.questions
            if row.random is random
            and row.repeats is None
            and row.state in states
            and (random or row.score is not None)
        ]
        entries = np.array([entry for entry in self._entries(rows) if entry[2]], np.int64).reshape(-1, 3)
        return AnswerSeries(entries[:, 0], entries[:, 1], entries[:, 2].astype(np.int8))

    def list_asked_entries(self) -> set[tuple[int, int]]:
        """Return entries that are not posed again: answered, settled, or random and open."""
        rows, columns = self.queue.rows, self.queue.columns
        return {
            (rows[row.item], columns[row.label])
            for row in self.questions
            if (row.state != "open" or row.random) and row.item in rows and row.label in columns
        }

    # ---------------------------------------------------------------- pace

    def seconds_per_answer(self, view: View) -> npt.NDArray[np.float64]:
        """Return the mean seconds per answer of each label [L], shrunk to the mean of the view."""
        columns = self.queue.columns
        timed = [row for row in self.answers if row.seconds and row.label in columns]
        in_view = [row for row in timed if row.view == view]
        totals, counts = np.zeros(len(columns)), np.zeros(len(columns))
        for row in in_view:
            totals[columns[row.label]] += row.seconds
            counts[columns[row.label]] += 1
        usual = float(np.mean([row.seconds for row in in_view or timed] or [DEFAULT_SECONDS]))
        return np.maximum((totals + PRIOR_ANSWERS * usual) / (counts + PRIOR_ANSWERS), MIN_SECONDS)

    def mean_seconds(self) -> float:
        return float(np.mean([row.seconds for row in self.answers if row.seconds] or [DEFAULT_SECONDS]))

    def mean_seconds_by_view(self) -> dict[str, float]:
        times = {view: [row.seconds for row in self.answers if row.view == view and row.seconds] for view in VIEWS}
        return {view: float(np.mean(seconds)) for view, seconds in times.items() if seconds}

    # ---------------------------------------------------------------- agreement and models

    def agreement(self) -> dict[str, dict[str, Any]]:
        """Return how often a repeated question got the same answer, from the same person and from two people."""
        value_of = {row.id: row.value for row in self.answers}
        pairs: dict[bool, list[tuple[str, str]]] = {True: [], False: []}
        for row in self.answers:
            if row.repeats in value_of and row.purpose != "decision":
                pairs[bool(row.own)].append((row.value, value_of[row.repeats]))
        return {"within": count_agreement(pairs[True]), "between": count_agreement(pairs[False])}

    @cached_property
    def rounds(self) -> list[dict[str, Any]]:
        """Return every round with the log loss of its model on random questions that were answered after it."""
        losses: dict[int, list[float]] = {}
        for row in self.answers:
            if row.random and row.probability is not None and TERNARY[row.value]:
                p = min(max(row.probability, MIN_PROBABILITY), 1 - MIN_PROBABILITY)
                losses.setdefault(row.round, []).append(-math.log(p if row.value == "yes" else 1 - p))
        return [
            {"round": row.id, "answers": row.answers, "known": row.known, "seconds": row.seconds, "query": row.query}
            | {"judged": len(losses.get(row.id, ())), "found": json.loads(row.found)}
            | {"loss": float(np.mean(losses[row.id])) if row.id in losses else None}
            for row in self.round_rows
        ]


def count_agreement(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the number of pairs, of equal pairs, and Cohen's kappa; None where kappa is undefined."""
    if not pairs:
        return {"pairs": 0, "same": 0, "kappa": None}
    total, same = len(pairs), sum(first == second for first, second in pairs)
    first, second = (Counter(side) for side in zip(*pairs, strict=True))
    chance = sum(first[value] * second[value] for value in TERNARY) / total**2
    return {"pairs": total, "same": same, "kappa": None if chance == 1 else (same / total - chance) / (1 - chance)}
