"""What papers claim, as data: claims.toml, read into claims and the comparisons that decide each.

A claim says that a row is above (or below, or near) others, or that a difference grows along some steps. It names the
cells of result lines that decide it, the rows of the method at the paper's own setting and at ours, the paper's figures
by their key in papers.csv, and what here is not as in the paper.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from itertools import product
from typing import Any

from evidence import papers
from partly import methods
from partly.errors import DataError, did_you_mean

KINDS = ("above", "below", "trend", "near")
LISTS = ("data", "scenarios", "heads", "metrics", "a", "b", "fill", "differs")
METRICS = {  # ours -> what papers call it
    "mAP": ("mAP", "MAP", "rel MAP"),
    "exact_match": ("0-1", "rel 0-1"),
    "macro_f1": ("M-F1", "Macro-F1", "rel Macro-F1"),
    "micro_f1": ("m-F1", "Micro-F1", "rel Micro-F1"),
    "CP": ("PC-P",),
    "CR": ("PC-R",),
    "OP": ("OV-P",),
    "OR": ("OV-R",),
    "beside: TP": ("TP",),
    "beside: TN": ("TN",),
    "beside: labelled": ("label prop.",),
    **{f"areas: P@{k}": (f"AUC-P@{k}",) for k in (1, 3, 5)},
    **{f"mAP group {group}": ("mAP",) for group in range(1, 6)},
}


@dataclass(frozen=True)
class Where:
    """The cells of one row over the seeds, and the score that is read from their lines."""

    experiment: str  # the result file
    data: str
    scenario: str
    row: str  # as in tables: 'cls[tau_h=0]', 'em, tuned 3'; with a query: 'refine, look-ahead'
    head: str
    optimizer: str
    metric: str  # 'mAP' on the test part, or with its place in the line: 'last: mAP', 'areas: P@1'
    recipe: str = "{}"  # what the experiment fixed, as JSON

    def __str__(self) -> str:
        return f"{self.row} ({self.experiment}: {self.data}, {self.scenario}, {self.head}, {self.optimizer})"


Steps = tuple[Where, ...]  # one, or several along which a trend is looked for
Theirs = tuple[
    papers.Figure | None, papers.Figure | None
]  # figures of both sides; None: 0, figures are differences to it


@dataclass(frozen=True)
class Comparison:
    """One of the comparisons that decide a claim."""

    sides: tuple[
        tuple[Steps, Steps], ...
    ]  # a and b at each setting of the method, the paper's own first; b may be empty
    theirs: tuple[Theirs, ...]  # step by step; empty where the paper gives no figures

    @property
    def first(self) -> Where:
        return self.sides[0][0][0]


@dataclass(frozen=True)
class Claim:
    """One claim of one paper."""

    id: str
    paper: str  # a key of papers.CITATIONS
    where: str  # table, figure or section
    says: str  # in our words
    kind: str = "above"
    differs: tuple[str, ...] = ()  # from the paper's set-up
    open: str = ""  # why nothing here decides it; then there are no cells
    experiment: str = ""
    data: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    heads: tuple[str, ...] = ("mlp",)
    metrics: tuple[str, ...] = ("mAP",)
    recipe: Mapping[str, Any] = field(default_factory=dict)  # what the experiment fixed, for both sides
    along: str = "scenarios"  # what the steps of a trend are: 'scenarios', or 'metrics'
    a: tuple[str, ...] = ()  # rows of the method, the paper's own setting first; 'sgd: row' for both sides under SGD
    b: tuple[str, ...] = ()  # it is to be above each of them; as many steps, and as large a search, as a
    paired: bool = False  # the first of b is for the first of a, and so on
    against: dict[str, Any] = field(default_factory=dict)  # in what the cells of b are not those of a
    fill: tuple[str, ...] = ()  # for '{}' in rows, by scenario
    within: float = 0.0  # of 'near': how far apart at most, in points
    conjunction: bool = False  # whether the paper claims all comparisons together
    forced: str = ""  # why the set-up leaves no other outcome here
    looked: int = 0  # seeds below this were seen before the cells were moved or extended; they are not tested
    figures: Mapping[str, Any] = field(default_factory=dict)  # table, dataset; a, b, setting, b_setting where not clear

    def comparisons(self) -> Iterator[Comparison]:
        """All that must come out as claimed."""
        if self.open:
            return
        others = [self.b] if self.paired else [(one,) * len(self.a) for one in self.b or ("",)]
        for data, head, metrics, places, other in product(
            self.data, self.heads, self._metrics(), self._places(), others
        ):
            sides = tuple(self._sides(a, b, data, head, metrics, places) for a, b in zip(self.a, other, strict=True))
            yield Comparison(sides, self._theirs(other[0], metrics, places))

    def _metrics(self) -> list[tuple[str, ...]]:
        return [self.metrics] if self.kind == "trend" and self.along == "metrics" else [(one,) for one in self.metrics]

    def _places(self) -> list[tuple[int, ...]]:
        """Positions of scenarios: all of them for a trend, else each by itself."""
        every = tuple(range(len(self.scenarios)))
        return [every] if self.kind == "trend" and self.along == "scenarios" else [(one,) for one in every]

    def _sides(
        self, a: str, b: str, data: str, head: str, metrics: Sequence[str], places: Sequence[int]
    ) -> tuple[Steps, Steps]:
        optimizer, _, row = a.rpartition(": ")
        optimizer = optimizer or "adamw"
        cells = [
            Where(
                self.experiment,
                data,
                self.scenarios[place],
                self._named(row, place),
                head,
                optimizer,
                metric,
                json.dumps(self.recipe, sort_keys=True),
            )
            for metric, place in product(metrics, places)
        ]
        tuned = "".join(f", {word}" for word in row.split(", ")[1:] if word.startswith("tuned "))
        other = {"experiment": self.experiment, "data": data, "head": head, "optimizer": optimizer} | self.against
        scenarios, score = other.pop("scenarios", self.scenarios), other.pop("metric", "")
        other["recipe"] = json.dumps(other.get("recipe", self.recipe), sort_keys=True)
        own = [
            Where(
                scenario=scenarios[place],
                row=self._named(b, place) + tuned,
                metric=score or metric,
                **other,
            )
            for metric, place in product(metrics, places)
        ]
        return tuple(cells), tuple(own) if b else ()

    def _named(self, row: str, place: int) -> str:
        return row.format(*self.fill[place : place + 1])

    def _theirs(self, other: str, metrics: Sequence[str], places: Sequence[int]) -> tuple[Theirs, ...]:
        """The paper's figures, where the claim says in which table they are."""
        if not self.figures:
            return ()
        asked = dict(zip(self.b, self.figures.get("b", ()), strict=False))
        b = asked.get(other, _in_papers(other))
        a = self.figures.get("a", _in_papers(self.a[0].rpartition(": ")[2]))
        return tuple(
            (self._figure(a, metric, place, "setting"), self._figure(b, metric, place, "b_setting"))
            for metric, place in product(metrics, places)
        )

    def _figure(self, names: str | Sequence[str], metric: str, place: int, setting: str) -> papers.Figure | None:
        """By its key; None where the paper's figures are differences to this side, or there is no other side."""
        names = [names] if isinstance(names, str) and names else names
        if not names:
            return None
        called = METRICS.get(metric, (metric,))
        asked = self.figures.get(setting, self.figures.get("setting", ""))
        asked = asked[metric] if isinstance(asked, dict) else asked[place] if isinstance(asked, list) else asked
        able = [
            one
            for one in papers.find(self.paper, self.figures["table"], dataset=self.figures["dataset"])
            if one.method in names and one.metric in called
            if (one.setting == asked if asked else papers.SCENARIOS.get(one.setting) == self.scenarios[place])
        ]
        if len({one.value for one in able}) != 1:  # some tables print the same figure twice
            raise DataError(
                f"claims.toml: {self.id}: {len(able)} figures in papers.csv, where there should be one: {list(names)}, "
                f"{asked or self.scenarios[place]}, {called} in {dict(self.figures)}."
            )
        return able[0]


@cache
def read() -> tuple[Claim, ...]:
    """All claims, paper by paper."""
    table = tomllib.loads(resources.files("evidence.claims").joinpath("claims.toml").read_text("utf-8"))
    return tuple(_claim(entry, table["differs"]) for entry in table["claim"])


def _claim(entry: dict[str, Any], words: Mapping[str, str]) -> Claim:
    """One claim; a list of one may be written without its brackets, and what often differs has a short name."""
    known = [one.name for one in fields(Claim)]
    for name in entry:
        if name not in known:
            raise DataError(f"claims.toml: {entry.get('id')}: no entry {name!r}.{did_you_mean(name, known)}")
    made: dict[str, Any] = {
        k: ((v,) if isinstance(v, str) else tuple(v)) if k in LISTS else v for k, v in entry.items()
    }
    made["differs"] = tuple(words.get(one, one) for one in made.get("differs", ()))
    return Claim(**made)


def _in_papers(row: str) -> tuple[str, ...]:
    """What papers call the method of a row."""
    name = row.partition("[")[0].partition(",")[0]
    return methods.find(name).about.in_papers if name else ()
