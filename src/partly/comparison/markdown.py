"""Report of a comparison as Markdown: the verdict, a table for each group, and improvements over one method."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from partly.comparison import verdict
from partly.comparison.groups import Group, Row, gather
from partly.comparison.protocol import GROUPS as LABEL_GROUPS
from partly.comparison.results import Record
from partly.comparison.statistics import Mean, mean
from partly.comparison.verdict import Verdict
from partly.report.layout import escape_markdown

Published = Callable[[Row], str]  # values that papers report for a row

FEW_SEEDS = "too few seeds to be ranked"
KINDS = {"naive": "naive baseline", "full": "reference", "oracle": "oracle: sees the truth", "": ""}
VALIDATIONS = {"complete": "", "partial": ", validated on partly known labels", "none": ", after the last answers"}
NOTES = (
    "Mean over seeds ± half of the 95 % confidence interval (Student's t), on the test set. **Bold**: the leader, with "
    "the highest mAP; ≈: not significantly worse than the leader. CF1 and OF1: at thresholds that maximize F1 on the "
    'validation set, chosen in the same way for every method; "at 0.5" where records lack that. Gap closed: share of '
    "the way from `assume-negative` (0 %) to `bce` with all labels (100 %), if this gap is significant and at least "
    "0.01 mAP. Seconds: mean time of a cell, including tuning. Memory: peak of the process. Naive baseline: unknown "
    "entries are treated as no, or ignored. Reference: `bce` trained with all labels; other methods may do better."
)
GAIN_NOTES = (
    "The first row gives mAP; the others give the difference to it in points of mAP: mean over seeds of the paired "
    "differences ± half of their 95 % confidence interval. Label groups are equal parts of the labels, from those with "
    "the fewest known yes in training (1) to those with the most."
)


def render(records: Sequence[Record], level: int = 2, over: str = "", published: Published | None = None) -> str:
    """Render a report from result records.

    level: of the headings. over: a method; the report then has tables of differences to it. published: fills a last
    column with values from papers.
    """
    groups = gather(records)
    ranked = [group for group in groups if not group.reason_withheld]
    lines = [part for verdicts in verdict.judge(ranked) for part in _render_verdict(verdicts)]
    for heading, same in by_scenario(groups):
        lines += [f"{'#' * level} {escape_markdown(heading)}", ""]
        for group in same:
            table = [group.reason_withheld] if group.reason_withheld else _render_group(group, published)
            lines += [f"**{escape_markdown(group.title)}**", "", *table, ""]
    lines += [NOTES, ""]
    gains = compute_gains(ranked, over) if over else []
    if gains:
        lines += [f"{'#' * level} Improvement over {escape_markdown(over)}", "", GAIN_NOTES, ""]
        lines += [line for table in gains for line in _render_gains(table, over)]
    return "\n".join(lines)


def by_scenario(groups: Sequence[Group]) -> list[tuple[str, list[Group]]]:
    """Return groups by scenario and kind of validation, with headings."""
    ordered = sorted(groups, key=lambda group: (group.validation, group.scenario))
    grouped = groupby(
        ordered, key=lambda group: verdict.format_scenario(group.scenario) + VALIDATIONS[group.validation]
    )
    return [(heading, list(same)) for heading, same in grouped]


def format_mean(value: Mean | None) -> str:
    if value is None:
        return "undefined"
    return f"{value.value:.3f}" + ("" if value.margin is None else f" ± {value.margin:.3f}")


def format_gap(gap: float | None) -> str:
    """Format a share as a percentage, no lower than -100 %."""
    return "" if gap is None else f"{100 * gap:.0f} %" if gap >= -1 else "< -100 %"


def bold(text: str) -> str:
    return f"**{escape_markdown(text)}**"


def mark(text: str, best: bool, tied: bool) -> str:
    """Mark a value as that of the leader or of a tie."""
    return f"**{text}**" if best else f"{text} ≈" if tied else text


def _render_verdict(verdicts: Sequence[Verdict]) -> list[str]:
    overall, *scenarios = verdicts
    lines = ["With validation labels as incomplete as training labels:", ""] if overall.validation == "partial" else []
    lines += [f"{_summarize(overall, scenarios)} {verdict.describe_test(overall)}", ""]
    return lines + [f"- {_summarize(part)}" for part in scenarios] + [""] * bool(scenarios)


def _summarize(overall: Verdict, scenarios: Sequence[Verdict] = ()) -> str:
    return f"{verdict.headline(overall, str, bold, scenarios)} {verdict.evidence(overall, str, bold)}".strip()


def _render_group(group: Group, published: Published | None) -> list[str]:
    papers = [published(row) if published else "" for row in group.rows]
    has_papers = any(papers)
    columns = ["method", *group.columns.values(), "gap closed", "seconds", "memory", "seeds"]
    lines = [f"| {' | '.join(columns + ['papers'] * has_papers)} |"]
    lines += [f"|---{'|---:' * (len(columns) - 1)}{'|---' * has_papers}|"]
    for row, values in zip(group.rows, papers, strict=True):
        first, *others = (format_mean(row.mean(name)) for name in group.columns)
        cells = [_render_name(row), mark(first, row.best, False), *others, format_gap(row.gap)]
        cells += [f"{row.seconds:.1f}", f"{row.memory_mb:.0f} MB", str(len(row.records)), *([values] * has_papers)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _render_name(row: Row) -> str:
    tags = "".join(f" *({tag})*" for tag in (KINDS[row.kind], FEW_SEEDS if row.unranked else "") if tag)
    return mark(escape_markdown(row.name), row.best, row.tied) + tags


# ---------------------------------------------------------------- improvements over one method


@dataclass(frozen=True)
class GainTable:
    """Differences to one method, with a column per scenario or label group."""

    title: str
    columns: tuple[str, ...]
    base: tuple[Mean | None, ...]  # mAP of the method that the others are compared with
    rows: tuple[tuple[str, tuple[Mean | None, ...]], ...]  # method, differences; the largest first


def compute_gains(groups: Sequence[Group], over: str) -> list[GainTable]:
    """Tables of all groups with the method `over`, by data: all scenarios, then the label groups of each."""
    tables = []
    ordered = sorted(groups, key=lambda group: (group.title, group.validation, group.scenario))
    for title, same in groupby(ordered, key=lambda group: group.title + VALIDATIONS[group.validation]):
        groups = list(same)
        tables.append(_make_gain_table(title, over, [(group.scenario, group, "mAP") for group in groups]))
        for group in groups:
            columns = [(f"group {n}", group, f"mAP group {n}") for n in range(1, LABEL_GROUPS + 1)]
            tables.append(_make_gain_table(f"{title}, {group.scenario}", over, columns))
    return [table for table in tables if table.rows]


def format_gain(value: Mean | None) -> str:
    """Format a difference in points."""
    if value is None:
        return ""
    return f"{100 * value.value:+.2f}" + ("" if value.margin is None else f" ± {100 * value.margin:.2f}")


def _make_gain_table(title: str, over: str, columns: Sequence[tuple[str, Group, str]]) -> GainTable:
    by_name = [{row.name: row for row in group.rows if row.kind != "full"} for _, group, _ in columns]
    scores = [score for *_, score in columns]
    bases = [rows.get(over) for rows in by_name]
    names = dict.fromkeys(name for rows in by_name for name in rows if name != over)
    gains = [
        (
            name,
            tuple(_gain(rows.get(name), base, score) for rows, base, score in zip(by_name, bases, scores, strict=True)),
        )
        for name in names
    ]
    gains = sorted((row for row in gains if any(row[1])), key=lambda row: -_average(row[1]))
    means = tuple(base.mean(score) if base else None for base, score in zip(bases, scores, strict=True))
    return GainTable(title, tuple(name for name, *_ in columns), means, tuple(gains))


def _gain(row: Row | None, base: Row | None, score: str) -> Mean | None:
    """Mean paired difference over common seeds."""
    if row is None or base is None:
        return None
    values, base_values = row.scores(score), base.scores(score)
    return mean(values[seed] - base_values[seed] for seed in sorted(values.keys() & base_values.keys()))


def _average(gains: Iterable[Mean | None]) -> float:
    values = [gain.value for gain in gains if gain]
    return sum(values) / len(values)


def _render_gains(table: GainTable, over: str) -> list[str]:
    rows = [[escape_markdown(over), *map(format_mean, table.base)]]
    rows += [[escape_markdown(name), *map(format_gain, gains)] for name, gains in table.rows]
    lines = [f"| {' | '.join(row)} |" for row in (["method", *map(escape_markdown, table.columns)], *rows)]
    rule = f"|---{'|---:' * len(table.columns)}|"
    return [f"**{escape_markdown(table.title)}**", "", lines[0], rule, *lines[1:], ""]
