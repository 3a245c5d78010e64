"""What a loss takes for z, and what it refuses: every loss, but none inside the loop or in compiled code."""

from __future__ import annotations

import inspect

import pytest
import torch
from torch import Tensor

from partly import losses
from partly.clock import Clock
from partly.engine import training
from partly.errors import LabelError
from partly.items import as_items
from partly.labels import Labels
from partly.losses import validation
from partly.method import LossMethod
from partly.pool import Pool
from plans import task_of

EVERY = [name for name in losses.__all__ if list(inspect.signature(getattr(losses, name)).parameters)[1:2] == ["z"]]
LOGITS = torch.tensor([[0.5, -1.0, 2.0], [0.0, 1.0, -3.0]])
Z = torch.tensor([[1, -1, 0], [0, 1, -1]], dtype=torch.int8)
MORE = {"partial_asymmetric": {"ignored": torch.zeros(2, 3, dtype=torch.bool)}}
WRONG = {
    "0/1 with NaN": (torch.tensor([[1, 0, torch.nan], [torch.nan, 1, 0]]), "2 other values of 6: nan"),
    "-100": (torch.tensor([[1, 0, -100], [0, 1, 0]]), "1 other values of 6: -100"),
    "255 as a byte": (torch.tensor([[1, 0, 255], [0, 1, 0]], dtype=torch.uint8), "uint8, which cannot hold -1"),
    "booleans": (Z == 1, "bool, which cannot hold -1"),
    "soft": (torch.tensor([[0.7, 0, 1], [0, -1, 0]]), "1 other values of 6: 0.7"),
}


def test_all_losses_of_z_are_meant() -> None:
    assert {"bce", "partial_bce", "lsep", "large_loss", "hill", "expected_positive"} <= set(EVERY)


@pytest.mark.parametrize("name", EVERY)
def test_other_encodings_are_refused(name: str) -> None:
    loss = getattr(losses, name)
    for z, told in WRONG.values():
        with pytest.raises(LabelError, match=told) as caught:
            loss(LOGITS, z, **MORE.get(name, {}))
        assert "z is +1 (yes), -1 (no) and 0 (unknown)" in str(caught.value)
    with pytest.raises(LabelError, match=r"z has the shape \[3\] and logits \[2, 3\]"):
        loss(LOGITS, Z[0], **MORE.get(name, {}))


@pytest.mark.parametrize("name", EVERY)
def test_z_of_any_type_that_holds_it_is_the_same(name: str) -> None:
    loss, more = getattr(losses, name), MORE.get(name, {})
    for dtype in (torch.int64, torch.float32, torch.float16):
        torch.testing.assert_close(loss(LOGITS, Z.to(dtype), **more), loss(LOGITS, Z, **more))


def test_the_remedies_make_z() -> None:
    y = torch.tensor([[1, 0, torch.nan]])
    assert torch.where(y.isnan(), 0, 2 * y - 1).tolist() == [[1, -1, 0]]
    for unknown in (-1, -100):
        y = torch.tensor([[1, 0, unknown]])
        assert torch.where(y < 0, 0, 2 * y - 1).tolist() == [[1, -1, 0]]


def test_one_loss_made_of_another_looks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Tensor] = []
    monkeypatch.setattr(validation, "_refuse", lambda _, z: seen.append(z))
    losses.partial_bce(LOGITS, Z)
    assert len(seen) == 1
    assert not validation.SKIPS_VALIDATION.get()


def test_the_loop_and_compiled_code_do_not_look(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Tensor) -> None:
        raise AssertionError("z was looked at")

    monkeypatch.setattr(validation, "_refuse", never)
    labels = Labels.from_ternary(Z.numpy())
    pool = Pool(as_items(LOGITS), labels, 2)
    method = LossMethod(task_of(pool.items, labels=3, head="linear", observed=labels), losses.bce, {})
    training.train(method, pool, Clock(0, 1, pool.steps))
    compiled = torch.compile(losses.bce, backend="eager", fullgraph=True)
    assert compiled(LOGITS, Z).shape == (2, 3)
