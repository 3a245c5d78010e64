"""Result lines and data sets made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import partly
from partly.comparison.protocol import PROTOCOL

Record = dict[str, Any]


def line(method: str = "bce", seed: int = 0, score: float | None = 0.5, **changes: Any) -> Record:
    """One result line; the mask follows from data, scenario and seed, as it should."""
    made: Record = {
        "data": "tiny",
        "scenario": "uniform:0.5",
        "method": method,
        "head": "linear",
        "optimizer": "adamw",
        "seed": seed,
        "settings": {},
        "recipe": {},
        "validation": "complete",
        "tune": 0,
        "needs_truth": False,
        "best_epoch": 3,
        "validation_score": 0.5,
        "test": {"mAP": score, "CF1": 0.4, "OF1": 0.6},
        "predictions_sha256": "0",
        "partly": partly.__version__,
        "protocol": PROTOCOL,
        "torch": "2.0",
        "machine": "a machine",
        "seconds": 2.0,
        "training_seconds": 1.5,
        "memory_mb": 100.0,
    } | changes
    made.setdefault("data_digest", f"digest of {made['data']}")
    made.setdefault("mask_sha256", f"{made['data']} {made['scenario']} {seed}")
    ran = {"method": method, "head": made["head"], "epochs": 10, "lr": 1e-3, "seed": seed, "settings": made["settings"]}
    made.setdefault("ran", ran)
    return made


def lines(scores: Mapping[str, Iterable[float | None]], **changes: Any) -> list[Record]:
    """Lines of some methods on one block: method -> scores over seeds 0, 1, ...; 'full' is bce with all labels."""
    made = []
    for name, values in scores.items():
        here = changes | ({"scenario": "full", "validation": "complete"} if name == "full" else {})
        method = "bce" if name == "full" else name
        made += [line(method, seed, score, **here) for seed, score in enumerate(values)]
    return made


def write_split(path: Path, seed: int = 0, items: int = 120, width: int = 8, labels: int = 4) -> Path:
    """A small data set in a file, half as many test items: labels follow from the features, with noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(items * 3 // 2, width)).astype(np.float32)
    y = x @ rng.normal(size=(width, labels)) + rng.normal(size=(len(x), labels)) > 0.5
    np.savez(
        path,
        features_train=x[:items],
        labels_train=y[:items].astype(np.int8),
        features_test=x[items:],
        labels_test=y[items:].astype(np.int8),
        names=np.array([f"label {j}" for j in range(labels)]),
    )
    return path
