"""What a comparison runs: an experiment, and the cells it unfolds into."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from itertools import chain, product
from pathlib import Path
from typing import Any

from partly import methods, scenarios
from partly.active import LoopConfig
from partly.config import STORED_NAMES
from partly.data import LabelSemantics
from partly.data.formats import digits, scenes
from partly.errors import SettingError, did_you_mean, within
from partly.registry import parse_settings

AUTO = "auto"  # the method, and its head
SCIKIT = "per-label[estimator=tuned-logistic-regression]"
REFERENCES = (AUTO, SCIKIT)  # rows that every method can be measured by: they choose for themselves
FULL = "full"  # the scenario in which nothing is hidden: of somebody's own data, what is known as it is
NAIVE = ("assume-negative", "bce")  # rows that run along
VALIDATIONS = ("complete", "partial")
SIMULATED: dict[str, Any] = {"rounds": 10, "errors": 0.0}  # of questions, and the share of the answers that is wrong
CELL_OPTIONS = ("method", "head", "optimizer", "seed", "settings")  # training options that cells differ in
# Training options that an experiment may fix for all its cells, by the names in run.json and in Python.
FIXED_OPTIONS = tuple(
    option
    for pair in STORED_NAMES.items()
    for option in dict.fromkeys(pair)
    if option not in (*CELL_OPTIONS, "hierarchy", "penalty", "recipe")  # a preset would choose the method
)
OPTIONAL = ("asks", "size", "known_only", "method_sha256")  # what only some cells say


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
    asks: dict[str, Any] = field(default_factory=dict)  # SIMULATED, and a plan of questions; empty: none are asked
    size: int | None = None  # of pictures in files; None: what the backbone wants
    known_only: bool = False  # learn from items of which something is known, and no others

    def key(self) -> dict[str, Any]:
        """What tells this cell from every other one, as plain data. Defaults are spelled out: a changed default is
        another cell; and so is a changed file of a method that is not one of the package."""
        method = methods.find(self.method)
        key = vars(self) | {"data": name_of(self.data), "settings": method.complete(self.settings)}
        key |= {"method_sha256": method.source_sha256}
        return {name: value for name, value in key.items() if value or name not in OPTIONAL}


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
    missing: tuple[str, ...] = ()  # of tables: further spellings of unknown, and which columns hold labels and ids
    label_columns: tuple[str, ...] = ()
    id_column: str | None = None
    tag_separator: str | None = None
    skip_bad: bool = False  # go on without files that are no pictures
    size: int | None = None  # side of pictures in files; None: what the backbone wants
    naive: bool = True  # whether the naive rows run along
    yardsticks: bool = False  # whether `auto` and tuned scikit-learn run along
    known_only: bool = False  # learn from items of which something is known, and no others
    queries: tuple[str, ...] = ()  # if any, each cell asks questions by one of them, in rounds
    asks: dict[str, Any] = field(default_factory=dict)  # rounds, errors, and what partly.active.LoopConfig has
    over: str = ""  # a method; the report then says what the others add to it, by scenario and by groups of labels
    parts: tuple[dict[str, Any], ...] = ()  # each overrules some of the above; the cells of all of them are run
    name: str = "compare"
    title: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        for one in fields(self):
            if one.type == "tuple[str, ...]":
                value = getattr(self, one.name)
                object.__setattr__(self, one.name, (value,) if isinstance(value, str) else tuple(value))
        if self.parts:
            self.each()  # refuses what cannot be
            return
        for text in self.scenarios:
            if text != FULL:
                scenarios.parse(text)
        for text in self.methods:
            method_and_settings(text)
        allowed = ((self.validation, VALIDATIONS, "validation"), (self.recipe, FIXED_OPTIONS, "recipe entry"))
        for given, known, what in allowed:
            for word in given:
                if word not in known:
                    raise SettingError(f"There is no {what} {word!r}.{did_you_mean(word, known)}")
        for name in self.data:
            cut_of(name)
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

    @property
    def meaning(self) -> LabelSemantics:
        """What files leave open."""
        return LabelSemantics(**{one.name: getattr(self, one.name) for one in fields(LabelSemantics)})

    def each(self) -> list[Experiment]:
        """Its parts as experiments of their own; itself, where it has none."""
        whole = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "parts"}
        return [Experiment(**whole | part) for part in self.parts] or [self]

    def cells(self) -> list[Cell]:
        """Every cell once, the full-label row and those that run along included; part by part and seed by seed, so
        that early means say much. Where questions are asked, only the methods that were, and no validation part."""
        found: dict[str, Cell] = {}
        for part in self.each():
            for cell in part._asking() if part.queries else part._learning():
                found.setdefault(json.dumps(cell.key(), sort_keys=True), cell)
        return list(found.values())

    def _asking(self) -> Iterator[Cell]:
        where = (self.data, self.heads, self.optimizers, self.scenarios, self.methods, self.queries)
        for seed, data, head, optimizer, scenario, text, query in product(range(self.seeds), *where):
            method, settings = method_and_settings(text)
            head = AUTO if method == AUTO else head
            more: dict[str, Any] = {"asks": self._asks(query), "size": self.size}
            yield Cell(data, scenario, method, head, optimizer, seed, settings, self.recipe, "none", **more)

    def _learning(self) -> Iterator[Cell]:
        more: dict[str, Any] = {"size": self.size, "known_only": self.known_only}
        methods = [method_and_settings(text) for text in dict.fromkeys((*NAIVE * self.naive, *self.methods))]
        wanted: list[tuple[str, str, dict[str, Any], int]] = []
        if not self.known_only:  # where the number of epochs is one for few items, it says nothing of all of them
            wanted += [(FULL, "bce", {}, 0)]
        wanted += [(s, *m, t) for s, m, t in product(self.scenarios, methods, sorted({0, self.tune}))]
        for seed, data, head, optimizer, kind, (scenario, method, settings, tune) in product(
            range(self.seeds), self.data, self.heads, self.optimizers, self.validation, wanted
        ):
            # Where nothing is hidden, both kinds of validation are the same.
            kind = "complete" if scenario == FULL else kind
            head = AUTO if method == AUTO else head  # a portfolio has its own
            yield Cell(data, scenario, method, head, optimizer, seed, settings, self.recipe, kind, tune, **more)
        # They have neither head nor optimiser nor epochs to be told, and serve all races on the same known entries;
        # of pictures and texts they learn from the features of the backbone as it comes.
        along = product(range(self.seeds), self.data, self.validation, self.scenarios, REFERENCES * self.yardsticks)
        for seed, data, kind, scenario, text in along:
            method, settings = method_and_settings(text)
            yield Cell(data, scenario, method, AUTO, "adamw", seed, settings, self._frozen(), kind, size=self.size)

    def _frozen(self) -> dict[str, Any]:
        """The backbone of its recipe, if it has one, with nothing left to learn."""
        if "backbone" not in self.recipe:
            return {}
        settings = self.recipe.get("backbone_settings", {}) | {"freeze": "all"}
        return {"backbone": self.recipe["backbone"], "backbone_settings": settings}

    def _asks(self, query: str) -> dict[str, Any]:
        asks = SIMULATED | self.asks | {"query": query}
        return {name: asks[name] for name in SIMULATED} | asdict(plan_of(asks))  # with all that was left open


def plan_of(asks: dict[str, Any]) -> LoopConfig:
    """How the questions of a cell are chosen; refuses what cannot be."""
    known = [*SIMULATED, *(one.name for one in fields(LoopConfig))]
    for name in asks:
        if name not in known:
            raise SettingError(f"asks has no entry {name!r}.{did_you_mean(name, known)}")
    if not isinstance(asks["rounds"], int) or asks["rounds"] < 1:
        raise SettingError(f"rounds = {asks['rounds']!r} must be a whole number, 1 or more.")
    within(0, 0.5, errors=asks["errors"])
    return LoopConfig(**{name: value for name, value in asks.items() if name not in SIMULATED})


def cut_of(data: str) -> tuple[str, int | None]:
    """'coco.npz:3000' -> ('coco.npz', 3000): so many of its training items. None: all of them."""
    name, colon, items = data.rpartition(":")
    if not colon or not items.isdigit():
        return data, None
    if not int(items):
        raise SettingError(f"data = {data!r}: a data set cut to no items. Name one or more, or leave the number out.")
    return name, int(items)


def name_of(data: str) -> str:
    """What a data set is called in result lines: 'voc2012', 'coco:3000'."""
    name, items = cut_of(data)
    return Path(name).stem + (f":{items}" if items else "")


def read_experiment(path: Path) -> Experiment:
    """An experiment file (TOML): names and numbers only. Data files are named relative to it."""
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingError(f"{path}: cannot be read ({error}).") from None
    known = [one.name for one in fields(Experiment)]
    for name in chain(table, *table.get("parts", [])):
        if name not in known:
            raise SettingError(f"{path}: unknown entry {name!r}.{did_you_mean(name, known)}")
    try:
        table["parts"] = [_placed(part, path.parent) for part in table.get("parts", [])]
        empty = dict.fromkeys(
            ("data", "methods", "scenarios") if table["parts"] else (), ()
        )  # each part may say what they are
        return Experiment(**{"name": path.stem, **empty, **_placed(table, path.parent)})
    except (TypeError, AttributeError) as error:
        raise SettingError(f"{path}: {error}") from None


def method_and_settings(text: str) -> tuple[str, dict[str, Any]]:
    """'curriculum[strategy=bayesian,theta=0.3]' -> ('curriculum', {'strategy': 'bayesian', 'theta': 0.3})."""
    name, bracket, rest = text.partition("[")
    if text.count("[") != text.count("]") or (bracket and not rest.endswith("]")) or name.count("]"):
        raise SettingError(f"{text!r}: the brackets do not match. Write settings of a method as name[a=1,b=2].")
    settings = parse_settings(rest.removesuffix("]").split(",")) if bracket else {}
    info = methods.find(name)
    info.complete(settings)  # refuses what cannot be, before anything is run
    return info.name, settings  # not by another name: the same cell would be run twice


def _placed(table: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The same with its files named relative to the folder."""
    data = table.get("data", [])
    files = {"data": [_beside(text, folder) for text in ([data] if isinstance(data, str) else data)]}
    labels = {"labels": _beside(table["labels"], folder)} if "labels" in table else {}
    return table | (files if "data" in table else {}) | labels


def _beside(text: str, folder: Path) -> str:
    return text if cut_of(text)[0] in (*scenes.NAMES, digits.NAME) or Path(text).is_absolute() else str(folder / text)
