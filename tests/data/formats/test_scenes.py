from __future__ import annotations

import dataclasses
import hashlib
import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from partly import scenarios
from partly.data import formats
from partly.data.dataset import Dataset
from partly.data.drawing import GROUNDS, SHAPES, convex, disc, handwriting, petals
from partly.data.formats import scenes as module
from partly.data.formats.scenes import (
    _DRAWS,
    COARSE,
    DIGITS,
    FINE,
    OBJECTS,
    _copies,
    _digits,
    _paint,
    _pick,
    _plan,
    scenes,
)
from partly.errors import PartlyError, SettingError

PARENT = {child: parent for parent, children in COARSE.items() for child in children}


@pytest.fixture(scope="module")
def data() -> Dataset:
    return scenes(train=3000, test=300)


def pictures_of(data: Dataset, *names: str) -> set[int]:
    """The training pictures in which all these labels are yes."""
    columns = [data.labels.names.index(name) for name in names]
    return {i for i, row in enumerate(data.labels.positive) if all(row[columns])}


def assert_same_start(a: Dataset, b: Dataset, train: int, test: int) -> None:
    np.testing.assert_array_equal(a.items.array[:train], b.items.array[:train])
    np.testing.assert_array_equal(a.test.items.array[:test], b.test.items.array[:test])
    assert a.labels[:train] == b.labels[:train]
    assert a.test.labels[:test] == b.test.labels[:test]


# ---------------------------------------------------------------- what comes out


def test_pictures_and_full_labels(data: Dataset) -> None:
    assert data.items.array.shape == (3000, 32, 32, 3)
    assert data.test.items.array.shape == (300, 32, 32, 3)
    assert data.items.array.dtype == data.test.items.array.dtype == np.uint8
    assert data.items.kind == data.test.items.kind == "pictures"
    assert data.truth is None
    assert data.labels.names == data.test.labels.names == FINE
    assert len(FINE) == 22
    assert data.labels.known.all()
    assert data.labels.ids[:2] == ("train-00000", "train-00001")
    assert data.test.labels.ids[-1] == "test-00299"


def test_another_size_shows_the_same_things() -> None:
    small, large = scenes(train=3, test=0, size=24), scenes(train=3, test=0, size=48)
    assert large.items.array.shape == (3, 48, 48, 3)
    assert small.labels == large.labels
    halved = large.items.array.reshape(3, 24, 2, 24, 2, 3).mean(axis=(2, 4))
    assert np.abs(halved - small.items.array).mean() < 25  # of 255; an unrelated picture is two or three times as far
    assert np.abs(halved[[1, 2, 0]] - small.items.array).mean() > 40


def test_no_pictures_at_all() -> None:
    data = scenes(train=0, test=0)
    assert data.items.array.shape == (0, 32, 32, 3)
    assert data.test.labels.shape == (0, 22)


def test_by_name() -> None:
    assert formats.of(Path("scenes"), "dataset") is formats.of(Path("scenes-coarse"), "dataset") is module.FORMAT
    assert not module.recognizes(Path("folder/scenes"))
    assert not module.recognizes(Path("scenes.npz"))


def test_settings_may_be_numpy_integers() -> None:
    assert_same_start(scenes(np.int64(4), np.int32(2), seed=np.uint8(3)), scenes(4, 2, seed=3), 4, 2)


def test_bad_settings_are_refused_all_at_once() -> None:
    with pytest.raises(SettingError) as caught:
        scenes(train=-1, test=2.5, seed="x", size=8)  # type: ignore[arg-type]
    for part in (
        "train=-1: must be at least 0",
        "test=2.5: must be a whole",
        "seed='x'",
        "size=8: must be at least 24",
    ):
        assert part in str(caught.value)
    assert issubclass(SettingError, PartlyError)


# ---------------------------------------------------------------- a function of (seed, part, i)


PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
FINGERPRINT = """
import hashlib
from partly.data.formats.scenes import scenes
s = scenes(train=40, test=20, seed=5)
pixels = s.items.array.tobytes() + s.test.items.array.tobytes()
print(hashlib.sha256(pixels).hexdigest(), s.labels.digest(), s.test.labels.digest())
"""


def test_same_bits_in_every_process() -> None:
    s = scenes(train=40, test=20, seed=5)
    pixels = hashlib.sha256(s.items.array.tobytes() + s.test.items.array.tobytes()).hexdigest()
    here = [pixels, s.labels.digest(), s.test.labels.digest()]
    runs = [
        subprocess.Popen([sys.executable, "-c", FINGERPRINT], env={**os.environ, "PYTHONHASHSEED": k}, **PIPES)
        for k in ("1", "2")
    ]
    for run in runs:
        out, problems = run.communicate(timeout=600)
        assert out.split() == here, problems


