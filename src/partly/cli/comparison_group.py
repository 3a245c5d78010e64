"""Commands that set methods side by side: parse, call, print. What they do is in a module each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from partly.cli.options import (
    Absent,
    Address,
    IdColumn,
    Json,
    LabelColumns,
    LabelsFile,
    Missing,
    On,
    SafeCsv,
    Seed,
    Size,
    SkipBad,
    TagSeparator,
    Uncertain,
)
from partly.cli.printing import print_json, say
from partly.errors import SettingError

commands = typer.Typer()


@commands.command()
def simulate(
    data: Annotated[
        str, typer.Argument(help="Truth: scenes, digits, an .npz with a train part, or a table of labels.")
    ],
    scenario: Annotated[
        str, typer.Option(help="uniform:0.1, single-positive, positives:0.25, propensity, dense:0.1, ...")
    ],
    out: Annotated[Path, typer.Option(help="The partly known labels: .csv, .parquet or .npz.")],
    safe_csv: SafeCsv = False,
    seed: Seed = 0,
    as_json: Json = False,
    absent: Absent = None,
    uncertain: Uncertain = None,
    missing: Missing = None,
    label_columns: LabelColumns = None,
    id_column: IdColumn = None,
    tag_separator: TagSeparator = None,
) -> None:
    """Hide labels as a scenario says, and write what is left."""
    from partly.cli.simulate import simulate as job
    from partly.data import for_spreadsheets
    from partly.data.label_semantics import LabelSemantics

    with for_spreadsheets(safe_csv):
        observed = job(
            data,
            scenario,
            out,
            seed,
            LabelSemantics.from_options(absent, uncertain, missing, label_columns, id_column, tag_separator),
        )
    say(repr(observed))
    print_json(observed.summary() | {"out": out}, as_json)


@commands.command()
def compare(
    data: Annotated[
        str, typer.Argument(help="scenes, digits, .npz files, a table of features, or an experiment (.toml).")
    ],
    methods: Annotated[str, typer.Option(help="a,b,... (see `partly methods`); settings as a[name=value].")] = "all",
    scenarios: Annotated[
        str, typer.Option(help="uniform:0.1,single-positive,...; full takes the labels as they are.")
    ] = "full",
    heads: Annotated[str, typer.Option(help="linear,mlp,...; auto takes what suits each method.")] = "auto",
    seeds: Annotated[int, typer.Option(help="Runs of each cell.")] = 5,
    validation: Annotated[str, typer.Option(help="complete, partial or both (complete,partial).")] = "complete",
    tune: Annotated[int, typer.Option(help="Trials for each method's settings; 0 for the defaults alone.")] = 0,
    labels: LabelsFile = None,
    absent: Absent = None,
    uncertain: Uncertain = None,
    missing: Missing = None,
    label_columns: LabelColumns = None,
    id_column: IdColumn = None,
    tag_separator: TagSeparator = None,
    size: Size = None,
    skip_bad: SkipBad = False,
    out: Annotated[Path, typer.Option(help="Folder for the result lines and the report.")] = Path("results"),
    table: Annotated[
        list[Path] | None, typer.Option(help="Write the tables to a file: .tex, .md, .csv or .json. Repeatable.")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; all cores if not given.")] = None,
    on: On = "here",
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Run methods side by side under one protocol; what is there already is not run again."""
    from partly.cli.compare import compare as job

    found = job(
        data,
        out,
        asked={
            "methods": _names(methods),
            "scenarios": _names(scenarios),
            "heads": _names(heads),
            "seeds": seeds,
            "validation": _names(validation),
            "tune": tune,
            "labels": None if labels is None else str(labels),
            "skip_bad": skip_bad,
            "size": size,
            "absent": absent,
            "uncertain": uncertain,
            "missing": missing or (),
            "label_columns": label_columns or (),
            "id_column": id_column,
            "tag_separator": tag_separator,
        },
        tables=table or [],
        workers=workers,
        on=on,
        address=address,
        say=say if as_json else print,
    )
    for path in (found["report"], *found["tables"]):
        say(f"{'Report' if path == found['report'] else 'Table'}: {path}")
    print_json(found, as_json)


@commands.command()
def study(
    data: Annotated[
        str, typer.Argument(help="scenes, digits, an .npz, a table of features, or an experiment (.toml).")
    ],
    shares: Annotated[str, typer.Option(help="Shares of right labels.")] = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1",
    scenarios: Annotated[str, typer.Option(help="Ways to annotate.")] = "uniform,dense,noisy,noisy-plus",
    head: Annotated[str, typer.Option(help="linear, mlp, gnn, ...")] = "mlp",
    seeds: Annotated[int, typer.Option(help="Runs of each cell.")] = 3,
    labels: LabelsFile = None,
    absent: Absent = None,
    uncertain: Uncertain = None,
    missing: Missing = None,
    label_columns: LabelColumns = None,
    id_column: IdColumn = None,
    tag_separator: TagSeparator = None,
    size: Size = None,
    skip_bad: SkipBad = False,
    out: Annotated[Path, typer.Option(help="Folder for the result lines, the page and the picture.")] = Path("results"),
    workers: Annotated[int | None, typer.Option(help="Processes; all cores if not given.")] = None,
    as_json: Json = False,
) -> None:
    """Find out what is the best way to spend a budget of labels; what is there already is not run again."""
    from partly.cli.study import study as job

    asked = {"shares": _shares(shares), "scenarios": _names(scenarios), "head": head, "seeds": seeds, "labels": labels}
    asked |= {"size": size, "skip_bad": skip_bad, "absent": absent, "uncertain": uncertain}
    asked |= {"missing": missing or (), "label_columns": label_columns or ()}
    asked |= {"id_column": id_column, "tag_separator": tag_separator}
    found = job(data, out, asked=asked, workers=workers, say=say if as_json else print)
    say(f"Report: {found['report']}")
    print_json(found, as_json)


@commands.command(hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def claims() -> None:
    """Moved out of the package: run `python -m evidence claims` in a copy of the project."""
    raise SettingError("partly claims has moved: run `python -m evidence claims` in a copy of the project.")


def _names(text: str) -> list[str]:
    """'a,b[c=1,d=2]' -> ['a', 'b[c=1,d=2]']: commas inside brackets belong to a method's settings."""
    names, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and not depth:
            names.append("")
        else:
            names[-1] += letter
    return [name.strip() for name in names if name.strip()]


def _shares(text: str) -> list[float]:
    try:
        return [float(share) for share in _names(text)]
    except ValueError:
        raise SettingError(f"--shares {text!r} should be numbers from 0 to 1 with commas: 0.1,0.5.") from None
