"""p-asl: how frequent labels are found, and which unknown entries each mode leaves out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from conformance.bench import make_clock, make_pool, make_task, observed
from partly import losses
from partly.methods.p_asl import PASL


def started(z: np.ndarray | None = None, **settings: Any) -> PASL:
    pool = make_pool(z)
    made = PASL(make_task(pool), **settings)
    made.begin_epoch(pool, make_clock(pool))
    return made.eval()


def test_shares_of_yes() -> None:
    z = observed()
    z[:, 1] = np.maximum(z[:, 1], 0)  # no known no
    z[:, 2] = 0  # nothing known
    z[:, 3] = np.minimum(z[:, 3], 0)  # no known yes
    expected = [
        (z[:, 0] == 1).sum() / (z[:, 0] != 0).sum(),
        0.0,
        0.0,
        0.0,
        (z[:, 4] == 1).sum() / (z[:, 4] != 0).sum(),
    ]
    np.testing.assert_allclose(started(z).prior, expected, rtol=1e-6)


def test_selective_leaves_out_frequent_labels_and_likely_entries() -> None:
    made = started(likely=1.5, prior_threshold=0.3)
    made.prior = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5])
    z = torch.tensor([[1, 0, 0, 0, -1], [0, 0, -1, 1, 0]], dtype=torch.int8)
    logits = torch.tensor([[9.0, -1.0, 2.0, -5.0, 9.0], [0.5, -2.0, 9.0, 9.0, 3.0]])
    # Likely: three entries, the unknown ones at 3, 2 and 0.5. Frequent: the last two labels.
    assert made._ignore_mask(logits, z).tolist() == [
        [False, False, True, True, False],
        [True, False, False, False, True],
    ]


def test_the_other_modes() -> None:
    z = torch.from_numpy(observed())
    logits = torch.zeros(z.shape)
    assert started(mode="negative")._ignore_mask(logits, z) is None
    assert torch.equal(started(mode="ignore")._ignore_mask(logits, z), z == 0)


@pytest.mark.parametrize("mode", ["selective", "negative", "ignore"])
def test_settings_reach_the_loss(mode: str) -> None:
    settings = {"gamma_yes": 0.5, "gamma_no": 1.5, "gamma_unknown": 2.5, "clip": 0.1, "weight_unknown": 0.4}
    made, pool = started(mode=mode, likely=1.0, **settings), make_pool()
    batch = pool.take(torch.arange(3, 9))
    logits = made(batch.x)
    ignored = made._ignore_mask(logits, batch.z)
    expected = losses.partial_asymmetric(logits, batch.z, ignored=ignored, **settings).mean().item()
    assert made.update(batch, make_clock(pool))["loss"] == pytest.approx(expected, rel=1e-6)