@pytest.mark.parametrize(("train", "test"), [(1, 1), (511, 0), (512, 3), (513, 40)])
def test_a_larger_set_starts_with_the_same_pictures(train: int, test: int) -> None:
    assert_same_start(scenes(train, test), scenes(train=700, test=100), train, test)


def test_seed_and_part_change_everything() -> None:
    a, b = scenes(train=30, test=30, seed=0), scenes(train=30, test=30, seed=1)
    (train, test), (other_train, other_test) = ((one.items.array, one.test.items.array) for one in (a, b))
    for x, y in ((train, other_train), (test, other_test), (train, test)):
        assert not any(np.array_equal(p, q) for p in x for q in y)
    assert a.labels != b.labels


# ---------------------------------------------------------------- what is in the pictures


def test_digits_of_train_and_test_are_disjoint() -> None:
    images, target = _digits()
    pools = {part: _copies(part) for part in ("train", "test")}
    contents = {part: {images[i].tobytes() for i in pool.ravel()} for part, pool in pools.items()}
    assert not contents["train"] & contents["test"]
    assert min(pool.shape[1] for pool in pools.values()) >= 50
    for part, pool in pools.items():
        assert all(target[i] == digit for digit, row in enumerate(pool) for i in row)
        plan = _plan(np.random.default_rng(0).random((500, _DRAWS)), part)
        for thing, image in zip(plan.objects.ravel(), plan.image.ravel(), strict=True):
            assert not 0 <= thing < 10 or image in pool[thing]


def test_one_ground_and_one_to_five_objects(data: Dataset) -> None:
    objects = data.labels.positive[:, : len(OBJECTS)].sum(axis=1)
    grounds = data.labels.positive[:, len(OBJECTS) :].sum(axis=1)
    assert set(objects) == {1, 2, 3, 4, 5}
    assert set(grounds) == {1}
    for things in _plan(np.random.default_rng(4).random((500, _DRAWS)), "train").objects.tolist():
        here = [thing for thing in things if thing >= 0]
        assert len(set(here)) == len(here)


def test_labels_are_rare_and_common(data: Dataset) -> None:
    share = data.labels.positive.mean(axis=0)
    assert 0.015 < share.min() < 0.035
    assert 0.40 < share.max() < 0.50
    assert np.abs(share - data.test.labels.positive.mean(axis=0)).max() < 0.1


@pytest.mark.parametrize(
    ("a", "b"),
    [("boat", "sea"), ("moon", "night"), ("tree", "flower"), ("four", "two"), ("eight", "three"), ("boat", "sun")],
)
def test_some_labels_like_each_other(data: Dataset, a: str, b: str) -> None:
    expected = len(pictures_of(data, a)) * len(pictures_of(data, b)) / 3000
    assert len(pictures_of(data, a, b)) > 1.5 * expected


def test_some_labels_never_meet(data: Dataset) -> None:
    pairs = [("sun", "moon"), ("six", "nine"), ("boat", "tree"), ("boat", "grass"), ("sun", "night"), ("car", "sea")]
    for a, b in [*pairs, *combinations(GROUNDS, 2)]:
        assert pictures_of(data, a)
        assert pictures_of(data, b)
        assert not pictures_of(data, a, b), (a, b)


def test_coarse_labels_follow_from_the_fine_ones(data: Dataset) -> None:
    assert data.hierarchy is not None
    assert dict(data.hierarchy.parents) == PARENT
    assert set(PARENT) == set(FINE)
    both = scenes(train=200, test=100, coarse=True)
    assert both.labels.names == both.test.labels.names == (*FINE, *COARSE)
    assert np.array_equal(both.items.array, data.items.array[:200])
    for part, fine in ((both.labels, data.labels), (both.test.labels, data.test.labels)):
        for row, fine_row in zip(part.positive, fine.positive, strict=False):
            yes = {name for name, value in zip(FINE, fine_row, strict=True) if value}
            yes |= {PARENT[name] for name in yes}
            assert {name for name, value in zip(part.names, row, strict=True) if value} == yes
    data.hierarchy.check(both.labels)


