"""A recipe: all that decides the bits of a run, beside the data; and what it is where a caller leaves it open."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from numbers import Integral, Real
from typing import Any

from partly import defaults, methods, networks
from partly.clock import Clock
from partly.data.label_vectors import read_label_vectors
from partly.engine import presets
from partly.errors import SettingError, within
from partly.images.augmentation import NO_AUGMENTATION, Augmentation
from partly.items import Items, SparseRows, is_decoded
from partly.labels import Hierarchy, Labels
from partly.labels.hierarchy import as_hierarchy
from partly.method import Method, Task
from partly.networks import Precision, backbones
from partly.networks.linear import LINEAR_HEADS
from partly.networks.network import check_compiler, check_training_options
from partly.optim import optimisers, schedules
from partly.registry import Info

# What a caller may leave open.
NUMERIC = ("epochs", "batch_size", "lr", "weight_decay")
SETTINGS = ("settings", "head_settings", "backbone_settings", "schedule_settings")
MOST_LR = 100.0  # a step beyond this teaches nothing, and ends in NaN
MOST_STEPS = 1 << 17  # of a run of which nobody says how long it is to be: 40 epochs of 200,000 items
OPEN = (*NUMERIC, *SETTINGS, "backbone", "augment", "optimizer", "schedule", "recipe")
FIRST_STAGE = ("backbone", "backbone_settings", "augment")  # from items to features
NUMBERS: dict[str, tuple[Any, float, str]] = {  # what the numbers of a recipe may be: type, least, in words
    "epochs": (Integral, 1, "a whole number, 1 or more"),
    "batch_size": (Integral, 1, "a whole number, 1 or more"),
    "lr": (Real, sys.float_info.min, "a number above 0"),
    "weight_decay": (Real, 0, "a number, 0 or more"),
    "seed": (Integral, -math.inf, "a whole number"),
    "accumulate": (Integral, 1, "a whole number, 1 or more"),
}


@dataclass(frozen=True)
class Recipe:
    """All that decides the bits of a run, beside the data: nothing is left to be chosen later, and all settings are
    spelled out."""

    method: str
    head: str = "mlp"
    epochs: int = 10
    batch_size: int = 64
    lr: float = 1e-3
    weight_decay: float = 0.3
    optimizer: str = "adamw"
    seed: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    head_settings: dict[str, Any] = field(default_factory=dict)
    backbone: str | None = None
    backbone_settings: dict[str, Any] = field(default_factory=dict)
    augment: dict[str, float] | None = None  # how pictures are changed while they are learned from, where they can be
    schedule: str = "cosine"
    schedule_settings: dict[str, Any] = field(default_factory=dict)
    accumulate: int = 1  # batches that make one step of the optimisers
    average: float | None = None  # of the weights: how much those of a step count, as a share of those of the next
    precision: Precision = "auto"  # of networks, while they learn
    compile: bool = False  # networks, while they learn
    recipe: str | None = None  # the preset that some of this was taken from
    penalty: float | None = None  # of what is solved: weight_decay, where a caller asked for it; None: by folds
    hierarchy: dict[str, str] | None = None  # child -> parent: no label is scored above its parent

    def __post_init__(self) -> None:
        for name in ("method", "head", "optimizer", "schedule"):
            if not isinstance(getattr(self, name), str):
                raise SettingError(f"{name} = {getattr(self, name)!r} must be a name.")
        for name, (kind, least, words) in NUMBERS.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, kind) or not least <= value < math.inf:
                raise SettingError(f"{name} = {value!r} must be {words}.")
            # JSON knows plain numbers only, and a NumPy 3 would seed otherwise than a plain one.
            object.__setattr__(self, name, int(value) if kind is Integral else float(value))
        within(0, MOST_LR, lr=self.lr)
        self._spell_out()
        optimisers.check(self.optimizer)
        schedules.find(self.schedule).make(Clock(0), self.lr, **self.schedule_settings)  # refuses what cannot be
        if self.average is not None:
            if isinstance(self.average, bool) or not isinstance(self.average, Real) or not 0 <= self.average < 1:
                raise SettingError(f"average = {self.average!r} must be a number from 0 to below 1, such as 0.999.")
            object.__setattr__(self, "average", float(self.average))
        if self.penalty is not None:
            within(0, sys.float_info.max, penalty=self.penalty)
            object.__setattr__(self, "penalty", float(self.penalty))
        check_training_options(self.precision, self.compile)
        if self.hierarchy is not None:
            object.__setattr__(self, "hierarchy", dict(as_hierarchy(self.hierarchy).parents))

    def _spell_out(self) -> None:
        """All settings, the defaults included."""
        parts: dict[str, Info] = {"settings": methods.find(self.method), "head_settings": networks.find_head(self.head)}
        parts["schedule_settings"] = schedules.find(self.schedule)
        if self.backbone is not None:
            parts["backbone_settings"] = backbones.find(self.backbone)
        for name in SETTINGS:
            given = getattr(self, name)
            if not isinstance(given, dict):
                raise SettingError(f"{name} = {given!r} must be a dictionary, name -> value.")
            if name in parts:
                spelled = parts[name].complete(given)
                plain = {key: list(value) if isinstance(value, tuple) else value for key, value in spelled.items()}
                object.__setattr__(self, name, plain)  # as it comes back from JSON
            elif given:
                raise SettingError(f"{name} = {given!r}, but there is no backbone to set.")

    def shown(self, items: Items) -> Items:
        """These items as this recipe learns from them: at the size that its backbone wants, changed at random wherever
        there is a draw. Only pictures that lie in files can be; others are left as they are."""
        items = networks.resize_to_backbone(items, self.backbone, self.backbone_settings)
        if is_decoded(items):
            return items.augment(None if self.augment is None else Augmentation(**self.augment))
        if self.augment is not None:
            raise SettingError(f"augment = {self.augment!r}: only pictures that lie in files can be augmented.")
        return items

    def check_validation(self, there: bool) -> None:
        """Refuse to go by a validation part where there is none."""
        if not there and schedules.needs_validation(self.schedule):
            raise SettingError(
                f"schedule = {self.schedule!r} goes by the score of validation items, and there are none. Give some "
                "(`validation` of fit, --hold-out of the command line), or take another schedule."
            )

    def build(
        self, items: Items, labels: int, observed: Labels | None = None, names: tuple[str, ...] | None = None
    ) -> Method:
        """The method, untrained, for such items; `observed` is what it is to be trained on, None to predict only, and
        then the labels' names are of use to a hierarchy."""
        if self.compile and observed is not None:
            check_compiler()
        return methods.find(self.method).build(self.task(items, labels, observed, names), self.settings)

    def task(
        self, items: Items, labels: int, observed: Labels | None = None, names: tuple[str, ...] | None = None
    ) -> Task:
        """What the method builds itself from."""
        names = names if observed is None else observed.names
        return Task(
            items,
            labels,
            self.head,
            self.optimizer,
            self.lr,
            self.weight_decay,
            seed=self.seed,
            observed=observed,
            head_settings=self.head_settings,
            backbone=self.backbone,
            backbone_settings=self.backbone_settings,
            schedule=self.schedule,
            schedule_settings=self.schedule_settings,
            accumulate=self.accumulate,
            average=self.average,
            precision=self.precision,
            compile=self.compile,
            penalty=self.penalty,
            read_vectors=read_label_vectors,
            parent_index=() if self.hierarchy is None or names is None else Hierarchy(self.hierarchy).above(names),
        )


