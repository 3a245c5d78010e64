"""Learning rates worked out by hand, for each schedule."""

from __future__ import annotations

import math
from typing import Any

import pytest

from partly.clock import Clock
from partly.engine import make_config
from partly.errors import SettingError
from partly.optim import schedules
from partly.registry import About


def rate(name: str, clock: Clock, **settings: Any) -> float:
    found = schedules.find(name)
    return float(found.make(clock, 2.0, **found.complete(settings)))


def by_epoch(name: str, epochs: int, scores: list[float | None] | None = None, **settings: Any) -> list[float]:
    """The rate of the first step of each epoch, as a share of the full one."""
    found = []
    for epoch in range(epochs):
        clock = Clock(0, epochs, 3, epoch=epoch, scores=(scores or [])[:epoch])
        shares = {
            rate(name, Clock(0, epochs, 3, epoch, step, scores=clock.scores), **settings) / 2 for step in range(3)
        }
        assert len(shares) == 1  # the same throughout an epoch
        found += shares
    return found


def test_what_there_is() -> None:
    assert set(schedules.discover()) == {"cosine", "step", "plateau", "constant"}
    assert [name for name in schedules.discover() if schedules.needs_validation(name)] == ["plateau"]
    with pytest.raises(SettingError, match=r"There is no schedule 'steps'\. Did you mean 'step'\?"):
        schedules.find("steps")


def test_a_decorated_function_is_a_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules._SCHEDULES, "_functions", dict(schedules._SCHEDULES._functions))

    @schedules.schedule(About(aliases=("root",)))
    def inverse_root(clock: Clock, lr: float, *, power: float = 0.5) -> float:
        """One over a root of the epoch.

        Paper: A. Author. Title.
        """
        return lr / float((1 + clock.epoch) ** power)

    assert by_epoch("inverse-root", 4) == pytest.approx([1, 2**-0.5, 3**-0.5, 0.5])
    info = schedules.find("root")
    assert (info.summary, info.citation) == ("One over a root of the epoch.", "A. Author. Title.")
    assert info.defaults() == {"power": 0.5}
    assert len(info.source_sha256) == 64  # of this file
    assert schedules.find("cosine").source_sha256 == ""
    assert make_config("bce", schedule="inverse-root").schedule_settings == {"power": 0.5}


def test_a_name_that_is_taken_is_refused() -> None:
    def cosine(clock: Clock, lr: float) -> float:
        return lr

    with pytest.raises(SettingError, match=r"there is a schedule 'cosine' already, in partly\.optim\.schedules\."):
        schedules.schedule()(cosine)


@pytest.mark.parametrize(
    ("step", "share"),
    [
        # 2 epochs of 4 steps, the first quarter warm-up: a step stands for its middle, (step + 1/2) / 8.
        (0, 0.25),
        (1, 0.75),
        (2, 0.5 + 0.5 * math.cos(math.pi * 1 / 12)),
        (7, 0.5 + 0.5 * math.cos(math.pi * 11 / 12)),
    ],
)
def test_cosine(step: int, share: float) -> None:
    clock = Clock(0, epochs=2, steps=4, epoch=step // 4, step=step % 4)
    assert rate("cosine", clock, warmup=0.25) == pytest.approx(2 * share)


def test_constant() -> None:
    assert by_epoch("constant", 4) == [1, 1, 1, 1]
    shares = [rate("constant", Clock(0, 2, 4, n // 4, n % 4), warmup=0.5) / 2 for n in range(8)]
    assert shares == pytest.approx([1 / 8, 3 / 8, 5 / 8, 7 / 8, 1, 1, 1, 1])


def test_step_at_epochs_at_shares_and_every_so_many() -> None:
    assert by_epoch("step", 6, at=[2, 5]) == pytest.approx([1, 1, 0.1, 0.1, 0.1, 0.01])
    assert by_epoch("step", 4, gamma=0.5) == pytest.approx([1, 1, 0.5, 0.25])  # after a half, and three quarters
    assert by_epoch("step", 6, every=2, gamma=0.5) == pytest.approx([1, 1, 0.5, 0.5, 0.25, 0.25])
    assert by_epoch("step", 3, at=[10]) == [1, 1, 1]


def test_plateau_waits_and_then_cuts() -> None:
    scores = [0.5, 0.6, 0.6, 0.55, 0.7, 0.6, 0.6, 0.6]
    assert by_epoch("plateau", 9, scores, gamma=0.5, patience=1) == [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25]
    assert by_epoch("plateau", 5, scores, gamma=0.5, patience=0) == [1, 1, 1, 0.5, 0.25]
    assert by_epoch("plateau", 4, [None, None, None], gamma=0.5, patience=0) == [1, 0.5, 0.25, 0.125]


def test_a_phase_with_a_clock_of_its_own_counts_its_own_scores() -> None:
    """The run is in epoch 3, the phase in its epoch 1: of what came before, only the last score is of the phase."""
    clock = Clock(0, 2, 3, epoch=1, scores=[0.9, 0.8, 0.1])
    assert rate("plateau", clock, gamma=0.5, patience=0) == 2.0


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("cosine", {"warmup": -0.1}, "warmup = -0.1: should be from 0 to 1"),
        ("step", {"gamma": 2.0}, "gamma = 2.0: should be from 0 to 1"),
        ("step", {"every": 0}, "every = 0: should be 1 or more"),
        ("step", {"at": [3, -1]}, r"at\[1\] = -1: should be 0 or more"),
        ("step", {"at": "three"}, "step: setting at = 'three' should be"),
        ("plateau", {"patience": -1}, "patience = -1: should be 0 or more"),
        ("constant", {"gamma": 0.1}, "The schedule constant has no setting 'gamma'"),
    ],
)
def test_what_cannot_be_is_refused(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        rate(name, Clock(0), **settings)
