"""The built-in picture data set: handwritten digits and drawn things on textured ground, truth known.

The digits are scikit-learn's, real handwriting; every third of them is kept for test pictures. What is in
a picture follows the tables below: the ground decides what may lie on it, and some things bring a friend.
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

# How often a ground is taken, and how much it likes each thing. A thing that is not named never lies there.
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
_FRIENDS = (("one", "zero"), ("four", "two"), ("eight", "three"), ("tree", "flower"))
_PULL = 6  # how much likelier a friend comes next
_COUNTS = (15, 25, 27, 20, 13)  # how often a picture has 1, 2, 3, 4, 5 objects
_MOST = len(_COUNTS)

# All brighter than any ground, and as many as there may be objects, so that none is used twice in a picture.
_INKS = ((255, 255, 255), (255, 236, 110), (200, 255, 190), (170, 240, 255), (255, 190, 235))

_CELLS = 3  # objects sit in different cells of a 3 x 3 grid
_RADIUS = 0.16  # of an object, as a share of the picture's side
_BLOCK = 512  # pictures made at once; bounds the memory


def scenes(train: int = 3000, test: int = 1000, seed: int = 0, size: int = 32, coarse: bool = False) -> Dataset:
    """Pictures, uint8 [N, size, size, 3], of 1 to 5 objects on a ground, with all their labels known.

    The labels are the 22 fine ones; `coarse=True` adds the 7 coarse ones as further columns (yes where one
    of its fine labels is). The hierarchy comes along either way. Picture i depends on the seed, its part,
    the size and i alone: a larger set starts with the same pictures.
    """
    train, test, seed, size = _checked(train=train, test=test, seed=seed, size=size)
    parts = (_part("train", train, seed, size, coarse), _part("test", test, seed, size, coarse))
    hierarchy = Hierarchy({child: parent for parent, children in COARSE.items() for child in children})
    return Dataset(*parts[0], test=Dataset(*parts[1]), hierarchy=hierarchy)


def recognizes(path: Path) -> bool:
    """By its name alone: it is made, not read."""
    return str(path) in NAMES


def read(path: Path, semantics: LabelSemantics) -> Dataset:
    return scenes(coarse=str(path) == NAMES[1])


def _checked(**numbers: Any) -> list[int]:
    least = {"train": 0, "test": 0, "size": 24}
    wrong = []
    for name, value in numbers.items():
        try:
            numbers[name] = operator.index(value)
        except TypeError:
            wrong.append(f"{name}={value!r}: must be a whole number")
            continue
        if numbers[name] < least.get(name, numbers[name]):
            wrong.append(f"{name}={value!r}: must be at least {least[name]}")
    if wrong:
        raise SettingError(f"scenes: {len(wrong)} impossible settings" + listing(wrong, len(wrong)))
    return list(numbers.values())


def _part(part: str, count: int, seed: int, size: int, coarse: bool) -> tuple[Arrays, Labels]:
    """The pictures and labels of one part."""
    # Every picture takes the same number of draws from each stream, which is what makes it a function of i.
    plans, grain = (np.random.default_rng(seed_for("scenes", seed, part, use)) for use in ("plan", "grain"))
    pictures = np.empty((count, size, size, 3), np.uint8)
    truth = np.zeros((count, len(FINE)), bool)
    for start in range(0, count, _BLOCK):
        here = slice(start, min(start + _BLOCK, count))
        plan = _plan(plans.random((here.stop - start, _DRAWS)), part)
        pictures[here] = _paint(plan, grain.random((here.stop - start, size, size)))
        truth[here] = plan.truth()
    names = FINE
    if coarse:
        above = [truth[:, [FINE.index(child) for child in children]].any(axis=1) for children in COARSE.values()]
        truth, names = np.column_stack([truth, *above]), (*FINE, *COARSE)
    return Arrays(pictures, "pictures"), Labels.from_full(
        truth, names=names, ids=[f"{part}-{i:05d}" for i in range(count)]
    )


# ---------------------------------------------------------------- what is in a picture


@dataclass(frozen=True)
class _Plan:
    """What is where, in N pictures with up to 5 objects each."""

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


_DRAWS = 4 + _CELLS**2 + 7 * _MOST


def _plan(u: Field, part: str) -> _Plan:
    """u: [N, _DRAWS] uniform numbers, all that chance has to say."""
    (where, many, shift, light), cells = u[:, :4].T, u[:, 4 : 4 + _CELLS**2]
    thing, copy, colour, turn, grow, *jitter = np.moveaxis(u[:, -7 * _MOST :].reshape(-1, _MOST, 7), 2, 0)
    ground = _pick(np.array([_LIKES[name][0] for name in GROUNDS]), where)
    objects = _objects(ground, _pick(np.array(_COUNTS), many) + 1, thing)
    copies, digit = _copies(part), np.clip(objects, 0, len(DIGITS) - 1)
    grid = np.stack(np.divmod(np.argsort(cells, axis=1)[:, :_MOST], _CELLS), axis=2) / (_CELLS - 1)
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
    """Different things that the ground likes, one after the other; a friend of the last one is likelier."""
    likes = np.array([[_LIKES[name][1].get(thing, 0) for thing in OBJECTS] for name in GROUNDS])
    pull = np.ones((len(OBJECTS), len(OBJECTS)), int)
    for a, b in _FRIENDS:
        i, j = OBJECTS.index(a), OBJECTS.index(b)
        pull[i, j] = pull[j, i] = _PULL
    weights, row = likes[ground], np.arange(len(ground))
    objects = np.full(u.shape, -1)
    for k in range(_MOST):
        friendly = weights if k == 0 else weights * pull[objects[:, k - 1]]
        objects[:, k] = _pick(friendly, u[:, k])
        weights[row, objects[:, k]] = 0
    return np.where(np.arange(_MOST) < count[:, None], objects, -1)


def _pick(weights: npt.NDArray[np.int_], u: Field) -> Index:
    """One position a row, as likely as its weight; never one of weight 0. weights: [K] or [N, K]; u: [N]"""
    sums = np.cumsum(weights, axis=-1)
    return np.asarray((sums <= (u * sums[..., -1])[:, None]).sum(axis=1), dtype=np.intp)


@cache
def _digits() -> tuple[Field, Index]:
    """Images [1797, 8, 8] in 0..1 and which digit each is."""
    from sklearn.datasets import load_digits  # here, because it takes a second to import

    bundled = load_digits()
    return bundled.images / 16, bundled.target


@cache
def _copies(part: str) -> Index:
    """The images that belong to a part: [10, as many as the rarest digit has]"""
    target = _digits()[1]
    mine = (np.arange(len(target)) % 3 == 2) == (part == "test")
    found = [np.flatnonzero(mine & (target == digit)) for digit in range(len(DIGITS))]
    fewest = min(map(len, found))
    return np.array([where[:fewest] for where in found])


# ---------------------------------------------------------------- painting


def _paint(plan: _Plan, noise: Field) -> npt.NDArray[np.uint8]:
    """noise: [N, S, S] in 0..1; the pictures, [N, S, S, 3]"""
    size = noise.shape[1]
    canvas = np.empty((*noise.shape, 3))
    x = np.arange(size)[None] / size
    for g, (texture, colour, step) in enumerate(GROUNDS.values()):
        rows = plan.ground == g
        shade = texture(noise[rows], x.T, x, plan.shift[rows, None, None])
        canvas[rows] = (np.asarray(colour) + shade[..., None] * np.asarray(step)) * plan.light[rows, None, None, None]
    for slot in range(_MOST):
        things = plan.objects[:, slot]
        _draw(canvas, plan, np.flatnonzero((things >= 0) & (things < len(DIGITS))), slot)
        for k, shape in enumerate(SHAPES.values(), start=len(DIGITS)):
            _draw(canvas, plan, np.flatnonzero(things == k), slot, shape)
    return np.clip(canvas, 0, 255).astype(np.uint8)


def _draw(canvas: Field, plan: _Plan, rows: Index, slot: int, shape: Shape | None = None) -> None:
    """Draw one object into each of some pictures, all of one shape, or all digits where there is none."""
    size = canvas.shape[1]
    radius = plan.radius[rows, slot, None, None] * size
    side = int(3 * _RADIUS * size)  # of a square that holds the object however it is turned
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
