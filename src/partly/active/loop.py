"""Rounds of train, ask, answer that survive a crash and continue with the same questions.

Reference
    C.-Y. Hsieh, W.-I. Lin, M. Xu, G. Niu, H.-T. Lin, M. Sugiyama. Active Refinement for Multi-Label Learning: A
    Pseudo-Label Approach. arXiv 2109.14676, 2021. Algorithm 2 and section 4.2.

Files
    The folder of a loop is a run folder with the model of the last round, and four checksummed files per round:
    `known-001.json` (entries asked and learned before the round), `round-000.json` (scores of its model),
    `questions-000.json` and `answers-000.json`. A file is written when its step is done, so the existing files tell
    the next step, and the newest `known` file tells the round.

Differences from the paper
    A model that continues training keeps its pseudo-labels; the paper resets them in every round.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from partly import atomic_io, engine
from partly.active.selection import Questions, select_questions
from partly.active.strategies import check_method, find
from partly.clock import Clock, seed_for
from partly.data.answers import Answers, read_answers, write_questions
from partly.distributed.devices import device_of
from partly.engine import FittedModel
from partly.engine.checkpoint import FolderGuard
from partly.engine.progress_bar import progress_callback
from partly.errors import CheckpointError, DataError, LabelError, SettingError, listing
from partly.estimators.classifier import Classifier
from partly.labels import Hierarchy, Labels

Round = dict[str, Any]
Measure = Callable[[FittedModel, Labels], dict[str, float]]  # (model of a round, known labels) -> scores
EntryArrays = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int8]]  # rows, columns and z, [K] each
NO_ENTRIES: EntryArrays = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int8))
AnswerValues = Sequence[bool | None] | npt.NDArray[np.bool_]  # True yes, False no, None cannot tell


@dataclass(frozen=True)
class LoopConfig:
    """Configuration of a loop: everything that decides the questions, besides the model and the data.

    Parameters
    ----------
    query : str
        Question strategy, a name of `partly.queries()`.
    questions : int
        Questions per round.
    epochs : int
        Training epochs of a round that continues training.
    restart : int
        Train a new model every so many rounds, with all epochs of the recipe; 0 for never.
    last_child : bool
        See `Hierarchy.deduce`.
    settings : dict
        Settings of the query.

    Examples
    --------
    >>> from partly.active import LoopConfig
    >>> LoopConfig("uncertainty", questions=20)
    LoopConfig(query='uncertainty', questions=20, epochs=1, restart=10, last_child=False, settings={})
    """

    query: str = "look-ahead"
    questions: int = 100
    epochs: int = 1
    restart: int = 10
    last_child: bool = False
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Stored with all defaults: another default would be another loop.
        object.__setattr__(self, "settings", find(self.query).complete(self.settings))
        for name, minimum in (("questions", 1), ("epochs", 1), ("restart", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
                raise SettingError(f"{name} = {value!r} must be a whole number, {minimum} or more.")


class Loop:
    """Rounds of questions about the unknown entries of Y.

    Parameters
    ----------
    model : Classifier
        An unfitted classifier. `train` fits it to the labels of the round.
    X : items
        As for `fit`.
    Y : Labels, or array of [N, L]
        Labels known at the start.
    folder : str or Path
        Folder of the rounds.
    plan : LoopConfig, optional
        Configuration.
    hierarchy : Hierarchy, optional
        Entries that follow from an answer are not asked.
    measure : callable, optional
        Scores the model of each round; it may know a truth that the loop does not.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> Y = np.where(rng.random((60, 2)) < 0.5, X[:, :2] > 0, np.nan)  # NaN: unknown
    >>> from partly.active import Loop, LoopConfig
    >>> model = partly.Classifier("bce", head="linear", epochs=1, progress=False)
    >>> loop = Loop(model, X, Y, "ask", LoopConfig("uncertainty", questions=3))
    >>> questions = loop.ask()
    >>> loop.answer([True, False, None])  # None: cannot tell
    >>> len(questions.rows), len(loop.rounds())
    (3, 1)
    """

    def __init__(
        self,
        model: Classifier,
        X: Any,
        Y: Any,
        folder: str | Path,
        plan: LoopConfig | None = None,
        *,
        hierarchy: Hierarchy | None = None,
        measure: Measure | None = None,
    ) -> None:
        self.model, self.folder, self.plan = model, Path(folder), plan or LoopConfig()
        self.hierarchy, self.measure = hierarchy, measure
        self.training = model.resolve(X, Y)
        self.items, given = self.training.items, self.training.labels
        self.labels = given if hierarchy is None else hierarchy.deduce(given, self.plan.last_child)
        self.items.statistics  # noqa: B018, in the same pass as the digest
        if not (self.folder / "run.json").exists():  # refuse before the folder is claimed
            engine.check_memory(self.training)
            check_method(self.plan.query, self.training)
        description = engine.describe(self.training)
        parents = None if hierarchy is None else dict(hierarchy.parents)
        with atomic_io.locked(self.folder):
            engine.claim(self.folder, description | {"asks": asdict(self.plan) | {"hierarchy": parents}})
            self._guard = FolderGuard.of(self.folder)
        self.given = int(self.labels.known_per_item().sum())  # entries known at the start
        self.round, self.answered = 0, 0
        self._asked, self._learned = NO_ENTRIES, NO_ENTRIES
        self._restore()

    def _restore(self) -> None:
        """Continue at the newest snapshot; apply answers that were written after it."""
        numbers = [int(path.stem.rpartition("-")[2]) for path in self.folder.glob("known-*.json")]
        if numbers:
            self.round = max(numbers)
            record = atomic_io.read_checksummed(self._file("known"))
            self.answered = record["answered"]
            self._asked, self._learned = (_to_arrays(record[name]) for name in ("asked", "learned"))
            self.labels = self.labels.with_entries(*self._learned)
        if self._file("answers").exists():
            self._end_round(*self._apply(atomic_io.read_checksummed(self._file("answers"))["answers"]))

    # ---------------------------------------------------------------- the steps of a round

    def train(self) -> Classifier:
        """Return the model of this round, trained on all known entries."""
        model_folder, record = self.folder / f"model-{self.round:03d}", self._file("round")
        if record.exists():
            return self.model.adopt(engine.load(model_folder))
        fitted = self._fit(model_folder)
        scores = {} if self.measure is None else self.measure(fitted, self.labels)
        known = int(self.labels.known_per_item().sum())
        summary = {
            "round": self.round,
            "answers": self.answered,
            "implied": known - self.given - self.answered,
            "known": known,
            "scores": {name: None if value != value else value for name, value in scores.items()},
        }
        with self._lock_folder():
            engine.install_model(fitted, self.folder)
            atomic_io.write_checksummed(record, summary)
        for old in self.folder.glob("model-*"):  # only this round starts from them; a crash may leave several
            if old != model_folder:
                shutil.rmtree(old, ignore_errors=True)
        return self.model.adopt(fitted)

    def _fit(self, folder: Path) -> FittedModel:
        is_new = self.round == 0 or (self.plan.restart > 0 and self.round % self.plan.restart == 0)
        config = self.training.config
        seed = seed_for(config.seed, "round", self.round) if self.round else config.seed
        config = replace(config, seed=seed, epochs=config.epochs if is_new else self.plan.epochs)
        start = None if is_new else engine.state_of(self.folder / f"model-{self.round - 1:03d}")
        with progress_callback(config.method, config.head, config.epochs, self.model.progress) as callback:
            plan = replace(self.training, config=config, labels=self.labels)
            fitted = engine.fit(
                plan,
                folder=folder,
                device=device_of(self.model.device),
                callback=callback,
                start=start,
                keep_entries=True,
            )
        engine.teach(plan, fitted)
        return fitted

    def ask(self) -> Questions:
        """Return the questions of this round; none if nothing is left to ask."""
        path = self._file("questions")
        if not path.exists():
            fitted, query = self.train().fitted_, self.plan.query
            if fitted.teaching is not None:
                fitted = fitted.taught_by(self.model.teacher, self.labels.given_ids)
            combine = fitted.combiner(self.items)
            if query == "look-ahead" and combine is not None and not self.labels.known_per_item().any():
                query = "uncertainty"  # a step of learning needs known labels
            questions = select_questions(
                query,
                fitted.method,
                self.items,
                self.labels,
                self.plan.questions,
                Clock(self.training.config.seed, epoch=self.round),
                hierarchy=self.hierarchy,
                asked=self._asked[:2],
                settings=self.plan.settings if query == self.plan.query else None,
                combine=combine,
            )
            record = {"rows": questions.rows, "columns": questions.columns, **questions.scores}
            with self._lock_folder():
                atomic_io.write_checksummed(path, {name: part.tolist() for name, part in record.items()})
        return self._questions()

    def answer(self, answers: AnswerValues) -> None:
        """Take answers to the questions of this round, in their order: True yes, False no, None cannot tell."""
        if not self._file("questions").exists():
            raise CheckpointError(f"{self.folder}: nothing was asked in round {self.round} yet. Ask first.")
        path, asked = self._file("answers"), len(self._questions())
        invalid = [repr(value) for value in answers if value not in (True, False, None)]
        if len(answers) != asked or invalid:
            raise LabelError(
                f"{asked} questions need as many answers, each True, False or None; got {len(answers)}"
                + (listing(invalid, len(invalid)) if invalid else ".")
            )
        plain = [None if value is None else bool(value) for value in answers]
        applied = self._apply(plain)  # refuses contradictions before anything is written
        with self._lock_folder():
            if path.exists():
                raise CheckpointError(f"{path}: round {self.round} was answered meanwhile. Open the folder again.")
            atomic_io.write_checksummed(path, {"answers": plain})
        self._end_round(*applied)

    def run(self, answer: Callable[[Questions], AnswerValues], rounds: int) -> list[Round]:
        """Ask and answer until so many rounds are done, then train on the last answers."""
        while self.round < rounds and len(questions := self.ask()):
            self.answer(answer(questions))
        self.train()
        return self.rounds()

    def rounds(self) -> list[Round]:
        """Return the summary of every round with a trained model; round 0 had no answers."""
        paths = (self._file("round", number) for number in range(self.round + 1))
        return [atomic_io.read_checksummed(path) for path in paths if path.exists()]

    def answers(self) -> Iterator[tuple[int, Questions, list[bool | None]]]:
        """Yield number, questions and answers of every answered round."""
        for number in range(self.round):
            yield number, self._questions(number), atomic_io.read_checksummed(self._file("answers", number))["answers"]

    # ---------------------------------------------------------------- questions and answers in files

    def write(self, path: str | Path) -> int:
        """Write the questions of this round to a file for people to answer, and return their number."""
        questions = self.ask()
        write_questions(path, self.labels, questions.rows, questions.columns, questions.scores)
        return len(questions)

    def read(self, path: str | Path) -> int:
        """Read answers from a file of `write` and return the number of yes and no.

        Blank cells and `cannot tell` stay unknown. A file without any answer is refused.
        """
        questions = self.ask()
        answers = read_answers(path, self.labels, self.hierarchy, (questions.rows, questions.columns))
        if not len(answers.rows) and not answers.unsure:
            raise DataError(
                f"{path}: none of the {len(questions)} questions is answered, and the round is not over. Fill in the "
                "column `answer`: 1 yes, 0 no, cannot tell, or blank where nobody has looked."
            )
        value = {(row, column): z == 1 for row, column, z in zip(answers.rows, answers.columns, answers.z, strict=True)}
        self.answer([value.get(entry) for entry in zip(questions.rows, questions.columns, strict=True)])
        return len(value)

    # ---------------------------------------------------------------- state

    @contextmanager
    def _lock_folder(self) -> Iterator[None]:
        """Lock the folder for writing, if it is still the one that this loop was opened in."""
        self._guard.check()
        with atomic_io.locked(self.folder):
            yield

    def _file(self, kind: str, number: int | None = None) -> Path:
        return self.folder / f"{kind}-{self.round if number is None else number:03d}.json"

    def _questions(self, number: int | None = None) -> Questions:
        record = atomic_io.read_checksummed(self._file("questions", number))
        rows, columns = (np.array(record.pop(name), np.int64) for name in ("rows", "columns"))
        return Questions(rows, columns, {name: np.array(part) for name, part in record.items()})

    def _apply(self, values: Sequence[bool | None]) -> tuple[Questions, Labels, EntryArrays]:
        """Return the questions of this round, the labels after these answers, and the answers as entries."""
        questions = self._questions()
        z = np.array([0 if value is None else 1 if value else -1 for value in values], np.int8)
        known = np.flatnonzero(z)
        answers = Answers(questions.rows[known], questions.columns[known], z[known])
        labels = answers.apply_to(self.labels)
        if self.hierarchy is not None:
            labels = self.hierarchy.deduce(labels, self.plan.last_child, items=answers.rows)
        return questions, labels, (answers.rows, answers.columns, answers.z)

    def _end_round(self, questions: Questions, labels: Labels, answers: EntryArrays) -> None:
        """Write a snapshot of everything asked and learned, so that a restart does not replay the rounds."""
        items = np.unique(answers[0])
        z = labels.rows(items)
        row, column = np.nonzero(z != self.labels.rows(items))
        self._learned = _concatenate(self._learned, (items[row], column, z[row, column]))
        self._asked = _concatenate(self._asked, (questions.rows, questions.columns, np.zeros(len(questions), np.int8)))
        self.labels, self.answered, self.round = labels, self.answered + len(answers[0]), self.round + 1
        learned, asked = ([part.tolist() for part in entries] for entries in (self._learned, self._asked))
        with self._lock_folder():
            record = {"answered": self.answered, "learned": learned, "asked": asked}
            atomic_io.write_checksummed(self._file("known"), record)
            atomic_io.remove_file(self._file("known", self.round - 2))  # keep one older snapshot in case of damage


def _to_arrays(parts: Sequence[Sequence[int]]) -> EntryArrays:
    row, column, z = parts
    return np.array(row, np.int64), np.array(column, np.int64), np.array(z, np.int8)


def _concatenate(first: EntryArrays, second: EntryArrays) -> EntryArrays:
    return (
        np.concatenate([first[0], second[0]]),
        np.concatenate([first[1], second[1]]),
        np.concatenate([first[2], second[2]]),
    )
