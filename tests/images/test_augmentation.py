"""Crops, mirrors and light: a function of seed, epoch and item, and within what the settings allow."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partly.clock import Clock, Draw, seed_for
from partly.errors import SettingError
from partly.images.augmentation import NO_AUGMENTATION, Augmentation, View, center_crop

SIDES = st.integers(2, 2000)
ALL = Augmentation()


def test_the_numbers_are_those_of_seed_epoch_and_item() -> None:
    rng = np.random.default_rng(seed_for(3, 5, "augmentation", "a/b.jpg"))
    mirrored = rng.random() < 0.5
    light = [1 + 0.2 * u for u in rng.uniform(-1, 1, 3)]
    view = ALL.view(100, 80, Clock(3, epoch=5, step=9).draw, "a/b.jpg")
    assert view.mirrored == mirrored
    np.testing.assert_allclose(view.light, light)
    others = [(Draw(3, 5), "a/c.jpg"), (Draw(3, 6), "a/b.jpg"), (Draw(4, 5), "a/b.jpg")]
    assert len({view.box, *(ALL.view(100, 80, draw, item).box for draw, item in others)}) == 4


@given(SIDES, SIDES, st.floats(0.01, 1), st.floats(1, 3), st.integers(0, 100))
def test_a_crop_lies_inside_and_is_as_large_as_is_asked(
    width: int, height: int, crop: float, stretch: float, epoch: int
) -> None:
    view = Augmentation(crop=crop, stretch=stretch).view(width, height, Draw(0, epoch), "x")
    left, top, right, bottom = view.box
    assert 0 <= left < right <= width + 1e-9
    assert 0 <= top < bottom <= height + 1e-9
    if view.box != center_crop(width, height):
        across, down = right - left, bottom - top
        assert crop * (1 - 1e-9) <= across * down / (width * height) <= 1 + 1e-9
        assert abs(math.log(across / down)) <= math.log(stretch) + 1e-9


def test_how_often_and_how_much() -> None:
    views = [ALL.view(60, 50, Draw(0, epoch), "x") for epoch in range(2000)]
    assert 0.45 < np.mean([view.mirrored for view in views]) < 0.55
    light = np.array([view.light for view in views])
    assert light.min() >= 0.8
    assert light.max() <= 1.2
    np.testing.assert_allclose(light.mean(axis=0), 1, atol=0.01)
    shares = [(v.box[2] - v.box[0]) * (v.box[3] - v.box[1]) / 3000 for v in views if v.box != center_crop(60, 50)]
    assert 0.35 <= min(shares) < 0.36
    assert len(shares) > 1950


def test_one_setting_leaves_the_draws_of_the_others() -> None:
    plain, dim = (one.view(60, 50, Draw(0, 0), "x") for one in (ALL, Augmentation(colour=0.0)))
    assert dim == View(plain.box, plain.mirrored)


@given(SIDES, SIDES, st.integers(0, 9))
def test_none_is_the_middle(width: int, height: int, epoch: int) -> None:
    assert NO_AUGMENTATION.view(width, height, Draw(0, epoch), "x") == View(center_crop(width, height))


@pytest.mark.parametrize("wrong", [{"flip": 1.5}, {"crop": 0.0}, {"crop": -1}, {"stretch": 0.5}, {"colour": 2}])
def test_impossible_settings_are_refused_by_name(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingError, match=next(iter(wrong))):
        Augmentation(**wrong)
