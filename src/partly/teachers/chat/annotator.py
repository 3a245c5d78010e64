"""Ask a language model about items and labels: candidates of label groups first, then yes, no or unsure for each.

A label that the model does not name as a candidate gets no opinion, never a no.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

import numpy as np
import numpy.typing as npt

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

    def resolve_mode(self) -> Mode:
        """Return the source of confidence; `auto` asks the endpoint once whether it gives log-probabilities."""
        if self.mode == "auto":
            if self.client.endpoint is None and self.client.unsent is not None:
                self.mode = "logprobs"  # a batch file cannot ask first; replies without log-probabilities are votes
            else:
                (reply,) = self.client.ask([probe_body(self.style)])
                has_logprobs = reply is not None and reply.tops is not None
                self.mode = "logprobs" if has_logprobs else "samples" if self.samples > 1 else "votes"
            self.style = replace(self.style, logprobs=self.mode == "logprobs")
        return self.mode

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
        replies = self.client.ask([candidates_body(self.style, contents[i], group) for i, group in pairs])
        candidates = []
        for (i, group), reply in zip(pairs, replies, strict=True):
            named = (
                None if reply is None else parse_candidates(reply.text, order_labels(self.style, contents[i], group))
            )
            self.client.counts.malformed += reply is not None and named is None
            candidates.append(named or [])
        return candidates

    def answers(
        self, contents: Contents, entries: Sequence[tuple[int, str]]
    ) -> list[list[tuple[int | None, Reply | None]]]:
        """Return the answers about each entry, one per sample: value and reply, or None."""
        numbers = range(self.samples) if self.resolve_mode() == "samples" else [None]
        bodies = [answer_body(self.style, contents[i], name, k) for i, name in entries for k in numbers]
        replies = self.client.ask(bodies)
        values = [None if reply is None else parse_answer(reply.text) for reply in replies]
        for body, reply, value in zip(bodies, replies, values, strict=True):
            self.client.counts.malformed += reply is not None and value is None
            if value is not None and int(identify(body)[:8], 16) % DRIFT_INTERVAL == 0:
                self.again[body] = value
        pairs = list(zip(values, replies, strict=True))
        return [pairs[k : k + len(numbers)] for k in range(0, len(pairs), len(numbers))]

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
