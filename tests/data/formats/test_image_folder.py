"""A folder of pictures as data: which files are items, and what happens to bad ones."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

import partly
from images.making import HOSTILE, SOUND, encoded, folder_of, noise, some_pictures
from partly.data import is_whole, read
from partly.errors import DataError, SettingError
from partly.images.reading import render_image
from partly.items import ImageFiles

LABELS = "item,cat,dog\np2.png,1,0\np0.png,,1\n"


def test_ids_are_file_names_from_the_folder(tmp_path: Path) -> None:
    folder_of(tmp_path, {name: encoded(noise()) for name in ("b.png", "a/z.JPG", "a/b/c.png", "ü <b>\n.png")})
    folder_of(tmp_path, {".hidden.png": b"", ".git/x.png": b"", "notes.txt": b"", "a/labels.csv": b""})
    data = read(tmp_path)
    assert data.labels.ids == ("a/b/c.png", "a/z.JPG", "b.png", "ü <b>\n.png")
    assert isinstance(data.items, ImageFiles)
    assert not is_whole(tmp_path)
    found = data.items.resize(16).take(slice(2, 3))[0].permute(1, 2, 0).numpy()
    np.testing.assert_array_equal(found, render_image((tmp_path / "b.png").read_bytes(), 16))


def test_labels_choose_the_items_and_their_order(tmp_path: Path) -> None:
    some_pictures(tmp_path / "x", 4)
    (tmp_path / "labels.csv").write_text(LABELS)
    data = partly.read(tmp_path / "x", labels=tmp_path / "labels.csv", size=20)
    assert data.labels.ids == ("p2.png", "p0.png")
    assert data.labels.rows(slice(None)).tolist() == [[1, -1], [0, 1]]
    whole = read(tmp_path / "x", size=20).items
    assert torch.equal(data.items.take(slice(None)), whole.take(torch.tensor([2, 0])))
    assert data.items.shape == (3, 20, 20)


def test_bad_files_are_all_told_at_once(tmp_path: Path) -> None:
    folder_of(tmp_path, HOSTILE | SOUND)
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "lost.jpg").symlink_to(tmp_path / "nowhere")
    with pytest.raises(DataError) as told:
        read(tmp_path)
    lines = str(told.value).splitlines()
    count = len(HOSTILE) + 2
    assert lines[0] == f"{tmp_path}: bad files: {count} of {count + len(SOUND)}"
    assert [line.split(":")[0].strip() for line in lines[1:-1]] == sorted([*HOSTILE, "pipe.jpg", "lost.jpg"])
    assert "  pipe.jpg: not a regular file" in lines
    assert lines[-1].endswith("skip_bad=True, --skip-bad.")


def test_bad_files_are_left_out_only_when_asked(tmp_path: Path) -> None:
    folder_of(tmp_path, HOSTILE | SOUND)
    with pytest.warns(UserWarning, match=rf"(?s)bad files: {len(HOSTILE)} of .*They are skipped"):
        data = read(tmp_path, skip_bad=True)
    assert data.labels.ids == tuple(sorted(SOUND))
    assert data.items.unreadable() == {}
    assert data.items.resize(16).take(slice(None)).shape == (len(SOUND), 3, 16, 16)


def test_bad_files_of_which_no_label_speaks_do_not_matter(tmp_path: Path) -> None:
    folder_of(some_pictures(tmp_path / "x", 4), HOSTILE)
    (tmp_path / "labels.csv").write_text(LABELS)
    assert len(read(tmp_path / "x", tmp_path / "labels.csv").items) == 2


def test_bad_files_of_the_test_part_are_told_too(tmp_path: Path) -> None:
    folder_of(some_pictures(tmp_path / "x", 2), {"text.jpg": b"no"})
    (tmp_path / "labels.csv").write_text("item,split,a\np0.png,train,1\np1.jpg,test,0\ntext.jpg,test,1\n")
    with pytest.raises(DataError, match=r"bad files: 1 of 2\n  text.jpg"):
        read(tmp_path / "x", tmp_path / "labels.csv")
    with pytest.warns(UserWarning, match="skipped"):
        data = read(tmp_path / "x", tmp_path / "labels.csv", skip_bad=True)
    assert data.labels.ids == ("p0.png",)
    assert data.test is not None
    assert data.test.labels.ids == ("p1.jpg",)


def test_nothing_left(tmp_path: Path) -> None:
    folder_of(tmp_path / "x", {"a.jpg": b""})
    with pytest.raises(DataError, match="No items are left"):
        read(tmp_path / "x", skip_bad=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no images in this folder"):
        read(tmp_path / "empty")


def test_names_that_are_no_ids_are_refused(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.png")).write_bytes(encoded(noise()))
    with pytest.raises(DataError, match="not valid UTF-8: 1"):
        read(tmp_path)


def test_only_pictures_in_files_have_any_size(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.eye(3))
    with pytest.raises(SettingError, match="size = 32"):
        read(tmp_path / "x.npy", size=32)
