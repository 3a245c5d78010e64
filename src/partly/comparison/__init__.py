"""Comparisons: methods x scenarios x heads x seeds under one protocol, resumable; and what can be said about them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from partly.comparison import runner
from partly.comparison.plan import Experiment, read_experiment

__all__ = ["Experiment", "compare", "read_experiment"]


def compare(
    data: str | Path | Sequence[str | Path],
    methods: Sequence[str],
    scenarios: Sequence[str],
    *,
    heads: Sequence[str] = ("auto",),
    seeds: int = 5,
    validation: Sequence[str] = ("complete",),
    tune: int = 0,
    labels: str | Path | None = None,
    skip_bad: bool = False,
    size: int | None = None,
    absent: str | None = None,
    uncertain: str | None = None,
    recipe: dict[str, Any] | None = None,
    name: str = "compare",
    out: str | Path = "results",
    workers: int | None = None,
    progress: bool = True,
    on: str = "here",
    address: str | None = None,
) -> list[dict[str, Any]]:
    """Run every method on every scenario, head and seed; one result line per cell.

    data: 'scenes', `.npz` files with a train and a test part, or items whose labels are in `labels`; `skip_bad` and
    `size` are for pictures in files, `absent` and `uncertain` for what files leave open, as in `partly.read`.
    Lines are kept in `<out>/<name>.jsonl`; cells that are there already are not run again.
    on: 'here', in processes of this machine, or 'ray': on this machine, or on the cluster at `address`.
    """
    files = [data] if isinstance(data, str | Path) else list(data)
    experiment = Experiment(
        tuple(map(str, files)),
        tuple(methods),
        tuple(scenarios),
        tuple(heads),
        seeds,
        tuple(validation),
        tune=tune,
        recipe=recipe or {},
        labels=None if labels is None else str(labels),
        skip_bad=skip_bad,
        size=size,
        absent=absent,
        uncertain=uncertain,
        name=name,
    )
    return runner.run(experiment, Path(out), workers, progress, on, address)
