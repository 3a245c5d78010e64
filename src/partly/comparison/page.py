"""HTML report of a comparison, from result records alone; templates/comparison.html lays it out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from partly.atomic_io import write_file
from partly.comparison import charts, markdown, verdict
from partly.comparison.groups import ORIGIN, Group, gather
from partly.comparison.results import Record
from partly.comparison.verdict import Verdict
from partly.errors import DataError
from partly.report.layout import load_template
from partly.report.plots import Style

CERTAINTIES = {"clear": "clear win", "shared": "shared lead", "open": "no winner", "alone": "one method"}
MAX_OPEN_TABLES = 4  # more tables are collapsed
SHOWN_OPTIONS = (  # of the configuration of a run
    *("epochs", "batch_size", "lr", "weight_decay", "optimizer", "schedule", "schedule_settings"),
    *("accumulate", "average", "precision", "compile", "backbone", "backbone_settings"),
)


def write(
    records: Sequence[Record], path: str | Path, title: str = "Comparison", over: str = "", note: str = ""
) -> None:
    """Write the report atomically."""
    write_file(Path(path), render(records, title, over, note).encode("utf-8", "replace"))


def render(records: Sequence[Record], title: str = "Comparison", over: str = "", note: str = "") -> str:
    """Return the report as HTML. over: the method to compare the others with; note: a remark on the data."""
    groups = gather(records)
    if not groups:
        raise DataError(
            "There is no comparison to report on: these records contain no method that was trained with hidden labels."
        )
    ranked = [group for group in groups if not group.reason_withheld]
    by_validation = verdict.judge(ranked)
    order = list(by_validation[0][0].ranking.names) if by_validation else []
    styles = charts.choose_styles(groups)
    filters: dict[str, Any] = {
        "number": markdown.format_mean,
        "share": markdown.format_gap,
        "json": json.dumps,
        "signed": markdown.format_gain,
    }
    return load_template("comparison.html", **filters).render(
        title=title,
        note=note,
        counts=_count(records, groups),
        verdicts=[_describe_verdicts(verdicts, styles) for verdicts in by_validation],
        has_sound_baseline=bool(ranked),
        sections=[
            {"heading": heading, "groups": [(group, _draw(group, order, styles)) for group in section]}
            for heading, section in markdown.by_scenario(groups)
        ],
        over=over,
        gains=markdown.compute_gains(ranked, over) if over else [],
        gain_notes=markdown.GAIN_NOTES,
        kinds=markdown.KINDS,
        few_seeds=markdown.FEW_SEEDS,
        notes=markdown.NOTES,
        open=len(groups) <= MAX_OPEN_TABLES,
        origin=_describe_origin(records),
    )


def _count(records: Sequence[Record], groups: Sequence[Group]) -> dict[str, int]:
    counts = {"run": len(records), "comparison": len(groups)}
    for word, name in {"data set": "data", "scenario": "scenario", "head": "head"}.items():
        counts[word] = len({group.key[name] for group in groups})
    counts["method"] = len({row.name for group in groups for row in group.rows if row.kind != "full"})
    return counts | {"seed": len({record["seed"] for record in records})}


def _describe_verdicts(verdicts: Sequence[Verdict], styles: Mapping[str, Style]) -> dict[str, Any]:
    """Return the overall verdict of one kind of validation, and the verdict and rank chart of each scenario."""
    overall, *scenarios = verdicts
    return {
        "validation": overall.validation,
        "headline": verdict.headline(overall, Markup, _bold, scenarios),
        "test": verdict.describe_test(overall),
        "cards": [
            {
                "heading": verdict.format_scenario(part.scenario),
                "certainty": CERTAINTIES[part.certainty],
                "headline": verdict.headline(replace(part, scenario=""), Markup, _bold),
                "evidence": verdict.evidence(part, Markup, _bold),
                "drawing": charts.draw_ranks(part.ranking, styles) if part.ranking.groups > 1 else None,
                "text": _describe_ranks(part),
            }
            for part in verdicts
        ],
    }


def _describe_ranks(part: Verdict) -> str:
    """Return the chart of the ranks as text."""
    ranking = part.ranking
    ranks = ", ".join(f"{name} {rank:.2f}" for name, rank in zip(ranking.names, ranking.ranks, strict=True))
    tied = ", ".join(ranking.tied)
    return f"Mean ranks: {ranks}." + (f" Not significantly worse than {ranking.leader}: {tied}." if tied else "")


def _draw(group: Group, order: Sequence[str], styles: Mapping[str, Style]) -> Any:
    return None if group.reason_withheld else charts.draw_scores(group, order, styles)


def _describe_origin(records: Sequence[Record]) -> dict[str, Any]:
    """Return the distinct versions, data sets, training options and masks, and the total hours."""
    masks = {(record["data"], record["scenario"], record["seed"]): record["mask_sha256"] for record in records}
    return {
        "common": {name: sorted({str(record[name]) for record in records}) for name in ("partly", *ORIGIN)},
        "data": sorted({(record["data"], record["data_digest"]) for record in records}),
        "recipes": sorted({_describe_recipe(record) for record in records if not record["tune"]}),
        "masks": sorted(masks.items()),
        "hours": sum(record["seconds"] for record in records) / 3600,
    }


def _describe_recipe(record: Record) -> tuple[str, str, str, str]:
    options = ", ".join(f"{name} {value}" for name, value in record["ran"].items() if name in SHOWN_OPTIONS)
    return record["data"], record["head"], record["optimizer"], options


def _bold(name: str) -> Markup:
    return Markup("<b><bdi>{}</bdi></b>").format(name)
