"""Text models of Hugging Face as backbones: from texts to vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from partly.errors import SettingError, within
from partly.items import decode_texts
from partly.networks.backbones.contract import Backbone, split_stages

TEXTS_AT_A_TIME = 128  # sorted by length and split into batches of `TEXTS_PER_PASS`
TEXTS_PER_PASS = 8  # of similar length; larger batches are mostly padding


class TextModel(Backbone):
    """Texts as bytes [B, LENGTH] -> the mean of the token vectors, [B, width].

    `tokens` calls the model's tokenizer; `maps` takes token ids [B, T], padded at the end.
    """

    makes = "vector"
    chunk_size = TEXTS_AT_A_TIME

    def __init__(self, model: nn.Module, tokenizer: Any, length: int, unit: bool = False) -> None:
        super().__init__()
        config: Any = model.config
        within(1, int(getattr(config, "max_position_embeddings", length)), length=length)
        self.model, self.tokenizer, self.length, self.unit = model, tokenizer, length, unit
        self.channels = int(config.hidden_size)
        self.padding = int(tokenizer.pad_token_id or 0)

    @property
    def normalizes(self) -> bool:
        return True

    def preprocess(self, x: Tensor) -> Tensor:
        """Return token ids, [B, T]."""
        return self.tokens(decode_texts(x)).to(x.device)

    def maps(self, x: Tensor) -> Tensor:
        if torch.compiler.is_exporting() or len(x) <= TEXTS_PER_PASS:  # an exported graph takes any number of texts
            return self._means(x)
        order = (x != self.padding).sum(dim=1).argsort(stable=True)
        means = torch.cat([self._means(x[part]) for part in order.split(TEXTS_PER_PASS)])
        return means[order.argsort()]

    def _means(self, x: Tensor) -> Tensor:
        """Return the mean of the token vectors of each text, [B, width]."""
        real = x != self.padding
        if not torch.compiler.is_exporting():  # an exported graph has a fixed width
            longest = max(1, int(real.sum(dim=1).max()))  # drop columns that are padding in all texts
            x, real = x[:, :longest], real[:, :longest]
        # A text without tokens keeps its padding, since the mean needs a token.
        real = real | ~real.any(dim=1, keepdim=True)
        hidden = self.model(input_ids=x, attention_mask=real.long()).last_hidden_state
        weight = real.unsqueeze(2).to(hidden.dtype)
        mean: Tensor = (hidden * weight).sum(dim=1) / weight.sum(dim=1)
        return F.normalize(mean, dim=1) if self.unit else mean

    def stages(self) -> list[nn.Module]:
        return split_stages(self.model)

    def tokens(self, texts: Sequence[str]) -> Tensor:
        """Return token ids of texts, [N, T], truncated to `length`."""
        if isinstance(texts, str):
            raise SettingError("tokens: give a list of texts, not a single one.")
        encoded = self.tokenizer(
            list(texts), padding=True, truncation=True, max_length=self.length, return_attention_mask=False
        )
        return torch.tensor(encoded["input_ids"], dtype=torch.int64)

    @torch.inference_mode()
    def embed(self, texts: Sequence[str]) -> Tensor:
        """Return vectors of texts, [N, width], in evaluation mode."""
        was, _ = self.training, self.eval()
        try:
            vectors = [
                self.maps(self.tokens(texts[i : i + TEXTS_AT_A_TIME])) for i in range(0, len(texts), TEXTS_AT_A_TIME)
            ]
        finally:
            self.train(was)
        return torch.cat(vectors) if vectors else torch.zeros(0, self.width)
