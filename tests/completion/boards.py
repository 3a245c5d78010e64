"""Boards of which the truth is known, without any model."""

from __future__ import annotations

import numpy as np

from partly.completion.entry_scores import EntryScores


def truth_and_chance(seed: int = 0, items: int = 400, labels: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """z [N, L] whose entries of an item depend on each other, and honest chances of yes."""
    rng = np.random.default_rng(seed)
    logits = 3 * rng.normal(size=(items, labels)) + rng.normal(size=(items, 1))
    chance = 1 / (1 + np.exp(-logits))
    return np.where(rng.random((items, labels)) < chance, 1, -1).astype(np.int8), chance


def board(z: np.ndarray, chance: np.ndarray, known: np.ndarray, audited: bool = False) -> EntryScores:
    said = np.where(known, z, 0).astype(np.int8)
    names = tuple(f"label {j}" for j in range(z.shape[1]))
    return EntryScores(chance, said, said == 0, np.zeros(z.shape[1], bool), names, audited)
