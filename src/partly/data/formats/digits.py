"""The built-in data set 'digits': handwritten digits as features, completely labeled, for quick experiments.

The 1,797 digits of 8 x 8 gray values from scikit-learn (Alpaydin and Kaynak, 1998) have 15 labels: the digit, and
whether it is even, prime, a multiple of three, above four, and written with a loop.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from partly.clock import seed_for
from partly.data.dataset import Dataset
from partly.data.label_semantics import LabelSemantics
from partly.data.protocols import DatasetFormat
from partly.items import features
from partly.labels import Labels

NAME = "digits"
SIDE = 8
MIN_TEST_ITEMS = 500
DIGITS_OF = {str(digit): {digit} for digit in range(10)} | {
    "even": {0, 2, 4, 6, 8},
    "prime": {2, 3, 5, 7},
    "multiple of 3": {0, 3, 6, 9},
    "above 4": {5, 6, 7, 8, 9},
    "has a loop": {0, 6, 8, 9},
}


def recognizes(path: Path) -> bool:
    return str(path) == NAME


def read(path: Path, semantics: LabelSemantics) -> Dataset:
    return digits()


def digits(train: int = 1200, seed: int = 0) -> Dataset:
    """Return the data set with `train` items, and the others, at least 500, as the test part."""
    from sklearn.datasets import load_digits

    source = load_digits()
    x = source.data.astype(np.float32)
    z = np.stack(
        [np.where(np.isin(source.target, list(digits_of_label)), 1, -1) for digits_of_label in DIGITS_OF.values()],
        axis=1,
    )
    order = np.random.default_rng(seed_for(seed, NAME)).permutation(len(x))
    labels = Labels.from_ternary(z.astype(np.int8), names=tuple(DIGITS_OF))
    items = features(x)
    train_rows, test_rows = np.split(order, [min(train, len(x) - MIN_TEST_ITEMS)])
    return Dataset(items[train_rows], labels[train_rows], test=Dataset(items[test_rows], labels[test_rows]))


def to_images(x: npt.NDArray[np.float32], scale: int = 4) -> npt.NDArray[np.uint8]:
    """Turn gray values [N, 64] into images uint8 [N, H, W, 3], dark on light."""
    gray = (255 - x.reshape(-1, SIDE, SIDE) * 15.9).astype(np.uint8)
    return np.repeat(np.kron(gray, np.ones((1, scale, scale), np.uint8))[..., None], 3, axis=3)


FORMAT = DatasetFormat("dataset", recognizes, read)
