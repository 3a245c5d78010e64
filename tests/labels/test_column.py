"""Labels as a column of a torch data set. The examples of docs/torch.md train with it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch.utils.data import DataLoader, StackDataset

from partly import Labels

Z = np.array([[1, 0, -1], [0, 0, 1], [-1, 1, 0], [0, 0, 0]], np.int8)


@pytest.mark.parametrize("wrap", [np.asarray, sp.csr_array])
def test_z_of_each_item(wrap: type) -> None:
    column = Labels.from_ternary(wrap(Z)).column()
    assert len(column) == 4
    for i in range(-4, 4):
        assert column[i].dtype == torch.int8
        assert column[i].tolist() == Z[i].tolist()
    for i in (4, -5):
        with pytest.raises(IndexError, match=f"4 items; {i}"):
            column[i]
    assert [z.tolist() for z in column] == Z.tolist()


def test_it_stacks_with_other_columns_and_nobody_can_write_to_it() -> None:
    labels = Labels.from_ternary(Z)
    data = StackDataset(x=torch.arange(4), z=labels.column())
    for batch in DataLoader(data, batch_size=3, shuffle=True):
        assert batch["z"].tolist() == Z[batch["x"].numpy()].tolist()
    column = labels.column()
    column[0].fill_(9)  # a tensor of one's own: labels stay as they are
    assert labels.rows([0]).tolist() == [[1, 0, -1]]
