"""Optimizers by name, one step of each worked by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from partly.errors import SettingError
from partly.optim import optimizers


def stepped(name: str, weight_decay: float = 0.0, gradients: tuple[float, ...] = (0.5,)) -> float:
    weight = nn.Parameter(torch.tensor([2.0]))
    optimizer = optimizers.make(name, [{"params": [weight]}], 0.1, weight_decay)
    for gradient in gradients:
        weight.grad = torch.tensor([gradient])
        optimizer.step()
    return weight.item()


def test_one_step_by_hand() -> None:
    assert stepped("sgd") == pytest.approx(2 - 0.1 * 0.5)
    assert stepped("sgd", gradients=(0.5, 0.5)) == pytest.approx(2 - 0.1 * 0.5 - 0.1 * (0.9 * 0.5 + 0.5))
    assert stepped("adam") == pytest.approx(2 - 0.1)  # a first step is as long as the rate, whatever the gradient
    assert stepped("adamw") == pytest.approx(2 - 0.1)
    assert stepped("rmsprop") == pytest.approx(2 - 0.1 * 0.5 / (0.1 * 0.5**2) ** 0.5, rel=1e-5)


def test_the_decay_of_adam_is_part_of_the_gradient_and_that_of_adamw_is_not() -> None:
    assert stepped("adam", weight_decay=0.3) == pytest.approx(2 - 0.1)  # scaled away
    assert stepped("adamw", weight_decay=0.3) == pytest.approx(2 * (1 - 0.1 * 0.3) - 0.1)


def test_what_is_no_optimizer_is_refused() -> None:
    with pytest.raises(SettingError, match=r"There is no optimizer 'sdg'\. Did you mean 'sgd'\?"):
        optimizers.make("sdg", [], 0.1, 0.0)


@pytest.mark.parametrize("name", optimizers.OPTIMIZERS)
def test_state_goes_in_and_out(name: str) -> None:
    def steps(optimizer: torch.optim.Optimizer, weight: nn.Parameter) -> list[float]:
        found = []
        for number in range(3):
            weight.grad = torch.full_like(weight, 0.1 * number + 0.2)
            optimizer.step()
            found.append(weight.sum().item())
        return found

    weight = nn.Parameter(torch.ones(2, 3))
    optimizer = optimizers.make(name, [{"params": [weight]}], 0.1, 0.1)
    steps(optimizer, weight)
    saved = {f"mine.{key}": value.clone() for key, value in optimizers.optimizer_state(optimizer).items()}
    again = nn.Parameter(weight.detach().clone())
    other = optimizers.make(name, [{"params": [again]}], 0.1, 0.1)
    optimizers.load_state(other, saved, "mine.")
    assert steps(other, again) == steps(optimizer, weight)


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop])
def test_without_torchs_compiler_every_step_is_the_same(kind: type[torch.optim.Optimizer]) -> None:
    found = []
    for made in (kind, optimizers.without_hooks(kind)):
        weight = torch.nn.Parameter(torch.linspace(-1, 1, 6))
        optimizer = made([{"params": [weight]}], lr=0.1, weight_decay=0.1)  # type: ignore[call-arg]
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            (weight**2).sum().backward()
            optimizer.step()
        assert weight.requires_grad
        found.append(weight.detach())
    assert torch.equal(*found)
    assert not hasattr(
        optimizers.without_hooks(kind).zero_grad, "__wrapped__"
    )  # nothing is left to load a compiler for


def test_no_step_is_announced_to_torchs_profiler() -> None:
    weight = nn.Parameter(torch.ones(3))
    optimizer = optimizers.make("adamw", [{"params": [weight]}], 0.1, 0.1)
    weight.grad = torch.ones(3)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        optimizer.step()
    names = [event.name for event in seen.events()]
    assert any("fused_adamw" in name for name in names)
    assert not any(name.startswith("Optimizer.step") for name in names)
