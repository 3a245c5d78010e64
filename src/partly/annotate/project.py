"""What is asked about, and how: the data, the ledger, and the plan that both the pages and the trainer go by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from partly import data
from partly.active.strategies import find
from partly.annotate import stats, tables
from partly.annotate.label_state import beside, retired, without
from partly.annotate.question_queue import Desk
from partly.data import Dataset
from partly.errors import DataError, SettingError, within
from partly.labels import Hierarchy, Labels
from partly.labels.names import Names
from partly.ledger import Ledger, place_of
from partly.ledger.store import NothingThere

MAX_VOTES = 9


@dataclass(frozen=True)
class Plan:
    """Plain values, so that another process can be told."""

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
    run: str | None = None  # a finished run: its model asks first, its recipe trains on
    method: str = "auto"
    query: str = "uncertainty"
    settings: dict[str, Any] = field(default_factory=dict)  # of the query
    count: int = 100  # questions a round
    every: int = 50  # answers after which a model is trained
    random: float = 0.1  # the share of the shadow arm
    repeat: float = 0.05  # the share of questions that come again
    audit: float = 0.05  # the share of questions about what models have filled in, where they have
    votes: int = 1  # different people who answer each entry
    seed: int = 0

    def __post_init__(self) -> None:
        find(self.query).complete(dict(self.settings))
        within(1, 100_000, count=self.count, every=self.every)
        within(1, MAX_VOTES, votes=self.votes)
        within(0, 0.5, random=self.random, repeat=self.repeat, audit=self.audit)
        if self.run is not None and self.method != "auto":
            raise SettingError("Give --run or --method: a run brings its own method along.")

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def open_project(
    plan: Plan, author: str = "partly", say: Callable[[str], None] = lambda _: None
) -> tuple[Dataset, Desk]:
    """The data, with what the ledger knows of them, and the desk. A ledger that is not there is made, of what is known
    in the data, and that is said; from one that is there only what it says itself is taken."""
    found = data.read(
        plan.data,
        plan.labels,
        plan.hierarchy,
        plan.skip_bad,
        absent=plan.absent,
        uncertain=plan.uncertain,
        missing=plan.missing,
        label_columns=plan.label_columns,
        id_column=plan.id_column,
        tag_separator=plan.tag_separator,
    ).include_unlabelled()
    ledger = _ledger(plan.ledger, found, plan.labels or plan.data, author, say)
    tables.prepare(ledger.store)
    names, gone = found.labels.names, retired(ledger)
    names = tuple(name for name in names if name not in gone) or ledger.vocabulary().names
    none = np.empty(0, np.int64)
    wanted = Labels.from_codes(none, none, none, names, found.labels.ids)  # the ledger alone says what is known
    hierarchy = ledger.hierarchy() or among(found.hierarchy, wanted.names)
    desk = Desk(ledger, wanted, hierarchy, votes=plan.votes)
    said = desk.labels()
    _refuse_other_items(said.ids, wanted.ids, place_of(plan.ledger).shown, plan.data)
    known = beside(said, wanted, place_of(plan.ledger).shown)
    desk.given = without(known, stats.answers(desk, stats.answered(desk)), hierarchy)
    desk.withdraw_strangers()
    return replace(found, labels=known, hierarchy=hierarchy, truth=None, test=None), desk


def _refuse_other_items(theirs: Sequence[str], ours: Sequence[str], ledger: str, source: str) -> None:
    """Refuse a ledger that speaks of items, none of which is among these data."""
    if not theirs or not set(theirs).isdisjoint(ours):
        return
    raise DataError(
        f"{ledger} is about other items than {source}: they have no id in common.\n"
        f"  ids in {ledger}: {_some(theirs)}\n"
        f"  ids in {source}: {_some(ours)}\n"
        "Give the data that the ledger is about, or start a new ledger with another --ledger."
    )


def _some(ids: Sequence[str], most: int = 3) -> str:
    return ", ".join(map(repr, ids[:most])) + (f", ... ({len(ids):,} in all)" if len(ids) > most else "")


def among(hierarchy: Hierarchy | None, names: Names) -> Hierarchy | None:
    """Of a hierarchy, what it says of these labels: the nearest of them above each; None where it says nothing."""
    if hierarchy is None:
        return None
    pairs = {}
    for name in names:
        above = hierarchy.parents.get(name)
        while above is not None and above not in names:
            above = hierarchy.parents.get(above)
        if above is not None:
            pairs[name] = above
    return Hierarchy(pairs) if pairs else None


def _ledger(url: str, found: Dataset, source: str, author: str, say: Callable[[str], None]) -> Ledger:
    """An empty file is none yet either: a process that is killed while it makes one may leave that."""
    place = place_of(url)
    try:
        return Ledger(place)
    except NothingThere as error:
        if not found.labels.names:
            raise DataError(
                f"{place.shown}: there is no ledger yet, and {source} has no labels. Give --labels with the observed "
                "labels, or make a ledger that names them: partly ledger init."
            ) from error
    with Ledger.making(place) as made:
        made.add(found.labels.names, among(found.hierarchy, found.labels.names), author=author)
        made.append_labels(found.labels, author=source, note="known at the start")
    known = int(found.labels.known_per_item().sum())
    say(f"{place.shown}: there was no ledger yet; one begins, of what is known in {source} (entries: {known:,}).")
    return made
