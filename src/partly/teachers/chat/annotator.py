"""Ask a language model about items and labels: candidates of label groups first, then yes, no or unsure for each.

A label that the model does not name as a candidate gets no opinion, never a no.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from partly.errors import DataError
from partly.teachers.chat.client import Client
from partly.teachers.chat.parse import Reply, parse_answer, parse_candidates, parse_chances
from partly.teachers.chat.request import (
    Content,
    Style,
    answer_body,
    candidates_body,
    group_labels,
    identify,
    order_labels,
    probe_body,
)

Contents = Sequence[Content] | Mapping[int, Content]  # by item number
Mode = Literal["auto", "logprobs", "samples", "votes"]
MODES: tuple[Mode, ...] = ("auto", "logprobs", "samples", "votes")
NO_OPINION = 2  # among values: 1 yes, -1 no, 0 cannot tell
DRIFT_INTERVAL = 100  # one answer in so many is asked again, to measure drift
PSEUDO_COUNT = 0.5  # added to the counts of yes and of no
FIRST_ITEMS, MIN_UNREADABLE = 20, 10  # items asked about first; unreadable replies about them that end the run
GRAMMAR = {"candidates": "a list of numbers", "answers": "yes, no or unsure"}
WORD_OF = {1: "yes", -1: "no", 0: "unsure"}
T = TypeVar("T")


@dataclass(frozen=True)
class Opinions:
    """Opinions about entries, [N, L]: probability of yes (NaN: none), and answer (1, -1, 0 or `NO_OPINION`)."""

    chance: npt.NDArray[np.float32]
    value: npt.NDArray[np.int8]

    @classmethod
    def none(cls, items: int, labels: int) -> Opinions:
        """Build opinions in which every entry is empty."""
        shape = items, labels
        return cls(np.full(shape, np.nan, np.float32), np.full(shape, NO_OPINION, np.int8))


@dataclass(frozen=True)
class Drift:
    """Number of answers that were asked again, and of those that changed."""

    asked: int = 0
    changed: int = 0


@dataclass(eq=False)
class Annotator:
    """Asks a client about items and labels in one style.

    `group_size`: labels per question about candidates. Vocabularies of at most `direct` labels skip these questions.
    """

    client: Client
    style: Style
    mode: Mode = "auto"
    samples: int = 5
    group_size: int = 25
    direct: int = 8
    again: dict[bytes, int] = field(default_factory=dict)  # first answers by the bodies to ask again
    readable: set[str] = field(default_factory=set)  # kinds of questions of which a reply could be read
    outcomes: Counter[str] = field(default_factory=Counter)  # answers by word; "" outside of the answer grammar

    def resolve_mode(self) -> Mode:
        """Return the source of confidence; `auto` asks the endpoint once whether it gives log-probabilities."""
        if self.mode == "auto":
            if self.client.endpoint is None and self.client.unsent is not None:
                self.mode = "logprobs"  # a batch file cannot ask first; replies without log-probabilities are votes
            else:
                reply = self._ask_probe()
                has_logprobs = reply is not None and reply.tops is not None
                self.mode = "logprobs" if has_logprobs else "samples" if self.samples > 1 else "votes"
            self.style = replace(self.style, logprobs=self.mode == "logprobs")
        return self.mode

    def _ask_probe(self) -> Reply | None:
        """Send the test request. None if the endpoint refuses it, as some do for log-probabilities, or at a cap."""
        client, refused = self.client, self.client.counts.refused
        body = probe_body(self.style)
        (reply,) = client.ask([body])
        if reply is None and client.endpoint is not None and client.counts.refused == refused:
            if client.counts.malformed:
                client.replies.forget(identify(body))
                raise DataError(
                    f"{client.endpoint.url}: the reply to the test request is no chat completion. Check the URL."
                )
            if not client.meter.reached:
                raise DataError(f"{client.endpoint.url}: no reply to the test request. Check that the server runs.")
        return reply

    def opinions(self, contents: Sequence[Content], names: Sequence[str]) -> Opinions:
        """Return the opinions about items and labels."""
        opinions = Opinions.none(len(contents), len(names))
        entries = self.candidates(contents, names)
        column = {name: j for j, name in enumerate(names)}
        for (i, name), answers in zip(entries, self.answers(contents, entries), strict=True):
            opinions.value[i, column[name]], opinions.chance[i, column[name]] = combine(answers)
        return opinions

    def candidates(self, contents: Sequence[Content], names: Sequence[str]) -> list[tuple[int, str]]:
        """Return the entries (item, label) to ask about."""
        self.resolve_mode()
        if len(names) <= self.direct:
            return [(i, name) for i in range(len(contents)) for name in sorted(names)]
        pairs = [(i, group) for i in range(len(contents)) for group in group_labels(names, self.group_size)]
        return [
            (i, name)
            for (i, _), named in zip(pairs, self.ask_candidates(contents, pairs), strict=True)
            for name in named
        ]

    def ask_candidates(self, contents: Contents, pairs: Sequence[tuple[int, tuple[str, ...]]]) -> list[list[str]]:
        """Return the candidates that the model names for each pair of item and group of labels."""
        bodies = [candidates_body(self.style, contents[i], group) for i, group in pairs]

        def read(k: int, reply: Reply) -> list[str] | None:
            i, group = pairs[k]
            return parse_candidates(reply.text, order_labels(self.style, contents[i], group))

        return [named or [] for named, _ in self._ask("candidates", bodies, [i for i, _ in pairs], read)]

    def answers(
        self, contents: Contents, entries: Sequence[tuple[int, str]]
    ) -> list[list[tuple[int | None, Reply | None]]]:
        """Return the answers about each entry, one per sample: value and reply, or None."""
        numbers = range(self.samples) if self.resolve_mode() == "samples" else [None]
        bodies = [answer_body(self.style, contents[i], name, k) for i, name in entries for k in numbers]
        items = [i for i, _ in entries for _ in numbers]
        pairs = self._ask("answers", bodies, items, lambda _, reply: parse_answer(reply.text))
        for body, (value, reply) in zip(bodies, pairs, strict=True):
            if reply is not None:
                self.outcomes["" if value is None else WORD_OF[value]] += 1
            if value is not None and int(identify(body)[:8], 16) % DRIFT_INTERVAL == 0:
                self.again[body] = value
        return [pairs[k : k + len(numbers)] for k in range(0, len(pairs), len(numbers))]

    def _ask(
        self, kind: str, bodies: Sequence[bytes], items: Sequence[int], read: Callable[[int, Reply], T | None]
    ) -> list[tuple[T | None, Reply | None]]:
        """Return what is read from each reply, and the replies.

        Until a reply could be read, one request of each of some items is sent first. If none of these replies can be
        read, the run ends before it costs more.
        """
        first = [] if kind in self.readable else np.unique(items, return_index=True)[1][:FIRST_ITEMS].tolist()
        rest = sorted(set(range(len(bodies))) - set(first))
        replies: dict[int, Reply | None] = {}
        values: dict[int, T | None] = {}
        for part in (first, rest):
            for k, reply in zip(part, self.client.ask([bodies[k] for k in part]), strict=True):
                replies[k], values[k] = reply, None if reply is None else read(k, reply)
            unreadable = sum(replies[k] is not None and values[k] is None for k in part)
            self.client.counts.malformed += unreadable
            if any(values[k] is not None for k in part):
                self.readable.add(kind)
            elif kind not in self.readable and unreadable >= MIN_UNREADABLE:
                raise DataError(
                    f"None of the first {unreadable} replies is {GRAMMAR[kind]}, so the run ends. Adapt the requests "
                    "with --body (body=), for example to turn reasoning off."
                )
        return [(values[k], replies[k]) for k in range(len(bodies))]

    def measure_drift(self) -> Drift:
        """Ask a sample of the answers again, at most once per day, and count the changes."""
        bodies = list(self.again)
        replies = self.client.ask(bodies, salt=f" again {datetime.now(UTC):%Y-%m-%d}")
        values = [None if reply is None else parse_answer(reply.text) for reply in replies]
        pairs = [(self.again[body], value) for body, value in zip(bodies, values, strict=True) if value is not None]
        return Drift(len(pairs), sum(before != now for before, now in pairs))


def combine(answers: Sequence[tuple[int | None, Reply | None]]) -> tuple[int, float]:
    """Combine the answers about an entry into a value and a probability of yes.

    A single answer uses its log-probabilities, if any; otherwise answers are counted.
    """
    if len(answers) == 1 and answers[0][0] is not None and answers[0][1] is not None:
        chances = parse_chances(answers[0][1])
        if chances is not None:
            return answers[0][0], chances.yes / (chances.yes + chances.no) if answers[0][0] else float("nan")
    values = [value for value, _ in answers if value is not None]
    yes, no, unsure = (values.count(value) for value in (1, -1, 0))
    if not values:
        return NO_OPINION, float("nan")
    if yes == no or unsure > max(yes, no):
        return 0, float("nan")
    return (1 if yes > no else -1), (yes + PSEUDO_COUNT) / (yes + no + 2 * PSEUDO_COUNT)
