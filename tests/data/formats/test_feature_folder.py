"""A folder of features: what is damaged or not finished is refused."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from partly.atomic_io import write_checksummed
from partly.data import formats, read
from partly.data.formats import feature_folder
from partly.errors import DataError
from partly.items import Origin

ORIGIN = Origin("pictures", (3, 16, 16), "small-conv", {}, None, "0" * 64)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "features.npy", np.arange(6, dtype=np.float32).reshape(3, 2))
    write_checksummed(tmp_path / "features.json", {"format": 2, "width": 2, **asdict(ORIGIN)})
    write_checksummed(tmp_path / "ids.json", {"ids": ["a", "b", "c"]})
    (tmp_path / "features.npy.sha256").write_text("0" * 64 + "  features.npy\n")
    return tmp_path


def test_it_is_read(folder: Path) -> None:
    assert formats.of(folder, "items") is feature_folder.FORMAT
    data = read(folder)
    assert data.labels.ids == ("a", "b", "c")
    assert data.items.take(slice(None)).tolist() == [[0, 1], [2, 3], [4, 5]]
    assert data.items.digest() == "0" * 64
    assert data.items.origin == ORIGIN


def test_labels_are_matched_by_id(folder: Path) -> None:
    (folder / "labels.csv").write_text("item,cat\nc,1\na,0\n")
    assert read(folder, folder / "labels.csv").items.take(slice(None)).tolist() == [[4, 5], [0, 1]]


def test_damage_is_refused(folder: Path) -> None:
    for name, content, told in [
        ("ids.json", b'{"ids": ["a"], "sha256": ""}', "damaged"),
        ("features.json", b"{", "cannot be read"),
        ("features.npy", (folder / "features.npy").read_bytes()[:-4], "cannot be read"),
    ]:
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(content)
        with pytest.raises(DataError, match=told):
            read(folder)
        (folder / name).write_bytes(before)
    np.save(folder / "features.npy", np.zeros((3, 4), np.float32))
    with pytest.raises(DataError, match=r"3 x 4 features, where .+ says 3 x 2"):
        read(folder)
    write_checksummed(folder / "features.json", {"format": 3, "width": 2})
    with pytest.raises(DataError, match="format 3"):
        read(folder)


def test_what_is_not_finished_is_told(folder: Path) -> None:
    (folder / "features.npy.sha256").unlink()
    with pytest.raises(DataError, match="only 0 of 3 items have features"):
        read(folder)
