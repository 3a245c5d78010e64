"""What is done to a picture while a network learns from it: a random crop, a mirror image, other light.

Which crop, and which light, is a function of (seed, epoch, item) and of nothing else. So neither the order of the items
nor the number of processes that decode them changes a bit, and a run that goes on after a kill needs no random state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from partly.clock import Draw
from partly.errors import SettingError, within

TRIES = 10  # to find a crop that fits, as everybody does since GoogLeNet

Box = tuple[float, float, float, float]  # left, top, right, bottom, in pixels


@dataclass(frozen=True)
class View:
    """What of a picture is shown, and how."""

    box: Box
    mirrored: bool = False
    light: tuple[float, float, float] | None = None  # factors of brightness, contrast and saturation


@dataclass(frozen=True)
class Augmentation:
    """How much may be changed."""

    flip: float = 0.5  # how often a picture is mirrored
    crop: float = 0.35  # the least share of the area that is kept; 1 keeps all of the centre
    stretch: float = 4 / 3  # how much wider than high, or higher than wide, a crop may be
    colour: float = 0.2  # brightness, contrast and saturation change by up to this share

    def __post_init__(self) -> None:
        within(0, 1, flip=self.flip, crop=self.crop, colour=self.colour)
        within(1, math.inf, stretch=self.stretch)
        if not self.crop > 0:
            raise SettingError(f"crop = {self.crop}: a crop keeps more than nothing; 1 keeps all.")

    def view(self, width: int, height: int, draw: Draw, item: str) -> View:
        """What is shown of the item in this epoch. As many numbers are drawn whatever the settings are, so that to
        change one of them leaves the others' draws as they were."""
        rng = draw.rng(item, "augmentation")
        mirrored = rng.random() < self.flip
        light = 1 + self.colour * rng.uniform(-1, 1, 3)
        box = self._crop(width, height, rng) if self.crop < 1 else centre(width, height)
        return View(box, mirrored, (float(light[0]), float(light[1]), float(light[2])) if self.colour else None)

    def _crop(self, width: int, height: int, rng: np.random.Generator) -> Box:
        for _ in range(TRIES):
            area = width * height * rng.uniform(self.crop, 1)
            ratio = math.exp(rng.uniform(-1, 1) * math.log(self.stretch))
            across, down = math.sqrt(area * ratio), math.sqrt(area / ratio)
            left, top = rng.uniform(0, 1, 2)
            if across <= width and down <= height:
                left, top = float(left) * (width - across), float(top) * (height - down)
                return left, top, left + across, top + down
        return centre(width, height)


NO_AUGMENTATION = Augmentation(flip=0.0, crop=1.0, stretch=1.0, colour=0.0)


def centre(width: int, height: int) -> Box:
    """The largest square in the middle: to show it at some size is to bring the short side to that size, and to cut
    the rest off."""
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    return left, top, left + side, top + side
