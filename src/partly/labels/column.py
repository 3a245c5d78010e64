"""Labels as a column of a torch data set: the ternary row of each item."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.utils.data import Dataset

from partly.labels.matrix import Ternary


class Column(Dataset[Tensor]):
    """z [L] of each item, int8: +1 yes, -1 no, 0 unknown, for `partly.losses`. Sparse labels stay sparse."""

    def __init__(self, rows: Callable[[list[int]], Ternary], count: int) -> None:
        """Store the function that returns z [B, L] of some items (`Labels.rows`), and their number."""
        self.rows, self.count = rows, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, item: int) -> Tensor:
        if not -len(self) <= item < len(self):
            raise IndexError(f"There are {len(self)} items; {item} is not among them.")
        return self.__getitems__([item])[0]

    def __getitems__(self, items: Sequence[int]) -> list[Tensor]:
        """Return the rows of a batch at once, as torch's loaders request them."""
        return list(torch.from_numpy(self.rows(list(items)).copy()))
