"""Pictures against Pillow by hand, and bytes that are none: each is told with a reason, and none is decoded in vain."""

from __future__ import annotations

import io
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageEnhance, ImageOps

from images.making import HOSTILE, SOUND, animated, encoded, noise, turned
from partly.errors import DataError
from partly.images.augmentation import View
from partly.images.reading import inspect_image, render_image, render_whole

BILINEAR = Image.Resampling.BILINEAR


def by_hand(image: Image.Image, size: int) -> np.ndarray:
    """The short side brought to the size, then the middle: of pictures for which this leaves whole numbers."""
    side = min(image.size)
    longest = [length * size / side for length in image.size]
    left, top = ((length - size) / 2 for length in longest)
    assert all(number == int(number) for number in (*longest, left, top))
    resized = image.convert("RGB").resize((int(longest[0]), int(longest[1])), BILINEAR)
    return np.asarray(resized.crop((int(left), int(top), int(left) + size, int(top) + size)))


@pytest.mark.parametrize(("width", "height"), [(40, 30), (30, 40), (32, 32), (200, 20)])
@pytest.mark.parametrize("size", [24, 30, 60])
def test_the_middle_at_one_size(width: int, height: int, size: int) -> None:
    image = noise(width, height)
    assert np.abs(render_image(encoded(image), size).astype(int) - by_hand(image, size)).max() <= 1  # rounded otherwise


def test_a_view_is_cut_out_resized_and_mirrored() -> None:
    image = noise(40, 30)
    cut = image.resize((16, 16), BILINEAR, (3, 4, 27, 20))
    view = View((3, 4, 27, 20))
    np.testing.assert_array_equal(render_image(encoded(image), 16, lambda w, h: view), np.asarray(cut))
    mirrored = View((3, 4, 27, 20), mirrored=True)
    np.testing.assert_array_equal(
        render_image(encoded(image), 16, lambda w, h: mirrored), np.asarray(ImageOps.mirror(cut))
    )


