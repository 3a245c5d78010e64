"""Training on a device that refuses what a GPU refuses: no operation mixes tensors of it with those of the CPU."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim import adam

from other_device import DEVICE, OtherDevice
from partly import Labels, engine, losses, methods
from partly.items import as_items

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 5)).astype(np.float32)
Z = np.where(RNG.random((60, 3)) < 0.7, np.where(X[:, :3] + RNG.normal(size=(60, 3)) > 0, 1, -1), 0).astype(np.int8)
Z[:10] = np.where(Z[:10] == 0, 1, Z[:10])  # some items are known wholly, for methods that need such
ON_THE_CPU = ("per-label",)  # its estimators are scikit-learn's


@pytest.fixture(autouse=True)
def other_device(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)  # parameters become tensors of another class
    monkeypatch.setattr(torch, "inference_mode", torch.no_grad)  # which such tensors do not support
    monkeypatch.setattr(adam, "_device_dtype_check_for_fused", lambda *_, **__: None)
    with OtherDevice():
        yield
    torch.__future__.set_swap_module_params_on_conversion(before)


def fitted(method: str, head: str, device: str) -> tuple[Any, np.ndarray]:
    x, labels = as_items(X), Labels.from_ternary(Z)
    config = engine.TrainConfig(**{"method": method, "head": head, "epochs": 2, "seed": 0})
    recipe, _ = engine.resolve_config(config, x, labels)
    model = engine.fit(engine.resolve(recipe, (x, labels)), device=device)
    return model, model.logits(x)


@pytest.mark.parametrize("method", [name for name in methods.discover() if name not in ON_THE_CPU])
def test_a_method_keeps_to_its_device(method: str) -> None:
    head = "auto" if method == "auto" else "kernel"
    model, found = fitted(method, head, DEVICE)
    assert {part.device.type for part in (*model.method.parameters(), *model.method.buffers())} == {DEVICE}
    np.testing.assert_array_equal(found, fitted(method, head, "cpu")[1])


@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_a_head_keeps_to_its_device(head: str) -> None:
    for method in ("bce", "focal"):
        np.testing.assert_array_equal(fitted(method, head, DEVICE)[1], fitted(method, head, "cpu")[1])


def takes_entries(name: str) -> bool:
    return list(inspect.signature(getattr(losses, name)).parameters)[:2] == ["logits", "z"]


@pytest.mark.parametrize("name", list(filter(takes_entries, losses.__all__)))
def test_a_loss_keeps_to_its_device_and_dtype(name: str) -> None:
    loss = getattr(losses, name)
    for dtype in (torch.float32, torch.float64):
        logits = torch.randn(4, 3, dtype=dtype).to(DEVICE).requires_grad_()
        value = loss(logits, torch.tensor(Z[:4]).to(DEVICE))
        assert (value.device.type, value.dtype) == (DEVICE, dtype)
        value.mean().backward()
        assert (logits.grad.device.type, logits.grad.dtype) == (DEVICE, dtype)


def test_the_device_refuses_tensors_of_the_cpu() -> None:
    there = torch.ones(3).to(DEVICE)
    assert (there * 2 + 1).cpu().tolist() == [3, 3, 3]
    for bad in (lambda: there + torch.ones(3), lambda: torch.stack([there, torch.ones(3)]), there.numpy):
        with pytest.raises(RuntimeError):
            bad()
