"""What layers compute of a whole batch, against torch's own on the whole batch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from partly.distributed.group import SINGLE_PROCESS, Group
from partly.distributed.layers import over_batch
from partly.errors import SettingError

WHOLE = slice(0, 6)
RANKS = (slice(0, 3), slice(3, 5), slice(5, 6))


def drawn(x: Tensor) -> Tensor:
    return F.dropout(F.dropout(x, 0.5), 0.2)


def test_dropout_is_that_of_one_process() -> None:
    x = torch.rand(6, 8) + 1
    torch.manual_seed(3)
    expected, after = drawn(x), torch.rand(3)
    found = []
    for rank, rows in enumerate(RANKS):
        torch.manual_seed(3)
        with over_batch(x[rows], rows, 6, Group(rank, 3)):
            found.append(drawn(x[rows]))
        assert torch.equal(torch.rand(3), after)  # what is drawn of the gathered batch is the same everywhere
    assert torch.equal(torch.cat(found), expected)


def test_dropout_of_rows_that_belong_to_items() -> None:
    """[B x 2, 8], as where each item has tokens."""
    x = torch.ones(12, 8)
    torch.manual_seed(3)
    expected = F.dropout(x, 0.5)
    torch.manual_seed(3)
    with over_batch(torch.ones(2, 1), RANKS[1], 6, Group(1, 3)):
        assert torch.equal(F.dropout(x[6:10], 0.5), expected[6:10])


def test_what_else_is_drawn_differs_between_processes_and_networks() -> None:
    seen, after = [], []
    for rank in range(2):
        torch.manual_seed(3)
        for _ in range(2):
            with over_batch(torch.ones(3, 1), slice(3 * rank, 3 * rank + 3), 6, Group(rank, 2)):
                seen.append(tuple(torch.rand(4).tolist()))
        after.append(torch.rand(4).tolist())
    assert len(set(seen)) == 4
    assert after[0] == after[1]


def test_what_is_worked_out_again_is_drawn_again() -> None:
    """Inside torch.utils.checkpoint the backward pass must see the mask of the forward pass."""
    x = torch.ones(2, 50, requires_grad=True)
    with over_batch(x, RANKS[1], 6, Group(1, 3)):
        made = checkpoint(drawn, x, use_reentrant=False)
    made.sum().backward()
    assert torch.equal(made, x.grad)  # of ones both are the mask


@pytest.mark.parametrize("shape", [(6, 4), (6, 4, 3, 3)])
def test_batch_normalisation(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape).mul_(3).add_(1)
    made = []
    for inside in (False, True):
        layer = nn.BatchNorm1d(4) if len(shape) == 2 else nn.BatchNorm2d(4)
        nn.init.uniform_(layer.weight, 0.5, 1.5, generator=torch.Generator().manual_seed(1))
        mine = x.clone().requires_grad_()
        if inside:
            with over_batch(mine, WHOLE, 6, SINGLE_PROCESS):
                out = layer(mine)
        else:
            out = layer(mine)
        (out**3).sum().backward()
        made.append((out, mine.grad, layer.weight.grad, layer.bias.grad, *layer.state_dict().values()))
    for one, other in zip(*made, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_batch_normalisation_at_rest_stays_as_it_is() -> None:
    layer, x = nn.BatchNorm1d(4).eval(), torch.randn(6, 4)
    with over_batch(x, WHOLE, 6, SINGLE_PROCESS):
        assert torch.equal(layer(x), x / (1 + 1e-5) ** 0.5)
    assert layer.running_mean is not None
    assert not layer.running_mean.any()


def test_batch_normalisation_that_is_worked_out_again_is_refused() -> None:
    layer, x = nn.BatchNorm1d(4), torch.randn(6, 4, requires_grad=True)
    with over_batch(x, WHOLE, 6, SINGLE_PROCESS), pytest.raises(SettingError, match="keep_statistics or freeze"):
        checkpoint(layer, x, use_reentrant=False)
