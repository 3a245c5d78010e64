"""What a comparison runs: an experiment, and the cells it unfolds into."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict, dataclass, field, fields
from itertools import product
from pathlib import Path
from typing import Any

from partly import methods, scenarios
from partly.active import Plan
from partly.catalogue import parse_settings
from partly.data import digits, scenes
from partly.errors import SettingError, did_you_mean

AUTO = "auto"  # the method, and its head
FULL = "full"  # the scenario in which nothing is hidden: of somebody's own data, what is known as it is
NAIVE = ("assume-negative", "bce")  # rows that run along
VALIDATIONS = ("complete", "partial")
# What an experiment may fix for all its cells.
RECIPE = (
    *("epochs", "batch_size", "lr", "weight_decay", "schedule", "schedule_settings"),
    *("accumulate", "average", "precision", "compile"),
)


@dataclass(frozen=True)
class Cell:
    """One training run of a comparison: everything that decides its result line, beside the data itself."""

    data: str
    scenario: str
    method: str
    head: str
    optimizer: str
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)
    recipe: dict[str, Any] = field(default_factory=dict)
    validation: str = "complete"
    tune: int = 0
    asks: dict[str, Any] = field(default_factory=dict)  # rounds, and a plan of questions; empty: none are asked
    size: int | None = None  # of pictures in files; None: what the backbone wants

    def key(self) -> dict[str, Any]:
        """What tells this cell from every other one, as plain data. Defaults are spelled out: a changed default is
        another cell."""
        settings = methods.find(self.method).complete(self.settings)
        key = vars(self) | {"data": Path(self.data).stem, "settings": settings}
        return {name: value for name, value in key.items() if value or name not in ("asks", "size")}


@dataclass(frozen=True)
class Experiment:
    """Methods x scenarios x heads x seeds on some data sets, under one protocol."""

    data: tuple[str, ...]
    methods: tuple[str, ...]
    scenarios: tuple[str, ...]
    heads: tuple[str, ...] = ("mlp",)
    seeds: int = 5
    validation: tuple[str, ...] = ("complete",)
    optimizers: tuple[str, ...] = ("adamw",)
    tune: int = 0
    recipe: dict[str, Any] = field(default_factory=dict)
    labels: str | None = None  # where the data is items by themselves: the file with what is known
    absent: str | None = None  # what entries are that it does not mention, and those it calls uncertain (data.Meaning)
    uncertain: str | None = None
    skip_bad: bool = False  # go on without files that are no pictures
    size: int | None = None  # side of pictures in files; None: what the backbone wants
    naive: bool = True  # whether the naive rows run along
    queries: tuple[str, ...] = ()  # if any, each cell asks questions by one of them, in rounds
    asks: dict[str, Any] = field(default_factory=dict)  # rounds, questions, epochs, restart: see partly.active.Plan
    over: str = ""  # a method; the report then says what the others add to it, by scenario and by groups of labels
    name: str = "compare"
    title: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        for one in fields(self):
            if one.type == "tuple[str, ...]":
                value = getattr(self, one.name)
                object.__setattr__(self, one.name, (value,) if isinstance(value, str) else tuple(value))
        for text in self.scenarios:
            if text != FULL:
                scenarios.parse(text)
        for text in self.methods:
            method_and_settings(text)
        for given, known, what in ((self.validation, VALIDATIONS, "validation"), (self.recipe, RECIPE, "recipe entry")):
            for word in given:
                if word not in known:
                    raise SettingError(f"There is no {what} {word!r}.{did_you_mean(word, known)}")
        for query in self.queries:
            self._asks(query)
        if not isinstance(self.name, str) or self.name != Path(self.name).name or not self.name or "\0" in self.name:
            raise SettingError(
                f"name = {self.name!r} names the files with the results, in the folder --out: it must be a plain name, "
                "without / and not empty. Say where they go with --out."
            )
        if self.queries and self.tune:
            raise SettingError("tune needs a validation part, and cells that ask questions have none. Leave it out.")
        if self.asks and not self.queries:
            raise SettingError("asks says how to ask, queries by what: name queries too, or leave out asks.")
        if not self.data or not self.methods or not self.scenarios or self.seeds < 1 or self.tune < 0:
            raise SettingError("A comparison needs data, methods, scenarios and at least one seed.")

    def cells(self) -> list[Cell]:
        """Every cell once, the full-label row and (if wanted) the naive ones included; seed by seed, so that early
        means say much. Where questions are asked, only the methods that were, and no validation part."""
        if self.queries:
            return [
                Cell(*where, seed, settings, self.recipe, "none", asks=self._asks(query), size=self.size)
                for seed, data, head, optimizer, scenario, text, query in product(
                    range(self.seeds),
                    self.data,
                    self.heads,
                    self.optimizers,
                    self.scenarios,
                    self.methods,
                    self.queries,
                )
                for method, settings in [method_and_settings(text)]
                for where in [(data, scenario, method, AUTO if method == AUTO else head, optimizer)]
            ]
        methods = [method_and_settings(text) for text in dict.fromkeys((*NAIVE * self.naive, *self.methods))]
        wanted: list[tuple[str, str, dict[str, Any], int]] = [(FULL, "bce", {}, 0)]
        wanted += [(s, *m, t) for s, m, t in product(self.scenarios, methods, sorted({0, self.tune}))]
        found: dict[str, Cell] = {}
        for seed, data, head, optimizer, kind, (scenario, method, settings, tune) in product(
            range(self.seeds), self.data, self.heads, self.optimizers, self.validation, wanted
        ):
            # Where nothing is hidden, both kinds of validation are the same.
            kind = "complete" if scenario == FULL else kind
            head = AUTO if method == AUTO else head  # a portfolio has its own
            cell = Cell(
                data, scenario, method, head, optimizer, seed, settings, self.recipe, kind, tune, size=self.size
            )
            found.setdefault(json.dumps(cell.key(), sort_keys=True), cell)
        return list(found.values())

    def _asks(self, query: str) -> dict[str, Any]:
        asks = {"rounds": 10} | self.asks | {"query": query}
        return {"rounds": asks["rounds"]} | asdict(plan_of(asks))  # with all that was left open


def plan_of(asks: dict[str, Any]) -> Plan:
    """How the questions of a cell are chosen; refuses what cannot be."""
    known = ["rounds", *(one.name for one in fields(Plan))]
    for name in asks:
        if name not in known:
            raise SettingError(f"asks has no entry {name!r}.{did_you_mean(name, known)}")
    if not isinstance(asks["rounds"], int) or asks["rounds"] < 1:
        raise SettingError(f"rounds = {asks['rounds']!r} must be a whole number, 1 or more.")
    return Plan(**{name: value for name, value in asks.items() if name != "rounds"})


def read_experiment(path: Path) -> Experiment:
    """An experiment file (TOML): names and numbers only. Data files are named relative to it."""
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingError(f"{path}: cannot be read ({error}).") from None
    known = [one.name for one in fields(Experiment)]
    for name in table:
        if name not in known:
            raise SettingError(f"{path}: unknown entry {name!r}.{did_you_mean(name, known)}")
    data = table.get("data", [])
    table["data"] = [_beside(text, path.parent) for text in ([data] if isinstance(data, str) else data)]
    if "labels" in table:
        table["labels"] = _beside(table["labels"], path.parent)
    try:
        return Experiment(**{"name": path.stem, **table})
    except TypeError as error:
        raise SettingError(f"{path}: {error}") from None


def method_and_settings(text: str) -> tuple[str, dict[str, Any]]:
    """'curriculum[strategy=bayesian,theta=0.3]' -> ('curriculum', {'strategy': 'bayesian', 'theta': 0.3})."""
    name, bracket, rest = text.partition("[")
    settings = parse_settings(rest.removesuffix("]").split(",")) if bracket else {}
    info = methods.find(name)
    info.complete(settings)  # refuses what cannot be, before anything is run
    return info.name, settings  # not by another name: the same cell would be run twice


def _beside(text: str, folder: Path) -> str:
    return text if text in (*scenes.NAMES, digits.NAME) or Path(text).is_absolute() else str(folder / text)
