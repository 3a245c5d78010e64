"""What is asked and answered: bytes from whole files and from parts, and what is not a regular file."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from images.making import encoded, noise
from partly.clock import Draw
from partly.errors import DataError
from partly.images import worker
from partly.images.augmentation import Augmentation
from partly.images.reading import render_image
from partly.images.worker import ImageLocation, answer_request, read_bytes


def test_a_place_is_a_file_or_a_part_of_one(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"0123456789")
    assert read_bytes(ImageLocation(str(tmp_path / "x"))) == b"0123456789"
    assert read_bytes(ImageLocation(str(tmp_path / "x"), 3, 4)) == b"3456"


def test_only_plain_files_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "folder.jpg").mkdir()
    (tmp_path / "lost.jpg").symlink_to(tmp_path / "nowhere")
    (tmp_path / "real.png").write_bytes(b"x" * 100)
    (tmp_path / "link.png").symlink_to(tmp_path / "real.png")
    for name, reason in {"pipe.jpg": "regular", "folder.jpg": "regular|directory", "lost.jpg": "No such file"}.items():
        with pytest.raises(DataError, match=reason):
            read_bytes(ImageLocation(str(tmp_path / name)))
    assert len(read_bytes(ImageLocation(str(tmp_path / "link.png")))) == 100
    monkeypatch.setattr(worker, "MAX_FILE_BYTES", 99)
    with pytest.raises(DataError, match="100 bytes are more than the limit of 99"):
        read_bytes(ImageLocation(str(tmp_path / "real.png")))


def test_a_look_has_a_reason_for_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded(noise()))
    looks = answer_request({"do": "inspect", "places": [[str(tmp_path / name)] for name in ("a.png", "b.png")]})[0][
        "infos"
    ]
    assert [look["reason"] for look in looks] == ["", "cannot be read (No such file or directory)"]
    assert looks[0]["sha256"] == hashlib.sha256((tmp_path / "a.png").read_bytes()).hexdigest()


def test_pixels_are_those_of_reading(tmp_path: Path) -> None:
    bytes_of = encoded(noise())
    (tmp_path / "a.png").write_bytes(bytes_of)
    asked = {"do": "render", "places": [[str(tmp_path / "a.png")]], "names": ["a"], "size": 20, "draw": None}
    np.testing.assert_array_equal(_pixels(asked), render_image(bytes_of, 20))
    view = Augmentation(crop=0.5).view(40, 30, Draw(1, 2), "a")
    asked |= {"draw": [1, 2], "augmentation": {"crop": 0.5}}
    np.testing.assert_array_equal(_pixels(asked), render_image(bytes_of, 20, lambda w, h: view))


def _pixels(asked: dict[str, object]) -> np.ndarray:
    return np.frombuffer(answer_request(asked)[1], np.uint8).reshape(20, 20, 3)


def test_a_picture_that_has_gone_bad_is_named(tmp_path: Path) -> None:
    asked = {"do": "render", "places": [[str(tmp_path / "a.png")]], "size": 20, "draw": None}
    assert answer_request(asked) == (
        {"bad": [str(tmp_path / "a.png"), "cannot be read (No such file or directory)"]},
        b"",
    )
