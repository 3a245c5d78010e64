"""Parse replies of an endpoint. Pure functions; a reply outside the answer grammar is None: no opinion."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from partly.teachers.chat.request import NONE, WORDS

VALUES = {"yes": 1, "no": -1, "unsure": 0}
MAX_MODEL_NAME = 200  # characters
THINKING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
ONE_WORD = re.compile(r"[\s\"'`*]*([a-zA-Z]+)[\s\"'`*.!]*")
NUMBERS = re.compile(r"\d{1,6}(?:[\s,]+\d{1,6})*[\s,.]*")


@dataclass(frozen=True)
class Reply:
    """A reply of the endpoint: text, name of the model, token counts, and alternatives of the answer's tokens.

    `tokens`: of prompt and answer; None if the endpoint does not count them. `tops`: for each token of the answer, its
    alternatives with log-probabilities; None if the endpoint gives none.
    """

    text: str
    model: str = ""
    tokens: tuple[int, int] | None = None
    tops: tuple[tuple[tuple[str, float], ...], ...] | None = None


@dataclass(frozen=True)
class Chances:
    """Probabilities of the three answer words, which add up to at most 1."""

    yes: float
    no: float
    unsure: float


def parse_reply(raw: str) -> Reply | None:
    """Parse the JSON of a chat completion; None if it is anything else."""
    try:
        content = json.loads(raw)
        choice = content["choices"][0]
        text = choice["message"]["content"]
        if not isinstance(text, str):
            return None
        model = content.get("model")
        name = model if isinstance(model, str) and model.isprintable() else ""
        return Reply(text, name[:MAX_MODEL_NAME], _tokens(content.get("usage")), _tops(choice.get("logprobs")))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return None


def parse_answer(text: str) -> int | None:
    """Return 1 yes, -1 no or 0 cannot tell; None if the text is not exactly one of the three words."""
    match = ONE_WORD.fullmatch(THINKING.sub("", text))
    return VALUES.get(match[1].casefold()) if match else None


def parse_candidates(text: str, labels: Sequence[str]) -> list[str] | None:
    """Return the labels whose numbers an answer lists; None for any other text, or a number out of range."""
    answer = THINKING.sub("", text).strip()
    if answer.casefold().strip(".\"'`* ") == NONE:
        return []
    if not NUMBERS.fullmatch(answer):
        return None
    numbers = [int(number) for number in re.findall(r"\d+", answer)]
    if not all(1 <= number <= len(labels) for number in numbers):
        return None
    return [labels[number - 1] for number in sorted(set(numbers))]


def parse_chances(reply: Reply) -> Chances | None:
    """Return the probabilities of the words from the alternatives of the answer's first token; None without them.

    A missing word gets at most the smallest listed probability, and at most what the alternatives leave.
    """
    top = next((top for top in reply.tops or () if any(word_of(token) for token, _ in top[:1])), None)
    if top is None or parse_answer(reply.text) is None:
        return None
    sums = dict.fromkeys(WORDS, 0.0)
    for token, logprob in top:
        word = word_of(token)
        if word:
            sums[word] += math.exp(min(logprob, 0.0))
    left = max(0.0, 1 - sum(math.exp(min(logprob, 0.0)) for _, logprob in top))
    floor = min(left, math.exp(min(min(logprob for _, logprob in top), 0.0)))
    missing = [word for word in WORDS if sums[word] == 0]
    for word in missing:
        sums[word] = max(floor / len(missing), 1e-6)
    return Chances(**sums)


def word_of(token: str) -> str:
    """Return the answer word that starts with this token, or ''."""
    begin = token.strip().strip("\"'`*").casefold()
    return next((word for word in WORDS if begin and word.startswith(begin)), "")


def _tokens(usage: Any) -> tuple[int, int] | None:
    if not isinstance(usage, dict):
        return None
    counts = [usage.get("prompt_tokens"), usage.get("completion_tokens", 0)]
    if not all(type(count) is int and 0 <= count < 10**9 for count in counts):
        return None
    return counts[0], counts[1]


def _tops(logprobs: Any) -> tuple[tuple[tuple[str, float], ...], ...] | None:
    """Read log-probabilities; None if they are missing or malformed."""
    if not isinstance(logprobs, dict) or not isinstance(logprobs.get("content"), list):
        return None
    tops = []
    for part in logprobs["content"]:
        pairs = part.get("top_logprobs") or [part]
        top = tuple((str(pair["token"]), float(pair["logprob"])) for pair in pairs)
        if any(math.isnan(logprob) for _, logprob in top):
            return None
        tops.append(tuple(sorted(top, key=lambda pair: -pair[1])))
    return tuple(tops) or None
