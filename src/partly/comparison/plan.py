"""Plan of a comparison: an experiment, and its cells."""

from __future__ import annotations

import json
import tomllib
import warnings
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
REFERENCES = (AUTO, SCIKIT)  # reference baselines, which choose their own model
FULL = "full"  # scenario in which nothing is hidden
NAIVE = ("assume-negative", "bce")  # naive baselines
VALIDATIONS = ("complete", "partial")
SIMULATED: dict[str, Any] = {"rounds": 10, "errors": 0.0}  # of questions, and the share of the answers that is wrong
CELL_OPTIONS = ("method", "head", "optimizer", "seed", "settings")  # training options that cells differ in
# Training options that an experiment may fix for all its cells, by the names in run.json and in Python.
FIXED_OPTIONS = tuple(
    option
    for pair in STORED_NAMES.items()
    for option in dict.fromkeys(pair)
    if option not in (*CELL_OPTIONS, "hierarchy", "penalty")
)
OPTIONAL = ("asks", "size", "known_only", "method_sha256")  # fields that only some cells have


@dataclass(frozen=True)
class Cell:
    """One training run of a comparison: everything that determines its result record, except the data."""

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
    asks: dict[str, Any] = field(default_factory=dict)  # SIMULATED and a plan of questions; empty: no questions
    size: int | None = None  # of images; None: that of the backbone
    known_only: bool = False  # train only on items with a known entry

    def key(self) -> dict[str, Any]:
        """Return the identity of the cell as plain data.

        Defaults are included, so that a changed default is another cell, and so is a changed file of a custom method.
        """
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
    labels: str | None = None  # label file, where the data contains items only
    absent: str | None = None  # value of entries that are not mentioned, and of uncertain ones
    uncertain: str | None = None
    missing: tuple[str, ...] = ()  # of tables: other spellings of unknown, and columns of labels and ids
    label_columns: tuple[str, ...] = ()
    id_column: str | None = None
    tag_separator: str | None = None
    skip_bad: bool = False  # skip unreadable images
    size: int | None = None  # of images; None: that of the backbone
    naive: bool = True  # include the naive baselines
    references: bool = False  # include the reference baselines `auto` and tuned scikit-learn
    known_only: bool = False  # train only on items with a known entry
    queries: tuple[str, ...] = ()  # query strategies; each cell then asks questions in rounds
    asks: dict[str, Any] = field(default_factory=dict)  # rounds, errors, and fields of partly.active.LoopConfig
    over: str = ""  # a method; the report then shows the differences of the others to it
    parts: tuple[dict[str, Any], ...] = ()  # each overrides some fields; the cells of all parts are run
    name: str = "compare"
    title: str = ""
    about: str = ""

    def __post_init__(self) -> None:
        for field_ in fields(self):
            if field_.type == "tuple[str, ...]":
                value = getattr(self, field_.name)
                object.__setattr__(self, field_.name, (value,) if isinstance(value, str) else tuple(value))
        if self.parts:
            self.split()  # refuses invalid parts
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
                f"name = {self.name!r} names the result files in the folder --out: it must be a plain name, not "
                "empty and without /. Choose the folder with --out."
            )
        if self.queries and self.tune:
            raise SettingError("tune needs a validation set, but cells that ask questions have none. Leave it out.")
        if self.asks and not self.queries:
            raise SettingError("asks has no effect without queries. Add queries, or leave out asks.")
        if not self.data or not self.methods or not self.scenarios or self.seeds < 1 or self.tune < 0:
            raise SettingError("A comparison needs data, methods, scenarios and at least one seed.")

    @property
    def meaning(self) -> LabelSemantics:
        """Return how the label file is read."""
        return LabelSemantics(**{f.name: getattr(self, f.name) for f in fields(LabelSemantics)})

    def split(self) -> list[Experiment]:
        """Return the parts as experiments of their own; the experiment itself if it has none."""
        common = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "parts"}
        return [Experiment(**common | part) for part in self.parts] or [self]

    def cells(self) -> list[Cell]:
        """Return every cell once, including baselines, part by part and seed by seed.

        Experiments with queries have no baselines and no validation set.
        """
        cells: dict[str, Cell] = {}
        for part in self.split():
            for cell in part._query_cells() if part.queries else part._training_cells():
                cells.setdefault(json.dumps(cell.key(), sort_keys=True), cell)
        return list(cells.values())

    def _query_cells(self) -> Iterator[Cell]:
        where = (self.data, self.heads, self.optimizers, self.scenarios, self.methods, self.queries)
        for seed, data, head, optimizer, scenario, text, query in product(range(self.seeds), *where):
            method, settings = method_and_settings(text)
            head = AUTO if method == AUTO else head
            more: dict[str, Any] = {"asks": self._asks(query), "size": self.size}
            yield Cell(data, scenario, method, head, optimizer, seed, settings, self.recipe, "none", **more)

    def _training_cells(self) -> Iterator[Cell]:
        more: dict[str, Any] = {"size": self.size, "known_only": self.known_only}
        methods = [method_and_settings(text) for text in dict.fromkeys((*NAIVE * self.naive, *self.methods))]
        wanted: list[tuple[str, str, dict[str, Any], int]] = []
        if not self.known_only:  # few items and all items would need different numbers of epochs
            wanted += [(FULL, "bce", {}, 0)]
        wanted += [(s, *m, t) for s, m, t in product(self.scenarios, methods, sorted({0, self.tune}))]
        for seed, data, head, optimizer, kind, (scenario, method, settings, tune) in product(
            range(self.seeds), self.data, self.heads, self.optimizers, self.validation, wanted
        ):
            # Where nothing is hidden, both kinds of validation are the same.
            kind = "complete" if scenario == FULL else kind
            head = AUTO if method == AUTO else head  # a portfolio has its own heads
            yield Cell(data, scenario, method, head, optimizer, seed, settings, self.recipe, kind, tune, **more)
        # References choose their own head and training, and serve all groups on the same known entries. On images and
        # texts they use the features of the frozen backbone.
        references = product(
            range(self.seeds), self.data, self.validation, self.scenarios, REFERENCES * self.references
        )
        for seed, data, kind, scenario, text in references:
            method, settings = method_and_settings(text)
            yield Cell(
                data, scenario, method, AUTO, "adamw", seed, settings, self._frozen_backbone(), kind, size=self.size
            )

    def _frozen_backbone(self) -> dict[str, Any]:
        """Return the backbone of the recipe, if it has one, frozen."""
        if "backbone" not in self.recipe:
            return {}
        settings = self.recipe.get("backbone_settings", {}) | {"freeze": "all"}
        return {"backbone": self.recipe["backbone"], "backbone_settings": settings}

    def _asks(self, query: str) -> dict[str, Any]:
        asks = SIMULATED | self.asks | {"query": query}
        return {name: asks[name] for name in SIMULATED} | asdict(plan_of(asks))  # with defaults


