"""`partly convert`: write labels, or items with labels, in another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from partly.cli.app import command
from partly.cli.dataclass_options import Omit
from partly.cli.options import DataOptions, Format, Json, data_option, output_option
from partly.cli.printing import print_json, say, summarize
from partly.errors import SettingError

if TYPE_CHECKING:
    from partly.data import Dataset

TASKS = "label-studio"
FOLDER = "hugging-face"  # with or without items


@command("Labels")
def convert(
    source: Annotated[str, typer.Argument(help="Labels, or items with labels; see `partly formats`.")],
    target: Annotated[Path, typer.Argument(help="File or folder to write.")],
    form: Format = None,
    *,
    reading: Annotated[DataOptions, Omit("hierarchy", "size", "skip_bad")],
    part: Annotated[str | None, data_option("Part of the source to write: train or test.")] = None,
    scores: Annotated[
        Path | None,
        output_option("Probabilities of `partly predict`, written as predictions of Label Studio tasks."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write labels, or items with labels, in another format.

    Items are included if the target format can hold them. --absent describes the source, and also the target if its
    format lists only positives.
    """
    from partly import data as files
    from partly.data.formats.label_studio import write_tasks
    from partly.items import Absent

    opened = _choose_part(_open(source, reading), part)
    if scores is not None:
        if form != TASKS:
            raise SettingError(f"--scores become predictions of Label Studio tasks: add --format {TASKS}.")
        write_tasks(opened.labels, target, files.read_scores(scores))
    elif _writes_items(opened, target, form):
        files.write(opened, target, form=form, absent=reading.absent)
    else:
        files.write_labels(opened.labels, target, form=form, absent=reading.absent)
        if not isinstance(opened.items, Absent):
            say(f"Only the labels are written: this format cannot hold the {opened.items.kind} of {source}.")
    say(f"{target}: {summarize(opened.labels.summary())}")
    print_json({"out": target}, as_json)


def _open(source: str, reading: DataOptions) -> Dataset:
    from partly import data as files
    from partly.items import Absent

    if reading.labels is not None or files.is_whole(source):
        return files.read(source, reading.labels, **reading.label_format())
    labels = files.read_labels(source, **reading.label_format())
    return files.Dataset(Absent("features", (0,), len(labels)), labels)


def _choose_part(opened: Dataset, part: str | None) -> Dataset:
    from partly.data import Dataset

    if part not in (None, "train", "test") or (part == "test" and opened.test is None):
        raise SettingError(f"--part {part}: should be train, or test if the data set has a test part.")
    if opened.test is not None and part is None:
        raise SettingError("The data set has a train and a test part. Choose one: --part train or --part test.")
    if part == "test" and opened.test is not None:
        return opened.test
    return Dataset(opened.items, opened.labels, hierarchy=opened.hierarchy)


def _writes_items(opened: Dataset, target: Path, form: str | None) -> bool:
    """Return True where there are items and the target format holds items."""
    from partly.data import formats
    from partly.data.paths import format_suffix
    from partly.items import Absent

    has_items = not isinstance(opened.items, Absent)
    if form is None:
        return has_items and format_suffix(target) not in formats.suffixes("labels")
    holds_items = formats.by_name(form, "labels", "dataset", "items").holds != "labels"
    if holds_items and not has_items and form != FOLDER:
        raise SettingError(f"--format {form} holds items, but the source has labels only.")
    return holds_items
