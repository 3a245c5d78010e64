"""Model card: Markdown with a YAML header in the format of Hugging Face, from the contents of a run."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import jinja2

import partly
from partly import methods, networks
from partly.engine import FittedModel, read_scores
from partly.errors import list_names
from partly.networks import backbones
from partly.registry import Info
from partly.report.layout import escape_markdown

MIN_KNOWN = 10  # yes or no of a label, below which the card warns
MAX_TABLE_LABELS = 100
MAX_NAMED_LABELS = 10  # in a sentence
PIPELINES = {"features": "tabular-classification", "pictures": "image-classification", "texts": "text-classification"}
INPUTS = {"features": "features", "pictures": "pictures", "texts": "tokens"}
HEADLINE = ("mAP", "CF1", "OF1", "exact_match", "P@1")
PARTS = {
    "test": "the test set, which was not used for any choice",
    "held-out": "items held out of training",
    "training": "the training items: expect lower scores on new items",
}


def render_card(fitted: FittedModel, onnx: str) -> str:
    """Return the card as Markdown."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("partly.export"),
        autoescape=False,  # Markdown, which `inline` escapes
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "inline": escape_markdown,
        "code": format_code,
        "json": _format_json,
        "number": _format_number,
        "some": name_some,
    }
    recipe, description = fitted.config, fitted.description
    scored = None if fitted.folder is None else read_scores(fitted.folder)
    labels = _tabulate_labels(fitted, scored)
    return environment.get_template("card.md").render(
        name="model" if fitted.folder is None else fitted.folder.resolve().name,
        onnx=onnx,
        version=partly.__version__,
        recipe=recipe,
        parts=_find_parts(fitted),
        description=description,
        data=description["data"],
        kind=(kind := _find_input(fitted)["kind"]),
        pipeline=PIPELINES[kind],
        input=INPUTS[kind],
        backbone_settings=_find_input(fitted)["settings"],
        progress=fitted.progress,
        chosen_by=_find_validation_scores(fitted),
        reason=fitted.method.notes.get("reason", ""),
        own_thresholds=fitted.has_thresholds,
        teacher=None if fitted.teaching is None else fitted.teaching.combination.weights(),
        oracle=fitted.method.needs_truth,
        scored=scored,
        measured_on=None if scored is None else _describe_evaluation(fitted, scored),
        warned=[] if scored is None else scored.get("missing", {}).get("words", []),
        headline=[key for key in HEADLINE if scored is not None and scored["scores"].get(key) is not None],
        labels=labels,
        shown=labels[:MAX_TABLE_LABELS],
        few_yes=[row["name"] for row in labels if row["yes"] is not None and row["yes"] < MIN_KNOWN],
        few_no=[row["name"] for row in labels if row["no"] is not None and row["no"] < MIN_KNOWN],
        few=MIN_KNOWN,
    )


def _describe_evaluation(fitted: FittedModel, scored: dict[str, Any]) -> str:
    description = PARTS[scored["part"]]
    if scored.get("before_refit"):
        description += ", before the model was refitted on all items"
    if scored["part"] == "held-out" and scored.get("epochs", fitted.config.epochs) > 1:
        description += ", which were also used to choose the best epoch, so the scores are slightly optimistic"
    return description


def _find_parts(fitted: FittedModel) -> dict[str, Info]:
    """Return the descriptions of method, head and backbone."""
    recipe, backbone = fitted.config, _find_input(fitted)["backbone"]
    parts: dict[str, Info] = {"method": methods.find(recipe.method), "head": networks.find_head(recipe.head)}
    return parts if backbone is None else parts | {"backbone": backbones.find(backbone)}


def _find_input(fitted: FittedModel) -> dict[str, Any]:
    """Return the kind of items the model takes, and the backbone, inside its network or before it."""
    recipe, data = fitted.config, fitted.description["data"]
    trained = {"kind": data["kind"], "backbone": recipe.backbone, "settings": recipe.backbone_settings}
    made_of: dict[str, Any] = data.get("made_of", trained)
    return made_of


def _tabulate_labels(fitted: FittedModel, scored: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return a row for each label: known entries, threshold and AP."""
    count = len(fitted.names)
    known = fitted.description["data"].get("known_by_label", {})  # missing in older runs
    columns = {
        "name": fitted.names,
        "yes": known.get("yes", [None] * count),
        "no": known.get("no", [None] * count),
        "threshold": fitted.thresholds.tolist(),
        "AP": [None] * count if scored is None else scored["by_label"]["AP"],
    }
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _find_validation_scores(fitted: FittedModel) -> dict[str, float]:
    """Return the validation scores of the best epoch, or of the solved start; none where there was only one epoch."""
    best = fitted.progress.best_epoch if fitted.config.epochs > 1 else None
    start = {"epoch": 0, **fitted.method.notes.get("start", {})}
    scores = next((epoch for epoch in (start, *fitted.progress.history) if epoch["epoch"] == best), {})
    return {key: value for key, value in scores.items() if key.startswith("validation_") and value is not None}


# ---------------------------------------------------------------- filters of the template


def format_code(text: str) -> str:
    """Return any text as inline code, between more backticks than it contains."""
    line = " ".join(text.split())
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    return f"{fence} {line} {fence}" if "`" in line else f"{fence}{line}{fence}"


def name_some(names: Sequence[str]) -> str:
    return list_names([escape_markdown(name) for name in names], MAX_NAMED_LABELS)


def _format_json(value: Any) -> str:
    """Return plain values as JSON, which is also YAML."""
    return json.dumps(value, ensure_ascii=False)


def _format_number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
