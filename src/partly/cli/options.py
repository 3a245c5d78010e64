"""Options that several commands share: one spelling, one type and one help text for each."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partly.cli.dataclass_options import Omit, plugins_in

if TYPE_CHECKING:
    from partly.data import Dataset, LabelSemantics


def option(help: str, *names: str, panel: str | None = None, **settings: Any) -> Any:
    """Return a Typer option, under the heading `panel` of the help."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **settings)


data_option = partial(option, panel="Data")
model_option = partial(option, panel="Model")
training_option = partial(option, panel="Training")
question_option = partial(option, panel="Questions")
output_option = partial(option, panel="Output")


def _data_field(help: str) -> dict[str, str]:
    return {"help": help, "panel": "Data"}


@dataclass(frozen=True)
class DataOptions:
    """Options for reading items and labels."""

    labels: Path | None = field(
        default=None, metadata=_data_field("Observed labels; `partly formats` lists the formats.")
    )
    absent: str | None = field(
        default=None, metadata=_data_field("How to read entries that the label file does not mention: unknown or no.")
    )
    uncertain: str | None = field(
        default=None, metadata=_data_field("How to read entries marked uncertain (-1, fractions): unknown, yes or no.")
    )
    missing: tuple[str, ...] = field(
        default=(), metadata=_data_field("Table cell to read as unknown, besides blank, NA and ?. Repeatable.")
    )
    label_columns: tuple[str, ...] = field(
        default=(), metadata=_data_field("Label columns of a table: a,b or label_* or first..last. Repeatable.")
    )
    id_column: str | None = field(
        default=None, metadata=_data_field("Column with the item ids.  [default: item or id]")
    )
    tag_separator: str | None = field(
        default=None, metadata=_data_field("Separator between the tags in a cell.  [default: one of ; | ,]")
    )
    hierarchy: Path | None = field(
        default=None, metadata=_data_field("Table with the columns child and parent, or an .obo file.")
    )
    size: int | None = field(
        default=None, metadata=_data_field("Side of images in pixels.  [default: what the backbone expects]")
    )
    skip_bad: bool = field(default=False, metadata=_data_field("Skip files that are not readable images."))

    @property
    def meaning(self) -> LabelSemantics:
        """Meaning of the entries of a label file."""
        from partly.data import LabelSemantics

        return LabelSemantics.from_options(**self.label_format())

    def label_format(self) -> dict[str, Any]:
        """Return the options that say how a label file is read, by name."""
        names = ("absent", "uncertain", "missing", "label_columns", "id_column", "tag_separator")
        return {name: getattr(self, name) for name in names}

    def open(self, data: str) -> Dataset:
        """Return the data set of this name, file or folder, with the labels of `--labels`."""
        from partly import data as datasets
        from partly.cli.printing import say
        from partly.distributed.progress import step
        from partly.errors import DataError

        if self.labels is None and not datasets.is_whole(data, self.meaning.label_columns):
            raise DataError(
                f"{data}: has no labels. Give a label file with --labels, or name label columns of the table with "
                "--label-columns a,b."
            )
        with step(f"Reading {data}"):
            opened = datasets.read(data, self.labels, self.hierarchy, self.skip_bad, self.size, **self.label_format())
        for note in opened.notes:
            say(note)
        return opened


LabelFormatOptions = Annotated[DataOptions, Omit("labels", "hierarchy", "size", "skip_bad")]
DataOptionsWithoutSize = Annotated[DataOptions, Omit("size")]
DataOptionsWithoutHierarchy = Annotated[DataOptions, Omit("hierarchy")]

Data = Annotated[
    str,
    typer.Argument(
        help="Items: a table of features or texts, an image folder, a folder of `partly features`, an .npz with a "
        "train and a test part, or a built-in data set (digits, scenes). `partly formats` lists all.",
        metavar="DATA",
    ),
]
RunFolder = Annotated[Path, typer.Argument(help="Folder of a finished run.", metavar="RUN")]
Method = Annotated[
    str,
    model_option(
        "Training method (see `partly methods`), or auto for a weighted portfolio.",
        autocompletion=plugins_in("methods"),
    ),
]
Head = Annotated[str, model_option("Head on the features: linear, mlp, kernel, ...")]
Teacher = Annotated[str | None, model_option("Scores besides the labels: names, a score file, a run folder, or none.")]
MethodSetting = Annotated[list[str] | None, model_option("Setting of the method: name=value. Repeatable.", "--setting")]
HeadSetting = Annotated[
    list[str] | None, model_option("Setting of the head, for example hidden=256. Repeatable.", "--head-setting")
]
Scenario = Annotated[
    str | None,
    data_option("Hide labels to simulate missing ones, for example uniform:0.1 or single-positive."),
]
Query = Annotated[
    str,
    question_option(
        "Strategy that chooses the questions: random, uncertainty, diverse or look-ahead.",
        autocompletion=plugins_in("active/strategies"),
    ),
]
QuerySetting = Annotated[
    list[str] | None, question_option("Setting of the strategy: name=value. Repeatable.", "--query-setting")
]
Count = Annotated[int, question_option("Maximum number of questions (per round).", "-n", "--count")]
Device = Annotated[str, training_option("Where to compute: auto, cpu, cuda, ...")]
Seed = Annotated[int, option("Random seed; the same seed gives the same result.")]
Format = Annotated[
    str | None,
    output_option("Format to write, if the file name does not tell; see `partly formats`.", "--format", "--form"),
]
SafeCsv = Annotated[bool, output_option("Prefix cells that a spreadsheet would run as a formula with '.", "--safe-csv")]
Workers = Annotated[int | None, option("Number of worker processes.  [default: all cores]")]
On = Annotated[str, option("Where to run: here (this machine) or ray.", "--on")]
Address = Annotated[str | None, option("Ray cluster to join.  [default: RAY_ADDRESS, or start Ray here]")]
Json = Annotated[bool, output_option("Print the result as JSON.", "--json")]


def split_names(text: str) -> list[str]:
    """Split 'a,b[c=1,d=2]' at its commas into ['a', 'b[c=1,d=2]']; commas inside brackets separate settings."""
    names, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and not depth:
            names.append("")
        else:
            names[-1] += letter
    return [name.strip() for name in names if name.strip()]
