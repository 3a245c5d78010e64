"""Pictures inside of a Parquet file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from images.making import encoded, noise
from partly.data import formats, read
from partly.data.formats import embedded_images
from partly.errors import DataError
from partly.images.reading import render_image

CONTENTS = [encoded(noise(40, 30, i), form) for i, form in enumerate(("PNG", "JPEG", "PNG"))]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARTLY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "embedded"


def write(path: Path, contents: object, **columns: object) -> Path:
    pq.write_table(pa.table({"image": contents, **columns}), path, row_group_size=2)
    return path


@pytest.mark.parametrize("form", ["bytes", "large", "structures"])
def test_pictures_are_what_was_put_in(tmp_path: Path, form: str) -> None:
    columns = {
        "bytes": pa.array(CONTENTS),
        "large": pa.array(CONTENTS, pa.large_binary()),
        "structures": pa.array([{"bytes": content, "path": f"{i}.png"} for i, content in enumerate(CONTENTS)]),
    }
    table = write(tmp_path / "x.parquet", columns[form], item=["a", "b", "c"], cat=[1, 0, 1])
    assert formats.of(table, "items") is embedded_images.FORMAT
    data = read(table, size=16)
    assert data.labels.ids == ("a", "b", "c")
    expected = [render_image(content, 16) for content in CONTENTS]
    np.testing.assert_array_equal(data.items.take(slice(None)).permute(0, 2, 3, 1).numpy(), expected)
    np.testing.assert_array_equal(data.items[2:].take(slice(None)).permute(0, 2, 3, 1).numpy(), expected[2:])


def test_the_bytes_are_copied_once(tmp_path: Path, cache: Path) -> None:
    table = write(tmp_path / "x.parquet", CONTENTS)
    assert read(table).labels.ids == ("0", "1", "2")
    made = {path: path.stat().st_mtime_ns for path in cache.iterdir()}
    assert {path.suffix for path in made} == {".bytes", ".npy"}
    digest = read(table).items.digest()
    assert {path: path.stat().st_mtime_ns for path in cache.iterdir()} == made
    write(table, CONTENTS[::-1])
    os.utime(table, ns=(10**18, 10**18))
    assert read(table).items.digest() != digest


def test_what_is_no_picture_is_bad(tmp_path: Path) -> None:
    table = write(tmp_path / "x.parquet", pa.array([CONTENTS[0], None, b"text"]), id=["a", "b", "c"])
    with pytest.raises(DataError, match=r"bad files: 2 of 3\n  b: the file is empty\n  c: not an image"):
        read(table)


def test_two_columns_of_bytes_are_refused(tmp_path: Path) -> None:
    table = write(tmp_path / "x.parquet", CONTENTS, other=CONTENTS)
    with pytest.raises(DataError, match="several columns hold bytes: image, other"):
        read(table)


def test_a_cache_that_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PARTLY_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match="PARTLY_CACHE"):
        read(write(tmp_path / "x.parquet", CONTENTS))
