"""A process that trains and asks: `python -m partly.annotate.trainer`, its plan as JSON in the first line of its input.

It waits for answers in the database, trains on what is known, says what choosing has been worth, and poses questions
of a new round, in one transaction. All that it needs is in the database, so that it may be killed at any moment: the
next one goes on from there. It ends when its input does, however whoever started it has ended. It reports on its
output, a JSON object per line: `text` (what it does), `works` (a round is done, or none is due), `failure` (why it
ends).
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.base import clone
from sqlalchemy import func
from sqlalchemy import select as choose

from partly import engine
from partly.active.strategies.diverse import scaled
from partly.annotate import stats, tables
from partly.annotate.auditing import due, filled
from partly.annotate.label_state import beside, retired
from partly.annotate.project import Plan, open_project
from partly.annotate.query_gain import LEAST, Learn, Worth, worth
from partly.annotate.question_queue import VIEWS, Desk
from partly.annotate.question_selection import (
    NONE,
    WIDER,
    Candidates,
    Wanted,
    bundles,
    candidates,
    drawn,
    early,
    joined,
    lines_of,
    mixed,
    unlike,
)
from partly.clock import Clock, seed_for
from partly.data import Dataset
from partly.engine.feature_cache import cached_features
from partly.errors import PartlyError, SettingError, listing
from partly.estimators.classifier import Classifier
from partly.items import Items
from partly.labels import Hierarchy, Labels
from partly.labels.matrix import Ternary

PAUSE = 1.0  # seconds between two looks at the database
NICE = 10  # the pages come first
DOUBTS = 20  # given labels that are listed
IN_BUNDLES = 0.3  # of the chosen questions: several about one item
SURE = 0.9  # of the contrary
FIRST = "before any model"  # in the place of a query
AGAIN = 1.25  # so many times the random answers of the last measurement, and it is made again
Say = Callable[[str], None]
Send = Callable[[Mapping[str, Any]], None]


@dataclass
class Trainer:
    plan: Plan
    opened: Dataset
    desk: Desk
    say: Say = lambda _: None
    base: Classifier = field(init=False)  # unfitted: how to train
    first: engine.FittedModel | None = None  # the model of a run that is there, which asks first

    def __post_init__(self) -> None:
        if self.plan.run is None:
            self.base = Classifier(method=self.plan.method, seed=self.plan.seed, progress=False)
        else:
            loaded = Classifier.load(self.plan.run)
            if loaded.label_names_ != self.opened.labels.names:
                names = loaded.label_names_
                raise SettingError(f"{self.plan.run}: was trained on other labels" + listing(names, len(names)))
            self.base, self.first = clone(loaded).set_params(progress=False), loaded.fitted_
        self.base.set_params(hierarchy=self.opened.hierarchy)

    @cached_property
    def items(self) -> Items:
        """The items to learn from. Features of images and texts are computed once, for every round, for the measurement
        of what choosing saves, and to tell which items are alike. The first questions do not wait for them."""
        if self.opened.items.kind != "features":
            self.say(f"Computing features of {len(self.opened.items):,} items. This happens once.")
        return self.base.precompute_features(self.opened.items)

    def due(self) -> bool:
        """Whether a round is to be made: there is none, enough was answered since, or nothing is left to ask."""
        rounds, table = tables.rounds, tables.questions
        with self.desk.ledger.store.reading() as connection:
            last = connection.execute(choose(rounds).order_by(rounds.c.id.desc()).limit(1)).first()
            answers = connection.scalar(choose(func.count()).where(table.c.state == "answered")) or 0
            left = connection.scalar(choose(func.count()).where(table.c.state == "open")) or 0
        if last is None or last.query == FIRST:
            return True
        since = answers - last.answers
        return since >= self.plan.every or (not left and since > 0)

    def begin(self) -> None:
        """Where nobody was asked yet: questions at once, so that nobody waits for the first model, random ones among
        others as ever. Where somebody was, the model of a finished run has asked already, and knows nothing of the
        answers."""
        if stats.rounds(self.desk):
            self.first = None
        elif self.first is None:
            known = coherent(self.desk.given, self.opened.hierarchy)
            rng = Clock(self.plan.seed).epoch_rng("first questions")
            random = drawn(known, max(1, round(self.plan.random * self.plan.count)), rng)
            able = drawn(known, WIDER * self.plan.count, rng, random)
            chosen = early(able, self.opened.items, self.plan.count - len(random))
            wanted = [Wanted(row, column, True) for row, column in random]
            said = {"answers": 0, "known": int(known.known_per_item().sum()), "seconds": 0.0, "query": FIRST}
            self.desk.pose(said | {"found": "{}"}, mixed(chosen, wanted, [], rng))

    def round(self) -> int:
        """Train, measure, pose; how many questions were posed."""
        started, desk = time.monotonic(), self.desk
        known = beside(desk.labels(), self.opened.labels, self.plan.data, retired(desk.ledger))
        known = coherent(known, self.opened.hierarchy)
        answers, rounds = stats.answered(desk), stats.rounds(desk)
        found: dict[str, Any] = {}
        fitted = self._fitted(known)
        if fitted is not None:
            found = {"doubts": doubts(fitted, known), "worth": self._worth(rounds)}
        self.say("Choosing questions.")
        wanted = self._wanted(fitted, known, answers, len(rounds))
        said = {
            "answers": len(answers),
            "known": int(known.known_per_item().sum()),
            "seconds": time.monotonic() - started,
            "query": self.plan.query if fitted is not None else "random",
            "found": json.dumps(found),
        }
        desk.pose(said, wanted)
        return len(wanted)

    def _fitted(self, known: Labels) -> engine.FittedModel | None:
        """The model of this round; None where nothing is known to learn from."""
        if self.first is not None:
            there, self.first = self.first, None
            return there
        if not known.known_per_item().any():
            return None
        items = self.items
        self.say(f"Training a model on {int(known.known_per_item().sum()):,} known entries.")
        model: Classifier = clone(self.base)
        fitted: engine.FittedModel = model.fit(items, known).fitted_
        return fitted

    # ---------------------------------------------------------------- what to ask

    def _wanted(self, fitted: engine.FittedModel | None, known: Labels, answers: Any, number: int) -> list[Wanted]:
        desk, plan = self.desk, self.plan
        clock = Clock(plan.seed, epoch=number)
        rng, asked = clock.epoch_rng("questions"), stats.asked_before(desk)
        again = self._again(answers, round(plan.repeat * plan.count), rng)
        shadow = round(plan.random * plan.count) if fitted is not None else plan.count - len(again)
        random = drawn(known, shadow, rng, asked)
        audits = due(filled(desk, plan.seed), stats.answers(desk, answers), round(plan.audit * plan.count))
        audits = [entry for entry in audits if entry not in random]
        rest = plan.count - len(random) - len(again) - len(audits)
        best = self._best(fitted, known, max(rest, 0), clock, asked | {*random, *audits}, answers)
        chosen = [
            Wanted(int(row), int(column), False, float(score), float(chance))
            for row, column, score, chance in zip(best.rows, best.columns, best.score, best.probability, strict=True)
        ]
        guests = [Wanted(row, column, True) for row, column in random]
        again += [Wanted(row, column, False) for row, column in audits]
        return mixed(chosen, self._foreseen(fitted, guests), self._foreseen(fitted, again), rng)

    def _best(
        self,
        fitted: engine.FittedModel | None,
        known: Labels,
        count: int,
        clock: Clock,
        asked: set[tuple[int, int]],
        answers: Any,
    ) -> Candidates:
        lines, plan = lines_of(self.opened.hierarchy, known), self.plan
        if fitted is None or count < 1:
            return NONE
        items = cached_features(fitted.prepare_items(self.items))
        takes = {view: stats.seconds(self.desk, answers, view) for view in VIEWS}
        found = candidates(
            plan.query,
            fitted.method,
            items,
            known,
            WIDER * count,
            clock,
            lines=lines,
            seconds=takes["label"],
            asked=asked,
            settings=plan.settings,
        )
        if not len(found):
            return found
        by_item = found.value * (takes["label"] / takes["item"])[found.columns]  # who looks at items has another pace
        several = bundles(replace(found, value=by_item), round(IN_BUNDLES * count), lines)
        spread = unlike(found, vectors(fitted, items, found.rows), count, lines)
        return joined(several, spread)[:count]

    def _again(self, answers: Any, count: int, rng: np.random.Generator) -> list[Wanted]:
        """Answered questions that come once more, each once: by turns to who answered, and to others where there are
        any."""
        done = {row.repeats for row in answers}
        able = [row for row in answers if row.repeats is None and row.id not in done and row.item in self.desk.rows]
        several = len({row.person for row in answers}) > 1
        picked = rng.permutation(len(able))[:count].tolist()
        return [
            Wanted(
                self.desk.rows[able[k].item],
                self.desk.columns[able[k].label],
                False,
                repeats=able[k].id,
                own=not several or place % 2 == 0,
            )
            for place, k in enumerate(picked)
        ]

    def _foreseen(self, fitted: engine.FittedModel | None, wanted: list[Wanted]) -> list[Wanted]:
        """With what the model thinks of them, before anybody has answered: it is judged by that later."""
        if fitted is None or not wanted:
            return wanted
        p = fitted.predict(self.items[np.array([one.row for one in wanted])])
        return [
            Wanted(one.row, one.column, one.random, None, float(p[i, one.column]), one.repeats, one.own)
            for i, one in enumerate(wanted)
        ]

    # ---------------------------------------------------------------- what it was worth

    def _worth(self, rounds: list[dict[str, Any]]) -> dict[str, Any]:
        """Measured anew when a quarter more random answers are there; else what was found last."""
        random, chosen = stats.arm(self.desk, True), stats.arm(self.desk, False)
        before = [one["found"]["worth"] for one in rounds if one["found"].get("worth")]
        if before and len(random) < AGAIN * max(before[-1]["random"], LEAST - 1):
            return dict(before[-1])
        if len(random) < LEAST:
            return Worth(len(random), len(chosen)).plain()
        self.say("Measuring what choosing questions saves.")
        return worth(
            self.desk.given, random, chosen, self._learn, seed_for(self.plan.seed, "worth", len(random))
        ).plain()

    @property
    def _learn(self) -> Learn:
        """A plain linear model, which is solved in no time: all are judged by the same."""
        items, hierarchy = self.items, self.opened.hierarchy
        frozen = None if items.kind == "features" else {"freeze": "all"}
        judge = Classifier("bce", "linear", seed=self.plan.seed, progress=False, backbone_settings=frozen)

        def learn(labels: Labels) -> Callable[[npt.NDArray[np.int64]], npt.NDArray[Any]]:
            labels = coherent(labels, hierarchy)
            told = np.flatnonzero(labels.known_per_item())
            if not len(told):
                return lambda rows: np.full((len(rows), labels.shape[1]), 0.5)
            model = clone(judge).fit(items[told], labels[told])
            return lambda rows: model.predict_proba(items[rows])

        return learn


def coherent(labels: Labels, hierarchy: Hierarchy | None) -> Labels:
    """With what follows from the hierarchy. Where people contradict each other over it, a yes below a no, neither is
    learned from."""
    if hierarchy is None:
        return labels
    lines = hierarchy.lines(labels.names)

    def rule(z: Ternary, _: slice) -> Ternary:
        kept = z.copy()
        for below, above in lines:
            torn = (z[:, below] == 1) & (z[:, above] == -1)
            kept[torn, below] = kept[torn, above] = 0
        return kept

    return hierarchy.deduce(labels.mapped(rule))


def vectors(fitted: engine.FittedModel, items: Items, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Where items lie, for telling which are alike: their features, each at its scale; of others what the model makes
    of them, the probabilities of all labels."""
    if items.kind == "features":
        return scaled(items, rows)
    at, back = np.unique(rows, return_inverse=True)
    return fitted.predict(items[at]).astype(np.float64)[back]


