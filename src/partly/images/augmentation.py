"""What is done to a picture while a network learns from it: a random crop, a mirror image, other light.

Which crop, and which light, is a function of (seed, epoch, item) and of nothing else. So neither the order of the items
nor the number of processes that decode them changes a bit, and a run that goes on after a kill needs no random state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

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
        # All at once: to ask one by one takes three times as long.
        numbers = draw.rng(item, "augmentation").random(4 + 4 * TRIES).tolist()
        flip, light, crops = numbers[0], numbers[1:4], numbers[4:]
        factors = [1 + self.colour * (2 * number - 1) for number in light]
        box = self._crop(width, height, crops) if self.crop < 1 else centre(width, height)
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
        return centre(width, height)


NO_AUGMENTATION = Augmentation(flip=0.0, crop=1.0, stretch=1.0, colour=0.0)


def centre(width: int, height: int) -> Box:
    """The largest square in the middle: to show it at some size is to bring the short side to that size, and to cut
    the rest off."""
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    return left, top, left + side, top + side
