"""The built-in table 'digits': handwritten digits as features, with labels that say what is true of each.

The 1,797 digits of 8 x 8 grey values that come with scikit-learn (Alpaydin and Kaynak, 1998), and 15 labels: which
digit it is, and whether it is even, prime, a multiple of three, above four, and written with a loop. Real writing, of
which everything is known, to try things on within seconds.
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
LEAST = 500  # of the test part
TRUE_OF = {str(digit): {digit} for digit in range(10)} | {
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
    """`train` of them to learn from, and the others, at least 500, as the test part."""
    from sklearn.datasets import load_digits

    found = load_digits()
    x = found.data.astype(np.float32)
    z = np.stack([np.where(np.isin(found.target, list(some)), 1, -1) for some in TRUE_OF.values()], axis=1)
    order = np.random.default_rng(seed_for(seed, NAME)).permutation(len(x))
    labels = Labels.from_ternary(z.astype(np.int8), names=tuple(TRUE_OF))
    items = features(x)
    learned, test = np.split(order, [min(train, len(x) - LEAST)])
    return Dataset(items[learned], labels[learned], test=Dataset(items[test], labels[test]))


def pictures(x: npt.NDArray[np.float32], times: int = 4) -> npt.NDArray[np.uint8]:
    """The grey values [N, 64] as pictures [N, H, W, 3] of uint8, dark on light."""
    grey = (255 - x.reshape(-1, SIDE, SIDE) * 15.9).astype(np.uint8)
    return np.repeat(np.kron(grey, np.ones((1, times, times), np.uint8))[..., None], 3, axis=3)


FORMAT = DatasetFormat("dataset", recognizes, read)
