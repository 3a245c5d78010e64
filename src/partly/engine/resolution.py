"""Resolve a configuration: fill in what the caller left open, and refuse what cannot be trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from partly import defaults, methods, networks
from partly.clock import Clock
from partly.config import UNSTORED, ResolvedConfig, Start, TrainConfig
from partly.data.label_vectors import read_label_vectors
from partly.engine import presets
from partly.errors import DataError, SettingError
from partly.images.augmentation import NO_AUGMENTATION, Augmentation
from partly.items import Items, SparseRows, encode_like, is_decoded, prepare_like, reorder_features, resize_like
from partly.labels import Hierarchy, Labels
from partly.labels.weights import Weights
from partly.method import Method, Task
from partly.method.prior import Prior
from partly.networks import backbones
from partly.networks.kernel import AXES
from partly.networks.linear import LINEAR_HEADS
from partly.networks.network import check_compiler, check_training_options
from partly.optim import optimizers, schedules
from partly.registry import Info

MAX_DEFAULT_STEPS = 1 << 17  # of a run whose length is left open: 40 epochs of 200,000 items
MIN_EPOCHS_FROM_SOLVED, MAX_EPOCHS_FROM_SOLVED, STEPS_FROM_SOLVED = 4, 8, 120
LR_FACTORS = (0.04, 0.2, 1.0)  # the search begins in the middle
NONZERO_FEATURES = 200  # of sparse items, about
KNOWN_LABEL_HEADS = ("c-tran", "label-transformer")  # transformers over labels, which take many steps
WARMUPS = ("warmup", "ramp")  # settings: the share of the epochs in which a method turns from a baseline into itself
FEATURE_OPTIONS = ("backbone", "backbone_settings", "augment")  # they say how features are computed


def make_config(method: str, head: str = "mlp", **values: Any) -> ResolvedConfig:
    """Return a configuration without any choice by the data: what is not given has the defaults of `ResolvedConfig`."""
    return spell_out(ResolvedConfig(method, head, **values))


def spell_out(config: ResolvedConfig) -> ResolvedConfig:
    """Return the configuration with all settings, defaults included; refuse unknown names and settings."""
    parts: dict[str, Info] = {"settings": methods.find(config.method), "head_settings": networks.find_head(config.head)}
    parts["schedule_settings"] = schedules.find(config.schedule)
    if config.backbone is not None:
        parts["backbone_settings"] = backbones.find(config.backbone)
    elif config.backbone_settings:
        raise SettingError(f"backbone_settings = {config.backbone_settings!r}, but there is no backbone to set.")
    spelled: dict[str, Any] = {name: _as_read(part.complete(getattr(config, name))) for name, part in parts.items()}
    config = replace(config, **spelled)
    optimizers.check(config.optimizer)
    schedules.find(config.schedule).make(Clock(0), config.lr, **config.schedule_settings)  # refuses bad values
    check_training_options(config.dtype, config.compile)
    return config


def _as_read(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in the form that JSON gives back."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}


def resolve_config(config: TrainConfig, items: Items, labels: Labels) -> tuple[ResolvedConfig, str]:
    """Fill in what a configuration leaves open for these items and labels; return it and the reason for the method."""
    if isinstance(config, ResolvedConfig):
        return spell_out(config), ""
    explicit = with_default_backbone(config, items)
    decay = explicit.get("weight_decay")  # before a preset fills it in
    origin = items.origin
    if origin is not None and explicit.get("backbone") in (None, origin.backbone):  # the features are computed already
        explicit = {name: value for name, value in explicit.items() if name not in FEATURE_OPTIONS}
    preset_note = ""
    if "recipe" in explicit:
        explicit, preset_note = presets.find(explicit["recipe"]).fill(explicit, items.kind, is_decoded(items))
    explicit |= {
        part: networks.custom_modules.register(explicit[part], part)
        for part in ("backbone", "head")
        if part in explicit
    }
    backbone = explicit.get("backbone")
    method, head, reason = defaults.choose(
        explicit["method"],
        explicit["head"],
        items,
        labels,
        explicit.get("optimizer", "adamw"),
        backbone,
        _choose_start(explicit),
    )
    if items.kind == "features" and backbone is not None:
        _check_backbone_of_features(method, backbone)
    if method == defaults.PORTFOLIO and explicit.get("head_settings"):
        raise SettingError(
            f"head_settings = {explicit['head_settings']!r} are for a head: name one, or leave them out."
        )
    if "augment" in explicit or is_decoded(items):
        explicit["augment"] = _augmentation(explicit.get("augment", True))
    unstored = {name: getattr(config, name) for name in UNSTORED}
    options = {"backbone": backbones.UNTRAINED[items.kind], **explicit, **unstored, "method": method, "head": head}
    resolved = _with_start(spell_out(ResolvedConfig(**options)), explicit, items, labels.shape[1])
    pretrained = bool(resolved.backbone_settings.get("pretrained"))
    linear = head in LINEAR_HEADS and bool(labels.counts()[1].any())
    derived = default_numbers(
        items, labels.shape[1], resolved.optimizer, explicit.get("batch_size"), pretrained, linear
    )
    kind = methods.find(method).kind_for(make_task(resolved, items, labels.shape[1]))
    if decay is not None and kind.own_penalty is not None:
        raise SettingError(
            f"weight_decay = {decay!r}: {method} takes no steps that it could weaken. Its penalty is a setting of its "
            f"own: settings={{{kind.own_penalty!r}: ...}}, --setting {kind.own_penalty}=..."
        )
    derived |= {} if kind.default_epochs is None else {"epochs": kind.default_epochs}
    derived |= {"penalty": decay} if kind.solves else {}
    if resolved.start == "solved" and head not in KNOWN_LABEL_HEADS:
        derived |= numbers_from_solved(resolved, items, derived["batch_size"])
    if "lr" in explicit:
        derived.pop("lr_factors", None)
    resolved = replace(resolved, **{name: value for name, value in derived.items() if name not in explicit})
    return _limit_time(resolved), ", ".join(filter(None, (preset_note, reason)))


def _choose_start(given: Mapping[str, Any]) -> Start:
    """Return the requested start: the solved baseline, unless the caller or a preset of a paper says else."""
    start: Start = given.get("start", "random" if "recipe" in given else "solved")
    return start


def _with_start(config: ResolvedConfig, given: Mapping[str, Any], items: Items, labels: int) -> ResolvedConfig:
    """Start at the solved baseline where that is possible; leave out warm-up phases, which only reach a baseline."""
    solved, method = replace(config, start="solved"), methods.find(config.method)
    if _choose_start(given) == "random":
        return replace(config, start="random")
    task = make_task(solved, items, labels)
    if not method.starts_solved(task):
        if "start" in given and not method.is_solved(task):
            raise SettingError(
                f"start = 'solved': {config.method} with the head {config.head} cannot start at a solved baseline for "
                "these items. It needs features that fit into memory, and a method that trains a network by steps. "
                "Leave it out."
            )
        return replace(config, start="random")
    skipped = {name: 0.0 for name in WARMUPS if name in config.settings and name not in given.get("settings", {})}
    return replace(solved, settings=config.settings | skipped)


def with_default_backbone(config: TrainConfig, items: Items) -> dict[str, Any]:
    """Return what is given, with a backbone for these items where none is named: `backbones.default`.

    It is frozen, so that its features are computed once. With augmentation its last stages are trained; a preset
    decides for itself.
    """
    explicit = config.explicit_values()
    backbone = backbones.default(items) if "backbone" not in explicit else None
    if backbone is None:
        return explicit
    freeze = (
        {"freeze": defaults.FINE_TUNED_STAGES if explicit.get("augment") else "all"} if "recipe" not in explicit else {}
    )
    return {**explicit, "backbone": backbone, "backbone_settings": freeze | config.backbone_settings}


def make_task(
    config: ResolvedConfig,
    items: Items,
    labels: int,
    observed: Labels | None = None,
    names: tuple[str, ...] | None = None,
    weights: Weights | None = None,
) -> Task:
    """Return what a method builds itself from. observed: the training labels, None to predict only; a hierarchy then
    needs the names of the labels. weights: of the training entries."""
    names = names if observed is None else observed.names
    parents = () if config.hierarchy is None or names is None else Hierarchy(config.hierarchy).parent_positions(names)
    return Task(items, labels, config, observed, read_label_vectors, parent_index=parents, weights=weights)


def build_method(
    config: ResolvedConfig,
    items: Items,
    labels: int,
    observed: Labels | None = None,
    names: tuple[str, ...] | None = None,
    weights: Weights | None = None,
    prior: Prior | None = None,
) -> Method:
    """Return the untrained method for such items; arguments as in `make_task`. prior: what teachers say of them."""
    if config.compile and observed is not None:
        check_compiler()
    task = replace(make_task(config, items, labels, observed, names, weights), prior=prior)
    return methods.find(config.method).build(task, config.settings)


def prepare_images(config: ResolvedConfig, items: Items) -> Items:
    """Return images in files at the size of the backbone, with the augmentation of the configuration; return other
    items unchanged."""
    items = networks.resize_to_backbone(items, config.backbone, config.backbone_settings)
    if is_decoded(items):
        return items.augment(None if config.augment is None else Augmentation(**config.augment))
    if config.augment is not None:
        raise SettingError(f"augment = {config.augment!r}: only images in files can be augmented.")
    return items


def match_training(items: Items, trained: Items) -> Items:
    """Return items resized, encoded, ordered and conditioned like training items; refuse other kinds and columns."""
    matched = reorder_features(encode_like(resize_like(items, trained), trained), trained.names)
    if (matched.kind, matched.shape) != (trained.kind, trained.shape):
        hint = " If they are file names, read the files: partly.read(FOLDER).items." if matched.kind == "texts" else ""
        raise DataError(
            f"The model was trained on {trained.kind} of {list(trained.shape)}; these are {matched.kind} of "
            f"{list(matched.shape)}.{hint}"
        )
    return prepare_like(matched, trained)


def _augmentation(value: Any) -> dict[str, float]:
    """Spell out all settings of what a caller gives: True, False, or some settings."""
    if isinstance(value, bool):
        return asdict(Augmentation() if value else NO_AUGMENTATION)
    try:
        return asdict(Augmentation(**value))
    except TypeError:
        names = ", ".join(asdict(Augmentation()))
        raise SettingError(f"augment = {value!r} must be True, False or a dictionary with some of: {names}.") from None


def _check_backbone_of_features(method: str, backbone: str) -> None:
    if not backbone.startswith(networks.custom_modules.PREFIX):
        raise SettingError(f"backbone = {backbone!r}: features need none. Leave it out.")
    if "pictures" not in methods.find(method).kind.kinds:
        raise SettingError(f"backbone = {backbone!r}: {method} learns from features as they are. Leave it out.")


def _limit_time(config: ResolvedConfig) -> ResolvedConfig:
    """Make the time budget a setting of the portfolio; no other method has parts to leave out."""
    budget = config.budget
    if budget is None:
        return config
    if config.method != defaults.PORTFOLIO:
        raise SettingError(
            f"budget = {budget!r}: only the portfolio (method='auto' on features) has one, and this is {config.method}."
        )
    if config.settings["budget"] not in (None, budget):
        raise SettingError(f"budget = {budget!r}, but settings have {config.settings['budget']!r}. Give one of them.")
    return spell_out(replace(config, settings=config.settings | {"budget": budget}))


def numbers_from_solved(config: ResolvedConfig, items: Items, batch_size: int) -> dict[str, Any]:
    """Return epochs, the largest learning rate and its factors for training from a solved start.

    Each step of an adaptive optimizer moves each weight by the rate, and so a logit of a linear read-out by about the
    rate times the number of features. The constants come from trials on parts of scene, yeast and debtags.
    """
    steps = -(-len(items) // batch_size)
    epochs = min(MAX_EPOCHS_FROM_SOLVED, max(MIN_EPOCHS_FROM_SOLVED, -(-STEPS_FROM_SOLVED // steps)))
    epochs = epochs if items.kind == "features" else MIN_EPOCHS_FROM_SOLVED  # those of a backbone take long
    lr = 1e-3
    if config.head in (*LINEAR_HEADS, "kernel"):
        width = networks.feature_width(items, config.backbone, config.backbone_settings)
        inputs = min(width, NONZERO_FEATURES) if isinstance(items, SparseRows) else width
        lr = 1 / (inputs if config.head in LINEAR_HEADS else 2 * inputs + 3 * min(AXES, len(items)))
    return {"epochs": epochs, "lr": lr, "lr_factors": LR_FACTORS}


def default_numbers(
    items: Items,
    labels: int,
    optimizer: str = "adamw",
    batch_size: int | None = None,
    pretrained: bool = False,
    linear: bool = False,
) -> dict[str, Any]:
    """Return epochs, batch size, learning rate and weight decay for these items.

    Few items get enough steps, many labels (most of them rare) more epochs, and very many items fewer. The numbers
    were chosen on validation parts of VOC 2012, COCO, debtags, scene, yeast and the scenes; those for SGD on VOC 2012.
    A pretrained backbone takes the rate of a head, multiplied by its own factor.

    linear: a linear head that starts from known yes and no. Each step of an adaptive optimizer moves each weight by
    the rate, and so a logit by the rate times the number of features (of sparse ones most are 0): a tenth is enough.
    """
    # Only a head is trained, or little more; otherwise a convolutional backbone from random weights.
    shallow = items.kind == "features" or pretrained
    batch_size = batch_size or 64
    steps = -(-len(items) // batch_size)
    lr, weight_decay = (1e-3, 0.3) if shallow else (6e-3, 0.1)
    if optimizer == "sgd":
        lr, weight_decay = (0.3, 1e-4) if shallow else (0.1, 1e-4)
    elif optimizer in ("adam", "rmsprop"):
        weight_decay = 1e-4  # here a penalty, for which 0.3 would be far too much
    if linear and items.kind == "features" and not isinstance(items, SparseRows) and optimizer != "sgd":
        lr = min(lr, 0.1 / items.shape[0])
    min_epochs = min(max(10, labels // 4), 40)
    epochs = min(max(min_epochs, -(-(320 if shallow else 500) // steps)), 100)
    epochs = max(1, min(epochs, MAX_DEFAULT_STEPS // max(1, steps)))
    return {"epochs": epochs, "batch_size": batch_size, "lr": lr, "weight_decay": weight_decay}
