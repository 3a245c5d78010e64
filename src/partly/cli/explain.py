"""`partly explain`: why a finished run gives an entry its probability."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from partly import atomic_io
from partly.cli.opening import hidden, open_data
from partly.cli.printing import one_line
from partly.data import Dataset, LabelSemantics
from partly.engine import load, reasons
from partly.errors import DataError, did_you_mean

SOURCE = "data.json"  # in a run folder: which data it was trained on, as the command named it


def remember(
    run: Path, data: str, labels: Path | None, meaning: LabelSemantics, scenario: str | None, seed: int
) -> None:
    """Keep in a run folder where its data lies, and what it means."""
    places = {"data": _whole(data), "labels": None if labels is None else _whole(str(labels))}
    atomic_io.write_checksummed(run / SOURCE, places | vars(meaning) | {"scenario": scenario, "seed": seed})


def _whole(name: str) -> str:
    return str(Path(name).resolve()) if Path(name).exists() else name


def explain(
    run: Path,
    item: str,
    label: str,
    data: str | None = None,
    labels: Path | None = None,
    meaning: LabelSemantics = LabelSemantics(),  # noqa: B008 (it is frozen)
    most: int = 5,
) -> dict[str, Any]:
    """Reasons for an entry, by the item's id and the label's name. data, labels: where the run folder does not say, or
    where it has moved."""
    fitted = load(run)
    opened = _opened(run, data, labels, meaning)
    parts = (opened, opened.test, opened.with_unlabelled)  # of the last, some have no row in the labels
    part = next((part for part in parts if part is not None and item in part.labels.ids), None)
    if part is None:
        raise DataError(f"{run}: there is no item {item!r} in its data.{did_you_mean(item, opened.labels.ids)}")
    if label not in fitted.names:
        raise DataError(f"{run}: there is no label {label!r}.{did_you_mean(label, fitted.names)}")
    position = part.labels.ids.index(item)
    return reasons(fitted, part.items, part.labels, position, fitted.names.index(label), most)


def _opened(run: Path, data: str | None, labels: Path | None, meaning: LabelSemantics) -> Dataset:
    if data is not None:
        return open_data(data, labels, meaning=meaning)
    if not (run / SOURCE).exists():
        raise DataError(f"{run}: does not say which data it was trained on. Give --data and --labels.")
    said = atomic_io.read_checksummed(run / SOURCE)
    if labels is None:
        meaning = LabelSemantics.from_options(**{one.name: said.get(one.name) for one in fields(LabelSemantics)})
        labels = None if said["labels"] is None else Path(said["labels"])
    opened = open_data(said["data"], labels, meaning=meaning)
    return hidden(opened, said["scenario"], said["seed"])


def page(found: dict[str, Any]) -> str:
    """The same as text."""
    lines = [
        f"{one_line(found['item'])}, {one_line(found['label'])}: {found['probability']:.1%}, called {found['called']} "
        f"(threshold {found['threshold']:.1%}); given: {found['given']}."
    ]
    if found.get("features"):
        lines.append("\nWithout it (at its mean) the logit would be lower by:")
        lines += [
            f"  {one['adds']:+8.3f}  {one_line(str(one['feature']))} = {one['value']:.4g}" for one in found["features"]
        ]
    if found.get("words"):
        lines.append("\nWithout the word the logit would be lower by:")
        lines += [f"  {one['adds']:+8.3f}  {one_line(one['word'])}" for one in found["words"]]
    if "neighbours" in found:
        lines.append("\nNearest items of which the label is known:" + ("" if found["neighbours"] else " none."))
        lines += [f"  {one['distance']:8.3f}  {one_line(one['item'])}: {one['given']}" for one in found["neighbours"]]
    if found.get("paths"):
        lines.append("\nSimilar items and related labels, by the method itself:")
        for one in found["paths"]:
            source = "known" if one["known"] else "predicted"
            what = f"{one_line(one['item'])}: {one_line(one['label'])}"
            lines.append(f"  {one['contribution']:+8.3f}  {what} {one['value']:+.2f} ({source})")
    return "\n".join(lines)