def test_every_scenario_can_be_played(data: Dataset) -> None:
    truth, both = data.labels[:100], scenes(train=100, test=0, coarse=True).labels
    assert scenarios.uniform(truth, 0.1, 0).summary()["yes"] > 0
    assert scenarios.positives(truth, 0.5, 0).summary()["no"] == 0
    assert scenarios.single_positive(truth, 0).summary()["yes"] == 100
    assert scenarios.dense(truth, 0.1, 0).summary()["items_wholly_known"] == 10
    assert scenarios.noisy(truth, 0.1, 0) != truth
    assert scenarios.noisy_plus(truth, 0).summary()["yes"] == 100
    assert data.hierarchy is not None
    coarse = scenarios.coarse_only(both, data.hierarchy, 0.0, 0)
    assert coarse.known[:, len(FINE) :].all()
    assert not coarse.positive[:, : len(FINE)].any()


# ---------------------------------------------------------------- how it is drawn


@pytest.mark.parametrize("thing", OBJECTS)
def test_an_object_is_seen_where_the_plan_says(thing: str) -> None:
    u = np.random.default_rng(1).random((60, _DRAWS))
    plan = _plan(u, "train")
    copies = _copies("train")
    digit = OBJECTS.index(thing) if thing in DIGITS else 0
    one = dataclasses.replace(
        plan,
        objects=np.where(np.arange(5) == 2, OBJECTS.index(thing), np.full((60, 5), -1)),
        image=np.full((60, 5), copies[digit, 0]),
    )
    noise = np.random.default_rng(2).random((60, 32, 32))
    bare = _paint(dataclasses.replace(one, objects=np.full((60, 5), -1)), noise)
    changed = np.abs(_paint(one, noise).astype(int) - bare).max(axis=3) > 20
    for i in range(60):
        y, x = np.nonzero(changed[i])
        assert len(y) >= 15
        centre, reach = one.centre[i, 2] * 32, 1.25 * one.radius[i, 2] * 32 + 1
        assert np.abs(y + 0.5 - centre[0]).max() <= reach
        assert np.abs(x + 0.5 - centre[1]).max() <= reach


def test_objects_stay_inside_and_apart() -> None:
    plan = _plan(np.random.default_rng(3).random((300, _DRAWS)), "test")
    assert (plan.centre >= 0.16).all()
    assert (plan.centre <= 0.84).all()
    for centres in plan.centre:
        for a, b in combinations(centres, 2):
            assert np.abs(a - b).max() > 0.28  # of the picture's side, where an object's breadth is about 0.32


def test_handwriting_at_its_own_size_is_the_scan() -> None:
    image = np.random.default_rng(0).random((2, 8, 8))
    at = (np.arange(8) + 0.5) / 4 - 1  # the middles of the scan's pixels
    u, v = np.broadcast_to(at, (2, 8, 8)), np.broadcast_to(at[:, None], (2, 8, 8))
    np.testing.assert_allclose(handwriting(image, u, v), np.clip((image - 0.3) * 2.5, 0, 1), atol=1e-12)
    between = handwriting(image, u[:, :1, :1] + 0.125, v[:, :1, :1])
    expected = (image[:, 0, 0] + image[:, 0, 1]) / 2
    np.testing.assert_allclose(between[:, 0, 0], np.clip((expected - 0.3) * 2.5, 0, 1), atol=1e-12)
    assert not handwriting(np.ones((1, 8, 8)), np.full((1, 1, 1), 1.4), np.zeros((1, 1, 1))).any()


def test_outlines_are_positive_inside() -> None:
    u, v = np.array([0.0, 0.5, 2.0]), np.array([0.0, 0.0, 0.0])
    np.testing.assert_allclose(disc(u, v, 0.5, 0, 1), [0.5, 1, -0.5])
    np.testing.assert_allclose(convex(u, v, (-1, -1), (1, -1), (1, 1), (-1, 1)), [1, 0.5, -1])
    np.testing.assert_allclose(petals(u, v, 1, 0.5, 4), [1.5, 1, -0.5])


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_fill_their_square(name: str) -> None:
    at = (np.arange(40) + 0.5) / 16 - 1.25
    u, v = np.meshgrid(at, at)
    inside = np.max([field for _, field in SHAPES[name](u, v)], axis=0) > 0
    assert 0.15 < inside.sum() / 32**2 < 0.8
    assert np.abs(u[inside]).max() <= 1.05
    assert np.abs(v[inside]).max() <= 1.05
    assert np.ptp(v[inside]) > 1.2


def test_pick_is_proportional_and_never_takes_weight_zero() -> None:
    weights = np.array([0, 3, 0, 1, 0])
    u = np.arange(8) / 8
    assert _pick(weights, u).tolist() == [1] * 6 + [3] * 2
    assert _pick(np.array([[0, 1], [1, 0]]), np.array([0.0, 1 - 2**-53])).tolist() == [1, 0]
