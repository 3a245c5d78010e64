"""The figures that papers report, as data, and how they are printed beside ours.

They are facts read from the tables of the papers, in the papers' own words and units (per cent, but for P@k).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from partly import methods
from partly.active import strategies
from partly.comparison.groups import Row
from partly.comparison.results import Record

CITATIONS = {
    "Durand et al. 2019": "T. Durand, N. Mehrasa, G. Mori. Learning a Deep ConvNet for Multi-label Classification with "
    "Partial Labels. CVPR 2019.",
    "Huynh and Elhamifar 2020": "D. Huynh, E. Elhamifar. Interactive Multi-Label CNN Learning with Partial Labels. "
    "CVPR 2020.",
    "Hsieh et al. 2021": "C.-Y. Hsieh, W.-I. Lin, M. Xu, G. Niu, H.-T. Lin, M. Sugiyama. Active Refinement for "
    "Multi-Label Learning: A Pseudo-Label Approach. arXiv 2109.14676, 2021.",
    "Zhou et al. 2022": "D. Zhou, P. Chen, Q. Wang, G. Chen, P.-A. Heng. Acknowledging the Unknown for Multi-label "
    "Learning with Single Positive Labels. ECCV 2022.",
    "Lyu et al. 2025": "G. Lyu, B. Sun, X. Deng, S. Feng. Addressing Multi-Label Learning with Partial Labels: From "
    "Sample Selection to Label Selection. AAAI 2025.",
}

# What of theirs is of the same kind as what of ours. The pictures are the same, networks and training are not.
DATA = {"VOC2012": "voc2012", "MS-COCO": "coco", "MS-COCO val2014": "coco"}
SCENARIOS = {"1 P. & 0 N.": "single-positive", "single label": "single-positive"}
SCENARIOS |= {"1 P. & All N.": "one-yes-all-no", "All P. & All N.": "full", "100% partial labels; 4 seeds": "full"}
SCENARIOS |= {f"{left}% labels left": f"positives:{left / 100:g}" for left in (25, 50, 75)}
SCENARIOS |= {f"{known}% partial labels; 4 seeds": f"uniform:{known / 100:g}" for known in range(10, 100, 10)}
SCENARIOS |= {"10% labels; ResNet-101 WELDON": "uniform:0.1"}
SCENARIOS |= {f"log2(M/(M+N))={power}": f"coarse-only:{2.0**power}" for power in range(-10, -5)}
CITED = "Papers report these for the same pictures and labels hidden in the same way, but other networks and training: "
LEARNER = "refine"  # the method with which Hsieh et al. ask questions
METRICS = ("mAP", "MAP", "P@1", "P@3", "P@5")


@dataclass(frozen=True)
class Figure:
    """One number of one table."""

    paper: str  # a key of CITATIONS
    table: str
    dataset: str
    setting: str
    method: str
    metric: str
    value: float
    std: float | None

    @property
    def share(self) -> float:
        """A score as one between 0 and 1."""
        return self.value if "P@" in self.metric else self.value / 100


@cache
def figures() -> tuple[Figure, ...]:
    """All of them, paper by paper in the order of the tables."""
    text = (Path(__file__).parent / "papers.csv").read_text("utf-8")
    _, *rows = csv.reader(text.splitlines())
    return tuple(
        Figure(paper, table, dataset, setting, method, metric, float(value), float(std) if std else None)
        for paper, table, dataset, setting, method, metric, value, std in rows
    )


def find(
    paper: str | None = None,
    table: str | None = None,
    method: str | None = None,
    metric: str | None = None,
    dataset: str | None = None,
    setting: str | None = None,
) -> list[Figure]:
    """The figures of which all that is given here is true; names as the paper spells them."""
    wanted = {
        "paper": paper,
        "table": table,
        "method": method,
        "metric": metric,
        "dataset": dataset,
        "setting": setting,
    }
    wanted = {name: value for name, value in wanted.items() if value is not None}
    return [one for one in figures() if all(getattr(one, name) == value for name, value in wanted.items())]


def find_comparable(data: str, scenario: str, method: str) -> Iterator[Figure]:
    """mAP or P@k that papers report for this method on the same pictures (or some of them: 'coco:3000') with labels
    hidden in the same way.

    What papers call per method, its file says in `ABOUT`.
    """
    info = methods.discover().get(method)
    names: tuple[str, ...] = info.about.in_papers if info else ()
    for one in figures():
        here = DATA.get(one.dataset), SCENARIOS.get(one.setting)
        if one.method in names and one.metric in METRICS and here == (data.partition(":")[0], scenario):
            yield one


def format_column(row: Row) -> str:
    """Return what papers report for the method of a row, by table; a value without a metric is a mAP."""
    first = row.records[0]
    if (row.kind != "full" and row.name != first["method"]) or first["validation"] != "complete":
        return ""
    tables: dict[tuple[str, str], list[str]] = {}
    for figure in find_comparable(first["data"], first["scenario"], first["method"]):
        metric = "" if figure.metric in ("mAP", "MAP") else f"{figure.metric} "
        tables.setdefault((figure.paper, figure.table), []).append(f"{metric}{figure.share:.3f}")
    return "; ".join(f"{', '.join(values)} ({paper}, {table})" for (paper, table), values in tables.items())


def find_areas(line: Record, score: str) -> dict[str, str]:
    """Return the area that a paper reports for a query, on the same images and with the same method."""
    names = strategies.find(line["asks"]["query"]).about.in_papers
    for figure in find(metric=f"AUC-{score}") if line["method"] == LEARNER else []:
        if DATA.get(figure.dataset) == line["data"].partition(":")[0] and figure.method in names:
            return {f"{figure.paper}, {figure.table}": f"{figure.share:.3f}"}
    return {}


def format_citations(page: str) -> str:
    """Return a paragraph that cites the papers whose values stand on a page; nothing where there are none."""
    named = {name for name in CITATIONS if f"({name}, " in page or f", {name}, " in page}
    cited = [f"{name}: {CITATIONS[name]}" for name in sorted(named)]
    return f"\n{CITED}{' '.join(cited)}\n" if cited else ""