def complete(asked: Mapping[str, Any], items: Items, labels: Labels) -> tuple[Recipe, str]:
    """A recipe from what a caller asked for, and why it is that method. What may be left open is None."""
    asked = defaults.backbone(asked, items)
    asked = {name: value for name, value in asked.items() if value is not None or name not in OPEN}
    decay = asked.get("weight_decay")  # before a preset fills it in
    origin = items.origin
    if origin is not None and asked.get("backbone") in (None, origin.backbone):  # it has done its work
        asked = {name: value for name, value in asked.items() if name not in FIRST_STAGE}
    told = ""
    if "recipe" in asked:
        asked, told = presets.find(asked["recipe"]).filled(asked, items.kind, is_decoded(items))
    asked |= {
        part: networks.custom_modules.register(asked[part], part) for part in ("backbone", "head") if part in asked
    }
    wanted, optimizer, backbone = asked.get("head", "auto"), asked.get("optimizer", "adamw"), asked.get("backbone")
    method, head, reason = defaults.choose(asked["method"], wanted, items, labels, optimizer, backbone)
    if items.kind == "features" and backbone is not None:
        _check_backbone_of_features(method, backbone)
    if method == defaults.PORTFOLIO and asked.get("head_settings"):
        raise SettingError(f"head_settings = {asked['head_settings']!r} are for a head: name one, or leave them out.")
    if "augment" in asked or is_decoded(items):
        asked["augment"] = _augmentation(asked.get("augment", True))
    recipe = Recipe(**{"backbone": backbones.UNTRAINED[items.kind], **asked, "method": method, "head": head})
    pretrained = bool(recipe.backbone_settings.get("pretrained"))
    linear = head in LINEAR_HEADS and bool(labels.counts()[1].any())
    derived = default_recipe(items, labels.shape[1], recipe.optimizer, asked.get("batch_size"), pretrained, linear)
    kind = methods.find(method).kind_for(recipe.task(items, labels.shape[1]))
    if decay is not None and kind.own_penalty is not None:
        raise SettingError(
            f"weight_decay = {decay!r}: {method} takes no steps that it could weaken. Its penalty is a setting of its "
            f"own: settings={{{kind.own_penalty!r}: ...}}, --setting {kind.own_penalty}=..."
        )
    derived |= {} if kind.default_epochs is None else {"epochs": kind.default_epochs}
    derived |= {"penalty": decay} if kind.solves else {}
    recipe = replace(recipe, **{name: value for name, value in derived.items() if name not in asked})
    return recipe, ", ".join(filter(None, (told, reason)))


