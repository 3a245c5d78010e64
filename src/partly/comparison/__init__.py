"""Comparisons: methods x scenarios x heads x seeds under one protocol, resumable; and what can be said about them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from partly.comparison import runner
from partly.comparison.plan import Experiment, read_experiment
from partly.comparison.tables import table

__all__ = ["Experiment", "compare", "read_experiment", "table"]


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
    missing: Sequence[str] = (),
    label_columns: Sequence[str] = (),
    id_column: str | None = None,
    tag_separator: str | None = None,
    recipe: dict[str, Any] | None = None,
    name: str = "compare",
    out: str | Path = "results",
    workers: int | None = None,
    progress: bool = True,
    on: str = "here",
    address: str | None = None,
) -> list[dict[str, Any]]:
    """Run every method on every scenario, head and seed; one result line per cell.

    Lines are kept in `<out>/<name>.jsonl`; cells that are there already are not run again.

    Parameters
    ----------
    data : str, Path, or several
        'scenes', `.npz` files with a train and a test part, or items whose labels are in `labels`.
    methods, scenarios, heads : sequences of str
        Names, as on the command line.
    seeds : int
        How many.
    validation : sequence of str
        "complete" or "partial": what chooses the epoch.
    tune : int
        So many settings of each method are tried.
    labels : str or Path, optional
        A file of labels.
    skip_bad, size
        For pictures in files, as in `partly.read`.
    absent, uncertain, missing, label_columns, id_column, tag_separator
        What files leave open, as in `partly.read`.
    recipe : dict, optional
        Of the training, such as epochs.
    name, out : str
        Of the result lines.
    workers : int, optional
        Processes.
    progress : bool
        Show a progress bar.
    on, address : str
        'here', in processes of this machine, or 'ray': on this machine, or on the cluster at `address`.

    Returns
    -------
    list of dict
        The result lines.

    Examples
    --------
    >>> import partly
    >>> lines = partly.compare(  # doctest: +SKIP
    ...     "scenes", ["bce", "partial-bce"], ["uniform:0.1"], heads=["linear"], seeds=3
    ... )
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
        missing=tuple(missing),
        label_columns=tuple(label_columns),
        id_column=id_column,
        tag_separator=tag_separator,
        name=name,
    )
    return runner.run(experiment, Path(out), workers, progress, on, address)
