"""The tables of a comparison as Markdown, the verdict first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from partly.comparison import baselines, gains, verdict
from partly.comparison import charts as pictures
from partly.comparison.groups import Block, Row, gather
from partly.comparison.results import Line
from partly.comparison.statistics import Mean
from partly.comparison.verdict import Verdict
from partly.report.layout import escape_markdown
from partly.report.plots import Style

Draw = Callable[[str, bytes], str]
Published = Callable[[Row], str]  # the values that papers report for a row, as text

FEW_SEEDS = "too few seeds to be ranked"
KINDS = {"naive": "naive", "full": "reference", "oracle": "oracle: sees the truth", "": ""}
NOTES = (
    "Mean over seeds ± half of the 95 % interval (Student's t), on the test part. **Bold**: the leader, with the "
    "highest mAP; ≈: not shown to be worse than the leader. CF1 and OF1: at thresholds for the best F1, chosen for "
    'every method on the same validation part; "at 0.5" where the lines do not have that. Gap closed: share of the way '
    "from `assume-negative` (0 %) to `bce` with all labels (100 %), where this gap is at least 0.01 mAP and beyond "
    "chance. Seconds: mean of a cell, of a tuned one with its search. Memory: peak of the process. Naive: the two "
    "simplest ways to treat the unknown. Reference: `bce` that saw all labels; other methods may do better."
)


def markdown(
    lines: Sequence[Line],
    level: int = 2,
    draw: Draw | None = None,
    over: str = "",
    published: Published | None = None,
) -> str:
    """A report from result lines alone.

    level: of the headings. draw: takes the name and the SVG of a picture and returns the address to link to; without it
    there are no pictures. over: a method; there are then tables of what the others add to it.
    published: fills a last column, where it has anything to say of a table.
    """
    blocks = gather(lines)
    reasons = {id(block): baselines.withheld(block) for block in blocks}
    shown = [block for block in blocks if not reasons[id(block)]]  # only they have a say
    kinds = verdict.verdicts(shown)
    styles = pictures.looks(blocks)
    order = [name for ours in kinds[:1] for name in ours[0].ranking.names]
    parts = [part for ours in kinds for part in _verdict(ours, styles, draw)]
    for heading, group in sections(blocks):
        parts += [f"{'#' * level} {escape_markdown(heading)}", ""]
        drawn = [block for block in group if not reasons[id(block)]]
        if draw and drawn:
            address = draw(heading, pictures.scenario(drawn, order, styles))
            parts += [f"![mAP of every method at {escape_markdown(heading)}]({address})", ""]
        for block in group:
            reason = reasons[id(block)]
            parts += [
                f"**{escape_markdown(block.title)}**",
                "",
                *([reason] if reason else _table(block, published)),
                "",
            ]
    parts += [NOTES, ""]
    found = gains.gains(shown, over) if over else []
    if found:
        parts += [f"{'#' * level} Improvement over {escape_markdown(over)}", "", gains.NOTES, ""]
        parts += [line for one in found for line in _gains(one, over)]
    return "\n".join(parts)


def sections(blocks: Sequence[Block]) -> list[tuple[str, list[Block]]]:
    """Blocks by scenario and kind of validation."""
    words = {"complete": "", "partial": ", validated on partly known labels", "none": ", after the last answers"}
    found = sorted(blocks, key=lambda block: (block.validation, block.scenario))
    grouped = groupby(found, key=lambda block: verdict.titled(block.scenario) + words[block.validation])
    return [(heading, list(group)) for heading, group in grouped]


def number(found: Mean | None) -> str:
    if found is None:
        return "undefined"
    return f"{found.value:.3f}" + ("" if found.margin is None else f" ± {found.margin:.3f}")


def share(gap: float | None) -> str:
    """In per cent; what is far below 0 is not told by its size."""
    return "" if gap is None else f"{100 * gap:.0f} %" if gap >= -1 else "< -100 %"


def _verdict(ours: Sequence[Verdict], styles: Mapping[str, Style], draw: Draw | None) -> list[str]:
    overall, *scenarios = ours
    parts = []
    if overall.validation == "partial":
        parts += ["Validated on labels as partly known as those of training:", ""]
    parts += [f"{_said(overall, scenarios)} {verdict.method(overall)}", ""]
    if draw:
        address = draw(f"ranks {overall.validation}", pictures.ranks(overall.ranking, styles).svg)
        parts += [f"![Mean ranks; ≈ marks methods that are not shown to be worse than the leader]({address})", ""]
    return parts + [f"- {_said(one)}" for one in scenarios] + [""] * bool(scenarios)


def _said(one: Verdict, scenarios: Sequence[Verdict] = ()) -> str:
    return f"{verdict.headline(one, str, bold, scenarios)} {verdict.evidence(one, str, bold)}".strip()


def bold(text: str) -> str:
    return f"**{escape_markdown(text)}**"


def _table(block: Block, published: Published | None) -> list[str]:
    theirs = [published(row) if published else "" for row in block.rows]
    beside = any(theirs)
    columns = ["method", *block.shown.values(), "gap closed", "seconds", "memory", "seeds"]
    lines = [f"| {' | '.join(columns + ['papers'] * beside)} |"]
    lines += [f"|---{'|---:' * (len(columns) - 1)}{'|---' * beside}|"]
    for row, values in zip(block.rows, theirs, strict=True):
        cells = [
            _name(row),
            *_scores(row, block.shown),
            share(row.gap),
            f"{row.seconds:.1f}",
            f"{row.memory_mb:.0f} MB",
        ]
        cells += [str(len(row.lines)), *([values] if beside else [])]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _gains(one: gains.Gains, over: str) -> list[str]:
    rows = [[escape_markdown(over), *map(number, one.own)]]
    rows += [[escape_markdown(name), *map(gains.signed, found)] for name, found in one.rows]
    lines = [f"| {' | '.join(row)} |" for row in (["method", *map(escape_markdown, one.columns)], *rows)]
    return [f"**{escape_markdown(one.title)}**", "", lines[0], f"|---{'|---:' * len(one.columns)}|", *lines[1:], ""]


def _name(row: Row) -> str:
    name = bold(row.name) if row.best else escape_markdown(row.name)
    tags = "".join(f" *({tag})*" for tag in (KINDS[row.kind], FEW_SEEDS if row.unranked else "") if tag)
    return name + (" ≈" if row.level else "") + tags


def _scores(row: Row, names: Iterable[str]) -> list[str]:
    first, *others = (number(row.mean(name)) for name in names)
    return [f"**{first}**" if row.best else first, *others]