def _augmentation(asked: Any) -> dict[str, float]:
    """All settings spelled out, of what a caller gives: True, False, or some of them."""
    if isinstance(asked, bool):
        return asdict(Augmentation() if asked else NO_AUGMENTATION)
    try:
        return asdict(Augmentation(**asked))
    except TypeError:
        there = ", ".join(asdict(Augmentation()))
        raise SettingError(f"augment = {asked!r} must be True, False or a dictionary with some of: {there}.") from None


def _check_backbone_of_features(method: str, backbone: str) -> None:
    if not backbone.startswith(networks.custom_modules.PREFIX):
        raise SettingError(f"backbone = {backbone!r}: features need none. Leave it out.")
    if "pictures" not in methods.find(method).kind.kinds:
        raise SettingError(f"backbone = {backbone!r}: {method} learns from features as they are. Leave it out.")


def within_budget(recipe: Recipe, budget: float | str) -> Recipe:
    """The recipe of a portfolio that may take so long; others have no parts to leave out."""
    if recipe.method != defaults.PORTFOLIO:
        raise SettingError(
            f"budget = {budget!r}: only the portfolio (method='auto' on features) has one, and this is {recipe.method}."
        )
    if recipe.settings["budget"] not in (None, budget):
        raise SettingError(f"budget = {budget!r}, but settings have {recipe.settings['budget']!r}. Give one of them.")
    return replace(recipe, settings=recipe.settings | {"budget": budget})


def default_recipe(
    items: Items,
    labels: int,
    optimizer: str = "adamw",
    batch_size: int | None = None,
    pretrained: bool = False,
    linear: bool = False,
) -> dict[str, Any]:
    """What a recipe leaves open, for these items: enough steps for few items, more epochs for many labels (most of
    which are rare), fewer for very many items, and a rate that suits the optimiser.

    The numbers were chosen on validation parts of the features of VOC 2012, COCO, debtags, scene and yeast, and of the
    scenes; that for SGD on VOC 2012 alone. A pretrained backbone takes the rate of a head, of which it has its share.

    linear: a linear head that starts from known yes and no. Each step of an adaptive optimiser moves each weight by the
    rate, and so a logit by the rate times the number of features (of sparse ones most are 0): a tenth is enough.
    """
    # Only a head is learned, or not much more; of pictures otherwise a convolutional backbone from nothing.
    given = items.kind == "features" or pretrained
    batch_size = batch_size or 64
    steps = -(-len(items) // batch_size)
    lr, weight_decay = (1e-3, 0.3) if given else (6e-3, 0.1)
    if optimizer == "sgd":
        lr, weight_decay = (0.3, 1e-4) if given else (0.1, 1e-4)
    elif optimizer in ("adam", "rmsprop"):
        weight_decay = 1e-4  # a penalty here, of which 0.3 would be far too much
    if linear and items.kind == "features" and not isinstance(items, SparseRows) and optimizer != "sgd":
        lr = min(lr, 0.1 / items.shape[0])
    least = min(max(10, labels // 4), 40)
    epochs = min(max(least, -(-(320 if given else 500) // steps)), 100)
    epochs = max(1, min(epochs, MOST_STEPS // max(1, steps)))
    return {"epochs": epochs, "batch_size": batch_size, "lr": lr, "weight_decay": weight_decay}
