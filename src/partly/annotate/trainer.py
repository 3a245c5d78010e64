"""The trainer process: `python -m partly.annotate.trainer`, with its configuration as JSON in the first input line.

It waits for answers in the database, trains a model, measures the gain of question selection, and poses the questions
of a new round in one transaction. All of its state is in the database, so it may be killed at any moment. It ends when
its input is closed. It reports on its output, one JSON object per line: `text` (current activity), `works` (a round is
done, or none is due), `failure` (why it ends).
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.base import clone
from sqlalchemy import func
from sqlalchemy import select as sql_select

from partly import engine
from partly.active.strategies.diverse import scale_features
from partly.annotate import question_selection as selection
from partly.annotate import tables
from partly.annotate.auditing import next_audits, read_model_batches
from partly.annotate.label_state import align, find_hidden_labels
from partly.annotate.project import ProjectConfig, open_project
from partly.annotate.query_gain import MIN_RANDOM_ANSWERS, Learn, QueryGain, measure_gain
from partly.annotate.question_queue import VIEWS, QuestionQueue
from partly.annotate.question_selection import Candidates, Entry, QuestionDraft
from partly.annotate.stats import Snapshot, read_snapshot
from partly.clock import Clock, seed_for
from partly.data import Dataset
from partly.engine.feature_cache import cached_features
from partly.errors import PartlyError, SettingError, listing
from partly.estimators.classifier import Classifier
from partly.items import Items
from partly.labels import Hierarchy, Labels
from partly.labels.matrix import Ternary

POLL_SECONDS = 1.0  # between two looks at the database
NICENESS = 10  # the pages come first
MAX_SUSPECTS = 20  # known labels that a model contradicts
SUSPECT_CONFIDENCE = 0.9  # probability of the opposite answer
BUNDLED_SHARE = 0.3  # of the selected questions: several about one item
VOCABULARY = "vocabulary"  # version of the labels that a round asks about, stored with its findings
BEFORE_MODEL = "before any model"  # stored instead of a query name
REMEASURE_FACTOR = 1.25  # measure the gain again after this many times the random answers
Say = Callable[[str], None]
Send = Callable[[Mapping[str, Any]], None]


@dataclass
class Trainer:
    config: ProjectConfig
    dataset: Dataset
    queue: QuestionQueue
    say: Say = lambda _: None
    estimator: Classifier = field(init=False)  # not fitted
    first_model: engine.FittedModel | None = None  # of a finished run; selects the first questions

    def __post_init__(self) -> None:
        if self.config.run is None:
            self.estimator = Classifier(method=self.config.method, seed=self.config.seed, progress=False)
        else:
            loaded = Classifier.load(self.config.run)
            names = loaded.label_names_
            if not set(names) <= {*self.dataset.labels.names, *find_hidden_labels(self.queue.ledger)}:
                raise SettingError(f"{self.config.run}: was trained on other labels" + listing(names, len(names)))
            self.estimator = clone(loaded).set_params(progress=False)
            if names == self.dataset.labels.names:  # else labels were added to the ledger since
                self.first_model = loaded.fitted_
        self.estimator.set_params(hierarchy=self.dataset.hierarchy)

    @cached_property
    def items(self) -> Items:
        """Items to train on. Features of images and texts are computed once; the first questions do not need them."""
        if self.dataset.items.kind != "features":
            self.say(f"Computing features of {len(self.dataset.items):,} items. This happens once.")
        return self.estimator.precompute_features(self.dataset.items)

    def is_round_due(self) -> bool:
        """Tell whether there is no round yet, labels were added, enough new answers have come, or no question is left.

        Where nothing was known before the first questions, their answers come first.
        """
        rounds, questions = tables.rounds, tables.questions

        def count(state: str) -> Any:
            return sql_select(func.count()).where(questions.c.state == state)

        with self.queue.ledger.store.reading() as connection:
            last = connection.execute(sql_select(rounds).order_by(rounds.c.id.desc()).limit(1)).first()
            answers, left = (connection.scalar(count(state)) or 0 for state in ("answered", "open"))
        if last is None or (last.query == BEFORE_MODEL and last.known):
            return True
        version = self.queue.ledger.vocabulary().version
        if json.loads(last.found).get(VOCABULARY, version) != version:
            return True
        new = answers - last.answers
        return bool(new >= self.config.every or (not left and new > 0))

    def pose_first_questions(self) -> None:
        """Pose questions before there is a model, so that people can start at once.

        A finished run selects the first questions itself. It is not used again after answers have come.
        """
        if read_snapshot(self.queue).round_rows:
            self.first_model = None
        elif self.first_model is None:
            known = drop_contradictions(self.queue.given, self.dataset.hierarchy)
            self._pose_before_model(known, Clock(self.config.seed), answers=0)

    def _pose_before_model(self, known: Labels, clock: Clock, answers: int, asked: Collection[Entry] = ()) -> int:
        """Pose questions by teachers, else about diverse items; return their number."""
        rng, count = clock.epoch_rng("first questions"), self.config.count
        random = selection.sample_unknown(known, max(1, round(self.config.random * count)), rng, asked)
        pool = selection.sample_unknown(known, selection.POOL_FACTOR * count, rng, {*asked, *random})
        taught = self._teacher_probabilities(pool, known)
        selected = selection.cold_start(pool, self.dataset.items, count - len(random), taught)
        drafts = selection.interleave(selected, _random_drafts(random), [], rng)
        self._pose(drafts, known, answers=answers, seconds=0.0, query=BEFORE_MODEL, findings={})
        return len(drafts)

    def _add_new_labels(self) -> None:
        """Take up the labels that were added to the ledger. The model of a finished run does not know them."""
        before, queue = self.queue.given.names, self.queue
        queue.add_new_labels()
        if queue.given.names != before:
            self.dataset, self.first_model = replace(self.dataset, labels=queue.given, hierarchy=queue.hierarchy), None
            self.estimator.set_params(hierarchy=queue.hierarchy)

    def _teacher_probabilities(self, entries: Sequence[tuple[int, int]], known: Labels) -> npt.NDArray[Any] | None:
        """Return probabilities of entries by label names; None where names cannot be compared with these items."""
        rows, columns = np.array(entries, np.int64).reshape(-1, 2).T
        chosen, position = np.unique(rows, return_inverse=True)
        config = engine.TrainConfig.from_params(self.estimator.get_params())
        probabilities = engine.zero_shot(config, self.dataset.items[chosen], known[chosen])
        return None if probabilities is None else probabilities[position, columns].astype(np.float64)

    def run_round(self) -> int:
        """Train, measure and pose; return the number of questions."""
        started, queue = time.monotonic(), self.queue
        self._add_new_labels()
        labels = align(queue.labels(), self.dataset.labels, self.config.data, find_hidden_labels(queue.ledger))
        known = drop_contradictions(labels, self.dataset.hierarchy)
        snapshot = read_snapshot(queue)
        fitted = self._fit(known)
        if fitted is None:
            clock = Clock(self.config.seed, epoch=len(snapshot.round_rows))
            return self._pose_before_model(known, clock, len(snapshot.answers), snapshot.list_asked_entries())
        measured = {"doubts": suspect_labels(fitted, known), "worth": self._measure_gain(snapshot)}
        self.say("Selecting questions.")
        drafts = self._select(fitted, known, snapshot)
        seconds, query = time.monotonic() - started, self.config.query
        self._pose(drafts, known, answers=len(snapshot.answers), seconds=seconds, query=query, findings=measured)
        return len(drafts)

    def _pose(self, drafts: list[QuestionDraft], known: Labels, *, findings: dict[str, Any], **values: Any) -> None:
        findings = findings | {VOCABULARY: self.queue.ledger.vocabulary().version}
        values |= {"known": int(known.known_per_item().sum()), "found": json.dumps(findings)}
        self.queue.pose(values, drafts)

    def _fit(self, known: Labels) -> engine.FittedModel | None:
        """Return the model of this round; None if nothing is known."""
        if self.first_model is not None:
            model, self.first_model = self.first_model, None
            return model
        if not known.known_per_item().any():
            return None
        items = self.items
        self.say(f"Training a model on {int(known.known_per_item().sum()):,} known entries.")
        estimator: Classifier = clone(self.estimator)
        fitted: engine.FittedModel = estimator.fit(items, known).fitted_
        return fitted

    # ---------------------------------------------------------------- questions

    def _select(self, fitted: engine.FittedModel, known: Labels, snapshot: Snapshot) -> list[QuestionDraft]:
        config, clock = self.config, Clock(self.config.seed, epoch=len(snapshot.round_rows))
        rng, asked = clock.epoch_rng("questions"), snapshot.list_asked_entries()
        repeated = self._repeat(snapshot, round(config.repeat * config.count), rng)
        random = selection.sample_unknown(known, round(config.random * config.count), rng, asked)
        batches = read_model_batches(self.queue, config.seed)
        audits = next_audits(batches, snapshot.entries, round(config.audit * config.count))
        audits = [entry for entry in audits if entry not in random]
        rest = config.count - len(random) - len(repeated) - len(audits)
        best = self._select_best(fitted, known, max(rest, 0), clock, asked | {*random, *audits}, snapshot)
        selected = [
            QuestionDraft(int(row), int(column), False, float(score), float(probability))
            for row, column, score, probability in zip(
                best.rows, best.columns, best.score, best.probability, strict=True
            )
        ]
        repeated += [QuestionDraft(row, column, False) for row, column in audits]
        random_drafts = self._with_predictions(fitted, _random_drafts(random))
        return selection.interleave(selected, random_drafts, self._with_predictions(fitted, repeated), rng)

    def _select_best(
        self,
        fitted: engine.FittedModel,
        known: Labels,
        count: int,
        clock: Clock,
        asked: set[tuple[int, int]],
        snapshot: Snapshot,
    ) -> Candidates:
        config, hierarchy = self.config, self.dataset.hierarchy
        ancestors = [] if hierarchy is None else hierarchy.lines(known.names)
        if count < 1:
            return selection.NO_CANDIDATES
        items = cached_features(fitted.prepare_items(self.items))
        seconds = {view: snapshot.seconds_per_answer(view) for view in VIEWS}
        candidates = selection.select_candidates(
            config.query,
            fitted.method,
            items,
            known,
            selection.POOL_FACTOR * count,
            clock,
            ancestors=ancestors,
            seconds=seconds["label"],
            asked=asked,
            settings=config.settings,
            combine=fitted.taught_by(ids=known.given_ids).combiner(items),
        )
        if not len(candidates):
            return candidates
        item_value = candidates.value * (seconds["label"] / seconds["item"])[candidates.columns]
        by_item = replace(candidates, value=item_value)
        bundles = selection.bundle_by_item(by_item, round(BUNDLED_SHARE * count), ancestors)
        diverse = selection.diversify(candidates, vectors(fitted, items, candidates.rows), count, ancestors)
        return selection.concatenate(bundles, diverse)[:count]

    def _repeat(self, snapshot: Snapshot, count: int, rng: np.random.Generator) -> list[QuestionDraft]:
        """Ask answered questions once more, in turn to the same person and, if there are several, to another."""
        answers, rows, columns = snapshot.answers, self.queue.rows, self.queue.columns
        done = {row.repeats for row in answers}
        repeatable = [row for row in answers if row.repeats is None and row.id not in done and row.item in rows]
        several = len({row.person for row in answers}) > 1
        drafts = []
        for position, k in enumerate(rng.permutation(len(repeatable))[:count].tolist()):
            row, own = repeatable[k], not several or position % 2 == 0
            drafts.append(QuestionDraft(rows[row.item], columns[row.label], False, repeats=row.id, own=own))
        return drafts

    def _with_predictions(self, fitted: engine.FittedModel, drafts: list[QuestionDraft]) -> list[QuestionDraft]:
        """Add the model's predictions, to score it after the answers."""
        if not drafts:
            return drafts
        p = fitted.predict(self.items[np.array([draft.row for draft in drafts])])
        return [replace(draft, probability=float(p[i, draft.column])) for i, draft in enumerate(drafts)]

    # ---------------------------------------------------------------- gain of selection

    def _measure_gain(self, snapshot: Snapshot) -> dict[str, Any]:
        """Measure the gain when a quarter more random answers have come; else return the last measurement."""
        random, selected = (snapshot.answer_series(random=is_random) for is_random in (True, False))
        measured = [row["found"]["worth"] for row in snapshot.rounds if row["found"].get("worth")]
        if measured and len(random) < REMEASURE_FACTOR * max(measured[-1]["random"], MIN_RANDOM_ANSWERS - 1):
            return dict(measured[-1])
        if len(random) < MIN_RANDOM_ANSWERS:
            return QueryGain(len(random), len(selected)).plain()
        self.say("Measuring what question selection saves.")
        seed = seed_for(self.config.seed, "worth", len(random))
        return measure_gain(self.queue.given, random, selected, self._learn, seed).plain()

    @property
    def _learn(self) -> Learn:
        """A linear model, which trains fast: it judges all answers alike."""
        items, hierarchy = self.items, self.dataset.hierarchy
        frozen = None if items.kind == "features" else {"freeze": "all"}
        linear = Classifier("bce", "linear", seed=self.config.seed, progress=False, backbone_settings=frozen)

        def learn(labels: Labels) -> Callable[[npt.NDArray[np.int64]], npt.NDArray[Any]]:
            labels = drop_contradictions(labels, hierarchy)
            known_rows = np.flatnonzero(labels.known_per_item())
            if not len(known_rows):
                return lambda rows: np.full((len(rows), labels.shape[1]), 0.5)
            model = clone(linear).fit(items[known_rows], labels[known_rows])
            return lambda rows: model.predict_proba(items[rows])

        return learn


