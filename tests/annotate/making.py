"""A small project to ask about: a ledger, a queue, questions, people, and a browser that is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from starlette.testclient import TestClient

from partly.annotate import tables
from partly.annotate.accounts import Accounts, Person, csrf_token
from partly.annotate.app import make_app
from partly.annotate.app_context import AppContext
from partly.annotate.item_renderer import ItemRenderer
from partly.annotate.limits import AttemptLimiter
from partly.annotate.question_queue import QuestionQueue
from partly.annotate.question_selection import QuestionDraft
from partly.annotate.security_middleware import local_address
from partly.items import Items, features
from partly.labels import Hierarchy, Labels
from partly.ledger import Ledger

PORT = 8765
ORIGIN = f"http://127.0.0.1:{PORT}"
NAMES = ("animal", "cat", "dog", "boat")
ABOVE = Hierarchy({"cat": "animal", "dog": "animal"})
FOUND: dict[str, Any] = {"answers": 0, "known": 0, "seconds": 0.0, "query": "uncertainty", "found": "{}"}


@dataclass
class Time:
    """A clock that stands still unless somebody moves it."""

    at: float = 1_000_000.0

    def __call__(self) -> float:
        self.at += 0.001
        return self.at


@dataclass
class Project:
    ledger: Ledger
    queue: QuestionQueue
    people: Accounts
    time: Time
    items: Items
    persons: dict[str, Person] = field(default_factory=dict)

    def person(self, name: str = "anna") -> Person:
        if name not in self.persons:
            self.persons[name] = Person(self.people.local_admin(name), name, "admin")
        return self.persons[name]

    def known(self) -> dict[tuple[str, str], int]:
        """(item, label) -> +1 or -1, by the ledger's own fold."""
        labels = self.ledger.labels()
        row, column, value = labels.entries()
        pairs = zip(row.tolist(), column.tolist(), value.tolist(), strict=True)
        return {(labels.ids[i], labels.names[j]): 1 if v == 1 else -1 for i, j, v in pairs}

    def context(self, **how: Any) -> AppContext:
        return AppContext("tests", self.queue, self.people, ItemRenderer(self.items), local_address(PORT), **how)


def project(
    folder: Path,
    *,
    count: int = 12,
    names: tuple[str, ...] = NAMES,
    ids: list[str] | None = None,
    hierarchy: Hierarchy | None = None,
    z: Any = None,
    items: Items | None = None,
    url: str | None = None,
) -> Project:
    """Of so many items nothing is known, but for z [count, L]."""
    ids = ids or [f"item {i}" for i in range(count)]
    given = np.zeros((len(ids), len(names)), np.int8) if z is None else np.asarray(z, np.int8)
    labels = Labels.from_ternary(given, names=names, ids=ids)
    ledger = Ledger.create(url or folder / "labels.db", names, hierarchy, author="tests")
    ledger.append_labels(labels, author="tests")
    tables.prepare(ledger.store)
    time = Time()
    queue = QuestionQueue(ledger, labels, hierarchy, now=time)
    people = Accounts(ledger.store, now=time, attempts=AttemptLimiter(now=time))
    if items is None:
        items = features(np.random.default_rng(0).normal(size=(len(ids), 3)).astype(np.float32))
    return Project(ledger, queue, people, time, items)


def pose(made: Project, entries: list[tuple[int, int]], **how: Any) -> None:
    """A round that asks about these entries."""
    made.queue.pose(FOUND, [QuestionDraft(row, column, how.get("random", False), 0.5, 0.7) for row, column in entries])


class Browser(TestClient):
    """Sends what a page of ours would."""

    def __init__(self, context: AppContext, session: str | None = None) -> None:
        super().__init__(make_app(context), base_url=ORIGIN, follow_redirects=False)
        self.page = ""
        if session is not None:
            self.cookies.set(context.cookie_name, session)
            self.page = csrf_token(session)

    def call(self, path: str, given: Any, **headers: str) -> Any:
        sent = {"origin": ORIGIN, "content-type": "application/json", "x-partly-page": self.page}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self.post(path, json=given, headers={name: value for name, value in sent.items() if value != "NONE"})


def browser(made: Project, name: str = "anna", role: str = "admin", **how: Any) -> Browser:
    """Of somebody who is in."""
    context = made.context(**how)
    if role == "admin":
        return Browser(context, made.people.sign_in_by_link(made.people.create_start_token(made.person(name).id)))
    return Browser(context, made.people.join(made.people.invite("annotator"), name, "a long password"))
