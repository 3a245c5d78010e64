"""one-class takes what is unknown for yes, at a weight."""

from __future__ import annotations

import math

import torch

from losses.cases import no, yes
from methods.by_hand import check_defaults
from partly.methods import one_class


def test_against_loops() -> None:
    logits = torch.tensor([[2.0, -1.0, 0.5], [-0.2, 1.5, -2.5]], dtype=torch.float64)
    z = torch.tensor([[1, 0, -1], [0, -1, 0]], dtype=torch.int8)
    found = one_class.loss(logits, z, weight=0.3)
    for i in range(2):
        for j in range(3):
            yes = math.log1p(math.exp(-logits[i, j].item()))
            no = math.log1p(math.exp(logits[i, j].item()))
            wanted = {1: yes, -1: no, 0: 0.3 * yes}[int(z[i, j])]
            assert math.isclose(found[i, j].item(), wanted, rel_tol=1e-12)


def test_defaults() -> None:
    check_defaults("one-class", yes, no, lambda x: 0.03 * yes(x))
