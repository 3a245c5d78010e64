"""`partly doctor`: check labels and items for problems before training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from partly.cli.app import command
from partly.cli.dataclass_options import Omit
from partly.cli.options import DataOptions, Json, Seed, model_option
from partly.cli.printing import one_line, print_json, say, summarize
from partly.errors import PartlyError

LEVELS = {"problem": "PROBLEM", "warning": "Warning", "note": "Note", "fine": "OK"}
MAX_LABELS_SHOWN = 30


@command("Labels")
def doctor(
    labels: Annotated[str, typer.Argument(help="Label file, or a data set that includes its labels.")],
    data: Annotated[str | None, typer.Argument(help="Items of these labels, as for `partly train`.")] = None,
    method: Annotated[str, model_option("Method that computes out-of-fold scores; see `partly methods`.")] = "auto",
    *,
    reading: Annotated[DataOptions, Omit("labels", "hierarchy", "size")],
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Check labels and data for problems, and suggest fixes."""
    result = examine(labels, data, reading, method=method, seed=seed)
    if not print_json(result, as_json):
        print(page(result))


def examine(
    labels: str,
    data: str | None = None,
    reading: DataOptions = DataOptions(),  # noqa: B008 (frozen)
    *,
    method: str = "auto",
    seed: int = 0,
) -> dict[str, Any]:
    """Return the findings as plain data. `labels` is a label file or a data set; `data` holds the items."""
    from partly import data as files
    from partly.data.tables import SUFFIXES
    from partly.doctor import encodings, report_unreadable, run_checks
    from partly.doctor.context import CheckContext
    from partly.engine import describe_backbone

    how = reading.label_format()
    try:
        if data is None and not (files.is_whole(labels) or _has_items(labels, reading)):
            return run_checks(CheckContext(files.read_labels(labels, **how)))
        items, label_file = (labels, None) if data is None else (data, labels)
        opened = files.read(items, label_file, skip_bad=reading.skip_bad, **how)
    except PartlyError:
        is_table = Path(labels).suffix.lower() in SUFFIXES
        unusual = encodings.find_unusual_values(encodings.count_table_values(Path(labels))) if is_table else None
        if unusual is None or reading.label_columns or reading.id_column:
            raise
        return report_unreadable(unusual)
    for note in opened.notes:
        say(note)
    tested = None if opened.test is None else opened.test.items
    context = CheckContext(opened.labels, opened.items, tested, method, seed)
    if not context.find_missing_input("features"):
        origin = context.features.origin
        if origin is not None:
            say(describe_backbone(origin))
    return run_checks(context)


def _has_items(path: str, reading: DataOptions) -> bool:
    """Return True if a table has columns besides ids and the labels of --label-columns."""
    from partly.data.table_layout import ID, SPLIT, find_columns, with_id_column
    from partly.data.tables import is_table, open_table

    if not (reading.label_columns and is_table(Path(path)) and Path(path).is_file()):
        return False
    table = with_id_column(open_table(Path(path)), reading.id_column)
    labels = find_columns(table.header, reading.label_columns, table.place(-1))
    return bool({*table.header} - {ID, SPLIT, *labels})


def page(result: dict[str, Any]) -> str:
    """Return the findings as text: findings first, then the table of labels."""
    lines = []
    if result["known"]:
        lines.append(summarize(result["known"]))
    for one in result["findings"]:
        lines.append(f"\n{LEVELS[one['level']]} ({one['check']}): {one_line(one['words'])}")
        lines += [f"  What to do: {one_line(one['remedy'])}"] if one.get("remedy") else []
    if not any(one["level"] != "fine" for one in result["findings"]):
        lines.append("\nNo problems found.")
    for why in dict.fromkeys(result["skipped"].values()):
        names = ", ".join(name for name, reason in result["skipped"].items() if reason == why)
        lines.append(f"\nNot checked ({why}): {names}.")
    return "\n".join([*lines, *_label_table(result["labels"])] if result["known"] else lines)


def _label_table(labels: list[dict[str, Any]]) -> list[str]:
    names = [one_line(row["label"]) for row in labels[:MAX_LABELS_SHOWN]]
    width = max(map(len, ["label", *names]))
    lines = [f"\n{'label':{width}}  {'yes':>8}{'no':>8}{'unknown':>9}"]
    lines += [
        f"{name:{width}}  {row['yes']:>8}{row['no']:>8}{row['unknown']:>9}"
        for name, row in zip(names, labels, strict=False)
    ]
    rest = len(labels) - MAX_LABELS_SHOWN
    return [*lines, f"... and {rest} more (see --json)"] if rest > 0 else lines