@pytest.mark.parametrize("light", [(1.2, 1, 1), (1, 0.7, 1), (1, 1, 1.4), (0.9, 1.1, 0.8)])
def test_light_is_one_change_after_the_other(light: tuple[float, float, float]) -> None:
    """By Pillow, which rounds three times and cuts off after each: in the middle of the range all is the same but for
    that. Its own contrast is about the mean of the picture."""
    image = Image.eval(noise(32, 32), lambda v: 70 + v // 3)
    brighter = ImageEnhance.Brightness(image).enhance(light[0])
    harder = Image.blend(Image.new("RGB", image.size, (128, 128, 128)), brighter, light[1])
    expected = ImageEnhance.Color(harder).enhance(light[2])
    found = render_image(encoded(image), 32, lambda w, h: View((0, 0, 32, 32), light=light))
    assert np.abs(found.astype(int) - np.asarray(expected)).max() <= 3


@pytest.mark.parametrize("orientation", range(1, 9))
def test_the_camera_may_have_been_turned(orientation: int) -> None:
    content = turned(noise(40, 30), orientation)
    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
    assert np.abs(render_image(content, 24).astype(int) - by_hand(upright, 24)).max() <= 1


def test_a_box_is_of_the_picture_as_it_is_seen() -> None:
    content = turned(noise(40, 30), 6)
    seen: list[tuple[int, int]] = []

    def viewer(width: int, height: int) -> View:
        seen.append((width, height))
        return View((0, 0, 30, 20))

    upright = ImageOps.exif_transpose(Image.open(io.BytesIO(content)))
    found = render_image(content, 20, viewer)
    assert seen == [(30, 40)]
    np.testing.assert_array_equal(found, np.asarray(upright.resize((20, 20), BILINEAR, (0, 0, 30, 20))))


def test_damaged_exif_does_not_make_a_bad_picture() -> None:
    content = encoded(noise(), "JPEG", exif=b"Exif\0\0MM\0*\xff\xff\xff\xff")
    assert inspect_image(content).reason == ""
    assert render_image(content, 16).shape == (16, 16, 3)


def test_a_large_jpeg_is_decoded_small() -> None:
    """By hand: at a quarter, the least that still has the size; and that is near what all of it would give."""
    image = noise(800, 600)
    content = encoded(image, "JPEG", quality=95)
    small = Image.open(io.BytesIO(content))
    small.draft(None, (160, 120))
    assert small.size == (200, 150)
    found = render_image(content, 120)
    np.testing.assert_array_equal(found, np.asarray(small.resize((120, 120), BILINEAR, (25, 0, 175, 150))))
    assert np.abs(found.astype(int) - by_hand(Image.open(io.BytesIO(content)), 120)).mean() < 3


def test_sixteen_bits_keep_the_upper_eight() -> None:
    deep = np.random.default_rng(0).integers(0, 1 << 16, (20, 20)).astype(np.uint16)
    found = render_image(encoded(Image.fromarray(deep)), 20)
    np.testing.assert_array_equal(found, np.repeat((deep >> 8)[..., None], 3, axis=2))


def test_what_is_transparent_lies_on_white() -> None:
    pixels = np.zeros((8, 8, 4), np.uint8)
    pixels[:4] = (200, 0, 0, 255)
    pixels[4:] = (0, 99, 0, 0)  # a colour that nobody sees
    found = render_image(encoded(Image.fromarray(pixels)), 8)
    assert found[0, 0].tolist() == [200, 0, 0]
    assert found[7, 7].tolist() == [255, 255, 255]
    palette = Image.fromarray(pixels[..., :3]).quantize(4)
    hidden = palette.getpixel((7, 7))
    assert render_image(encoded(palette, transparency=hidden), 8)[7, 7].tolist() == [255, 255, 255]


def test_of_a_moving_picture_the_first_is_shown() -> None:
    assert render_image(animated(), 16)[8, 8].tolist() == [255, 0, 0]


@pytest.mark.parametrize("form", ["cmyk.jpg", "palette.png", "grey.jpg", "bits.png", "misnamed.gif", "other.webp"])
def test_other_forms_are_what_pillow_makes_of_them(form: str) -> None:
    image = Image.open(io.BytesIO(SOUND[form])).convert("RGB")
    np.testing.assert_array_equal(render_image(SOUND[form], 30), by_hand(image, 30))


@pytest.mark.parametrize("name", SOUND)
def test_a_look_finds_sound_pictures_sound(name: str) -> None:
    assert inspect_image(SOUND[name]).reason == ""


def test_a_look_measures_the_colours() -> None:
    image = noise(40, 30)
    look, pixels = inspect_image(encoded(image)), np.asarray(image).reshape(-1, 3).astype(float)
    np.testing.assert_allclose(look.mean, pixels.mean(axis=0))
    np.testing.assert_allclose(look.square, (pixels**2).mean(axis=0))


# ---------------------------------------------------------------- what is no picture

REASONS = {
    "bomb.png": "far more pixels than the limit of 40 megapixels",
    "large.png": "7000 x 7000 pixels are more than the limit of 40",
    "bomb.jpg": "far more pixels than",
    "bomb.gif": "far more pixels than",
    "words.png": "Decompressed data too large",
    "cut.jpg": "truncated",
    "cut.png": "cannot be decoded",
    "text.jpg": "it is text, 'this is no pictu'",
    "empty.jpg": "empty",
    "zeros.png": "not an image (begins 0000",
    "fractions.tif": "floating-point",
    "line.png": "50 x 1 pixels are too few",
    "script.jpg": "it is text, '%!PS-Adobe",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_picture_is_told_with_the_reason(name: str) -> None:
    look = inspect_image(HOSTILE[name])
    assert REASONS[name] in look.reason
    assert len(look.sha256) == 64
    with pytest.raises(DataError, match=r".") as told:
        render_image(HOSTILE[name], 16)
    assert str(told.value) == look.reason


@pytest.mark.parametrize("name", ["bomb.png", "large.png", "bomb.jpg", "bomb.gif"])
def test_nothing_is_made_room_for(name: str) -> None:
    tracemalloc.start()
    try:
        inspect_image(HOSTILE[name])
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("form", ["JPEG", "PNG", "GIF", "WEBP"])
@pytest.mark.parametrize("progressive", [False, True])
def test_wherever_a_picture_is_cut_off_it_is_noticed(form: str, progressive: bool) -> None:
    how = {"progressive": progressive} if form == "JPEG" else {}
    content = encoded(noise(160, 120), form, **how)
    for length in np.linspace(1, len(content) - 50, 40).astype(int):
        assert inspect_image(content[:length]).reason, f"{length} of {len(content)} bytes"


@given(st.sampled_from(sorted(SOUND)), st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=8))
def test_whatever_is_changed_it_is_read_or_told(name: str, changes: list[tuple[int, int]]) -> None:
    content = bytearray(SOUND[name])
    for place, value in changes:
        content[place % len(content)] = value
    look = inspect_image(bytes(content))
    try:
        assert render_image(bytes(content), 16).shape == (16, 16, 3)
    except DataError as error:
        assert look.reason == str(error)  # noqa: PT017


@pytest.mark.parametrize(("width", "height", "size"), [(90, 30, (60, 20)), (30, 90, (20, 60)), (40, 30, (40, 30))])
def test_a_whole_picture_in_its_own_shape(width: int, height: int, size: tuple[int, int]) -> None:
    image = noise(width, height)
    found = render_whole(encoded(image), 60)
    assert found.shape == (size[1], size[0], 3)
    expected = np.asarray(image.convert("RGB").resize(size, BILINEAR)).astype(int)
    assert np.abs(found - expected).max() <= 2


def test_a_whole_picture_stands_upright() -> None:
    assert render_whole(turned(noise(40, 30), 6), 100).shape == (40, 30, 3)
    with pytest.raises(DataError):
        render_whole(b"<svg/>", 100)
