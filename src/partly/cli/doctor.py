"""`partly doctor`: what is known of labels, how it is missing, what is wrong with it, and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from partly import data as files
from partly.cli.opening import Say
from partly.cli.printing import one_line
from partly.data.headers import ID
from partly.data.splits import COLUMN as SPLIT
from partly.data.table_view import matching_columns, view
from partly.data.tables import SUFFIXES, is_table, open_table
from partly.doctor import encodings, report_unreadable, run_checks
from partly.doctor.context import CheckContext
from partly.engine import words_of
from partly.errors import PartlyError

SIGNS = {"problem": "PROBLEM", "warning": "Warning", "note": "Note", "fine": "Fine"}
SHOWN = 30  # labels in the table


def doctor(
    labels: str,
    data: str | None = None,
    *,
    method: str = "auto",
    skip_bad: bool = False,
    meaning: files.LabelSemantics = files.LabelSemantics(),  # noqa: B008 (it is frozen)
    seed: int = 0,
    say: Say = lambda _: None,
) -> dict[str, Any]:
    """Findings as plain data. labels: a file of labels, or a data set by itself; data: the items."""
    try:
        if data is None and not (files.is_whole(labels) or _has_items(labels, meaning)):
            return run_checks(CheckContext(files.read_labels(labels, **vars(meaning))))
        items, said = (labels, None) if data is None else (data, labels)
        opened = files.read(items, said, skip_bad=skip_bad, **vars(meaning))
        for note in opened.notes:
            say(note)
    except PartlyError:
        odd = (
            encodings.find_unusual_values(encodings.count_table_values(Path(labels)))
            if Path(labels).suffix.lower() in SUFFIXES
            else None
        )
        if odd is None or meaning.label_columns or meaning.id_column:
            raise
        return report_unreadable(odd)
    tested = None if opened.test is None else opened.test.items
    context = CheckContext(opened.labels, opened.items, tested, method, seed)
    if not context.find_missing_input("features"):
        origin = context.features.origin
        if origin is not None:
            say(words_of(origin))
    return run_checks(context)


def _has_items(path: str, meaning: files.LabelSemantics) -> bool:
    """Whether a table holds other columns than ids and the labels that the caller names."""
    if not (meaning.label_columns and is_table(Path(path)) and Path(path).is_file()):
        return False
    table = view(open_table(Path(path)), meaning.id_column)
    labels = matching_columns(table.header, meaning.label_columns, table.place(-1))
    return bool({*table.header} - {ID, SPLIT, *labels})


def page(found: dict[str, Any]) -> str:
    """The same as text."""
    lines = []
    if found["known"]:
        known = found["known"]
        lines.append(
            f"{known['items']} items x {known['labels']} labels: {known['yes']} yes, {known['no']} no, "
            f"{known['unknown']} unknown ({1 - known['known_share']:.1%})."
        )
        shown = [one_line(line["label"]) for line in found["labels"][:SHOWN]]
        width = max(map(len, shown), default=0)
        lines.append(f"\n{'label':{width}}  {'yes':>8}{'no':>8}{'unknown':>9}")
        lines += [
            f"{name:{width}}  {line['yes']:>8}{line['no']:>8}{line['unknown']:>9}"
            for name, line in zip(shown, found["labels"], strict=False)
        ]
        rest = len(found["labels"]) - SHOWN
        lines += [f"... and {rest} more (--json has all)"] if rest > 0 else []
    for one in found["findings"]:
        lines.append(f"\n{SIGNS[one['level']]} ({one['check']}): {one_line(one['words'])}")
        lines += [f"  What to do: {one_line(one['remedy'])}"] if one.get("remedy") else []
    if not any(one["level"] != "fine" for one in found["findings"]):
        lines.append("\nNothing wrong was found.")
    for why in dict.fromkeys(found["skipped"].values()):
        names = ", ".join(name for name, reason in found["skipped"].items() if reason == why)
        lines.append(f"\nNot checked ({why}): {names}.")
    return "\n".join(lines)