def doubts(fitted: engine.FittedModel, known: Labels) -> list[dict[str, Any]]:
    """Known entries of whose contrary a model is sure that has not seen the item, the surest first."""
    if fitted.out_of_fold is None or fitted.out_of_fold.shape != known.shape:
        return []
    row, column, value = known.entries()
    p = expit(np.asarray(fitted.out_of_fold, np.float64)[row, column])
    chance = np.where(value == 1, p, 1 - p)
    worst = np.argsort(chance, kind="stable")[:DOUBTS]
    return [
        {"item": known.id_at(int(row[k])), "label": known.names[column[k]], "given": "yes" if value[k] == 1 else "no"}
        | {"chance": float(chance[k])}
        for k in worst
        if chance[k] < 1 - SURE
    ]


def main() -> None:
    """Train and ask until the input ends."""
    os.nice(NICE)
    plan = Plan(**json.loads(sys.stdin.buffer.readline()))
    send = _sender(sys.stdout.fileno())
    os.dup2(2, 1)  # so that what a library prints is not taken for a message of ours
    try:
        _work(plan, send)
    except BrokenPipeError:
        pass  # the process that started this one has ended
    except Exception as error:
        traceback.print_exc()
        with suppress(BrokenPipeError):
            send({"failure": failure(error)})
        sys.exit(2)


