"""A project: its data, its ledger, and the configuration that the server and the trainer share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from partly import data
from partly.active.strategies import find
from partly.annotate import tables
from partly.annotate.label_state import align, exclude_answers, find_hidden_labels
from partly.annotate.question_queue import QuestionQueue
from partly.annotate.stats import read_snapshot
from partly.data import Dataset
from partly.errors import DataError, SettingError, within
from partly.labels import Labels
from partly.ledger import Ledger, place_of
from partly.ledger.store import LedgerNotFound

MAX_VOTES = 9
READ_OPTIONS = ("absent", "uncertain", "missing", "label_columns", "id_column", "tag_separator")


@dataclass(frozen=True)
class ProjectConfig:
    """Plain values, which the server sends to the trainer process as JSON."""

    data: str
    ledger: str
    labels: str | None = None
    hierarchy: str | None = None
    absent: str | None = None
    uncertain: str | None = None
    missing: tuple[str, ...] = ()
    label_columns: tuple[str, ...] = ()
    id_column: str | None = None
    tag_separator: str | None = None
    skip_bad: bool = False
    run: str | None = None  # a finished run: its model selects the first questions, its recipe trains the next models
    method: str = "auto"
    query: str = "uncertainty"
    settings: dict[str, Any] = field(default_factory=dict)  # of the query
    count: int = 100  # questions per round
    every: int = 50  # answers between two models
    random: float = 0.1  # share of random questions (control group)
    repeat: float = 0.05  # share of questions that are asked again
    audit: float = 0.05  # share of questions about entries that models have filled in
    votes: int = 1  # different people who answer each entry
    seed: int = 0

    def __post_init__(self) -> None:
        find(self.query).complete(dict(self.settings))
        within(1, 100_000, count=self.count, every=self.every)
        within(1, MAX_VOTES, votes=self.votes)
        within(0, 0.5, random=self.random, repeat=self.repeat, audit=self.audit)
        if self.run is not None and self.method != "auto":
            raise SettingError("Give --run or --method, not both: a run brings its own method.")


def open_project(
    config: ProjectConfig, author: str = "partly", say: Callable[[str], None] = lambda _: None
) -> tuple[Dataset, QuestionQueue]:
    """Open the data with the labels of the ledger, and the queue of questions.

    A missing ledger is created from the labels of the data. If it exists, only the ledger decides what is known.
    """
    options = {name: getattr(config, name) for name in READ_OPTIONS}
    dataset = data.read(config.data, config.labels, config.hierarchy, config.skip_bad, **options).include_unlabelled()
    ledger = _open_ledger(config.ledger, dataset, config.labels or config.data, author, say)
    tables.prepare(ledger.store)
    hidden = find_hidden_labels(ledger)
    names = tuple(name for name in dataset.labels.names if name not in hidden)
    names += tuple(name for name in ledger.vocabulary().names if name not in names)
    empty = np.empty(0, np.int64)
    unlabeled = Labels.from_codes(empty, empty, empty, names, dataset.labels.ids)
    hierarchy = ledger.hierarchy() or (dataset.hierarchy and dataset.hierarchy.restrict(unlabeled.names))
    queue = QuestionQueue(ledger, unlabeled, hierarchy, votes=config.votes)
    labels, place = queue.labels(), place_of(config.ledger).address
    _refuse_other_items(labels.ids, unlabeled.ids, place, config.data)
    known = align(labels, unlabeled, place)
    queue.given = exclude_answers(known, read_snapshot(queue).entries, hierarchy)
    queue.withdraw_foreign_questions()
    return replace(dataset, labels=known, hierarchy=hierarchy, truth=None, test=None), queue


def _refuse_other_items(ledger_ids: Sequence[str], data_ids: Sequence[str], ledger: str, source: str) -> None:
    """Refuse a ledger that has no item in common with the data."""
    if not ledger_ids or not set(ledger_ids).isdisjoint(data_ids):
        return
    raise DataError(
        f"{ledger} is about other items than {source}: they have no id in common.\n"
        f"  ids in {ledger}: {_first_ids(ledger_ids)}\n"
        f"  ids in {source}: {_first_ids(data_ids)}\n"
        "Give the data of this ledger, or start a new ledger with another --ledger."
    )


def _first_ids(ids: Sequence[str], count: int = 3) -> str:
    return ", ".join(map(repr, ids[:count])) + (f", ... ({len(ids):,} in all)" if len(ids) > count else "")


def _open_ledger(url: str, dataset: Dataset, source: str, author: str, say: Callable[[str], None]) -> Ledger:
    """Open the ledger, or create it from the labels of the data."""
    place, names = place_of(url), dataset.labels.names
    try:
        return Ledger(place)
    except LedgerNotFound as error:
        if not names:
            raise DataError(
                f"{place.address}: there is no ledger yet, and {source} has no labels. Give --labels with the observed "
                "labels, or create a ledger with label names: partly ledger init."
            ) from error
    with Ledger.create_atomically(place) as ledger:
        ledger.add(names, dataset.hierarchy and dataset.hierarchy.restrict(names), author=author)
        ledger.append_labels(dataset.labels, author=source, note="known at the start")
    known = int(dataset.labels.known_per_item().sum())
    say(f"Created the ledger {place.address} from {source} ({known:,} known entries).")
    return ledger
