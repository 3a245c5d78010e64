"""The image half of a dual encoder of Hugging Face (CLIP, SigLIP), by name or folder: `dual-encoder:NAME_OR_FOLDER`.

Images become vectors of length 1 in the space that the model shares with texts, so that label names can be compared
with them (`partly.teachers.LabelNames`). No code that comes with a model is executed.

Reference
    A. Radford et al. Learning Transferable Visual Models From Natural Language Supervision. ICML 2021.
    X. Zhai et al. Sigmoid Loss for Language Image Pre-Training. ICCV 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from partly.errors import SettingError
from partly.networks.backbones import hf
from partly.networks.backbones.contract import Backbone, split_stages
from partly.registry import About

ABOUT = About(weights="weights of Hugging Face: {name}")
USUAL = {"freeze": "all"}  # the two halves fit together only as they are
TEXTS_AT_A_TIME = 64


class DualEncoder(Backbone):
    """Images [B, 3, H, W] -> unit vectors [B, width]; `embed` makes such vectors of texts."""

    makes = "vector"

    def __init__(
        self, model: nn.Module, tokenizer: Any, mean: Sequence[float], scale: Sequence[float], size: int | None
    ) -> None:
        super().__init__(mean, scale)
        config: Any = model.config
        self.model, self.tokenizer, self.size = model, tokenizer, size
        self.length = int(config.text_config.max_position_embeddings)
        self.channels = int(getattr(config, "projection_dim", None) or config.text_config.hidden_size)

    def maps(self, x: Tensor) -> Tensor:
        model: Any = self.model
        return F.normalize(_vectors(model.get_image_features(pixel_values=x)), dim=1)

    def stages(self) -> list[nn.Module]:
        vision: Any = self.model.get_submodule("vision_model")
        return split_stages(vision)

    @torch.inference_mode()
    def embed(self, texts: Sequence[str]) -> Tensor:
        """Return the vectors of texts, [N, width]."""
        model: Any = self.model.eval()
        blocks = [torch.zeros(0, self.channels)]
        for start in range(0, len(texts), TEXTS_AT_A_TIME):
            tokens = self.tokenizer(
                list(texts[start : start + TEXTS_AT_A_TIME]),
                padding="max_length",
                truncation=True,
                max_length=self.length,
                return_tensors="pt",
            )
            blocks.append(F.normalize(_vectors(model.get_text_features(**tokens)), dim=1))
        return torch.cat(blocks)


def backbone(
    shape: tuple[int, ...],
    name: str,
    *,
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
    pretrained: bool = True,
) -> DualEncoder:
    """For images [C, H, W]. mean, std: of pixels from 0 to 1, where preprocessor_config.json does not say."""
    model = hf.load(name, pretrained)
    if not (hasattr(model, "get_image_features") and hasattr(model, "get_text_features")):
        raise SettingError(
            f"'hf:{name}' is no dual encoder of images and texts ({type(model).__name__}). Name a CLIP or SigLIP model."
        )
    config: Any = model.config
    side = getattr(config.vision_config, "image_size", None)
    pixels, own = hf.normalization(name, mean, std)
    return DualEncoder(model, hf.tokenizer(name), *pixels, side if isinstance(side, int) else own)


def _vectors(output: Any) -> Tensor:
    """Vectors of a model's output: a tensor before transformers 5, since then an object that holds them."""
    vectors: Tensor = output if isinstance(output, Tensor) else output.pooler_output
    return vectors.float()
