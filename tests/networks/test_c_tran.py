"""CTran: the transformer on maps by loops, a vector as one place, states, gradients, forward mode, bounded memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from networks.slow_transformer import norm, slow_layer
from partly import Classifier, networks
from partly.data.formats.scenes import scenes
from partly.errors import SettingError
from partly.items import as_items
from partly.networks import CTran, c_tran

SMALL = {"width": 8, "layers": 2, "heads": 2}


def make(labels: int = 3, **more: int) -> CTran:
    """A network in float64 whose states say something."""
    torch.manual_seed(0)
    net = CTran(4, labels, **(SMALL | more)).double()
    for parameter in (net.yes, net.no, net.bias):
        nn.init.normal_(parameter)
    return net


def slow(net: CTran, maps: Tensor, z: list[int]) -> Tensor:
    """The logits [L] of one item, from its map [C, H, W]: place by place, then label by label."""
    tokens = [net.project(maps[:, i, j]) for i in range(maps.shape[1]) for j in range(maps.shape[2])]
    places = len(tokens)
    for label, state in enumerate(z):
        token = net.embedding[label]
        tokens.append(token if state == 0 else token + 8**0.5 * (net.yes if state == 1 else net.no))
    *layers, last = net.layers
    for layer in layers:
        tokens = slow_layer(layer, tokens)
    return torch.stack([norm(tokens[places + v], last) @ net.readout[v] + net.bias[v] for v in range(len(z))])


def test_forward_by_loops() -> None:
    net = make().eval()
    maps = torch.randn(4, 4, 2, 3, dtype=torch.float64)
    z = [[0, 0, 0], [1, 0, -1], [-1, -1, 1], [0, 1, 0]]
    expected = torch.stack([slow(net, item, states) for item, states in zip(maps, z, strict=True)])
    torch.testing.assert_close(net(maps, torch.tensor(z, dtype=torch.int8)), expected, rtol=1e-9, atol=1e-9)


def test_a_vector_is_a_map_of_one_place() -> None:
    net = make().eval()
    features = torch.randn(5, 4, dtype=torch.float64)
    z = torch.randint(-1, 2, (5, 3), dtype=torch.int8)
    assert torch.equal(net(features, z), net(features[:, :, None, None], z))


def test_places_count_and_their_order_does_not() -> None:
    net = make().eval()
    maps = torch.randn(2, 4, 3, 3, dtype=torch.float64)
    torch.testing.assert_close(net(maps.flip(3)), net(maps))
    moved = maps.clone()
    moved[:, :, 1, 1] += 1
    assert not torch.isclose(net(moved), net(maps)).any()


def test_in_use_all_is_given_and_in_training_what_is_given_carries_no_gradient() -> None:
    net = make().eval()
    maps = torch.randn(6, 4, 2, 2, dtype=torch.float64, requires_grad=True)
    z = torch.randint(0, 2, (6, 3), dtype=torch.int8) * 2 - 1
    assert torch.equal(net(maps), net(maps, torch.zeros_like(z)))
    assert not torch.isclose(net(maps), net(maps, z)).any()
    net.train()
    torch.manual_seed(3)
    given = c_tran.mask_labels(z, z, training=True) != 0
    assert 0 < given.sum() < given.numel()
    torch.manual_seed(3)
    logits = net(maps, z)
    for item, label in np.ndindex(6, 3):
        (gradient,) = torch.autograd.grad(logits[item, label], maps, retain_graph=True)
        assert gradient.any() != given[item, label]


@pytest.mark.parametrize("kept", [0, 10**6])
def test_a_large_batch_is_worked_through_in_parts(monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    net = make().eval()
    maps, z = torch.randn(7, 4, 2, 2, dtype=torch.float64), torch.randint(-1, 2, (7, 3), dtype=torch.int8)
    whole = net(maps, z)
    rows: list[int] = []
    part_of = net._part
    monkeypatch.setattr(net, "_part", lambda f, g: rows.append(len(f)) or part_of(f, g))
    monkeypatch.setattr(c_tran, "CHUNK_NUMBERS", 2 * (4 + 3) * 8)
    monkeypatch.setattr(c_tran, "CHECKPOINT_NUMBERS", kept)
    torch.testing.assert_close(net(maps, z), whole)
    assert rows == [2, 2, 2, 1]


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")  # torch's own, in jvp
def test_forward_mode_gives_the_same_derivative_as_backward_mode() -> None:
    net = make().eval()
    maps, direction = torch.randn(2, 2, 4, 2, 2, dtype=torch.float64)
    out, tangent = torch.func.jvp(net, (maps,), (direction,))
    torch.testing.assert_close(out, net(maps))
    jacobian = torch.autograd.functional.jacobian(net, maps)
    torch.testing.assert_close(tangent, (jacobian * direction).sum(dim=(2, 3, 4, 5)))


@pytest.mark.parametrize("wrong", [{"labels": 0}, {"width": 0}, {"heads": 3}])
def test_impossible_sizes_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(SettingError, match=next(iter(wrong))):
        make(**wrong)


def test_the_head_hears_the_backbone_before_it_pools() -> None:
    items = as_items(np.random.default_rng(0).integers(0, 256, (4, 16, 24, 3), dtype=np.uint8))
    network = networks.build(items, 5, "c-tran", {"width": 8}, "small-conv", {"widths": (2, 6), "pooling": "weldon"})
    network.eval()
    x = items.take(slice(None))
    maps = network.features(x)
    assert maps.shape == (4, 6, 8, 12)
    features, logits = network.features_and_logits(x)
    torch.testing.assert_close(features, maps.mean(dim=(2, 3)))
    torch.testing.assert_close(logits, network.head(maps))


@pytest.mark.parametrize("method", ["bce", "imcl", "latent-noise", "refine"])
def test_methods_that_look_at_features_or_at_slopes_train_it_on_pictures(method: str) -> None:
    data = scenes(train=24, test=8)
    small = {"width": 8, "layers": 1, "heads": 2}
    model = Classifier(method, head="c-tran", head_settings=small, epochs=2, batch_size=12, progress=False)
    model.fit(data.items, data.labels)
    assert np.isfinite(model.predict_proba(data.test.items)).all()
