"""A method that is a loss, at its default settings, against plain arithmetic on single entries: as it is found by name,
and in a step of what is built from it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from conformance.bench import built, make_clock, make_pool, make_task
from losses.cases import CLOSE, LOGITS, MIXED, Term, by_entry
from partly import methods
from partly.clock import Clock


def check_defaults(name: str, for_yes: Term, for_no: Term, for_unknown: Term, clock: Clock | None = None) -> None:
    """Each entry by itself, with the term of what is known of it."""
    check_against(name, lambda logits, z: by_entry(logits, z, for_yes, for_no, for_unknown), clock)


def check_against(name: str, slow: Callable[[Tensor, Tensor], np.ndarray], clock: Clock | None = None) -> None:
    """`slow` makes losses of logits and z [B, L], per entry or per item; `clock` is for a loss that asks for it."""
    info = methods.find(name)
    found = info.make(LOGITS, MIXED, *([clock] if clock else []), **info.complete({}))
    np.testing.assert_allclose(found, slow(LOGITS, MIXED), **CLOSE)
    pool = make_pool()
    method = built(info, make_task(pool, head="linear", head_settings={"solve": False}))
    batch = pool.take(torch.arange(8))
    expected = slow(method(batch.x).detach(), batch.z).mean()
    assert method.update(batch, clock or make_clock(pool))["loss"] == pytest.approx(expected, rel=1e-5)