def _work(plan: Plan, send: Send) -> None:
    opened, desk = open_project(plan)
    trainer = Trainer(plan, opened, desk, lambda text: send({"text": text}))
    trainer.begin()
    while not _ended(PAUSE):
        text = "The trainer waits for answers."
        if trainer.due():
            count = trainer.round()
            text = f"A model has chosen {count} new questions." if count else "No questions are left."
        send({"text": text, "works": True})


def failure(error: Exception) -> str:
    """Say what went wrong and what to do, for the dashboard of admins."""
    if isinstance(error, PartlyError):
        return f"{error}\nCorrect this, or restart partly annotate with other options."
    if isinstance(error, MemoryError):
        return "Memory ran out. Free memory, or restart with a smaller method: partly annotate --method partial-bce."
    return (
        f"{type(error).__name__}: {error}\nThe console of partly annotate shows the traceback. Restart with another "
        "method to go on: partly annotate --method partial-bce."
    )


def _sender(out: int) -> Send:
    lines = open(os.dup(out), "w", buffering=1)  # noqa: SIM115, for as long as the process lives
    return lambda message: print(json.dumps(message), file=lines)


def _ended(seconds: float) -> bool:
    """Whether the input has ended, after waiting so long."""
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return bool(ready) and not os.read(sys.stdin.fileno(), 1)


if __name__ == "__main__":
    main()