def _random_drafts(entries: list[tuple[int, int]]) -> list[QuestionDraft]:
    return [QuestionDraft(row, column, True) for row, column in entries]


def drop_contradictions(labels: Labels, hierarchy: Hierarchy | None) -> Labels:
    """Apply the hierarchy; a yes below a no, by different people, becomes unknown on both sides."""
    if hierarchy is None:
        return labels
    ancestors = hierarchy.lines(labels.names)

    def rule(z: Ternary, _: slice) -> Ternary:
        consistent = z.copy()
        for child, ancestor in ancestors:
            conflicting = (z[:, child] == 1) & (z[:, ancestor] == -1)
            consistent[conflicting, child] = consistent[conflicting, ancestor] = 0
        return consistent

    return hierarchy.deduce(labels.mapped(rule))


def vectors(fitted: engine.FittedModel, items: Items, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return a vector per row to measure diversity: scaled features, or predicted probabilities of all labels."""
    if items.kind == "features":
        return scale_features(items, rows)
    unique, inverse = np.unique(rows, return_inverse=True)
    return fitted.predict(items[unique]).astype(np.float64)[inverse]


def suspect_labels(fitted: engine.FittedModel, known: Labels) -> list[dict[str, Any]]:
    """Return known entries that out-of-fold predictions contradict, the most confident first."""
    if fitted.out_of_fold is None or fitted.out_of_fold.shape != known.shape:
        return []
    row, column, value = known.entries()
    p = expit(np.asarray(fitted.out_of_fold, np.float64)[row, column])
    probability = np.where(value == 1, p, 1 - p)
    worst = np.argsort(probability, kind="stable")[:MAX_SUSPECTS]
    return [
        {"item": known.id_at(int(row[k])), "label": known.names[column[k]], "given": "yes" if value[k] == 1 else "no"}
        | {"chance": float(probability[k])}
        for k in worst
        if probability[k] < 1 - SUSPECT_CONFIDENCE
    ]


# ---------------------------------------------------------------- the process


def main() -> None:
    """Train and pose questions until the input is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C stops the server, which closes our input
    os.nice(NICENESS)
    config = ProjectConfig(**json.loads(sys.stdin.buffer.readline()))
    send = _make_sender(sys.stdout.fileno())
    os.dup2(2, 1)  # output of libraries must not mix with our messages
    try:
        _run(config, send)
    except BrokenPipeError:
        pass  # the server has ended
    except Exception as error:
        traceback.print_exc()
        with suppress(BrokenPipeError):
            send({"failure": describe_failure(error)})
        sys.exit(2)


def _run(config: ProjectConfig, send: Send) -> None:
    trainer = Trainer(config, *open_project(config), say=lambda text: send({"text": text}))
    trainer.pose_first_questions()
    while not _input_closed(POLL_SECONDS):
        text = "The trainer waits for answers."
        if trainer.is_round_due():
            count = trainer.run_round()
            text = f"A model has selected {count} new questions." if count else "No questions are left."
        send({"text": text, "works": True})


def describe_failure(error: Exception) -> str:
    """Return what went wrong and what to do, for the overview of admins."""
    if isinstance(error, PartlyError):
        return f"{error}\nCorrect this, or restart partly annotate with other options."
    if isinstance(error, MemoryError):
        return "Memory ran out. Free memory, or restart with a smaller method: partly annotate --method partial-bce."
    return (
        f"{type(error).__name__}: {error}\nThe console of partly annotate shows the traceback. Restart with another "
        "method to go on: partly annotate --method partial-bce."
    )


def _make_sender(descriptor: int) -> Send:
    lines = open(os.dup(descriptor), "w", buffering=1)  # noqa: SIM115, open for the life of the process
    return lambda message: print(json.dumps(message), file=lines)


def _input_closed(seconds: float) -> bool:
    """Wait for up to so many seconds; tell whether the input is closed."""
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    return bool(ready) and not os.read(sys.stdin.fileno(), 1)


if __name__ == "__main__":
    main()
