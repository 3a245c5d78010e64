"""em-apl: when entries get a belief, which ones and how many, and what it costs them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from conformance.bench import make_clock, make_pool, make_task, observed, x_of
from losses.cases import entropy, no, yes
from partly.clock import Clock
from partly.engine import prediction, training
from partly.methods.em_apl import EMAPL, smallest_per_row
from partly.pool import Batch


def method(**settings: float) -> EMAPL:
    return EMAPL(make_task(make_pool()), **settings)


def scores(made: EMAPL) -> Tensor:
    return torch.from_numpy(prediction.logits(made, make_pool().items))


def begin(made: EMAPL, epoch: int, epochs: int = 10) -> None:
    pool = make_pool()
    made.begin_epoch(pool, Clock(0, epochs, pool.steps, epoch))


@pytest.mark.parametrize(
    ("epochs", "settings", "expected"),
    [
        (10, {}, [0, 0, 0, 0, 0, 0.18, 0.36, 0.54, 0.72, 0.9]),
        (10, {"warmup": 0.8, "share": 0.5}, [0, 0, 0, 0, 0, 0, 0, 0, 0.25, 0.5]),
        (4, {"warmup": 0.0}, [0, 0.3, 0.6, 0.9]),  # before the first epoch there is nothing to go by
        (3, {"warmup": 1.0}, [0, 0, 0.9]),
        (2, {}, [0, 0.9]),
        (1, {}, [0]),
    ],
)
def test_schedule(epochs: int, settings: dict[str, float], expected: list[float]) -> None:
    made = method(**settings)
    assert [made.share_at(Clock(0, epochs, epoch=e)) for e in range(epochs)] == pytest.approx(expected)


def test_the_lowest_scores_of_each_label_become_soft_and_stay() -> None:
    made = method()
    begin(made, 0)
    z = torch.from_numpy(observed())
    assert torch.equal(made.beliefs(), torch.where(z == 0, 0.5, (z == 1).half()))
    before = made.believed.clone()
    for epoch in range(5, 10):
        with torch.no_grad():
            for parameter in made.network.parameters():
                parameter.add_(0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(epoch)))
        begin(made, epoch)
        now, logits = made.believed.clone(), scores(made)
        for label in range(z.shape[1]):
            unknown = z[:, label] == 0
            held, had = now[:, label] >= 0, before[:, label] >= 0
            assert int((held & unknown).sum()) == int(0.18 * (epoch - 4) * int(unknown.sum()) + 1e-6)
            assert torch.equal(now[had, label], before[had, label])
            new, left = logits[held & ~had, label], logits[~held, label]
            assert not len(new) or not len(left) or new.max() <= left.min()
            np.testing.assert_allclose(now[held & ~had, label].float(), torch.sigmoid(new), rtol=1e-3)
        before = now
    assert torch.equal(made.beliefs()[z != 0], (z[z != 0] == 1).half())


def test_a_run_ends_with_nine_tenths_of_each_label() -> None:
    made, pool = method(), make_pool()
    training.train(made, pool, make_clock(pool, epochs=4))
    z = torch.from_numpy(observed())
    wanted = [int(0.9 * int((z[:, label] == 0).sum()) + 1e-6) for label in range(z.shape[1])]
    assert (((made.believed >= 0) & (z == 0)).sum(dim=0)).tolist() == wanted
    assert sum(wanted) > 20


def test_scoring_is_without_dropout_and_leaves_the_mode_alone() -> None:
    made = method()
    for mode in (True, False):
        begin(made, 0)
        made.train(mode)
        begin(made, 9)
        assert made.training is mode
        assert made.network.training is mode
        chosen = (made.believed >= 0) & (torch.from_numpy(observed()) == 0)
        np.testing.assert_allclose(made.believed[chosen].float(), torch.sigmoid(scores(made))[chosen], rtol=1e-3)


def test_loss_of_a_batch() -> None:
    """Known entries, unknown ones without a belief, and beliefs of 0.25 and of exactly 0."""
    made = method(alpha=0.3, beta=0.2)
    pool, index = make_pool(), torch.tensor([3, 9])
    z = torch.tensor([[1, -1, 0, 0, 0], [0, 0, 0, 1, -1]], dtype=torch.int8)
    made.believed[index] = torch.tensor([[1.0, 0.0, -1.0, 0.25, 0.0], [-1.0, 0.0, 0.25, 1.0, 0.0]]).half()
    made.eval()
    logits = made(x_of(pool.items)[index]).tolist()
    total = 0.0
    for row, known, believed in zip(logits, z.tolist(), made.believed[index].tolist(), strict=True):
        for x, said, t in zip(row, known, believed, strict=True):
            if said:
                total += yes(x) if said == 1 else no(x)
            else:
                total += -0.3 * entropy(x) if t < 0 else 0.2 * (t * yes(x) + (1 - t) * no(x))
    logs = made.update(Batch(x_of(pool.items)[index], z, index), make_clock(pool))
    assert logs["loss"] == pytest.approx(total / 10, rel=1e-5)


def test_as_many_as_asked_of_each_row_and_no_more_where_values_are_equal() -> None:
    rng = np.random.default_rng(0)
    values = torch.from_numpy(rng.integers(0, 4, (9, 12)).astype(np.float32))  # many are equal
    among = torch.from_numpy(rng.random((9, 12)) < 0.7)
    counts = torch.tensor([min(i - 1, int(among[i].sum())) for i in range(9)])  # -1 and 0 among them
    chosen = smallest_per_row(values, among, counts)
    for row in range(9):
        count = max(0, int(counts[row]))
        assert not (chosen[row] & ~among[row]).any()
        assert int(chosen[row].sum()) == count
        assert sorted(values[row][chosen[row]].tolist()) == sorted(values[row][among[row]].tolist())[:count]
