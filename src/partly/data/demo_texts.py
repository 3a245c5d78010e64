"""Short texts with topics for `partly demo`, written for it."""

from __future__ import annotations

from pathlib import Path

from partly.data.dataset import Dataset
from partly.items import texts
from partly.labels import Labels

FILE = Path(__file__).with_suffix(".txt")


def demo_texts() -> Dataset:
    """Return the texts with all of their topics."""
    lines = [line.split(" | ", 1) for line in FILE.read_text("utf-8").splitlines() if not line.startswith("#")]
    topics = [set(before.split(", ")) for before, _ in lines]
    names = sorted(set().union(*topics))
    labels = Labels.from_full([[name in own for name in names] for own in topics], names=names)
    return Dataset(texts([text for _, text in lines]), labels)
