"""Tags: a row for each yes."""

from __future__ import annotations

import pytest

from partly import Labels
from partly.data import read_labels, write_labels
from partly.errors import DataError


def test_what_has_no_row_is_unknown_unless_said(tmp_path):
    (tmp_path / "tags.csv").write_text("item,label\na,cat\nb,\na,dog\na,cat\nc,cat\n")
    labels = read_labels(tmp_path / "tags.csv")
    assert (labels.ids, labels.names) == (("a", "b", "c"), ("cat", "dog"))
    assert labels.rows(slice(None)).tolist() == [[1, 1], [0, 0], [1, 0]]
    no = read_labels(tmp_path / "tags.csv", absent="no", names=["cow", "cat", "dog"])
    assert no.rows(slice(None)).tolist() == [[-1, 1, 1], [-1, -1, -1], [-1, 1, -1]]
    (tmp_path / "tags.csv").write_text("item,label\na,cat\n,dog\n")
    with pytest.raises(DataError, match=r"labels without an item: 1\n.*:3: no item"):
        read_labels(tmp_path / "tags.csv")


def test_no_and_unknown_are_not_mixed_up_silently(tmp_path):
    labels = Labels.from_ternary([[1, -1, 0]], names=["a", "b", "c"])
    with pytest.raises(DataError, match="1 entries are no and 1 are unknown") as told:
        write_labels(labels, tmp_path / "tags.csv", form="tags")
    assert "--absent unknown" in str(told.value)
    assert "absent='no'" in str(told.value)
    assert not list(tmp_path.iterdir())
    for absent in ("unknown", "no"):
        with pytest.warns(UserWarning, match="labels without entries"):
            write_labels(labels, tmp_path / "tags.csv", form="tags", absent=absent)
        assert (tmp_path / "tags.csv").read_text() == '"item","label"\n"0","a"\n'
