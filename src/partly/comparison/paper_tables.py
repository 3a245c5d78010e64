"""The numbers of a comparison as a table for a paper, a page or a program: LaTeX, Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from partly.comparison import baselines, score_tables, verdict
from partly.comparison.groups import Block, Row, gather
from partly.comparison.results import Line
from partly.errors import SettingError, did_you_mean

SUFFIXES = {".tex": "latex", ".md": "markdown", ".csv": "csv", ".json": "json"}
FORMATS = tuple(SUFFIXES.values())
LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after the end of a row it would be an option of it
    "]": "{]}",
    "±": r"$\pm$",
    "≈": r"$\approx$",
}


def table(lines: Sequence[Line], format: str = "latex") -> str:
    """Return the tables of result lines, as `partly.compare` returns them, in another format.

    Parameters
    ----------
    lines : list of dict
        Result lines.
    format : str
        "latex" (booktabs), "markdown", "csv" or "json".

    Returns
    -------
    str
        In LaTeX and Markdown, means ± half of their 95 % interval; the leader is bold, ≈ marks methods that are not
        shown to be worse. In CSV and JSON, a row per race and method with unrounded numbers.

    Examples
    --------
    >>> from partly.comparison import table
    >>> table([], "latex")
    Traceback (most recent call last):
    ...
    partly.errors.SettingError: There is nothing to tabulate: these lines hold no method with labels hidden.
    """
    if format not in FORMATS:
        raise SettingError(f"There is no table format {format!r}.{did_you_mean(format, FORMATS)}")
    blocks = gather(lines)
    if not blocks:
        raise SettingError("There is nothing to tabulate: these lines hold no method with labels hidden.")
    if format == "markdown":
        return score_tables.markdown(lines)
    if format == "latex":
        return _latex(blocks)
    return _csv(blocks) if format == "csv" else json.dumps(_plain(blocks), indent=1, allow_nan=False) + "\n"


def format_of(path: Path) -> str:
    """The format that a file name asks for."""
    if path.suffix not in SUFFIXES:
        raise SettingError(f"{path}: a table is written as {', '.join(SUFFIXES)}. Give the file one of these endings.")
    return SUFFIXES[path.suffix]


def leaders(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    """Who leads, over all races of a kind of validation and in each scenario, as plain data."""
    shown = [block for block in blocks if not baselines.withheld(block)]
    return [
        {
            "validation": one.validation,
            "scenario": one.scenario or None,
            "leader": one.ranking.leader,
            "level": list(one.ranking.level),
            "verdict": one.sure,
            "races": one.ranking.blocks,
        }
        for one in chain(*verdict.verdicts(shown))
    ]


# ---------------------------------------------------------------- LaTeX


def _latex(blocks: Sequence[Block]) -> str:
    """One tabular per race, with the words of its columns; needs the package booktabs."""
    parts = ["% Needs \\usepackage{booktabs}. Bold: the leader. $\\approx$: not shown to be worse."]
    for heading, group in score_tables.sections(blocks):
        for block in group:
            reason = baselines.withheld(block)
            title = f"% {' '.join(f'{heading}: {block.title}'.split())}"
            parts += ["", title, *([f"% {reason}"] if reason else _tabular(block))]
    return "\n".join([*parts, ""])


def _tabular(block: Block) -> Iterator[str]:
    columns = ["method", *block.shown.values(), "gap closed", "seeds"]
    yield f"\\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}"
    yield "\\toprule"
    yield " & ".join(map(latex, columns)) + r" \\"
    yield "\\midrule"
    for row in block.rows:
        scores = [score_tables.number(row.mean(name)) for name in block.shown]
        cells = [latex(row.name), *map(latex, [*scores, score_tables.share(row.gap), str(len(row.lines))])]
        if row.best:
            cells[:2] = [f"\\textbf{{{cell}}}" for cell in cells[:2]]
        elif row.level:
            cells[0] += f" {LATEX['≈']}"
        yield " & ".join(cells) + r" \\"
    yield "\\bottomrule"
    yield "\\end{tabular}"


def latex(text: str) -> str:
    """Text that stays text in LaTeX."""
    return "".join(LATEX.get(sign, sign) for sign in " ".join(text.split()))


# ---------------------------------------------------------------- for programs


def _plain(blocks: Sequence[Block]) -> dict[str, Any]:
    return {"leaders": leaders(blocks), "rows": [_record(block, row) for block in blocks for row in block.rows]}


def _record(block: Block, row: Row) -> dict[str, Any]:
    """One method in one race. Half of an interval is null for a single seed."""
    what = {name: block.what[name] for name in ("data", "scenario", "head", "optimizer", "validation")}
    scores: dict[str, float | None] = {}
    for name in block.shown:
        found = row.mean(name)
        scores |= {name: found.value if found else None, f"{name} interval": found.margin if found else None}
    said = {"leader": row.best, "level": row.level, "withheld": bool(baselines.withheld(block))}
    more = {"gap closed": row.gap, "seeds": len(row.lines), "seconds": row.seconds, "memory_mb": row.memory_mb}
    return {**what, "race": block.title, "method": row.name, "kind": row.kind, **scores, **said, **more}


def _csv(blocks: Sequence[Block]) -> str:
    records = [_record(block, row) for block in blocks for row in block.rows]
    names = list(dict.fromkeys(chain(*records)))
    file = io.StringIO()
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return file.getvalue()
