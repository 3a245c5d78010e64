"""Where the evidence is, by hand: with a linear head the places add up to the logit."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from partly import Classifier, Labels
from partly.engine import activation, backbones_of
from partly.errors import SettingError
from partly.items import as_items, texts
from partly.networks.backbones import Backbone

RNG = np.random.default_rng(0)
PICTURES = RNG.integers(0, 255, (12, 32, 32, 3), np.uint8)
LABELS = Labels.from_full(RNG.integers(0, 2, (12, 3)))


def model(pooling: str, method: str = "bce", head: str = "linear") -> Classifier:
    settings = {"pooling": pooling}
    made = Classifier(method, head, epochs=1, backbone="small-conv", backbone_settings=settings, progress=False)
    return made.fit(PICTURES, LABELS)


def parts(made: Classifier) -> tuple[Backbone, torch.Tensor, nn.Linear]:
    """The backbone, the maps that it makes of all pictures, and the head, reached for by hand."""
    network = made.fitted_.method.network
    x = as_items(PICTURES).take(slice(None))
    with torch.no_grad():
        standard = network.features[0](x)
        backbone = network.features[1]
        maps = backbone.maps(backbone.preprocess(standard))
    head = next(part for part in network.modules() if isinstance(part, nn.Linear))
    return backbone, maps, head


def test_with_gap_and_a_linear_head_it_is_the_class_activation_map() -> None:
    made = model("gap")
    _, maps, head = parts(made)
    labels = [0, 2, 1] * 4
    with torch.no_grad():
        head.weight.normal_()  # as if it had learned more
    found = activation(made.fitted_, as_items(PICTURES), labels)
    for i, label in enumerate(labels):
        weights = head.weight[label].tolist()
        by_hand = sum(w * maps[i, k].numpy() for k, w in enumerate(weights))  # Zhou et al., equation 2
        np.testing.assert_allclose(found[i], by_hand / by_hand.size, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("pooling", ["gap", "gmp", "gap+gmp", "weldon"])
def test_the_places_of_a_picture_add_up_to_its_logit(pooling: str) -> None:
    made = model(pooling)
    head = parts(made)[2]
    found = activation(made.fitted_, as_items(PICTURES), [1] * 12)
    logits = made.decision_function(PICTURES)[:, 1]
    np.testing.assert_allclose(found.sum(axis=(1, 2)), logits - head.bias[1].item(), rtol=1e-4, atol=1e-5)


def test_it_reaches_into_a_frozen_backbone_whose_features_were_made_before() -> None:
    settings = {"freeze": "all", "pooling": "gap"}
    made = Classifier("bce", "linear", backbone="small-conv", backbone_settings=settings, progress=False)
    fitted = made.fit(PICTURES, LABELS).fitted_
    found = activation(fitted, as_items(PICTURES), [1] * 12)
    with torch.no_grad():
        nothing = fitted.method(torch.zeros(1, *fitted.method.task.items.shape))[0, 1].item()
    logits = made.decision_function(PICTURES)[:, 1]
    np.testing.assert_allclose(found.sum(axis=(1, 2)), logits - nothing, rtol=1e-3, atol=1e-4)


def test_it_leaves_no_trace() -> None:
    made = model("gap", head="mlp")
    before, backbone = made.decision_function(PICTURES), parts(made)[0]
    assert activation(made.fitted_, as_items(PICTURES)[:2], [0, 1]).shape == (2, 4, 4)
    assert "maps" not in vars(backbone)
    np.testing.assert_array_equal(made.decision_function(PICTURES), before)
    assert all(parameter.grad is None for parameter in made.fitted_.method.parameters())


def test_of_two_networks_both_count() -> None:
    made = Classifier("co-teaching", "linear", epochs=1, progress=False).fit(PICTURES, LABELS)
    assert len(backbones_of(made.fitted_)) == 2
    assert activation(made.fitted_, as_items(PICTURES)[:2], [0, 1]).shape == (2, 4, 4)


def test_without_maps_there_is_no_evidence() -> None:
    made = Classifier("bce", "linear", epochs=1, progress=False).fit(texts(["a", "b"]), LABELS[:2])
    assert backbones_of(made.fitted_) == []
    with pytest.raises(SettingError, match="this model makes none"):
        activation(made.fitted_, texts(["a"]), [0])
