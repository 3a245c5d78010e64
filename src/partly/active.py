"""Train, ask, answer, train on: a loop that survives a kill in any round and goes on with the same questions.

Paper: C.-Y. Hsieh, W.-I. Lin, M. Xu, G. Niu, H.-T. Lin, M. Sugiyama. Active Refinement for Multi-Label Learning: A
Pseudo-Label Approach. arXiv 2109.14676, 2021. Algorithm 2 and section 4.2.

The folder of a loop is a run folder, whose model is that of the last round, with three small files a round more, each
with its checksum: `round-000.json` (what is known and how good the model is), `questions-000.json` and
`answers-000.json`. A file is written when its step is done, so the files that are there say what to do next.

Differs: a model that trains on keeps its pseudo-labels, where the paper begins them anew in every round.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from partly import checkpoint, run, training
from partly.clock import Clock, seed_for
from partly.data.answers import Answers, read_answers, write_questions
from partly.errors import CheckpointError, LabelError, SettingError, listing
from partly.estimator import Classifier
from partly.hierarchy import Hierarchy
from partly.labels import Labels
from partly.queries import Questions, choose, find
from partly.run import Recipe

Round = dict[str, Any]
Measure = Callable[[Classifier, Labels], dict[str, float]]  # of the model of a round and what is known in it
Said = Sequence[bool | None] | npt.NDArray[np.bool_]  # True yes, False no, None: nobody knows


@dataclass(frozen=True)
class Plan:
    """How to ask: all that decides the questions, beside the recipe and the data."""

    query: str = "look-ahead"
    questions: int = 100  # a round
    epochs: int = 1  # of a round that trains on
    restart: int = 10  # every so many rounds the model starts anew, with all the epochs of the recipe; 0: never
    last_child: bool = False  # see Hierarchy.deduce
    settings: dict[str, Any] = field(default_factory=dict)  # of the query

    def __post_init__(self) -> None:
        entry = find(self.query)
        # Spelled out, as they are written down: asking with another default is another loop.
        object.__setattr__(self, "settings", entry.defaults() | entry.checked(self.settings))
        for name, least in (("questions", 1), ("epochs", 1), ("restart", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise SettingError(f"{name} = {value!r} must be a whole number, {least} or more.")


class Loop:
    """Rounds of questions about the unknown entries of Y.

    model: an unfitted `Classifier`, which says how to train; after `train` it is the model of the round.
    measure: what to note of each round's model; it may know a truth that the loop does not.
    """

    def __init__(
        self,
        model: Classifier,
        X: Any,
        Y: Any,
        folder: str | Path,
        plan: Plan | None = None,
        *,
        hierarchy: Hierarchy | None = None,
        measure: Measure | None = None,
    ) -> None:
        self.model, self.folder, self.plan = model, Path(folder), plan or Plan()
        self.hierarchy, self.measure = hierarchy, measure
        self.x, given, self.recipe = model.prepare(X, Y)
        description = run.describe(self.recipe, self.x, given, None, getattr(model, "feature_names_in_", None))
        parents = None if hierarchy is None else dict(hierarchy.parents)
        with checkpoint.locked(self.folder):
            run.claim(self.folder, description | {"asks": asdict(self.plan) | {"hierarchy": parents}})
        self.labels = self._deduced(given)  # what is known by now
        self.given = int(self.labels.known_per_item().sum())  # entries known at first
        self.round, self.answered = 0, 0
        self._before: list[Questions] = []
        while self._file("answers").exists():
            self._end_round(*self._told(checkpoint.read_sealed(self._file("answers"))["answers"]))

    # ---------------------------------------------------------------- the steps of a round

    def train(self) -> Classifier:
        """The model of this round, trained on all that is known by now."""
        here, record = self.folder / f"model-{self.round:03d}", self._file("round")
        if record.exists():
            return self.model.take(run.load(here))
        self.model.fit_prepared(self._recipe(), self.x, self.labels, here, start=self._start())
        scores = {} if self.measure is None else self.measure(self.model, self.labels)
        known = int(self.labels.known_per_item().sum())
        found = {
            "round": self.round,
            "answers": self.answered,
            "implied": known - self.given - self.answered,
            "known": known,
            "scores": {name: None if value != value else value for name, value in scores.items()},
        }
        with checkpoint.locked(self.folder):
            fitted = self.model.fitted_
            training.save(self.folder, fitted.method, Clock(self.recipe.seed), fitted.progress)
            checkpoint.write_sealed(record, found)
        for old in self.folder.glob("model-*"):  # only this round would have started from it; a kill may leave more
            if old != here:
                shutil.rmtree(old, ignore_errors=True)
        return self.model

    def ask(self) -> Questions:
        """The questions of this round; none where nothing is left to ask."""
        path = self._file("questions")
        if not path.exists():
            method = self.train().fitted_.method
            found = choose(
                self.plan.query,
                method,
                self.x,
                self.labels,
                self.plan.questions,
                Clock(self.recipe.seed, epoch=self.round),
                hierarchy=self.hierarchy,
                last_child=self.plan.last_child,
                asked=self._before,
                settings=self.plan.settings,
            )
            plain = {"rows": found.rows, "columns": found.columns, **found.scores}
            with checkpoint.locked(self.folder):
                checkpoint.write_sealed(path, {name: part.tolist() for name, part in plain.items()})
        return self._questions()

    def answer(self, said: Said) -> None:
        """Answers to the questions of this round, in their order: True yes, False no, None where nobody knows."""
        if not self._file("questions").exists():
            raise CheckpointError(f"{self.folder}: nothing was asked in round {self.round} yet. Ask first.")
        path, asked = self._file("answers"), len(self._questions())
        strange = [repr(one) for one in said if one not in (True, False, None)]
        if len(said) != asked or strange:
            raise LabelError(
                f"{asked} questions need as many answers, each True, False or None; got {len(said)}"
                + (listing(strange, len(strange)) if strange else ".")
            )
        plain = [None if one is None else bool(one) for one in said]
        told = self._told(plain)  # refuses contradictions before anything is written
        with checkpoint.locked(self.folder):
            if path.exists():
                raise CheckpointError(f"{path}: round {self.round} was answered meanwhile. Open the folder again.")
            checkpoint.write_sealed(path, {"answers": plain})
        self._end_round(*told)

    def run(self, answer: Callable[[Questions], Said], rounds: int) -> list[Round]:
        """Ask and be answered until so many rounds are over, and train on the last answers."""
        while self.round < rounds and len(questions := self.ask()):
            self.answer(answer(questions))
        self.train()
        return self.rounds()

    def rounds(self) -> list[Round]:
        """What is noted of every round whose model is trained: round 0 had no answers yet."""
        paths = (self._file("round", number) for number in range(self.round + 1))
        return [checkpoint.read_sealed(path) for path in paths if path.exists()]

    # ---------------------------------------------------------------- questions and answers in files

    def write(self, path: str | Path) -> int:
        """Write the questions of this round for people to answer; how many there are."""
        questions = self.ask()
        write_questions(path, self.labels, questions.rows, questions.columns, questions.scores)
        return len(questions)

    def read(self, path: str | Path) -> int:
        """Take the answers from a file that `write` made; how many there are. What is blank stays unknown."""
        questions = self.ask()
        answers = read_answers(path, self.labels, self.hierarchy, (questions.rows, questions.columns))
        said = {(row, column): z == 1 for row, column, z in zip(answers.rows, answers.columns, answers.z, strict=True)}
        self.answer([said.get(entry) for entry in zip(questions.rows, questions.columns, strict=True)])
        return len(said)

    # ---------------------------------------------------------------- inside

    def _file(self, what: str, number: int | None = None) -> Path:
        return self.folder / f"{what}-{self.round if number is None else number:03d}.json"

    def _questions(self) -> Questions:
        record = checkpoint.read_sealed(self._file("questions"))
        rows, columns = (np.array(record.pop(name), np.int64) for name in ("rows", "columns"))
        return Questions(rows, columns, {name: np.array(part) for name, part in record.items()})

    def _told(self, answers: Sequence[bool | None]) -> tuple[Questions, Labels, int]:
        """The questions of this round, what is known after these answers, and how many were answered."""
        questions = self._questions()
        z = np.array([0 if one is None else 1 if one else -1 for one in answers], np.int8)
        said = np.flatnonzero(z)
        after = Answers(questions.rows[said], questions.columns[said], z[said]).told(self.labels)
        return questions, self._deduced(after), len(said)

    def _end_round(self, questions: Questions, labels: Labels, answered: int) -> None:
        self._before.append(questions)
        self.labels, self.answered, self.round = labels, self.answered + answered, self.round + 1

    def _deduced(self, labels: Labels) -> Labels:
        return labels if self.hierarchy is None else self.hierarchy.deduce(labels, self.plan.last_child)

    @property
    def _fresh(self) -> bool:
        """Whether the model of this round starts anew."""
        return self.round == 0 or (self.plan.restart > 0 and self.round % self.plan.restart == 0)

    def _recipe(self) -> Recipe:
        seed = seed_for(self.recipe.seed, "round", self.round) if self.round else self.recipe.seed
        return replace(self.recipe, seed=seed, epochs=self.recipe.epochs if self._fresh else self.plan.epochs)

    def _start(self) -> dict[str, Tensor] | None:
        before = self.folder / f"model-{self.round - 1:03d}"
        return None if self._fresh else run.load(before).method.state_dict()
