"""The report of a comparison as one self-contained HTML file, from result lines alone.

What a reader sees is put together here and laid out by templates/comparison.html.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from partly.atomic_io import write_file
from partly.comparison import baselines, charts, gains, score_tables, verdict
from partly.comparison.groups import ORIGIN, Block, gather
from partly.comparison.plan import RECIPE
from partly.comparison.results import Line
from partly.comparison.verdict import Verdict
from partly.errors import DataError
from partly.report.layout import load_template
from partly.report.plots import Style

SURE = {"clear": "clear win", "shared": "shared lead", "open": "no winner", "alone": "alone"}
OPEN = 4  # tables that are shown at once; more are folded away


def write(lines: Sequence[Line], path: str | Path, title: str = "Comparison", over: str = "", note: str = "") -> None:
    """Write the report: afterwards the old file or the new one is there, never half of one."""
    write_file(Path(path), render(lines, title, over, note).encode("utf-8", "replace"))


def render(lines: Sequence[Line], title: str = "Comparison", over: str = "", note: str = "") -> str:
    """The report as HTML. over: a method; there are then tables of what the others add to it. note: about the data."""
    blocks = gather(lines)
    if not blocks:
        raise DataError("There is no comparison to report on: these lines hold no method with labels hidden.")
    shown = [block for block in blocks if not baselines.withheld(block)]  # only they have a say
    kinds = verdict.verdicts(shown)
    order = [name for ours in kinds[:1] for name in ours[0].ranking.names]
    styles = charts.looks(blocks)
    filters: dict[str, Any] = {
        "number": score_tables.number,
        "share": score_tables.share,
        "json": json.dumps,
        "signed": gains.signed,
    }
    return load_template("comparison.html", **filters).render(
        title=title,
        note=note,
        facts=_facts(lines, blocks),
        verdicts=[_said(ours, styles) for ours in kinds],
        fair=bool(shown),
        sections=[_section(heading, group, order, styles) for heading, group in score_tables.sections(blocks)],
        over=over,
        gains=gains.gains(shown, over) if over else [],
        gains_notes=gains.NOTES,
        kinds=score_tables.KINDS,
        few_seeds=score_tables.FEW_SEEDS,
        notes=score_tables.NOTES,
        open=len(blocks) <= OPEN,
        origin=_origin(lines),
    )


def _facts(lines: Sequence[Line], blocks: Sequence[Block]) -> dict[str, int]:
    """What was compared, in numbers."""
    count = {"cell": len(lines), "race": len(blocks)}
    for word, name in {"data set": "data", "scenario": "scenario", "head": "head"}.items():
        count[word] = len({block.what[name] for block in blocks})
    count["method"] = len({row.name for block in blocks for row in block.rows if row.kind != "full"})
    return count | {"seed": len({line["seed"] for line in lines})}


def _said(ours: Sequence[Verdict], styles: Mapping[str, Style]) -> dict[str, Any]:
    """The verdict of one kind of validation, that of each scenario, and a picture of the ranks for each."""
    overall, *scenarios = ours
    return {
        "validation": overall.validation,
        "headline": verdict.headline(overall, Markup, _bold, scenarios),
        "evidence": verdict.evidence(overall, Markup, _bold),
        "method": verdict.method(overall),
        "cards": [
            {
                "heading": verdict.titled(one.scenario),
                "sure": SURE[one.sure],
                "headline": verdict.headline(replace(one, scenario=""), Markup, _bold),
                "evidence": verdict.evidence(one, Markup, _bold),
                "drawing": charts.ranks(one.ranking, styles) if one.ranking.blocks > 1 else None,
                "words": _ranks(one),
            }
            for one in ours
        ],
    }


def _ranks(one: Verdict) -> str:
    """The picture of the ranks in words."""
    ranking = one.ranking
    ranks = ", ".join(f"{name} {rank:.2f}" for name, rank in zip(ranking.names, ranking.ranks, strict=True))
    level = ", ".join(ranking.level)
    return f"Mean ranks: {ranks}." + (f" Not shown to be worse than {ranking.leader}: {level}." if level else "")


def _section(heading: str, blocks: list[Block], order: Sequence[str], styles: Mapping[str, Style]) -> dict[str, Any]:
    """Its races, each with a picture or with the reason why it has none."""
    reasons = [baselines.withheld(block) for block in blocks]
    drawings = [
        None if reason else charts.panel(block, order, styles) for block, reason in zip(blocks, reasons, strict=True)
    ]
    return {"heading": heading, "blocks": list(zip(blocks, drawings, reasons, strict=True))}


def _origin(lines: Sequence[Line]) -> dict[str, Any]:
    """Where the numbers come from: versions, data and masks, each once."""
    masks = {(line["data"], line["scenario"], line["seed"]): line["mask_sha256"] for line in lines}
    return {
        "common": {name: sorted({str(line[name]) for line in lines}) for name in ("partly", *ORIGIN)},
        "data": sorted({(line["data"], line["data_digest"]) for line in lines}),
        "recipes": sorted({_recipe(line) for line in lines if not line["tune"]}),
        "masks": sorted(masks.items()),
        "hours": sum(line["seconds"] for line in lines) / 3600,
    }


def _recipe(line: Line) -> tuple[str, str, str, str]:
    ran = ", ".join(f"{name} {value}" for name, value in line["ran"].items() if name in (*RECIPE, "optimizer"))
    return line["data"], line["head"], line["optimizer"], ran


def _bold(name: str) -> Markup:
    return Markup("<b><bdi>{}</bdi></b>").format(name)
