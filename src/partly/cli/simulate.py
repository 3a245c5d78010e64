"""`partly simulate`: hide labels of fully labeled data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from partly.cli.app import command
from partly.cli.options import Json, LabelFormatOptions, SafeCsv, Seed, option, output_option
from partly.cli.printing import print_json, say, summarize


@command("Labels")
def simulate(
    data: Annotated[str, typer.Argument(help="Complete labels: a label file, an .npz with a train part, or digits.")],
    scenario: Annotated[
        str, option("Which labels stay known: uniform:0.1, single-positive, positives:0.25, dense:0.1, ...")
    ],
    out: Annotated[Path, output_option("File for the observed labels: .csv, .parquet or .npz.")],
    safe_csv: SafeCsv = False,
    seed: Seed = 0,
    *,
    reading: LabelFormatOptions,
    as_json: Json = False,
) -> None:
    """Hide some of the labels, to simulate missing ones."""
    from partly import data as files
    from partly import scenarios

    how = reading.label_format()
    whole = files.read(data, **how) if files.is_whole(data) else None
    truth = files.read_labels(data, **how) if whole is None else whole.labels
    observed = scenarios.parse(scenario)(truth, seed, None if whole is None else whole.hierarchy)
    with files.for_spreadsheets(safe_csv):
        files.write_labels(observed, out)
    say(f"{out}: {summarize(observed.summary())}")
    print_json(observed.summary() | {"out": out}, as_json)
