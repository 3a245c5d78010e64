"""vlpl: the loss of unknown entries by hand, and beliefs that come from the teacher."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from conformance.bench import make_pool, make_task, observed
from partly import Classifier, Labels
from partly.clock import Clock
from partly.methods.curriculum import Curriculum
from partly.methods.em_apl import EMAPL
from partly.methods.refine import Refine
from partly.methods.role import Role
from partly.methods.vlpl import VLPL
from partly.teachers import Scores


class Fixed:
    """A prior with given logits, whatever a start says."""

    def __init__(self, logits: Tensor) -> None:
        self.logits = logits

    def __call__(self, out_of_fold: Tensor | None) -> Tensor:
        return self.logits

    def take(self, rows: Any) -> Fixed:
        return Fixed(self.logits[rows])


def prior() -> Fixed:
    return Fixed(torch.linspace(-2, 2, observed().size).reshape(observed().shape))


def begun(kind: Any, **settings: Any) -> Any:
    pool = make_pool()
    method = kind(replace(make_task(pool, head="linear"), prior=prior()), **settings)
    method.begin_epoch(pool, Clock(0, 4, pool.steps))
    return method


@pytest.mark.parametrize("pseudo", ["soft", "positive"])
def test_loss_by_hand(pseudo: str) -> None:
    method, pool = begun(VLPL, pseudo=pseudo, alpha=0.2, beta=0.6, threshold=0.4, smoothing=0.1), make_pool()
    batch = pool.take(torch.arange(len(pool)))
    with torch.no_grad():
        for parameter in method.network.parameters():
            parameter.normal_(0.0, 0.02, generator=torch.Generator().manual_seed(3))
        p = torch.sigmoid(method.network(batch.x, batch.z)).double()
    q, total = torch.sigmoid(prior().logits).half().double(), 0.0
    for i in range(p.shape[0]):
        for j in range(p.shape[1]):
            yes, no = -math.log(p[i, j]), -math.log(1 - p[i, j])
            entropy = p[i, j] * yes + (1 - p[i, j]) * no
            if batch.z[i, j]:
                total += yes if batch.z[i, j] > 0 else no
            elif pseudo == "soft":
                total += 0.6 * (q[i, j] * yes + (1 - q[i, j]) * no)
            else:
                total += 0.6 * (0.9 * yes + 0.1 * no) if q[i, j] > 0.4 else -0.2 * entropy
    loss = method.update(batch, Clock(0, 4, pool.steps))["loss"]
    assert loss == pytest.approx(float(total) / p.numel(), rel=1e-4)


@pytest.mark.parametrize("kind", [VLPL, Role, Refine])
def test_beliefs_start_at_the_teacher(kind: Any) -> None:
    beliefs, z = begun(kind).beliefs().float(), torch.from_numpy(observed())
    torch.testing.assert_close(beliefs[z == 0], torch.sigmoid(prior().logits)[z == 0], atol=1e-3, rtol=0)
    assert ((beliefs[z != 0] > 0.5) == (z[z != 0] > 0)).all()


def test_em_apl_takes_its_first_beliefs_from_the_teacher() -> None:
    z = torch.from_numpy(observed())
    beliefs = begun(EMAPL, warmup=0.0).believed.float()
    soft = (z == 0) & (beliefs >= 0)
    assert soft.any()
    torch.testing.assert_close(beliefs[soft], torch.sigmoid(prior().logits)[soft], atol=1e-3, rtol=0)
    without = EMAPL(make_task(make_pool()), warmup=0.0)
    without.begin_epoch(make_pool(), Clock(0, 4, make_pool().steps))
    assert not ((z == 0) & (without.believed >= 0)).any()


@pytest.mark.parametrize("method", ["vlpl", "role", "em-apl", "curriculum"])
def test_a_teacher_that_knows_the_truth_teaches_beliefs(method: str) -> None:
    rng = np.random.default_rng(0)
    x, truth = rng.normal(size=(120, 4)).astype(np.float32), rng.random((120, 5)) < 0.3  # unrelated
    z = np.where(rng.random(truth.shape) < 0.3, 2 * truth - 1, 0).astype(np.int8)
    scores = 2.0 * truth + rng.normal(size=truth.shape)
    options: dict[str, Any] = {"epochs": 2, "progress": False, "seed": 1}
    unknown = z == 0

    def agreement(teacher: Any) -> float:
        model = Classifier(method, teacher=teacher, **options).fit(x, Labels.from_ternary(z))
        beliefs = np.asarray(model.beliefs_, np.float64)[unknown]
        return float(beliefs[truth[unknown]].mean() - beliefs[~truth[unknown]].mean())

    taught, alone = agreement(Scores(scores)), agreement("none")
    assert taught > alone + 0.05


def test_the_method_needs_no_teacher() -> None:
    pool = make_pool()
    method = VLPL(make_task(pool))
    method.begin_epoch(pool, Clock(0, 4, pool.steps))
    z = torch.from_numpy(observed())
    assert (method.beliefs()[z == 0] == 0.5).all()


def test_curriculum_reads_start_and_teacher() -> None:
    torch.testing.assert_close(begun(Curriculum)._first_scores, prior().logits)
