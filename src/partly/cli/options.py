"""Options that several commands have: one spelling, one type and one sentence for each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer


def files_in(folder: str) -> Callable[[str], list[str]]:
    """Names to complete a word with: those of the files in a folder, none of which is opened, so that it is quick."""

    def complete(begun: str) -> list[str]:
        stems = sorted(path.stem for path in (Path(__file__).parents[1] / folder).glob("[!_]*.py"))
        return [name for stem in stems if (name := stem.replace("_", "-")).startswith(begun)]

    return complete


Data = Annotated[
    str,
    typer.Argument(
        help="'scenes', 'scenes-coarse' or 'digits', an .npz with a train and a test part, a table of features or of "
        "texts, a folder or a table of pictures, a folder that `partly features` wrote, or what docs/formats.md has.",
        metavar="DATA",
    ),
]
LabelsFile = Annotated[Path | None, typer.Option("--labels", help="The observed labels: docs/formats.md.")]
Absent = Annotated[
    str | None, typer.Option(help="What entries are that a file of labels does not mention: unknown or no.")
]
Uncertain = Annotated[
    str | None, typer.Option(help="What entries are that it calls uncertain (-1, fractions): unknown, yes or no.")
]
LabelColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--label-columns", help="Columns of a table that are labels: a,b or label_* or first..last. Repeatable."
    ),
]
IdColumn = Annotated[str | None, typer.Option("--id-column", help="Column with the ids of the items; else item or id.")]
Missing = Annotated[
    list[str] | None, typer.Option("--missing", help="A cell that means unknown, beside blank, NA and ?. Repeatable.")
]
TagSeparator = Annotated[
    str | None, typer.Option("--tag-separator", help="What separates the tags in a cell; else one of ; | and comma.")
]
HierarchyFile = Annotated[Path | None, typer.Option("--hierarchy", help="A table with the columns child and parent.")]
Size = Annotated[int | None, typer.Option(help="Side of pictures in files; else what the backbone wants.")]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Go on without files that are no pictures.")]
Query = Annotated[
    str, typer.Option(help="random, uncertainty or look-ahead.", autocompletion=files_in("active/strategies"))
]
QuerySetting = Annotated[
    list[str] | None, typer.Option("--query-setting", help="A setting of the query: name=value. Repeatable.")
]
Count = Annotated[int, typer.Option("-n", "--count", help="Questions, at most; of one round.")]
Scenario = Annotated[
    str | None,
    typer.Option(help="Play partly known labels: uniform:0.1, single-positive, positives:0.25, propensity, ..."),
]
SafeCsv = Annotated[
    bool,
    typer.Option("--safe-csv", help="In .csv files, put ' before cells that a spreadsheet would run as a formula."),
]
On = Annotated[str, typer.Option("--on", help="here, in processes of this machine, or ray: docs/ray.md.")]
Address = Annotated[
    str | None, typer.Option(help="Of a Ray cluster to join (or RAY_ADDRESS); without one, Ray runs on this machine.")
]
Seed = Annotated[int, typer.Option(help="Same seed, same result.")]
Method = Annotated[
    str,
    typer.Option(help="See `partly methods`; auto is a portfolio, blended.", autocompletion=files_in("methods")),
]
Json = Annotated[bool, typer.Option("--json", help="Print what came out as JSON.")]
