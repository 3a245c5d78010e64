"""Replies: the answer grammar, log-probabilities, and everything that is no reply."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from partly.teachers.chat.parse import Reply, parse_answer, parse_candidates, parse_chances, parse_reply

INJECTIONS = [
    "yes yes",
    "yes, and every other label too",
    'yes"}], "labels": ["admin"]',
    "The answer is yes",
    "ja",
    "",
    "y e s",
    "1",
    "<script>yes</script>",
    "yes\nno",
    "<think>yes",
]


@pytest.mark.parametrize(
    ("text", "value"),
    [("yes", 1), (" No.\n", -1), ("UNSURE", 0), ('"yes"', 1), ("**no**", -1), ("<think>no? yes?</think>\nyes", 1)],
)
def test_answers(text: str, value: int) -> None:
    assert parse_answer(text) == value


@pytest.mark.parametrize("text", INJECTIONS)
def test_anything_else_is_no_opinion(text: str) -> None:
    assert parse_answer(text) is None


LABELS = ["cat", "dog", "bird"]


@pytest.mark.parametrize(
    ("text", "found"),
    [("1, 3", ["cat", "bird"]), ("2", ["dog"]), ("3,3,1.", ["cat", "bird"]), ("none", []), ("None.", [])],
)
def test_candidates(text: str, found: list[str]) -> None:
    assert parse_candidates(text, LABELS) == found


@pytest.mark.parametrize("text", ["4", "0", "1, 4", "cat", "1 and 2", "-1", "1.5.2x", "", "all", "9" * 5000])
def test_candidates_outside_of_the_list_are_no_opinion(text: str) -> None:
    assert parse_candidates(text, LABELS) is None


def completion(text: Any = "yes", **choice: Any) -> dict[str, Any]:
    return {"model": "m", "choices": [{"message": {"content": text}, **choice}]}


@pytest.mark.parametrize(
    "raw",
    ["", "[]", "null", '"yes"', "<html>", "{}", '{"choices": []}', '{"choices": {}}', "[" * 100_000]
    + [json.dumps(completion(text)) for text in (None, 1, ["yes"])],
)
def test_garbage_is_no_reply(raw: str) -> None:
    assert parse_reply(raw) is None


def test_tokens_and_model() -> None:
    said = completion() | {"usage": {"prompt_tokens": 7, "completion_tokens": 2}, "model": "x" * 500}
    reply = parse_reply(json.dumps(said))
    assert reply is not None
    assert reply.tokens == (7, 2)
    assert reply.model == "x" * 200
    for usage in (
        {"prompt_tokens": -1},
        {"prompt_tokens": "7"},
        {"prompt_tokens": 10**12},
        [1],
        {"prompt_tokens": True},
    ):
        reply = parse_reply(json.dumps(said | {"usage": usage}))
        assert reply is not None
        assert reply.tokens is None


def with_tops(*tops: list[tuple[str, float]]) -> Reply:
    return Reply("yes", tops=tuple(tuple((token, math.log(p)) for token, p in top) for top in tops))


def test_chances_add_spellings_of_a_word() -> None:
    chances = parse_chances(with_tops([("Yes", 0.5), (" yes", 0.2), ("No", 0.2), ("un", 0.05)]))
    assert chances is not None
    assert chances.yes == pytest.approx(0.7)
    assert chances.no == pytest.approx(0.2)
    assert chances.unsure == pytest.approx(0.05)


def test_a_word_that_is_not_listed_gets_at_most_what_is_left() -> None:
    chances = parse_chances(with_tops([("yes", 0.9), ("maybe", 0.06)]))
    assert chances is not None
    assert chances.yes == pytest.approx(0.9)
    assert chances.no == chances.unsure == pytest.approx(0.02)  # 0.04 is left, for two words


def test_chances_start_at_the_answer_and_need_an_answer() -> None:
    chances = parse_chances(with_tops([("<s>", 1.0)], [("no", 0.6), ("yes", 0.4)]))
    assert chances is not None
    assert chances.no == pytest.approx(0.6)
    assert parse_chances(with_tops([("maybe", 1.0)])) is None
    assert parse_chances(Reply("perhaps", tops=((("yes", 0.0),),))) is None
    assert parse_chances(Reply("yes")) is None


@pytest.mark.parametrize(
    "logprobs", [{}, {"content": "x"}, {"content": None}, [], {"content": [{"token": "yes", "logprob": math.nan}]}]
)
def test_strange_logprobs_are_none(logprobs: Any) -> None:
    reply = parse_reply(json.dumps(completion(logprobs=logprobs)))
    assert reply is not None
    assert reply.tops is None
