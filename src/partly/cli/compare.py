"""`partly compare`: train methods side by side, print their table and write a report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partly.cli.app import command
from partly.cli.options import (
    Address,
    DataOptionsWithoutHierarchy,
    Json,
    On,
    Workers,
    data_option,
    model_option,
    output_option,
    split_names,
    training_option,
)
from partly.cli.printing import print_json, say
from partly.errors import SettingError

if TYPE_CHECKING:
    from partly.comparison import Experiment


@command("Comparison")
def compare(
    data: Annotated[str, typer.Argument(help="Data as for `partly train` (several: a,b), or an experiment (.toml).")],
    methods: Annotated[str, model_option("Methods a,b,...; settings as a[name=value].")] = "all",
    scenarios: Annotated[
        str, data_option("Simulations of missing labels: uniform:0.1,...; full keeps all labels.")
    ] = "full",
    heads: Annotated[str, model_option("Heads linear,mlp,...; auto picks one per method.")] = "auto",
    seeds: Annotated[int, training_option("Number of seeds per cell.")] = 5,
    validation: Annotated[
        str, training_option("Labels of the validation part: complete, partial or complete,partial.")
    ] = "complete",
    tune: Annotated[int, training_option("Number of trials to tune each method's settings; 0 keeps the defaults.")] = 0,
    *,
    reading: DataOptionsWithoutHierarchy,
    out: Annotated[Path, output_option("Folder for the results and the report.")] = Path("results"),
    table: Annotated[
        list[Path] | None, output_option("File for the tables: .tex, .md, .csv or .json. Repeatable.")
    ] = None,
    workers: Workers = None,
    on: On = "here",
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Compare methods on your data under one protocol.

    Finished cells are kept: the same command resumes, and adding methods or seeds runs only what is missing.
    """
    from partly import methods as catalogue
    from partly.comparison import Experiment, read_experiment

    if data.endswith(".toml"):
        experiment = read_experiment(Path(data))
    else:
        names = split_names(methods)
        experiment = Experiment(
            tuple(data.split(",")),
            methods=tuple(catalogue.discover() if names == ["all"] else names),
            scenarios=tuple(split_names(scenarios)),
            heads=tuple(split_names(heads)),
            seeds=seeds,
            validation=tuple(split_names(validation)),
            tune=tune,
            labels=None if reading.labels is None else str(reading.labels),
            skip_bad=reading.skip_bad,
            size=reading.size,
            **reading.label_format(),
        )
    result = run_comparison(
        experiment, out, table or [], workers, on=on, address=address, show=say if as_json else print
    )
    say(f"Report: {result['report']}")
    for path in result["tables"]:
        say(f"Table: {path}")
    print_json(result, as_json)


def run_comparison(
    experiment: Experiment,
    out: Path,
    tables: Sequence[Path] = (),
    workers: int | None = None,
    *,
    on: str = "here",
    address: str | None = None,
    show: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Run an experiment, show its table and write its report; return where everything is, and the leading methods."""
    from partly.atomic_io import write_file
    from partly.cli._datasets import describe_unlabelled
    from partly.comparison import active_curves, markdown, page, runner
    from partly.comparison.groups import gather
    from partly.comparison.tables import find_format, find_leaders, table

    formats = {path: find_format(path) for path in tables}
    if tables and experiment.queries:
        raise SettingError("--table works for comparisons of methods, but this one compares queries. Leave it out.")
    failure = None
    try:
        records = runner.run(experiment, out, workers, on=on, address=address)
    except runner.Incomplete as error:
        if not error.records:
            raise
        records, failure = error.records, error
    show(active_curves.render(records) if experiment.queries else markdown.render(records, over=experiment.over))
    for number, curves in enumerate(active_curves.gather(records).values()):
        write_file(out / f"{experiment.name}-{number}.svg", active_curves.draw(curves))
    report = out / f"{experiment.name}.html"
    unlisted = runner.count_unlabeled(experiment)
    note = describe_unlabelled(unlisted, "only methods that learn from unlabeled items use them") if unlisted else ""
    if note:
        say(note)
    page.write(records, report, title=experiment.title or experiment.name, over=experiment.over, note=note)
    for path, kind in formats.items():
        write_file(path, table(records, kind).encode())
    if failure is not None:
        raise failure  # the cells that finished are reported first
    leaders = [] if experiment.queries else find_leaders(gather(records))
    return {"report": report, "results": report.with_suffix(".jsonl"), "tables": list(tables), "leaders": leaders}
