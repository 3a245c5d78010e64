"""Random augmentation of training images: crop, horizontal flip, brightness, contrast and saturation.

The random numbers are a function of (seed, epoch, item), so neither the order of the items nor the number of worker
processes changes a bit, and a resumed run needs no random state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from partly.clock import Draw
from partly.errors import SettingError, within

CROP_ATTEMPTS = 10  # to find a crop that fits, as in GoogLeNet

Box = tuple[float, float, float, float]  # left, top, right, bottom, in pixels


@dataclass(frozen=True)
class View:
    """Crop, flip and color change of one image."""

    box: Box
    mirrored: bool = False
    light: tuple[float, float, float] | None = None  # factors of brightness, contrast and saturation


@dataclass(frozen=True)
class Augmentation:
    """Strength of the augmentation."""

    flip: float = 0.5  # probability of a horizontal flip
    crop: float = 0.35  # smallest share of the area of a random crop; 1 crops the center only
    stretch: float = 4 / 3  # largest aspect ratio of a crop
    colour: float = 0.2  # largest relative change of brightness, contrast and saturation

    def __post_init__(self) -> None:
        within(0, 1, flip=self.flip, crop=self.crop, colour=self.colour)
        within(1, math.inf, stretch=self.stretch)
        if not self.crop > 0:
            raise SettingError(f"crop = {self.crop}: must be above 0; 1 keeps the whole center.")

    def view(self, width: int, height: int, draw: Draw, item: str) -> View:
        """Draw the view of an item in this epoch.

        The number of draws does not depend on the settings, so changing one leaves the draws of the others unchanged.
        """
        # One call for all numbers: single calls take three times as long.
        numbers = draw.rng(item, "augmentation").random(4 + 4 * CROP_ATTEMPTS).tolist()
        flip, light, crops = numbers[0], numbers[1:4], numbers[4:]
        factors = [1 + self.colour * (2 * number - 1) for number in light]
        box = self._crop(width, height, crops) if self.crop < 1 else center_crop(width, height)
        return View(box, flip < self.flip, (factors[0], factors[1], factors[2]) if self.colour else None)

    def _crop(self, width: int, height: int, numbers: list[float]) -> Box:
        for i in range(0, len(numbers), 4):
            area, ratio, left, top = numbers[i : i + 4]
            pixels = width * height * (self.crop + (1 - self.crop) * area)
            stretch = self.stretch ** (2 * ratio - 1)
            across, down = math.sqrt(pixels * stretch), math.sqrt(pixels / stretch)
            if across <= width and down <= height:
                left, top = left * (width - across), top * (height - down)
                return left, top, left + across, top + down
        return center_crop(width, height)


NO_AUGMENTATION = Augmentation(flip=0.0, crop=1.0, stretch=1.0, colour=0.0)


def center_crop(width: int, height: int) -> Box:
    """Return the largest square in the middle."""
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    return left, top, left + side, top + side
