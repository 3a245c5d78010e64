"""Tables and curves of cells that ask questions: the area under the progress curve of P@k, by query strategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from partly import methods
from partly.active import LoopConfig
from partly.active.simulation import PRECISION_METRICS
from partly.active.strategies import find
from partly.comparison import results
from partly.comparison.groups import spell
from partly.comparison.markdown import format_mean, mark
from partly.comparison.plan import SIMULATED
from partly.comparison.results import Record
from partly.comparison.statistics import Scores, mean, rank
from partly.report import figures, plots
from partly.report.layout import escape_markdown

QueryRecords = dict[str, list[Record]]  # query -> its records, one per seed
Save = Callable[[str, bytes], str]  # name and SVG of a picture -> its address
Published = Callable[[Record, str], dict[str, str]]  # record and score -> source -> reported value
NOTES = (
    "Area: mean test score over the rounds after the first answers; mean over seeds ± half of the 95 % confidence "
    "interval (Student's t). **Bold**: the largest area; ≈: not significantly smaller."
)


def gather(records: Sequence[Record]) -> dict[str, QueryRecords]:
    """Group the records that differ only in query and seed, by title."""
    groups: dict[str, QueryRecords] = {}
    for record in (record for record in records if record.get("asks")):
        asks = record["asks"]
        method = spell(record["method"], record["settings"], methods.find(record["method"]).defaults())
        size = f"{asks['rounds']} rounds of {asks['questions']}"
        options = {name: asks[name] for name in ("errors", "epochs", "restart", "last_child") if name in asks}
        size = spell(size, options, SIMULATED | vars(LoopConfig()))
        title = ", ".join([record["data"], record["scenario"], method, record["head"], size])
        query = spell(asks["query"], asks.get("settings", {}), find(asks["query"]).defaults())
        groups.setdefault(title, {}).setdefault(query, []).append(record)
    return groups


def render(
    records: Sequence[Record], level: int = 3, save: Save | None = None, published: Published | None = None
) -> str:
    """Render a table for each group: a row per score, a column per query, published values below.

    level: of the headings. save: stores a picture and returns its address; without it there are no pictures.
    """
    results.check_consistency(records)
    parts: list[str] = []
    for title, group in gather(records).items():
        parts += [f"{'#' * level} {escape_markdown(title)}", ""]
        if save:
            parts += [f"![P@k by number of answers and query]({save(title, draw(group))})", ""]
        parts += [f"| area | {' | '.join(map(escape_markdown, group))} |", "|---" + "|---:" * len(group) + "|"]
        for name in PRECISION_METRICS:
            parts.append(_render_row(name, _format_areas(group, name)))
            reported = [published(same[0], name) if published else {} for same in group.values()]
            sources = dict.fromkeys(source for values in reported for source in values)
            parts += [_render_row(f"{name}, {source}", [r.get(source, "") for r in reported]) for source in sources]
        parts += [_render_row(name, cells) for name, cells in _summarize_last_round(group).items()]
        parts.append("")
    return "\n".join([*parts, NOTES, ""])


def _format_areas(group: QueryRecords, name: str) -> list[str]:
    areas = {query: _area_by_seed(same, name) for query, same in group.items()}
    ranking = rank([areas])
    leader, tied = (ranking.leader, ranking.tied) if ranking else ("", ())
    return [mark(format_mean(mean(values.values())), query == leader, query in tied) for query, values in areas.items()]


def _area_by_seed(records: Sequence[Record], name: str) -> Scores:
    return {record["seed"]: record["areas"][name] for record in records if record["areas"][name] is not None}


def _summarize_last_round(group: QueryRecords) -> dict[str, list[str]]:
    """mAP after the last round, and the minutes of answering, where records contain them."""
    last = [[record["rounds"][-1] for record in same] for same in group.values()]
    rows: dict[str, list[str]] = {}
    if all(end["scores"].get("mAP") is not None for ends in last for end in ends):
        rows["final mAP"] = [format_mean(mean([end["scores"]["mAP"] for end in ends])) for ends in last]
    if all("seconds" in end for ends in last for end in ends):
        rows["minutes of answering"] = [f"{np.mean([end['seconds'] for end in ends]) / 60:.0f}" for ends in last]
    return rows


def _render_row(name: str, cells: Sequence[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def draw(group: QueryRecords) -> bytes:
    """SVG of the mean curves of one group."""
    ordered = [(place, query, same) for place, (query, same) in enumerate(group.items())]
    panels = {
        name: {query: _mean_curve(place, same, name) for place, query, same in ordered} for name in PRECISION_METRICS
    }
    return figures.draw_progress(panels)


def _mean_curve(place: int, records: Sequence[Record], name: str) -> plots.Curve:
    """Mean over seeds, up to the last round that all of them have."""
    rounds = min(len(record["rounds"]) for record in records)

    def average(value: Callable[[Any], float]) -> list[float]:
        values = [[value(entry) for entry in record["rounds"][:rounds]] for record in records]
        means: list[float] = np.mean(values, axis=0).tolist()
        return means

    answers = [round(x) for x in average(lambda entry: entry["answers"])]
    return plots.Curve(plots.choose_style(place), answers, average(lambda entry: entry["scores"][name]))
