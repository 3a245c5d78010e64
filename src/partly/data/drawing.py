"""Outlines and textures of the objects and grounds of `scenes`, as formulas for many images at once.

An object lies in the square of u, v from -1 to 1 (v points down). It is drawn in layers: each has a color and a field
that is positive inside, so that edges are smooth at any size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

Field = npt.NDArray[np.float64]
Color = tuple[int, int, int]
Layers = Iterator[tuple[Color | None, Field]]  # None: the object's own ink
Shape = Callable[[Field, Field], Layers]

YELLOW, WHITE, BROWN, BLACK = (255, 212, 48), (250, 248, 240), (98, 62, 32), (32, 32, 38)


def disc(u: Field, v: Field, x: float, y: float, radius: float) -> Field:
    return radius - np.hypot(u - x, v - y)


def petals(u: Field, v: Field, radius: float, swing: float, count: int) -> Field:
    reach: Field = radius + swing * np.cos(count * np.arctan2(u, -v))
    return reach - np.hypot(u, v)


def convex(u: Field, v: Field, *corners: tuple[float, float]) -> Field:
    """Return the field of a convex outline with clockwise corners."""
    sides = []
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
        sides.append(((v - y0) * (x1 - x0) - (u - x0) * (y1 - y0)) / np.hypot(x1 - x0, y1 - y0))
    inside: Field = np.min(sides, axis=0)
    return inside


def tree(u: Field, v: Field) -> Layers:
    yield BROWN, convex(u, v, (-0.17, 0.4), (0.17, 0.4), (0.17, 1), (-0.17, 1))
    yield (6, 68, 44), convex(u, v, (0, -0.5), (0.8, 0.6), (-0.8, 0.6))
    yield (12, 88, 56), convex(u, v, (0, -1), (0.62, 0), (-0.62, 0))


def flower(u: Field, v: Field) -> Layers:
    yield None, petals(u, v, 0.68, 0.26, 5)
    yield YELLOW, disc(u, v, 0, 0, 0.3)


def boat(u: Field, v: Field) -> Layers:
    yield BROWN, convex(u, v, (-0.16, -1), (0, -1), (0, 0.5), (-0.16, 0.5))
    yield WHITE, convex(u, v, (0.02, -0.95), (0.8, 0.3), (0.02, 0.3))
    yield None, convex(u, v, (-1, 0.4), (1, 0.4), (0.6, 0.95), (-0.6, 0.95))


def car(u: Field, v: Field) -> Layers:
    yield None, convex(u, v, (-0.5, -0.55), (0.35, -0.55), (0.7, 0.1), (-0.7, 0.1))
    yield (40, 56, 92), convex(u, v, (-0.38, -0.38), (0.25, -0.38), (0.42, 0), (-0.45, 0))
    yield None, convex(u, v, (-1, 0), (0.9, 0), (1, 0.5), (-1, 0.5))
    yield BLACK, np.maximum(disc(u, v, -0.52, 0.5, 0.27), disc(u, v, 0.52, 0.5, 0.27))


def sun(u: Field, v: Field) -> Layers:
    yield (255, 150, 24), petals(u, v, 0.74, 0.24, 8)
    yield YELLOW, disc(u, v, 0, 0, 0.55)


def moon(u: Field, v: Field) -> Layers:
    yield (244, 238, 196), np.minimum(disc(u, v, -0.1, 0, 0.9), -disc(u, v, 0.35, -0.15, 0.72))


SHAPES: dict[str, Shape] = {shape.__name__: shape for shape in (tree, flower, boat, car, sun, moon)}


def handwriting(image: Field, u: Field, v: Field) -> Field:
    """Return the coverage by strokes of digits. image: [M, 8, 8] in 0..1; u, v and the result: [M, P, P]."""
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
    x, y = (np.clip((t + 1) * 4 + 0.5, 0, 8.999) for t in (u, v))
    left, top = x.astype(np.intp), y.astype(np.intp)
    x, y, which = x - left, y - top, np.arange(len(image))[:, None, None]
    upper = padded[which, top, left] * (1 - x) + padded[which, top, left + 1] * x
    lower = padded[which, top + 1, left] * (1 - x) + padded[which, top + 1, left + 1] * x
    # Steeper than the scan, so that strokes stay crisp when enlarged.
    return np.clip((upper * (1 - y) + lower * y - 0.3) * 2.5, 0, 1)


# ---------------------------------------------------------------- grounds
# Each returns shades, mostly from -1 to 1, of M images. noise: [M, S, S] in 0..1; y: [S, 1] and x: [1, S], coordinates
# in 0..1; shift: [M, 1, 1], start of the pattern.


def _smear(noise: Field, axis: int) -> Field:
    mean: Field = np.mean([np.roll(noise, k, axis) for k in range(4)], axis=0)
    return 2 * mean - 1


def grass(noise: Field, y: Field, x: Field, shift: Field) -> Field:
    return _smear(noise, 1) * 1.5


def sand(noise: Field, y: Field, x: Field, shift: Field) -> Field:
    return noise - 0.5 + 0.5 * np.sin(6.28 * (2.5 * y + shift + 0.2 * np.sin(6.28 * (x + shift))))


def sea(noise: Field, y: Field, x: Field, shift: Field) -> Field:
    return 0.4 * noise + np.sin(6.28 * (5 * y + shift + 0.18 * np.sin(6.28 * (2 * x + 3 * shift))))


def night(noise: Field, y: Field, x: Field, shift: Field) -> Field:
    return np.where(noise > 0.985, 6.0, noise - y)


def wood(noise: Field, y: Field, x: Field, shift: Field) -> Field:
    return np.where((4 * y + shift) % 1 < 0.13, -1.8, _smear(noise, 2) * 1.3)


def tiles(noise: Field, y: Field, x: Field, shift: Field) -> Field:
    joint = ((4 * y + shift) % 1 < 0.13) | ((4 * x + 3 * shift) % 1 < 0.13)
    return np.where(joint, -1.5, 0.6 * noise)


# Texture, color at shade 0, and change of color per shade.
GROUNDS: dict[str, tuple[Callable[[Field, Field, Field, Field], Field], Color, Color]] = {
    "grass": (grass, (80, 140, 56), (20, 24, 14)),
    "sand": (sand, (188, 144, 84), (16, 16, 16)),
    "sea": (sea, (36, 104, 172), (14, 20, 22)),
    "night": (night, (24, 26, 66), (18, 18, 24)),
    "wood": (wood, (150, 100, 60), (26, 20, 14)),
    "tiles": (tiles, (112, 118, 132), (22, 22, 22)),
}
