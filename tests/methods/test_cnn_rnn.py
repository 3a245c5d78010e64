"""cnn-rnn: the order of labels, the loss and the beam search, each against plain loops."""

from __future__ import annotations

import math

import pytest
import torch

from conformance.bench import make_clock, make_pool, make_task, x_of
from partly.methods.cnn_rnn import CNNRNN
from partly.pool import Pool

LABELS, END, START = 5, 5, 6


def begun(**settings: int) -> tuple[CNNRNN, Pool]:
    pool = make_pool()
    made = CNNRNN(make_task(pool), **settings).eval()
    made.begin_epoch(pool, make_clock(pool))
    return made, pool


def named(made: CNNRNN, pool: Pool, row: torch.Tensor) -> list[int]:
    """The known yes of an item, the most frequent first, of equal ones the first; then the end."""
    yes = pool.labels.counts()[0]
    return [*sorted((j for j in range(LABELS) if row[j] == 1), key=lambda j: (-yes[j], j)), END]


def log_next(made: CNNRNN, x: torch.Tensor, before: list[int]) -> list[float]:
    """Log-probabilities of labels and end, one item, after some labels; the LSTM run anew from its start."""
    heard, _ = made.lstm(made.vectors(torch.tensor([[START, *before]])))
    inner = torch.relu(made.output(heard[0, -1]) + made.network(x.unsqueeze(0))[0])
    scores = [(inner @ made.vectors.weight[j]).item() for j in range(LABELS + 1)]
    total = math.log(sum(map(math.exp, scores)))
    return [score - total for score in scores]


def test_sequences_name_the_frequent_labels_first() -> None:
    made, pool = begun()
    z = pool.take(torch.arange(len(pool))).z
    found = made.sequences(z)
    for row, sequence in zip(z, found.tolist(), strict=True):
        expected = named(made, pool, row)
        assert sequence == expected + [END] * (len(sequence) - len(expected))


def test_the_loss_is_the_mean_over_all_that_is_named() -> None:
    made, pool = begun(size=6)
    batch = pool.take(torch.arange(5))
    terms = []
    for x, row in zip(batch.x, batch.z, strict=True):
        sequence = named(made, pool, row)
        terms += [-log_next(made, x, sequence[:place])[label] for place, label in enumerate(sequence)]
    assert made.update(batch, make_clock(pool))["loss"] == pytest.approx(sum(terms) / len(terms), rel=1e-5)


@pytest.mark.parametrize(("beam", "longest"), [(1, 3), (2, 3), (3, 10), (200, 10)])
def test_beam_search_against_loops(beam: int, longest: int) -> None:
    made, pool = begun(size=6, beam=beam, longest=longest)
    found = torch.sigmoid(made(x_of(pool.items)[:4]))
    for x, probabilities in zip(x_of(pool.items)[:4], found.tolist(), strict=True):
        highest = [0.0] * LABELS
        paths: list[tuple[float, list[int]]] = [(0.0, [])]
        for _ in range(min(longest, LABELS)):
            longer = []
            for likely, before in paths:
                scores = log_next(made, x, before)
                for j in (j for j in range(LABELS) if j not in before):
                    highest[j] = max(highest[j], math.exp(scores[j]))
                    longer.append((likely + scores[j], [*before, j]))
            paths = sorted(longer, reverse=True)[:beam]
        assert probabilities == pytest.approx(highest, rel=1e-4)
