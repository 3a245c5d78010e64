"""What is shown of an item: small, few bytes, and no item that nobody asked for."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from partly.data import read
from partly.items import ImageFiles, as_items, texts
from partly.report.examples import (
    DIMMED,
    MAX_PNG_SIDE,
    MAX_TEXT_LENGTH,
    PREVIEW_SIDE,
    highlight_evidence,
    image_uri,
    make_previews,
)


def opened(address: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2])))


@pytest.mark.parametrize("shape", [(20, 30, 3), (16, 16, 1), (200, 400, 3), (300, 120, 1)])
def test_pictures_are_small_and_keep_their_proportions(shape: tuple[int, int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (2, *shape), np.uint8)
    (preview,) = make_previews(as_items(pixels), [1], [0])
    assert preview.pixels is not None
    height, width = preview.pixels.shape[:2]
    assert max(height, width) == min(PREVIEW_SIDE, max(shape))
    assert height / width == pytest.approx(shape[0] / shape[1], rel=0.02)
    address = image_uri(preview.pixels)
    assert address.startswith(f"data:image/{'png' if max(shape) <= MAX_PNG_SIDE else 'jpeg'};base64,")
    assert opened(address).size == (width, height)
    assert len(address) < 40_000  # of noise, which no picture is
    if max(shape) <= MAX_PNG_SIDE:
        np.testing.assert_array_equal(np.asarray(opened(address)).reshape(shape), pixels[1])


def test_only_what_is_asked_for_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(5):
        Image.new("RGB", (90, 60), (40 * i, 0, 0)).save(tmp_path / f"{i}.png")
    items, made = read(tmp_path).items, []
    original = ImageFiles._request

    def request(self: ImageFiles, rows: Any, draw: Any) -> Any:
        made.extend(rows.tolist())
        return original(self, rows, draw)

    monkeypatch.setattr(ImageFiles, "_request", request)
    found = make_previews(items, [3, 1], [0, 0])
    assert made == [3, 1]
    assert [preview.pixels[5, 5].tolist() for preview in found if preview.pixels is not None] == [
        [120, 0, 0],
        [40, 0, 0],
    ]


def test_the_beginning_of_a_text() -> None:
    short, long = make_previews(texts(["one\n two", "other", "word " * 100]), [0, 2], [0, 0])
    assert (short.text, short.pixels) == ("one two", None)
    assert long.text.endswith("…")
    assert len(long.text) == MAX_TEXT_LENGTH


def test_of_features_there_is_nothing_to_see() -> None:
    (preview,) = make_previews(as_items(np.ones((2, 3))), [1], [0])
    assert (preview.pixels, preview.evidence, preview.text) == (None, None, "")


def test_the_evidence_is_in_colour_and_the_rest_is_grey() -> None:
    pixels = np.broadcast_to(np.array([200, 100, 0], np.uint8), (20, 20, 3))
    found = highlight_evidence(pixels, np.array([[4.0, -3.0], [0.0, 0.0]]))
    assert found is not None
    assert found[0, 0].tolist() == [200, 100, 0]
    for corner in ((0, 19), (19, 0), (19, 19)):
        assert found[corner].tolist() == [round(DIMMED * 100)] * 3
    assert highlight_evidence(pixels, np.array([[-1.0, 0.0]])) is None


def test_evidence_is_asked_for_the_items_that_are_shown() -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (6, 16, 16, 3), np.uint8)

    def evidence(items: Any, labels: Any) -> Any:
        np.testing.assert_array_equal(items.take(slice(None)).permute(0, 2, 3, 1), pixels[[4, 2]])
        assert labels == [7, 8]
        return np.array([[[1.0]], [[-1.0]]])

    first, second = make_previews(as_items(pixels), [4, 2], [7, 8], evidence)
    np.testing.assert_array_equal(first.evidence, pixels[4])
    assert second.evidence is None
