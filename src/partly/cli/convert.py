"""`partly convert`: labels, or items with labels, from one format to another."""

from __future__ import annotations

from pathlib import Path

from partly import data as files
from partly.cli.opening import Say
from partly.data import formats
from partly.data.formats.label_studio import write_tasks
from partly.data.paths import format_suffix
from partly.errors import SettingError
from partly.items import Absent

TASKS = "label-studio"
FOLDER = "hugging-face"  # holds items, where there are any


def convert(
    source: str,
    target: Path,
    form: str | None = None,
    *,
    labels: Path | None = None,
    meaning: files.LabelSemantics = files.LabelSemantics(),  # noqa: B008 (it is frozen)
    part: str | None = None,
    scores: Path | None = None,
    say: Say = print,
) -> None:
    """Items and labels where the source has both and the target can hold both, else labels alone.

    `meaning` is said of the source. A target that lists what is there and nothing else is told the same, and refuses
    what it would make ambiguous where nothing was said.
    """
    opened = _chosen(_opened(source, labels, meaning), part)
    if scores is not None:
        if form != TASKS:
            raise SettingError(f"--scores become predictions in Label Studio's tasks: say --form {TASKS}.")
        write_tasks(opened.labels, target, files.read_scores(scores))
    elif _holds_items(opened, target, form):
        files.write(opened, target, form=form, absent=meaning.absent)
    else:
        files.write_labels(opened.labels, target, form=form, absent=meaning.absent)
        if not isinstance(opened.items, Absent):
            say(f"Written are the labels alone; the {opened.items.kind} of {source} have no place in such a file.")
    say(f"{target}: {opened.labels!r}")


def _opened(source: str, labels: Path | None, meaning: files.LabelSemantics) -> files.Dataset:
    if labels is not None or files.is_whole(source):
        return files.read(source, labels, **vars(meaning))
    known = files.read_labels(source, **vars(meaning))
    return files.Dataset(Absent("features", (0,), len(known)), known)


def _chosen(opened: files.Dataset, part: str | None) -> files.Dataset:
    if part not in (None, "train", "test") or (part == "test" and opened.test is None):
        raise SettingError(f"--part {part}: may be train, or test where there is a test part.")
    if opened.test is not None and part is None:
        raise SettingError("The data have a train and a test part. Say which one: --part train or --part test.")
    if part == "test" and opened.test is not None:
        return opened.test
    return files.Dataset(opened.items, opened.labels, hierarchy=opened.hierarchy)


def _holds_items(opened: files.Dataset, target: Path, form: str | None) -> bool:
    """Whether the target is of a format that holds items, and there are items."""
    if form is not None:
        one = formats.by_name(form, "labels", "dataset", "items")
        if one.holds != "labels" and isinstance(opened.items, Absent) and form != FOLDER:
            raise SettingError(f"--form {form} holds items, and the source has labels alone.")
        return bool(one.holds != "labels")
    known = formats.suffixes("labels")
    return format_suffix(target) not in known and not isinstance(opened.items, Absent)
