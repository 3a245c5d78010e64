"""What a network does only while it learns: lower precision, and compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from partly import engine, networks
from partly.errors import SettingError
from partly.items import as_items
from partly.labels import Labels
from partly.networks.network import check_compiler, uses_bfloat16
from plans import change_task, fit_config, task_of

X = np.random.default_rng(0).normal(size=(24, 6)).astype(np.float32)
Z = np.random.default_rng(1).integers(-1, 2, (24, 3)).astype(np.int8)
TASK = task_of(
    as_items(X), 3, head="mlp", head_settings={"hidden": 16, "dropout": 0.0}, observed=Labels.from_ternary(Z)
)


def test_precision_by_device(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [uses_bfloat16("float32", device) for device in ("cpu", "cuda")] == [False, False]
    assert [uses_bfloat16("bfloat16", device) for device in ("cpu", "cuda")] == [True, True]
    for can in (False, True):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda can=can: can)
        assert [uses_bfloat16("auto", device) for device in ("cpu", "cuda")] == [False, can]


@pytest.mark.parametrize("head", [name for name in networks.heads() if name != "kernel"])
def test_every_head_learns_in_bfloat16_and_predicts_in_full(head: str) -> None:
    x, z = torch.from_numpy(X), torch.from_numpy(Z)
    plain, low = (change_task(TASK, head=head, head_settings={}, dtype=p).network("f") for p in ("float32", "bfloat16"))
    for network in (plain, low):
        network.eval()
    assert torch.equal(plain(x, z), low(x, z))
    low.train()
    with networks.eval_mode(low.features):  # no dropout
        torch.manual_seed(0)
        features, logits = low.features_and_logits(x, z)
    assert features.dtype == logits.dtype == torch.float32
    logits.square().sum().backward()
    gradients = [p.grad for p in low.parameters() if p.grad is not None]
    assert gradients
    assert all(g.dtype == torch.float32 and bool(g.isfinite().all()) for g in gradients)


def test_bfloat16_is_near_and_not_the_same() -> None:
    x = torch.from_numpy(X)
    plain, low = (change_task(TASK, dtype=p).network("f").train()(x) for p in ("float32", "bfloat16"))
    assert not torch.equal(plain, low)
    torch.testing.assert_close(plain, low, rtol=0.05, atol=0.02)


def test_only_what_learns_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def compile(function: Callable[..., Any]) -> Callable[..., Any]:
        def compiled(x: Tensor, z: Tensor | None) -> Any:
            calls.append(len(x))
            return function(x, z)

        return compiled

    monkeypatch.setattr(torch, "compile", compile)
    network, x = change_task(TASK, compile=True).network(), torch.from_numpy(X)
    assert network.state_dict().keys() == TASK.network().state_dict().keys()
    network.train()(x)
    network.features_and_logits(x[:5])
    network.eval()(x)
    assert calls == [24, 5]


def test_where_nothing_can_be_compiled_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile(_: Any) -> Any:
        raise RuntimeError("No working C++ compiler found\nand more")

    monkeypatch.setattr(torch, "compile", compile)
    with pytest.raises(
        SettingError, match=r"torch cannot compile here \(No working C\+\+ compiler found\)\. Install a C"
    ):
        check_compiler()
    recipe = engine.make_config("bce", "mlp", head_settings={"solve": False}, epochs=1, compile=True)
    with pytest.raises(SettingError, match="compile = True: torch cannot compile here"):
        fit_config(recipe, as_items(X), Labels.from_ternary(Z))
