"""Fitted labels in a torch module: bytes in buffers, so that they are saved with all other tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from partly.binary_relevance.binary import LabelModel

# Cache of loaded estimators, as long as their bytes exist. Outside the module, since it is not saved.
_OPEN: Any = WeakTensorKeyDictionary()


class EstimatorStore(nn.Module):
    """One buffer per label, empty at first. Loading adopts the sizes of the saved buffers. Loaded estimators are
    checked at once, since they may come from strangers."""

    def __init__(self, labels: int, width: int) -> None:
        super().__init__()
        self.labels, self.width = labels, width
        for label in range(labels):
            self.register_buffer(str(label), torch.empty(0, dtype=torch.uint8))

    def put(self, label: int, fitted: LabelModel) -> None:
        content = torch.frombuffer(bytearray(fitted.to_bytes()), dtype=torch.uint8)
        content = content.to(self.get_buffer(str(label)).device)
        setattr(self, str(label), content)
        _OPEN[content] = fitted

    def get(self, label: int) -> LabelModel:
        """Return the model of a label; a constant of 0.5 if there is none."""
        content = self.get_buffer(str(label))
        if not len(content):
            return LabelModel(0.5)
        if content not in _OPEN:
            packed = content.cpu().numpy().tobytes()
            _OPEN[content] = LabelModel.from_bytes(packed, f"label {label}", width=self.width)
        found: LabelModel = _OPEN[content]
        return found

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *more: Any) -> None:
        for name, held in list(self.named_buffers(recurse=False)):
            saved = state_dict.get(prefix + name)
            if isinstance(saved, Tensor) and saved.ndim == 1:
                setattr(self, name, torch.empty(len(saved), dtype=torch.uint8, device=held.device))
        super()._load_from_state_dict(state_dict, prefix, *more)
        for label in range(self.labels):
            self.get(label)
