"""Forecast calls, tokens and cost of a whole run from about 20 calls. Their replies are cached for the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from partly.clock import seed_for
from partly.teachers.chat.annotator import Annotator
from partly.teachers.chat.limits import most_tokens
from partly.teachers.chat.parse import parse_reply
from partly.teachers.chat.request import Content, answer_body, candidates_body, group_labels, identify

CALLS = 20
RESAMPLES = 2000
LEVEL = 0.9  # of the interval
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Forecast:
    """Expected calls, prompt tokens, answer tokens and cost, each with the ends of a 90 % interval.

    `answers` counts the answers to the sampled questions; "" for those outside of the answer grammar.
    """

    calls: tuple[float, float, float]
    input_tokens: tuple[float, float, float]
    output_tokens: tuple[float, float, float]
    money: tuple[float, float, float]
    sampled: int
    answers: dict[str, int]


def forecast(
    annotator: Annotator, count: int, names: Sequence[str], load: Callable[[int], Content], seed: int
) -> Forecast:
    """Ask about random groups and labels of random items, and scale up by the bootstrap.

    Half of the calls ask for candidates, and the rest about the candidates. With few labels, all ask about labels.
    """
    rng = np.random.default_rng(seed_for(seed, "forecast"))
    samples = annotator.samples if annotator.resolve_mode() == "samples" else 1
    groups = [] if len(names) <= annotator.direct else group_labels(names, annotator.group_size)
    contents: dict[int, Content] = {}

    def draw(questions: Sequence[str] | Sequence[tuple[str, ...]], size: int) -> list[tuple[int, int]]:
        flat = rng.choice(count * len(questions), min(size, count * len(questions)), replace=False)
        pairs = [divmod(int(k), len(questions)) for k in flat]
        contents.update({i: load(i) for i, _ in pairs if i not in contents})
        return pairs

    if groups:
        pairs = [(i, groups[k]) for i, k in draw(groups, CALLS // 2)]
        candidate_names = annotator.ask_candidates(contents, pairs)
        first = [candidates_body(annotator.style, contents[i], group) for i, group in pairs]
        entries = [(i, name) for (i, _), group in zip(pairs, candidate_names, strict=True) for name in group]
        entries = [entries[k] for k in rng.permutation(len(entries)).tolist()][: max(1, CALLS // 2 // samples)]
        candidates = np.array([len(group) for group in candidate_names], np.float64)
    else:
        entries = [(i, names[k]) for i, k in draw(names, max(1, CALLS // samples))]
        first, candidates = [], np.ones(1)
    annotator.answers(contents, entries)
    numbers = range(samples) if annotator.mode == "samples" else [None]
    second = [answer_body(annotator.style, contents[i], name, k) for i, name in entries for k in numbers]
    units = count * (len(groups) or len(names))
    totals = _totals(_tokens(annotator, first), _tokens(annotator, second), candidates, samples, units, rng)
    money = np.array([annotator.client.meter.caps.cost((row[1], row[2])) for row in totals])
    calls, input_tokens, output_tokens = (_interval(totals[:, k]) for k in range(3))
    sampled, answers = len(first) + len(second), dict(annotator.outcomes)
    return Forecast(calls, input_tokens, output_tokens, _interval(money), sampled, answers)


def _totals(
    first: Floats, second: Floats, candidates: Floats, samples: int, units: int, rng: np.random.Generator
) -> Floats:
    """Return resampled totals [R, 3] of calls and tokens; row 0 is the sample itself."""
    rows = []
    for k in range(RESAMPLES + 1):
        resampled = [
            part[rng.integers(len(part), size=len(part))] if k and len(part) else part for part in (first, second)
        ]
        chosen = candidates[rng.integers(len(candidates), size=len(candidates))] if k else candidates
        answers = float(chosen.mean()) * samples
        totals = np.array([answers + bool(len(first)), 0.0, 0.0])
        if len(first):
            totals[1:] += resampled[0].mean(axis=0)
        if len(second):
            totals[1:] += answers * resampled[1].mean(axis=0)
        rows.append(units * totals)
    return np.array(rows)


def _tokens(annotator: Annotator, bodies: Sequence[bytes]) -> Floats:
    """Return tokens of prompt and answer of each body, [n, 2]; upper bounds if the endpoint does not count."""
    replies_by_id = annotator.client.replies.find([identify(body) for body in bodies])
    counted = []
    for body in bodies:
        stored = replies_by_id.get(identify(body))
        reply = None if stored is None else parse_reply(stored.body)
        counted.append(most_tokens(body) if reply is None or reply.tokens is None else reply.tokens)
    return np.array(counted, np.float64).reshape(-1, 2)


def _interval(values: Floats) -> tuple[float, float, float]:
    low, high = np.quantile(values[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(values[0]), float(low), float(high)
