"""`partly explain`: show why a finished run gives an entry its probability."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partly.cli.app import command
from partly.cli.dataclass_options import Omit
from partly.cli.options import DataOptions, Json, RunFolder, data_option, option
from partly.cli.printing import one_line, print_json
from partly.errors import DataError, did_you_mean

if TYPE_CHECKING:
    from partly.data import Dataset, LabelSemantics

SOURCE = "data.json"  # in a run folder: which data it was trained on, as the command named it


@command("Models")
def explain(
    run: RunFolder,
    item: Annotated[str, typer.Argument(help="Id of an item of the training or test data.")],
    label: Annotated[str, typer.Argument(help="Name of a label.")],
    data: Annotated[str | None, data_option("Data, if they have moved, or other items.")] = None,
    *,
    reading: Annotated[DataOptions, Omit("hierarchy", "size", "skip_bad")],
    count: Annotated[int, option("Maximum number of reasons of each kind.", "-n", "--count", min=1)] = 5,
    as_json: Json = False,
) -> dict[str, Any]:
    """Explain the probability of one entry.

    Lists the features or words that matter most, the nearest items with a known label, and the method's own reasons.
    """
    from partly.engine import load, reasons

    fitted = load(run)
    opened = _open_source(run, data, reading)
    datasets = (opened, opened.test, opened.with_unlabelled)  # the last one includes items without a row in the labels
    part = next((part for part in datasets if part is not None and item in part.labels.ids), None)
    if part is None:
        raise DataError(f"{run}: there is no item {item!r} in its data.{did_you_mean(item, opened.labels.ids)}")
    if label not in fitted.names:
        raise DataError(f"{run}: there is no label {label!r}.{did_you_mean(label, fitted.names)}")
    position = part.labels.ids.index(item)
    result = reasons(fitted, part.items, part.labels, position, fitted.names.index(label), count)
    if not print_json(result, as_json):
        print(page(result))
    return result


def record_source(
    run: Path, data: str, labels: Path | None, meaning: LabelSemantics, scenario: str | None, seed: int
) -> None:
    """Record in a run folder which data it was trained on and how they were read."""
    from partly import atomic_io

    source = {"data": _absolute(data), "labels": None if labels is None else _absolute(str(labels))}
    atomic_io.write_checksummed(run / SOURCE, source | vars(meaning) | {"scenario": scenario, "seed": seed})


def _absolute(name: str) -> str:
    return str(Path(name).resolve()) if Path(name).exists() else name


def _open_source(run: Path, data: str | None, reading: DataOptions) -> Dataset:
    """Open the data of the options, or those that the run folder names."""
    from partly import atomic_io
    from partly.cli._datasets import apply_scenario

    if data is not None:
        return reading.open(data)
    if not (run / SOURCE).exists():
        raise DataError(f"{run}: does not record which data it was trained on. Give --data and --labels.")
    source = atomic_io.read_checksummed(run / SOURCE)
    if reading.labels is None:
        recorded = {name: source.get(name) or default for name, default in DataOptions().label_format().items()}
        reading = DataOptions(labels=None if source["labels"] is None else Path(source["labels"]), **recorded)
    return apply_scenario(reading.open(source["data"]), source["scenario"], source["seed"])


def page(reasons: dict[str, Any]) -> str:
    """Return the reasons as text."""
    lines = [
        f"{one_line(reasons['item'])}, {one_line(reasons['label'])}: {reasons['probability']:.1%}, predicted "
        f"{reasons['called']} (threshold {reasons['threshold']:.1%}); observed: {reasons['given']}."
    ]
    if reasons.get("features"):
        lines.append("\nContribution of features to the logit (compared with their mean):")
        lines += [
            f"  {one['adds']:+8.3f}  {one_line(str(one['feature']))}: {one['value']:.4g}" for one in reasons["features"]
        ]
    if reasons.get("words"):
        lines.append("\nContribution of words to the logit (compared with the text without them):")
        lines += [f"  {one['adds']:+8.3f}  {one_line(one['word'])}" for one in reasons["words"]]
    if "neighbours" in reasons:
        nearest = reasons["neighbours"]
        lines.append("\nNearest items with a known label (distance):" + ("" if nearest else " none."))
        lines += [f"  {one['distance']:8.3f}  {one_line(one['item'])}: {one['given']}" for one in nearest]
    if reasons.get("paths"):
        lines.append("\nContribution of similar items and related labels, according to the method:")
        for one in reasons["paths"]:
            source = "known" if one["known"] else "predicted"
            what = f"{one_line(one['item'])}: {one_line(one['label'])}"
            lines.append(f"  {one['contribution']:+8.3f}  {what} {one['value']:+.2f} ({source})")
    return "\n".join(lines)
