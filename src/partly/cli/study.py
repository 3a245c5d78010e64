"""`partly study`: compare ways to spend a labeling budget."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from partly.cli.app import command
from partly.cli.options import (
    DataOptionsWithoutHierarchy,
    Json,
    Workers,
    data_option,
    model_option,
    output_option,
    split_names,
    training_option,
)
from partly.cli.printing import print_json, say
from partly.errors import SettingError


@command("Comparison")
def study(
    data: Annotated[str, typer.Argument(help="Data as for `partly train`, or an experiment (.toml).")],
    shares: Annotated[
        str, data_option("Shares of labels to observe, from 0 to 1.")
    ] = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1",
    scenarios: Annotated[str, data_option("Ways to annotate that are compared.")] = "uniform,dense,noisy,noisy-plus",
    head: Annotated[str, model_option("Head on the features: linear, mlp, gnn, ...")] = "mlp",
    seeds: Annotated[int, training_option("Number of seeds per cell.")] = 3,
    *,
    reading: DataOptionsWithoutHierarchy,
    out: Annotated[Path, output_option("Folder for the results, the report and the figure.")] = Path("results"),
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Find the best way to spend a labeling budget.

    Hides labels of fully labeled data in several ways and shares, and compares the trained models. Finished cells are
    kept: the same command resumes.
    """
    from partly.comparison import read_experiment
    from partly.comparison import study as studies

    if data.endswith(".toml"):
        experiment = read_experiment(Path(data))
        name, results = experiment.name, studies.run(experiment, out, workers)
    else:
        result = studies.study(
            data,
            _parse_shares(shares),
            split_names(scenarios),
            head=head,
            seeds=seeds,
            labels=reading.labels,
            skip_bad=reading.skip_bad,
            size=reading.size,
            **reading.label_format(),
            out=out,
            workers=workers,
        )
        name, results = "study", [result]
    show = say if as_json else print
    for result in results:
        show(f"{result.data}, {result.head}: {studies.answer(result)}\n\n" + "\n".join(studies.render_table(result)))
    leaders = [
        {"data": result.data, "head": result.head, "leader": ranking.leader, "level": list(ranking.tied)}
        for result in results
        if (ranking := result.ranking()) is not None
    ]
    report = out / f"{name}.html"
    say(f"Report: {report}")
    print_json({"report": report, "results": report.with_suffix(".jsonl"), "leaders": leaders}, as_json)


def _parse_shares(text: str) -> list[float]:
    try:
        return [float(share) for share in split_names(text)]
    except ValueError:
        raise SettingError(f"--shares {text!r}: give numbers from 0 to 1, separated by commas: 0.1,0.5.") from None
