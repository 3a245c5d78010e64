"""Fitted labels as part of a torch module: bytes in buffers, so that they are saved with every other tensor."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakTensorKeyDictionary

from partly.binary_relevance.binary import Binary

# Opened once, for as long as its bytes are held. Beside the modules, since it is no part of what is saved.
_OPEN: Any = WeakTensorKeyDictionary()


class Shelf(nn.Module):
    """A place for each label, empty at first. How many bytes lie there is known only when they come, so loading takes
    the sizes that it is given. What is loaded is checked at once: it may come from anybody."""

    def __init__(self, labels: int, width: int) -> None:
        super().__init__()
        self.labels, self.width = labels, width
        for label in range(labels):
            self.register_buffer(str(label), torch.empty(0, dtype=torch.uint8))

    def put(self, label: int, fitted: Binary) -> None:
        content = torch.frombuffer(bytearray(fitted.packed()), dtype=torch.uint8)
        content = content.to(self.get_buffer(str(label)).device)
        setattr(self, str(label), content)
        _OPEN[content] = fitted

    def get(self, label: int) -> Binary:
        """The label that was put here; one that knows nothing where none was."""
        content = self.get_buffer(str(label))
        if not len(content):
            return Binary(0.5)
        if content not in _OPEN:
            packed = content.cpu().numpy().tobytes()
            _OPEN[content] = Binary.unpacked(packed, f"label {label}", width=self.width)
        found: Binary = _OPEN[content]
        return found

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *more: Any) -> None:
        for name, held in list(self.named_buffers(recurse=False)):
            given = state_dict.get(prefix + name)
            if isinstance(given, Tensor) and given.ndim == 1:
                setattr(self, name, torch.empty(len(given), dtype=torch.uint8, device=held.device))
        super()._load_from_state_dict(state_dict, prefix, *more)
        for label in range(self.labels):
            self.get(label)
