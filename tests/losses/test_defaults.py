"""The defaults of the losses are what the papers print; what a method does better with is said in its own file."""

from __future__ import annotations

import inspect

import pytest

from partly import losses, methods
from partly.registry import sections

PAPERS = {
    "partial_bce": {"gamma": 1.0, "p0": 0.1, "value": 5.0},  # Durand et al. 2019, section 3.1
    "label_smoothing": {"smoothing": 0.1},  # Cole et al. 2021
    "negative_label_smoothing": {"smoothing": 0.1},
    "entropy_maximization": {"alpha": 0.1},  # Zhou et al. 2022, COCO and NUS-WIDE
    "focal": {"gamma": 2.0},  # Lin et al. 2017
    "asymmetric": {"gamma_yes": 0.0, "gamma_no": 4.0, "clip": 0.05},  # Ridnik et al. 2021
    "partial_asymmetric": {"gamma_yes": 0.0, "gamma_no": 1.0, "gamma_unknown": 2.0, "clip": 0.0},  # Ben-Baruch et al.
    "hill": {"height": 1.5, "margin": 1.0, "gamma": 2.0},  # Zhang et al. 2021
    "splc": {"threshold": 0.6, "margin": 1.0, "gamma": 2.0},  # Zhang et al. 2021
    "generalized_robust": {"slope": 2.0, "offset": -2.0, "centre": 0.8, "width": 0.5, "yes_power": 0.01},  # Chen et al.
    "large_loss": {"share": 0.02},  # Kim et al. 2022: 0.2 % more in each of ten epochs
}
OURS = {"asymmetric": {"gamma_no": 1.0, "clip": 0.2}, "em": {"alpha": 0.05}, "large-loss": {"share": 0.035}}


@pytest.mark.parametrize("name", PAPERS)
def test_of_the_papers(name: str) -> None:
    parameters = inspect.signature(getattr(losses, name)).parameters
    assert {key: parameters[key].default for key in PAPERS[name]} == PAPERS[name]


@pytest.mark.parametrize("name", OURS)
def test_of_the_methods_where_others_did_better(name: str) -> None:
    info = methods.find(name)
    assert info.defaults() | OURS[name] == info.defaults()
    assert "chosen by validation" in sections(info.text)["Defaults"]
