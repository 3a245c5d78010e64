"""Small data sets on disk, one per kind of items, with the same labels: what each holds of red, green and blue."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from PIL import Image

Kind = Literal["table", "pictures", "texts"]
KINDS: tuple[Kind, ...] = ("table", "pictures", "texts")
NAMES = ("red", "green", "blue")
COLORS = ((210, 40, 40), (40, 210, 40), (40, 40, 210))


def ids_of(count: int) -> list[str]:
    return [f"p{i:02d}.png" for i in range(count)]


def truth_of(count: int) -> npt.NDArray[np.bool_]:
    """Which of the colors each item has, [count, 3]."""
    return np.random.default_rng(1).random((count, len(NAMES))) < 0.5


def write_kind(folder: Path, kind: Kind, count: int = 30, known: float = 0.3) -> tuple[Path, Path]:
    """Write items and partly known labels; return both paths."""
    rng, truth, ids = np.random.default_rng(0), truth_of(count), ids_of(count)
    with open(folder / "labels.csv", "w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["item", *NAMES])
        for name, row in zip(ids, truth, strict=True):
            lines.writerow([name, *(int(value) if rng.random() < known else "" for value in row)])
    writers = {"table": _write_table, "pictures": _write_pictures, "texts": _write_texts}
    return writers[kind](folder, ids, truth, rng), folder / "labels.csv"


def _write_table(folder: Path, ids: list[str], truth: npt.NDArray[np.bool_], rng: np.random.Generator) -> Path:
    with open(folder / "features.csv", "w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["item", "a", "b", "c"])
        for name, row in zip(ids, truth + rng.normal(0, 0.2, truth.shape), strict=True):
            lines.writerow([name, *(f"{value:.3f}" for value in row)])
    return folder / "features.csv"


def _write_pictures(folder: Path, ids: list[str], truth: npt.NDArray[np.bool_], rng: np.random.Generator) -> Path:
    (folder / "photos").mkdir()
    for name, row in zip(ids, truth, strict=True):
        pixels = rng.integers(80, 100, (48, 48, 3)).astype(np.uint8)
        for k in np.flatnonzero(row):
            pixels[16 * k : 16 * k + 16, :] = COLORS[k]
        Image.fromarray(pixels).save(folder / "photos" / name)
    return folder / "photos"


def _write_texts(folder: Path, ids: list[str], truth: npt.NDArray[np.bool_], rng: np.random.Generator) -> Path:
    with open(folder / "texts.csv", "w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["item", "text"])
        for name, row in zip(ids, truth, strict=True):
            held = " and ".join(color for color, yes in zip(NAMES, row, strict=True) if yes)
            lines.writerow([name, f"a drawing of {rng.integers(2, 9)} {held or 'gray'} houses"])
    return folder / "texts.csv"
