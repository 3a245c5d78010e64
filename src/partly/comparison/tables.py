"""Tables of a comparison as LaTeX, Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from partly.comparison import markdown, verdict
from partly.comparison.groups import Group, Row, gather
from partly.comparison.results import Record
from partly.errors import SettingError, did_you_mean
from partly.report.layout import LATEX, escape_latex

SUFFIXES = {".tex": "latex", ".md": "markdown", ".csv": "csv", ".json": "json"}
FORMATS = tuple(SUFFIXES.values())


def table(lines: Sequence[Record], format: str = "latex") -> str:
    """Return tables of the result records that `partly.compare` returns.

    Parameters
    ----------
    lines : list of dict
        Result records.
    format : str
        "latex" (booktabs), "markdown", "csv" or "json".

    Returns
    -------
    str
        LaTeX and Markdown contain means ± half of their 95 % interval; the leader is bold, ≈ marks methods that are not
        significantly worse. CSV and JSON contain unrounded numbers, with a row per comparison and method.

    Examples
    --------
    >>> from partly.comparison import table
    >>> table([], "latex")
    Traceback (most recent call last):
    ...
    partly.errors.SettingError: There is nothing to tabulate: these records contain no method with hidden labels.
    """
    if format not in FORMATS:
        raise SettingError(f"There is no table format {format!r}.{did_you_mean(format, FORMATS)}")
    groups = gather(lines)
    if not groups:
        raise SettingError("There is nothing to tabulate: these records contain no method with hidden labels.")
    if format == "markdown":
        return markdown.render(lines)
    if format == "latex":
        return _to_latex(groups)
    rows = [_to_dict(group, row) for group in groups for row in group.rows]
    if format == "csv":
        return _to_csv(rows)
    return json.dumps({"leaders": find_leaders(groups), "rows": rows}, indent=1, allow_nan=False) + "\n"


def find_format(path: Path) -> str:
    """Return the format for a file name."""
    if path.suffix not in SUFFIXES:
        raise SettingError(f"{path}: a table is written as {', '.join(SUFFIXES)}. Give the file one of these endings.")
    return SUFFIXES[path.suffix]


def find_leaders(groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Return the leading methods of each kind of validation, over all groups and for each scenario."""
    ranked = [group for group in groups if not group.reason_withheld]
    return [
        {
            "validation": part.validation,
            "scenario": part.scenario or None,
            "leader": part.ranking.leader,
            "level": list(part.ranking.tied),
            "verdict": part.certainty,
            "races": part.ranking.groups,
        }
        for part in chain(*verdict.judge(ranked))
    ]


# ---------------------------------------------------------------- LaTeX


def _to_latex(groups: Sequence[Group]) -> str:
    """One tabular per group; needs the package booktabs."""
    lines = ["% Needs \\usepackage{booktabs}. Bold: the leader. $\\approx$: not significantly worse."]
    for heading, same in markdown.by_scenario(groups):
        for group in same:
            reason = group.reason_withheld
            title = f"% {' '.join(f'{heading}: {group.title}'.split())}"
            lines += ["", title, *([f"% {reason}"] if reason else _to_tabular(group))]
    return "\n".join([*lines, ""])


def _to_tabular(group: Group) -> Iterator[str]:
    columns = ["method", *group.columns.values(), "gap closed", "seeds"]
    yield f"\\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}"
    yield "\\toprule"
    yield " & ".join(map(escape_latex, columns)) + r" \\"
    yield "\\midrule"
    for row in group.rows:
        scores = [markdown.format_mean(row.mean(name)) for name in group.columns]
        values = [row.name, *scores, markdown.format_gap(row.gap), str(len(row.records))]
        cells = list(map(escape_latex, values))
        if row.best:
            cells[:2] = [f"\\textbf{{{cell}}}" for cell in cells[:2]]
        elif row.tied:
            cells[0] += f" {LATEX['≈']}"
        yield " & ".join(cells) + r" \\"
    yield "\\bottomrule"
    yield "\\end{tabular}"


# ---------------------------------------------------------------- CSV and JSON


def _to_dict(group: Group, row: Row) -> dict[str, Any]:
    """One method in one group. Half of an interval is null for a single seed."""
    key = {name: group.key[name] for name in ("data", "scenario", "head", "optimizer", "validation")}
    scores: dict[str, float | None] = {}
    for name in group.columns:
        value = row.mean(name)
        scores |= {name: value.value if value else None, f"{name} interval": value.margin if value else None}
    status = {"leader": row.best, "level": row.tied, "withheld": bool(group.reason_withheld)}
    cost = {"gap closed": row.gap, "seeds": len(row.records), "seconds": row.seconds, "memory_mb": row.memory_mb}
    return {**key, "race": group.title, "method": row.name, "kind": row.kind, **scores, **status, **cost}


def _to_csv(rows: list[dict[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(dict.fromkeys(chain(*rows))), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()
