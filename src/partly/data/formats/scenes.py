"""The built-in image data set: handwritten digits and drawn objects on textured grounds, completely labeled.

The digits are those of scikit-learn; every third is used in test images only. The tables below define which objects
occur on which ground and together.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.clock import seed_for
from partly.data.dataset import Dataset
from partly.data.drawing import GROUNDS, SHAPES, Field, Shape, handwriting
from partly.data.label_semantics import LabelSemantics
from partly.data.protocols import DatasetFormat
from partly.errors import SettingError, listing
from partly.items import Arrays
from partly.labels import Labels
from partly.labels.hierarchy import Hierarchy

Index = npt.NDArray[np.intp]

NAMES = ("scenes", "scenes-coarse")

COARSE = {
    "even digit": ("zero", "two", "four", "six", "eight"),
    "odd digit": ("one", "three", "five", "seven", "nine"),
    "plant": ("tree", "flower"),
    "vehicle": ("boat", "car"),
    "light": ("sun", "moon"),
    "outdoors": ("grass", "sand", "sea", "night"),
    "indoors": ("wood", "tiles"),
}
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
OBJECTS = (*DIGITS, *SHAPES)
FINE = (*OBJECTS, *GROUNDS)

# Frequency of each ground, and weights of the objects on it. An object that is not listed never occurs there.
_COMMON = {"zero": 13, "one": 30, "two": 15, "three": 11, "four": 10, "five": 9, "seven": 8, "eight": 7}
_OUT, _IN = {**_COMMON, "six": 8}, {**_COMMON, "nine": 16}
_LIKES: dict[str, tuple[int, dict[str, int]]] = {
    "grass": (34, _OUT | {"tree": 30, "flower": 40, "sun": 50}),
    "sand": (14, _OUT | {"sun": 80, "tree": 8, "car": 3}),
    "sea": (24, _OUT | {"boat": 50, "sun": 80}),
    "night": (5, _OUT | {"moon": 60, "tree": 12}),
    "wood": (15, _IN | {"flower": 20, "car": 3}),
    "tiles": (8, _IN | {"car": 6}),
}
_FREQUENT_COMPANIONS = (("one", "zero"), ("four", "two"), ("eight", "three"), ("tree", "flower"))
_FRIEND_WEIGHT = 6  # factor for a friend of an object in the image
_COUNTS = (15, 25, 27, 20, 13)  # frequency of 1, 2, 3, 4, 5 objects per image
_MAX_OBJECTS = len(_COUNTS)

# All brighter than any ground; one per object, so that none is used twice in an image.
_INKS = ((255, 255, 255), (255, 236, 110), (200, 255, 190), (170, 240, 255), (255, 190, 235))

_CELLS = 3  # objects sit in different cells of a 3 x 3 grid
_RADIUS = 0.16  # of an object, as a share of the image side
_BLOCK = 512  # images drawn at a time


def scenes(train: int = 3000, test: int = 1000, seed: int = 0, size: int = 32, coarse: bool = False) -> Dataset:
    """Draw images uint8 [N, size, size, 3] of 1 to 5 objects on a ground, with complete labels.

    There are 22 fine labels; `coarse=True` adds the 7 coarse ones as further columns. Image i depends on the seed, its
    part, the size and i only, so a larger set starts with the same images.
    """
    train, test, seed, size = _check_numbers(train=train, test=test, seed=seed, size=size)
    train_and_test = (_part("train", train, seed, size, coarse), _part("test", test, seed, size, coarse))
    hierarchy = Hierarchy({child: parent for parent, children in COARSE.items() for child in children})
    return Dataset(*train_and_test[0], test=Dataset(*train_and_test[1]), hierarchy=hierarchy)


def recognizes(path: Path) -> bool:
    """Return whether the path is the name of this data set; it is generated, not read."""
    return str(path) in NAMES


def read(path: Path, semantics: LabelSemantics) -> Dataset:
    return scenes(coarse=str(path) == NAMES[1])


def _check_numbers(**numbers: Any) -> list[int]:
    minimum = {"train": 0, "test": 0, "size": 24}
    wrong = []
    for name, value in numbers.items():
        try:
            numbers[name] = operator.index(value)
        except TypeError:
            wrong.append(f"{name}={value!r}: must be a whole number")
            continue
        if numbers[name] < minimum.get(name, numbers[name]):
            wrong.append(f"{name}={value!r}: must be at least {minimum[name]}")
    if wrong:
        raise SettingError(f"scenes: {len(wrong)} impossible settings" + listing(wrong, len(wrong)))
    return list(numbers.values())


def _part(part: str, count: int, seed: int, size: int, coarse: bool) -> tuple[Arrays, Labels]:
    """Draw the images and labels of one part."""
    # Every image takes the same number of draws from each stream, so that it is a function of i.
    plans, grain = (np.random.default_rng(seed_for("scenes", seed, part, use)) for use in ("plan", "grain"))
    images = np.empty((count, size, size, 3), np.uint8)
    truth = np.zeros((count, len(FINE)), bool)
    for start in range(0, count, _BLOCK):
        rows = slice(start, min(start + _BLOCK, count))
        plan = _plan(plans.random((rows.stop - start, _DRAWS)), part)
        images[rows] = _paint(plan, grain.random((rows.stop - start, size, size)))
        truth[rows] = plan.truth()
    names = FINE
    if coarse:
        coarse_truth = [truth[:, [FINE.index(child) for child in children]].any(axis=1) for children in COARSE.values()]
        truth, names = np.column_stack([truth, *coarse_truth]), (*FINE, *COARSE)
    return Arrays(images, "pictures"), Labels.from_full(
        truth, names=names, ids=[f"{part}-{i:05d}" for i in range(count)]
    )


# ---------------------------------------------------------------- content of an image


@dataclass(frozen=True)
class _Plan:
    """Contents of N images with up to 5 objects each."""

    ground: Index  # [N], positions in GROUNDS
    shift: Field  # [N], of the texture
    light: Field  # [N], on the ground
    objects: Index  # [N, 5], positions in OBJECTS, -1 where there are fewer
    image: Index  # [N, 5], which handwritten digit, for digits
    centre: Field  # [N, 5, 2], y and x in 0..1
    radius: Field  # [N, 5], as a share of the side
    angle: Field  # [N, 5], in radians
    ink: Field  # [N, 5, 3]

    def truth(self) -> npt.NDArray[np.bool_]:
        """[N, len(FINE)]"""
        things = (self.objects[:, :, None] == np.arange(len(OBJECTS))).any(axis=1)
        return np.hstack([things, self.ground[:, None] == np.arange(len(GROUNDS))])


_DRAWS = 4 + _CELLS**2 + 7 * _MAX_OBJECTS


def _plan(u: Field, part: str) -> _Plan:
    """Plan images from uniform random numbers u [N, _DRAWS]."""
    (where, many, shift, light), cells = u[:, :4].T, u[:, 4 : 4 + _CELLS**2]
    thing, copy, colour, turn, grow, *jitter = np.moveaxis(u[:, -7 * _MAX_OBJECTS :].reshape(-1, _MAX_OBJECTS, 7), 2, 0)
    ground = _pick(np.array([_LIKES[name][0] for name in GROUNDS]), where)
    objects = _objects(ground, _pick(np.array(_COUNTS), many) + 1, thing)
    copies, digit = _copies(part), np.clip(objects, 0, len(DIGITS) - 1)
    grid = np.stack(np.divmod(np.argsort(cells, axis=1)[:, :_MAX_OBJECTS], _CELLS), axis=2) / (_CELLS - 1)
    edge = 1.03 * _RADIUS
    centre = edge + (1 - 2 * edge) * grid + 0.05 * (np.stack(jitter, axis=2) - 0.5)
    return _Plan(
        ground=ground,
        shift=shift,
        light=0.8 + 0.25 * light,
        objects=objects,
        image=copies[digit, (copy * copies.shape[1]).astype(np.intp)],
        centre=np.clip(centre, edge, 1 - edge),
        radius=_RADIUS * (0.9 + 0.2 * grow),
        angle=0.4 * (turn - 0.5),
        ink=np.array(_INKS, float)[np.argsort(colour, axis=1)],
    )


def _objects(ground: Index, count: Index, u: Field) -> Index:
    """Draw different objects by the weights of the ground; a friend of the previous one is more likely."""
    likes = np.array([[_LIKES[name][1].get(thing, 0) for thing in OBJECTS] for name in GROUNDS])
    pull = np.ones((len(OBJECTS), len(OBJECTS)), int)
    for a, b in _FREQUENT_COMPANIONS:
        i, j = OBJECTS.index(a), OBJECTS.index(b)
        pull[i, j] = pull[j, i] = _FRIEND_WEIGHT
    weights, row = likes[ground], np.arange(len(ground))
    objects = np.full(u.shape, -1)
    for k in range(_MAX_OBJECTS):
        friendly = weights if k == 0 else weights * pull[objects[:, k - 1]]
        objects[:, k] = _pick(friendly, u[:, k])
        weights[row, objects[:, k]] = 0
    return np.where(np.arange(_MAX_OBJECTS) < count[:, None], objects, -1)


def _pick(weights: npt.NDArray[np.int_], u: Field) -> Index:
    """Draw one position per row in proportion to its weight. weights: [K] or [N, K]; u: [N]."""
    sums = np.cumsum(weights, axis=-1)
    return np.asarray((sums <= (u * sums[..., -1])[:, None]).sum(axis=1), dtype=np.intp)


@cache
def _digits() -> tuple[Field, Index]:
    """Return images [1797, 8, 8] in 0..1 and their digits."""
    from sklearn.datasets import load_digits  # slow to import

    bundled = load_digits()
    return bundled.images / 16, bundled.target


@cache
def _copies(part: str) -> Index:
    """Return the images of a part: [10, count of the rarest digit]."""
    target = _digits()[1]
    in_part = (np.arange(len(target)) % 3 == 2) == (part == "test")
    images_of = [np.flatnonzero(in_part & (target == digit)) for digit in range(len(DIGITS))]
    count = min(map(len, images_of))
    return np.array([images[:count] for images in images_of])


# ---------------------------------------------------------------- painting


def _paint(plan: _Plan, noise: Field) -> npt.NDArray[np.uint8]:
    """Paint images [N, S, S, 3]; noise: [N, S, S] in 0..1."""
    size = noise.shape[1]
    canvas = np.empty((*noise.shape, 3))
    x = np.arange(size)[None] / size
    for g, (texture, colour, step) in enumerate(GROUNDS.values()):
        rows = plan.ground == g
        shade = texture(noise[rows], x.T, x, plan.shift[rows, None, None])
        canvas[rows] = (np.asarray(colour) + shade[..., None] * np.asarray(step)) * plan.light[rows, None, None, None]
    for slot in range(_MAX_OBJECTS):
        things = plan.objects[:, slot]
        _draw(canvas, plan, np.flatnonzero((things >= 0) & (things < len(DIGITS))), slot)
        for k, shape in enumerate(SHAPES.values(), start=len(DIGITS)):
            _draw(canvas, plan, np.flatnonzero(things == k), slot, shape)
    return np.clip(canvas, 0, 255).astype(np.uint8)


def _draw(canvas: Field, plan: _Plan, rows: Index, slot: int, shape: Shape | None = None) -> None:
    """Draw one object into each of these images: all of one shape, or digits without a shape."""
    size = canvas.shape[1]
    radius = plan.radius[rows, slot, None, None] * size
    side = int(3 * _RADIUS * size)  # of a square that holds the object at any angle
    corner = np.clip(plan.centre[rows, slot] * size - side / 2, 0, size - side).astype(np.intp)
    ys, xs = corner[:, 0, None, None] + np.arange(side)[:, None], corner[:, 1, None, None] + np.arange(side)
    dy, dx = ((at + 0.5 - plan.centre[rows, slot, axis, None, None] * size) / radius for axis, at in ((0, ys), (1, xs)))
    sin, cos = (turn(plan.angle[rows, slot, None, None]) for turn in (np.sin, np.cos))
    u, v = cos * dx + sin * dy, cos * dy - sin * dx
    place, ink = (rows[:, None, None], ys, xs), plan.ink[rows, slot, None, None]
    if shape is None:
        cover = handwriting(_digits()[0][plan.image[rows, slot]], u, v)[..., None]
        canvas[place] += cover * (ink - canvas[place])
        return
    for colour, inside in shape(u, v):
        cover = np.clip(0.5 + inside * radius, 0, 1)[..., None]
        canvas[place] += cover * ((ink if colour is None else np.asarray(colour)) - canvas[place])


FORMAT = DatasetFormat("dataset", recognizes, read)
