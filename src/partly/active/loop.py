"""Train, ask, answer, train on: a loop that survives a kill in any round and goes on with the same questions.

Paper: C.-Y. Hsieh, W.-I. Lin, M. Xu, G. Niu, H.-T. Lin, M. Sugiyama. Active Refinement for Multi-Label Learning: A
Pseudo-Label Approach. arXiv 2109.14676, 2021. Algorithm 2 and section 4.2.

The folder of a loop is a run folder, whose model is that of the last round, with four small files per round more, each
with its checksum: `known-001.json` (what was asked and is known beyond what was given, when the round begins),
`round-000.json` (how good its model is), `questions-000.json` and `answers-000.json`. A file is written when its step
is done, so the files that are there say what to do next, and the newest `known` says where the loop stands.

Differs: a model that trains on keeps its pseudo-labels, where the paper begins them anew in every round.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from partly import atomic_io, engine
from partly.active.selection import Questions, select_questions
from partly.active.strategies import check, find
from partly.clock import Clock, seed_for
from partly.data.answers import Answers, read_answers, write_questions
from partly.distributed.devices import device_of
from partly.engine import FittedModel, ResolvedConfig
from partly.engine.checkpoint import FolderGuard
from partly.engine.progress_bar import progress_callback
from partly.errors import CheckpointError, DataError, LabelError, SettingError, listing
from partly.estimators.classifier import Classifier
from partly.labels import Hierarchy, Labels

Round = dict[str, Any]
Measure = Callable[[FittedModel, Labels], dict[str, float]]  # of the model of a round and what is known in it
Entries = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int8]]  # rows, columns and z, [K] each
NOTHING: Entries = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int8))
Said = Sequence[bool | None] | npt.NDArray[np.bool_]  # True yes, False no, None: nobody knows


@dataclass(frozen=True)
class Plan:
    """How to ask: all that decides the questions, beside the recipe and the data.

    Parameters
    ----------
    query : str
        A name of `partly.queries()`.
    questions : int
        In a round.
    epochs : int
        Between two rounds.
    restart : int
        Every so many rounds training begins anew; 0: never.
    last_child : bool
        As in `Hierarchy.deduce`.
    settings : dict
        Of the query.

    Examples
    --------
    >>> from partly.active import Plan
    >>> Plan("uncertainty", questions=20)
    Plan(query='uncertainty', questions=20, epochs=1, restart=10, last_child=False, settings={})
    """

    query: str = "look-ahead"
    questions: int = 100  # a round
    epochs: int = 1  # of a round that trains on
    restart: int = 10  # every so many rounds the model starts anew, with all the epochs of the recipe; 0: never
    last_child: bool = False  # see Hierarchy.deduce
    settings: dict[str, Any] = field(default_factory=dict)  # of the query

    def __post_init__(self) -> None:
        # Spelled out, as they are written down: asking with another default is another loop.
        object.__setattr__(self, "settings", find(self.query).complete(self.settings))
        for name, least in (("questions", 1), ("epochs", 1), ("restart", 0)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise SettingError(f"{name} = {value!r} must be a whole number, {least} or more.")


class Loop:
    """Rounds of questions about the unknown entries of Y.

    Parameters
    ----------
    model : Classifier
        An unfitted one, which says how to train; after `train` it is the model of the round.
    X : items
        As for `fit`.
    Y : Labels, or array of [N, L]
        What is known at the start.
    folder : str or Path
        Where rounds are kept.
    plan : Plan, optional
        How to ask.
    hierarchy : Hierarchy, optional
        What follows from an answer is not asked.
    measure : callable, optional
        What to note of each round's model; it may know a truth that the loop does not.

    Examples
    --------
    >>> import numpy as np
    >>> import partly
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> Y = np.where(rng.random((60, 2)) < 0.5, X[:, :2] > 0, np.nan)  # NaN: nobody said
    >>> from partly.active import Loop, Plan
    >>> model = partly.Classifier("bce", head="linear", epochs=1, progress=False)
    >>> loop = Loop(model, X, Y, "ask", Plan("uncertainty", questions=3))
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
        plan: Plan | None = None,
        *,
        hierarchy: Hierarchy | None = None,
        measure: Measure | None = None,
    ) -> None:
        self.model, self.folder, self.plan = model, Path(folder), plan or Plan()
        self.hierarchy, self.measure = hierarchy, measure
        self.training = model.resolve(X, Y)
        self.items, given = self.training.items, self.training.labels
        first = given if hierarchy is None else hierarchy.deduce(given, self.plan.last_child)
        self.items.statistics  # noqa: B018, in the same pass as the digest
        if not (self.folder / "run.json").exists():  # a plan that is refused must not claim the folder
            engine.check_memory(self.training)
            check(self.plan.query, self.training)
        description = engine.describe(self.training)
        parents = None if hierarchy is None else dict(hierarchy.parents)
        with atomic_io.locked(self.folder):
            engine.claim(self.folder, description | {"asks": asdict(self.plan) | {"hierarchy": parents}})
            self._home = FolderGuard.of(self.folder)
        self.given = int(first.known_per_item().sum())  # entries known at first
        self.labels = first  # what is known by now
        self.round, self.answered = 0, 0
        self._asked, self._learned = NOTHING, NOTHING  # entries: asked about, and known since the first round
        self._go_on()

    def _go_on(self) -> None:
        """Stand where the newest snapshot says; answers that came after it are taken once more."""
        found = [self._number(path) for path in self.folder.glob("known-*.json")]
        if found:
            self.round = max(found)
            record = atomic_io.read_checksummed(self._file("known"))
            self.answered = record["answered"]
            self._asked, self._learned = (_entries(record[name]) for name in ("asked", "learned"))
            self.labels = self.labels.with_entries(*self._learned)
        if self._file("answers").exists():
            self._end_round(*self._told(atomic_io.read_checksummed(self._file("answers"))["answers"]))

    # ---------------------------------------------------------------- the steps of a round

    def train(self) -> Classifier:
        """The model of this round, trained on all that is known by now."""
        here, record = self.folder / f"model-{self.round:03d}", self._file("round")
        if record.exists():
            return self.model.adopt(engine.load(here))
        fitted = self._fitted(here)
        scores = {} if self.measure is None else self.measure(fitted, self.labels)
        known = int(self.labels.known_per_item().sum())
        found = {
            "round": self.round,
            "answers": self.answered,
            "implied": known - self.given - self.answered,
            "known": known,
            "scores": {name: None if value != value else value for name, value in scores.items()},
        }
        with self._held():
            engine.install_model(fitted, self.folder)
            atomic_io.write_checksummed(record, found)
        for old in self.folder.glob("model-*"):  # only this round would have started from it; a kill may leave more
            if old != here:
                shutil.rmtree(old, ignore_errors=True)
        return self.model.adopt(fitted)

    def _fitted(self, folder: Path) -> FittedModel:
        config = self._config()
        with progress_callback(config.method, config.head, config.epochs, self.model.progress) as callback:
            return engine.fit(
                replace(self.training, config=config, labels=self.labels),
                folder=folder,
                device=device_of(self.model.device),
                callback=callback,
                start=self._start(),
                keep_entries=True,
            )

    def ask(self) -> Questions:
        """The questions of this round; none where nothing is left to ask."""
        path = self._file("questions")
        if not path.exists():
            method = self.train().fitted_.method
            found = select_questions(
                self.plan.query,
                method,
                self.items,
                self.labels,
                self.plan.questions,
                Clock(self.training.config.seed, epoch=self.round),
                hierarchy=self.hierarchy,
                asked=self._asked[:2],
                settings=self.plan.settings,
            )
            plain = {"rows": found.rows, "columns": found.columns, **found.scores}
            with self._held():
                atomic_io.write_checksummed(path, {name: part.tolist() for name, part in plain.items()})
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
        with self._held():
            if path.exists():
                raise CheckpointError(f"{path}: round {self.round} was answered meanwhile. Open the folder again.")
            atomic_io.write_checksummed(path, {"answers": plain})
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
        return [atomic_io.read_checksummed(path) for path in paths if path.exists()]

    def answers(self) -> Iterator[tuple[int, Questions, list[bool | None]]]:
        """Every round that was answered: its number, what was asked, and what was said."""
        for number in range(self.round):
            yield number, self._questions(number), atomic_io.read_checksummed(self._file("answers", number))["answers"]

    # ---------------------------------------------------------------- questions and answers in files

    def write(self, path: str | Path) -> int:
        """Write the questions of this round for people to answer; how many there are."""
        questions = self.ask()
        write_questions(path, self.labels, questions.rows, questions.columns, questions.scores)
        return len(questions)

    def read(self, path: str | Path) -> int:
        """Take the answers from a file that `write` made; how many yes and no there are. What is blank stays unknown,
        and so does `cannot tell`; a file that is all blank is refused, since it was hardly meant."""
        questions = self.ask()
        answers = read_answers(path, self.labels, self.hierarchy, (questions.rows, questions.columns))
        if not len(answers.rows) and not answers.unsure:
            raise DataError(
                f"{path}: none of the {len(questions)} questions is answered, and the round is not over. Fill in the "
                "column `answer`: 1 yes, 0 no, cannot tell, or blank where nobody has looked."
            )
        said = {(row, column): z == 1 for row, column, z in zip(answers.rows, answers.columns, answers.z, strict=True)}
        self.answer([said.get(entry) for entry in zip(questions.rows, questions.columns, strict=True)])
        return len(said)

    # ---------------------------------------------------------------- inside

    @contextmanager
    def _held(self) -> Iterator[None]:
        """The folder, while something is written into it, if it is still the one that this loop was opened in."""
        self._home.check()
        with atomic_io.locked(self.folder):
            yield

    def _file(self, what: str, number: int | None = None) -> Path:
        return self.folder / f"{what}-{self.round if number is None else number:03d}.json"

    def _questions(self, number: int | None = None) -> Questions:
        record = atomic_io.read_checksummed(self._file("questions", number))
        rows, columns = (np.array(record.pop(name), np.int64) for name in ("rows", "columns"))
        return Questions(rows, columns, {name: np.array(part) for name, part in record.items()})

    @staticmethod
    def _number(path: Path) -> int:
        return int(path.stem.rpartition("-")[2])

    def _told(self, answers: Sequence[bool | None]) -> tuple[Questions, Labels, Entries]:
        """The questions of this round, what is known after these answers, and the answers themselves."""
        questions = self._questions()
        z = np.array([0 if one is None else 1 if one else -1 for one in answers], np.int8)
        said = np.flatnonzero(z)
        given = Answers(questions.rows[said], questions.columns[said], z[said])
        after = given.told(self.labels)
        if self.hierarchy is not None:
            after = self.hierarchy.deduce(after, self.plan.last_child, items=given.rows)
        return questions, after, (given.rows, given.columns, given.z)

    def _end_round(self, questions: Questions, labels: Labels, answers: Entries) -> None:
        """All that was asked and learned so far, and not the rounds again, is what the next start needs."""
        items = np.unique(answers[0])
        z = labels.rows(items)
        row, column = np.nonzero(z != self.labels.rows(items))
        self._learned = _joined(self._learned, (items[row], column, z[row, column]))
        self._asked = _joined(self._asked, (questions.rows, questions.columns, np.zeros(len(questions), np.int8)))
        self.labels, self.answered, self.round = labels, self.answered + len(answers[0]), self.round + 1
        learned, asked = ([part.tolist() for part in entries] for entries in (self._learned, self._asked))
        with self._held():
            record = {"answered": self.answered, "learned": learned, "asked": asked}
            atomic_io.write_checksummed(self._file("known"), record)
            atomic_io.remove_file(self._file("known", self.round - 2))  # the one before stays, in case of damage

    @property
    def _fresh(self) -> bool:
        """Whether the model of this round starts anew."""
        return self.round == 0 or (self.plan.restart > 0 and self.round % self.plan.restart == 0)

    def _config(self) -> ResolvedConfig:
        """Return the configuration of this round."""
        config = self.training.config
        seed = seed_for(config.seed, "round", self.round) if self.round else config.seed
        return replace(config, seed=seed, epochs=config.epochs if self._fresh else self.plan.epochs)

    def _start(self) -> Mapping[str, Tensor] | None:
        before = self.folder / f"model-{self.round - 1:03d}"
        return None if self._fresh else engine.state_of(before)


def _entries(parts: Sequence[Sequence[int]]) -> Entries:
    row, column, z = parts
    return np.array(row, np.int64), np.array(column, np.int64), np.array(z, np.int8)


def _joined(one: Entries, other: Entries) -> Entries:
    return (
        np.concatenate([one[0], other[0]]),
        np.concatenate([one[1], other[1]]),
        np.concatenate([one[2], other[2]]),
    )
