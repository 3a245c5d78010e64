"""The head that starts where logistic regressions end."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from partly import Classifier, Labels, methods
from partly.items import as_items
from partly.method import Task
from partly.networks import Network
from plans import task_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4)).astype(np.float32)
TRUTH = np.where(X @ RNG.normal(size=(4, 3)) + RNG.normal(size=(120, 3)) > 0, 1, -1)
KNOWN = np.where(RNG.random(TRUTH.shape) < 0.5, TRUTH, 0).astype(np.int8)


def task(head: str = "warm-linear", z: np.ndarray = KNOWN) -> Task:
    return task_of(as_items(X), 3, head, observed=Labels.from_ternary(z))


def scores(name: str, where: Task) -> torch.Tensor:
    info = methods.find(name)
    return info.build(where, info.complete({})).eval()(torch.from_numpy(X)).detach()


def solved(method: str = "bce", z: np.ndarray = KNOWN) -> torch.Tensor:
    """By the method that solves, which has nothing of the start."""
    model = Classifier(method, head="linear", progress=False).fit(X, Labels.from_ternary(z))
    return torch.logit(torch.from_numpy(model.predict_proba(X)))


@pytest.mark.parametrize("name", ["imcl", "lsep", "latent-noise", "curriculum"])
def test_methods_start_at_what_bce_is_solved_to(name: str) -> None:
    torch.testing.assert_close(scores(name, task()), solved(), atol=1e-3, rtol=1e-3)
    assert not torch.allclose(scores(name, task("linear")), solved(), atol=0.1)


def test_two_networks_start_there_and_differ_a_little() -> None:
    info = methods.find("co-teaching")
    method = info.build(task(), info.complete({})).eval()
    f, g = (part for part in method.modules() if isinstance(part, Network))
    first, second = (network(torch.from_numpy(X)) for network in (f, g))
    assert not torch.equal(first, second)
    torch.testing.assert_close(first, solved(), atol=0.05, rtol=0.0)  # 0.2 with the initial weights of a random head


def test_where_no_no_is_known_it_starts_at_assume_negative() -> None:
    yes = np.maximum(KNOWN, 0)
    torch.testing.assert_close(scores("lsep", task(z=yes)), solved("assume-negative", yes), atol=1e-3, rtol=1e-3)


def test_only_to_predict_nothing_is_solved() -> None:
    info = methods.find("lsep")
    made = info.build(task_of(as_items(X), 3, "warm-linear"), info.complete({}))
    assert not made.network.head.weight.any()


def test_behind_a_backbone_it_starts_at_what_is_solved_on_its_features() -> None:
    pictures = as_items(RNG.integers(0, 255, (120, 16, 16, 3)).astype(np.uint8))
    where = task_of(pictures, 3, "warm-linear", observed=Labels.from_ternary(KNOWN), backbone="small-conv")
    info = methods.find("lsep")
    method = info.build(where, info.complete({})).eval()
    with torch.no_grad():
        seen = method.network.features(pictures.take(slice(None))).numpy()
        logits = method(pictures.take(slice(None)))
    usual = (seen - seen.mean(axis=0)) / np.maximum(seen.std(axis=0), 1e-6)  # some are 0 throughout
    model = Classifier("bce", head="linear", progress=False).fit(usual, Labels.from_ternary(KNOWN))
    expected = torch.logit(torch.from_numpy(model.predict_proba(usual)))
    torch.testing.assert_close(logits, expected, atol=1e-3, rtol=1e-3)
    assert method.training is False


def test_the_features_of_a_backbone_are_declared_before_they_are_made() -> None:
    pictures = as_items(RNG.integers(0, 255, (120, 16, 16, 3)).astype(np.uint8))
    where = task_of(pictures, 3, "warm-linear", observed=Labels.from_ternary(KNOWN), backbone="small-conv")
    info = methods.find("lsep")
    declared = info.memory(where, info.complete({}))[1]
    width = where.network().head.in_features
    assert width > 3
    of_three = task_of(as_items(X[:, :3]), 3, "warm-linear", observed=Labels.from_ternary(KNOWN))  # as many as colours
    assert declared - info.memory(of_three, info.complete({}))[1] == 2 * 4 * 120 * (width - 3)


@pytest.mark.parametrize("name", ["wsabie", "fast0tag", "cnn-rnn", "leml"])
def test_methods_with_read_outs_of_their_own_are_left_alone(name: str) -> None:
    settings = {"size": 3} if "size" in methods.find(name).settings else {}  # as many as there are labels
    info = methods.find(name)
    warm, usual = (info.build(task(head), info.complete(settings)).state_dict() for head in ("warm-linear", "linear"))
    assert all(torch.equal(warm[part], usual[part]) for part in usual)
