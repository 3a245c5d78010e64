"""Tests for the pictures of methods: they show the method's own loss, or its own plan."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from evidence import method_picture
from evidence.regimes import INNER_LOSSES
from partly import methods
from partly.clock import Clock
from partly.items import as_items
from partly.labels import Labels
from partly.pool import Pool
from plans import task_of

FOUND = {"single-positive": [0.1, 0.4], "uniform:0.2": [0.2, 0.5]}
PLAIN = {"l1r": {"strength": 0.0}, "l2r": {"strength": 0.0}, "p-asl": {"mode": "negative"}}  # nothing but the loss


def test_a_plan_is_what_the_method_does_epoch_after_epoch() -> None:
    believed = method_picture.plan("em-apl")["unknown entries with a belief"]
    assert believed[:10] == [0.0] * 10
    assert believed[10:] == pytest.approx(np.linspace(0.09, 0.9, 10))
    assert method_picture.plan("co-teaching")["items left out"] == pytest.approx([0, 0.01, *[0.02] * 18])
    assert method_picture.plan("large-loss")["unknown entries left out, or turned"][-1] == pytest.approx(
        0.035 * 19 / 20
    )
    assert method_picture.plan("curriculum")["rounds of labeling"] == [0] * 9 + [1] * 5 + [2] * 6
    assert method_picture.plan("bce") == {}


@pytest.mark.parametrize("name", INNER_LOSSES)
def test_the_loss_inside_is_what_the_method_learns_by(name: str) -> None:
    rng = np.random.default_rng(0)
    z = rng.choice(np.array([-1, 1], np.int8), (8, 5))
    if name != "fully-supervised":  # which learns from items that are wholly known
        z[rng.random(z.shape) < 0.4] = 0
    items, labels = as_items(rng.normal(size=(8, 3)).astype(np.float32)), Labels.from_ternary(z)
    info = methods.find(name)
    made = info.build(task_of(items, 5, head="mlp", observed=labels), info.complete(PLAIN.get(name, {}))).eval()
    (batch,) = Pool(items, labels, batch_size=8).batches(Clock(0))
    with torch.no_grad():
        expected = INNER_LOSSES[name](made(batch.x), batch.z).mean().item()
    assert expected > 0
    assert made.update(batch, Clock(0))["loss"] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("name", "start"), [("lsep", "Left: derivative"), ("em-apl", "Left: schedule"), ("auto", "Share of ")]
)
def test_words_and_picture_go_together(name: str, start: str) -> None:
    assert method_picture.words(name).startswith(start)
    drawn = method_picture.picture(name, FOUND, FOUND)
    assert (b"532" in drawn[:600]) == start.startswith("Left")  # points of width: two panels, or one


def test_the_slope_of_a_loss_of_pairs_has_both_sides() -> None:
    found = method_picture.slopes("lsep")
    assert found["yes"].max() < 0 < found["no"].min()
