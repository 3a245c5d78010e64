"""The card of a model: a page in Markdown with a head in YAML, as Hugging Face has them. All that it says is what the
run has left behind."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import jinja2

import partly
from partly import methods, networks
from partly.engine import FittedModel, read_scores
from partly.networks import backbones
from partly.registry import Info
from partly.report.layout import escape_markdown

FEW = 10  # known yes or no: of fewer, little can be learned of a label, or said of it
SHOWN = 100  # labels in the table
NAMED = 10  # labels that are named in a sentence
PIPELINES = {"features": "tabular-classification", "pictures": "image-classification", "texts": "text-classification"}
INPUTS = {"features": "features", "pictures": "pictures", "texts": "tokens"}
HEADLINE = ("mAP", "CF1", "OF1", "exact_match", "P@1")
PARTS = {
    "test": "the test part of the data, which chose nothing",
    "held-out": "items held out of training",
    "training": "the training items themselves: the scores say little of new ones",
}


def written_card(fitted: FittedModel, onnx: str) -> str:
    """The page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("partly.export"),
        autoescape=False,  # Markdown, where `inline` takes away what could end a line or a cell
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"inline": escape_markdown, "code": code, "json": _json, "number": _number, "some": some}
    recipe, description = fitted.config, fitted.description
    scored = None if fitted.folder is None else read_scores(fitted.folder)
    labels = _labels(fitted, scored)
    return environment.get_template("card.md").render(
        name="model" if fitted.folder is None else fitted.folder.resolve().name,
        onnx=onnx,
        version=partly.__version__,
        recipe=recipe,
        parts=_parts(fitted),
        description=description,
        data=description["data"],
        kind=(kind := _made_of(fitted)["kind"]),
        pipeline=PIPELINES[kind],
        input=INPUTS[kind],
        backbone_settings=_made_of(fitted)["settings"],
        progress=fitted.progress,
        chosen_by=_validation(fitted),
        reason=fitted.method.notes.get("reason", ""),
        own_thresholds=fitted.has_thresholds,
        oracle=fitted.method.needs_truth,
        scored=scored,
        measured_on=None if scored is None else _measured_on(fitted, scored),
        warned=[] if scored is None else scored.get("missing", {}).get("words", []),
        headline=[key for key in HEADLINE if scored is not None and scored["scores"].get(key) is not None],
        labels=labels,
        shown=labels[:SHOWN],
        few_yes=[line["name"] for line in labels if line["yes"] is not None and line["yes"] < FEW],
        few_no=[line["name"] for line in labels if line["no"] is not None and line["no"] < FEW],
        few=FEW,
    )


def _measured_on(fitted: FittedModel, scored: dict[str, Any]) -> str:
    found = PARTS[scored["part"]]
    if scored.get("before_refit"):
        found += ", before the model was refitted on all items"
    if scored["part"] == "held-out" and scored.get("epochs", fitted.config.epochs) > 1:
        found += ", which also chose the best epoch: that flatters the scores a little"
    return found


def _parts(fitted: FittedModel) -> dict[str, Info]:
    """What the model is made of, each with its own words."""
    recipe, backbone = fitted.config, _made_of(fitted)["backbone"]
    found: dict[str, Info] = {"method": methods.find(recipe.method), "head": networks.find_head(recipe.head)}
    return found if backbone is None else found | {"backbone": backbones.find(backbone)}


def _made_of(fitted: FittedModel) -> dict[str, Any]:
    """What the model takes, and the backbone that takes it: in its network, or before its features were made."""
    recipe, data = fitted.config, fitted.description["data"]
    trained = {"kind": data["kind"], "backbone": recipe.backbone, "settings": recipe.backbone_settings}
    made_of: dict[str, Any] = data.get("made_of", trained)
    return made_of


def _labels(fitted: FittedModel, scored: dict[str, Any] | None) -> list[dict[str, Any]]:
    """A line for each label: what was known of it, from when on it is called yes, how well it is ranked."""
    count = len(fitted.names)
    known = fitted.description["data"].get("known_by_label", {})  # runs of before it was kept have none
    columns = {
        "name": fitted.names,
        "yes": known.get("yes", [None] * count),
        "no": known.get("no", [None] * count),
        "threshold": fitted.thresholds.tolist(),
        "AP": [None] * count if scored is None else scored["by_label"]["AP"],
    }
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _validation(fitted: FittedModel) -> dict[str, float]:
    """Scores of the epoch that was kept, on what chose it; none where there was one epoch, and so no choice."""
    best = fitted.progress.best_epoch if fitted.config.epochs > 1 else None
    line = next((line for line in fitted.progress.history if line["epoch"] == best), {})
    return {key: value for key, value in line.items() if key.startswith("validation_") and value is not None}


# ---------------------------------------------------------------- filters of the template


def code(text: str) -> str:
    """Words of anybody's making as code within a line: between more backticks than there are in them."""
    words = " ".join(text.split())
    fence = "`" * (1 + max(map(len, re.findall("`+", words)), default=0))
    return f"{fence} {words} {fence}" if "`" in words else f"{fence}{words}{fence}"


def some(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(escape_markdown(name) for name in names[:NAMED]) + rest


def _json(value: Any) -> str:
    """Plain values, as both JSON and YAML have them."""
    return json.dumps(value, ensure_ascii=False)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
