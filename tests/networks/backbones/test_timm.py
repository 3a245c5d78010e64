"""timm as a source of backbones: a stand-in for it, since it needs torchvision, which does not import here."""

from __future__ import annotations

import sys
import types
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from partly.errors import SettingError
from partly.networks import backbones


class Tokens(nn.Module):
    """As timm's transformers: two tokens, then the places of 2 x 2 patches."""

    num_features, num_prefix_tokens = 6, 2

    def __init__(self) -> None:
        super().__init__()
        self.patch_embed = nn.Conv2d(3, 6, 4, 4)
        self.norm = nn.LayerNorm(6)
        self.drop = nn.Dropout(0.0)

    def forward_features(self, x: Tensor) -> Tensor:
        places = self.patch_embed(x).flatten(2).transpose(1, 2)
        return self.norm(torch.cat([torch.full((len(x), 2, 6), 9.0), places], dim=1))


@pytest.fixture
def timm(monkeypatch: pytest.MonkeyPatch) -> None:
    def create_model(name: str, pretrained: bool, num_classes: int) -> nn.Module:
        if name != "tokens":
            raise RuntimeError(f"Unknown model ({name})")
        assert pretrained
        assert num_classes == 0
        return Tokens()

    def resolve_model_data_config(model: nn.Module) -> dict[str, Any]:
        return {"mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25), "input_size": (3, 8, 8)}

    module: Any = types.ModuleType("timm")
    module.create_model = create_model
    module.data = types.SimpleNamespace(resolve_model_data_config=resolve_model_data_config)
    monkeypatch.setitem(sys.modules, "timm", module)


@pytest.mark.usefixtures("timm")
def test_tokens_become_maps() -> None:
    made = backbones.find("timm:tokens").make((3, 8, 8), freeze=1)
    assert (made.size, made.width) == (8, 6)
    assert len(made.stages()) == 2  # what has no weights is none
    assert [p.requires_grad for p in made.parameters()] == [False, False, True, True]
    x = torch.randint(0, 256, (2, 3, 8, 8), dtype=torch.uint8)
    expected = made.model.norm(made.model.patch_embed((x / 255 - 0.5) / 0.25).flatten(2).transpose(1, 2)).mean(dim=1)
    torch.testing.assert_close(made(x), expected)


@pytest.mark.usefixtures("timm")
def test_a_name_that_timm_does_not_know() -> None:
    with pytest.raises(SettingError, match=r"'timm:tokes': Unknown model"):
        backbones.find("timm:tokes").make((3, 8, 8))


def test_without_timm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(SettingError, match="timm cannot be imported here"):
        backbones.find("timm:resnet18").make((3, 8, 8))