def plan_of(asks: dict[str, Any]) -> LoopConfig:
    """Return the plan of questions of a cell, or refuse invalid options."""
    known = [*SIMULATED, *(one.name for one in fields(LoopConfig))]
    for name in asks:
        if name not in known:
            raise SettingError(f"asks has no entry {name!r}.{did_you_mean(name, known)}")
    if not isinstance(asks["rounds"], int) or asks["rounds"] < 1:
        raise SettingError(f"rounds = {asks['rounds']!r} must be a whole number, 1 or more.")
    within(0, 0.5, errors=asks["errors"])
    return LoopConfig(**{name: value for name, value in asks.items() if name not in SIMULATED})


def cut_of(data: str) -> tuple[str, int | None]:
    """Split 'coco.npz:3000' into ('coco.npz', 3000), the number of training items; None: all of them."""
    name, colon, items = data.rpartition(":")
    if not colon or not items.isdigit():
        return data, None
    if not int(items):
        raise SettingError(f"data = {data!r}: a data set cut to no items. Name one or more, or leave the number out.")
    return name, int(items)


def name_of(data: str) -> str:
    """Return the name of a data set in result records: 'voc2012', 'coco:3000'."""
    name, items = cut_of(data)
    return Path(name).stem + (f":{items}" if items else "")


def read_experiment(path: Path) -> Experiment:
    """Read an experiment file (TOML). Data files are relative to it."""
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingError(f"{path}: cannot be read ({error}).") from None
    for part in (table, *table.get("parts", [])):
        if "yardsticks" in part:
            warnings.warn(f"{path}: yardsticks is now references.", DeprecationWarning, stacklevel=2)
            part["references"] = part.pop("yardsticks")
    known = [f.name for f in fields(Experiment)]
    for name in chain(table, *table.get("parts", [])):
        if name not in known:
            raise SettingError(f"{path}: unknown entry {name!r}.{did_you_mean(name, known)}")
    try:
        table["parts"] = [_resolve_paths(part, path.parent) for part in table.get("parts", [])]
        empty = dict.fromkeys(("data", "methods", "scenarios") if table["parts"] else (), ())  # parts may set them
        return Experiment(**{"name": path.stem, **empty, **_resolve_paths(table, path.parent)})
    except (TypeError, AttributeError) as error:
        raise SettingError(f"{path}: {error}") from None


def method_and_settings(text: str) -> tuple[str, dict[str, Any]]:
    """Parse 'curriculum[strategy=bayesian,theta=0.3]' into the name and {'strategy': 'bayesian', 'theta': 0.3}."""
    name, bracket, rest = text.partition("[")
    if text.count("[") != text.count("]") or (bracket and not rest.endswith("]")) or name.count("]"):
        raise SettingError(f"{text!r}: the brackets do not match. Write settings of a method as name[a=1,b=2].")
    settings = parse_settings(rest.removesuffix("]").split(",")) if bracket else {}
    info = methods.find(name)
    info.complete(settings)  # refuses invalid settings before anything runs
    return info.name, settings  # the canonical name, so that no cell runs twice


def _resolve_paths(table: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the table with file names relative to the folder."""
    data = table.get("data", [])
    files = {"data": [_resolve_path(text, folder) for text in ([data] if isinstance(data, str) else data)]}
    labels = {"labels": _resolve_path(table["labels"], folder)} if "labels" in table else {}
    return table | (files if "data" in table else {}) | labels


def _resolve_path(text: str, folder: Path) -> str:
    return text if cut_of(text)[0] in (*scenes.NAMES, digits.NAME) or Path(text).is_absolute() else str(folder / text)
