"""Commands about one model: parse, call, print. What they do is in a module each."""

# Long because `train` alone has forty options.

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from partly.cli.options import (
    Absent,
    Address,
    Data,
    IdColumn,
    Json,
    LabelColumns,
    LabelsFile,
    Missing,
    On,
    SafeCsv,
    Size,
    SkipBad,
    TagSeparator,
    Uncertain,
    files_in,
)
from partly.cli.printing import print_json, print_scores, say
from partly.errors import SettingError
from partly.registry import parse_settings

commands = typer.Typer()


@commands.command()
def predict(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    data: Annotated[str | None, typer.Argument(help="As for `partly train`; its test part, where it has one.")] = None,
    *,
    out: Annotated[Path, typer.Option(help="Probabilities: .csv or .parquet, a row per item, a column per label.")],
    known: Annotated[
        Path | None,
        typer.Option(help="Labels known of these items, for the heads c-tran and label-transformer."),
    ] = None,
    skip_bad: SkipBad = False,
    absent: Absent = None,
    uncertain: Uncertain = None,
    missing: Missing = None,
    label_columns: LabelColumns = None,
    id_column: IdColumn = None,
    tag_separator: TagSeparator = None,
    beliefs: Annotated[
        bool, typer.Option("--beliefs", help="Instead: what the method believes of the entries it was trained on.")
    ] = False,
    calls: Annotated[
        bool, typer.Option("--calls", help="Instead of probabilities: 1 (yes) or 0 (no), by the run's thresholds.")
    ] = False,
    top: Annotated[
        int | None, typer.Option(help="Instead: a row (item, label, probability) for each of an item's strongest.")
    ] = None,
    above: Annotated[
        str | None, typer.Option(help="The same of all that reach a probability, or the run's thresholds (`own`).")
    ] = None,
    safe_csv: SafeCsv = False,
    on: On = "here",
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Write the probability of every label for every item (of the test part, where DATA has one)."""
    from partly.cli import predict as job
    from partly.cli.predict_files import parquet_files, predict_files
    from partly.data import for_spreadsheets
    from partly.data.label_semantics import LabelSemantics
    from partly.executors import placed

    if (data is None) != beliefs:
        raise SettingError("Give DATA to be scored, or --beliefs for the items that the run was trained on.")
    if beliefs and calls:
        raise SettingError("Give --beliefs or --calls: beliefs are not called yes or no.")
    if (top is not None or above is not None) and (beliefs or calls):
        raise SettingError("--top and --above list probabilities: leave out --beliefs and --calls.")
    told: dict[str, Any] = {"calls": calls, "top": top, "above": above}
    files = parquet_files(data) if data is not None and known is None else []
    if files:
        scored = predict_files(run, files, out, placed(on, address), told)
        say(f"{scored} of {len(files)} files scored now, all are in {out}")
        print_json({"files": len(files), "scored": scored, "out": out}, as_json)
        return
    if on != "here":
        raise SettingError(f"--on {on}: what is scored there is a folder of Parquet files (DATA), without --known.")
    told |= {
        "known": known,
        "skip_bad": skip_bad,
        "meaning": LabelSemantics.from_options(absent, uncertain, missing, label_columns, id_column, tag_separator),
    }
    with for_spreadsheets(safe_csv):
        count = job.beliefs(run, out) if data is None else job.predict(run, data, out, **told)
    say(f"{count} items scored: {out}")
    print_json({"items": count, "out": out}, as_json)


@commands.command()
def evaluate(
    scores: Annotated[
        Path, typer.Argument(help="Probabilities, as `partly predict` writes them; or a run, to score DATA with.")
    ],
    labels: Annotated[str, typer.Argument(help="Labels (.csv, .parquet, .npz), or DATA whose test part is meant.")],
    observed: Annotated[
        Path | None, typer.Option("--labels", help="Labels of DATA, where a run scores items by themselves.")
    ] = None,
    threshold: Annotated[float, typer.Option(help="A probability of at least this is a yes.")] = 0.5,
    run: Annotated[
        Path | None, typer.Option(help="Instead: the thresholds that the method of this run has chosen, one a label.")
    ] = None,
    absent: Absent = None,
    uncertain: Uncertain = None,
    missing: Missing = None,
    label_columns: LabelColumns = None,
    id_column: IdColumn = None,
    tag_separator: TagSeparator = None,
    as_json: Json = False,
) -> None:
    """Score probabilities against labels; only known entries count."""
    from partly.cli.evaluate import evaluate as job
    from partly.data.label_semantics import LabelSemantics

    result, qualified = job(
        scores,
        labels,
        threshold,
        run,
        LabelSemantics.from_options(absent, uncertain, missing, label_columns, id_column, tag_separator),
        observed,
    )
    if not print_json(result | {"warnings": qualified}, as_json):
        print_scores({scores.name: result})
        for sentence in qualified:
            say(sentence)
        if result["OR"] == 0:
            cut = "its threshold" if run else f"{threshold:g}"
            say(
                f"No known yes has a score of {cut} or more: CF1 and OF1 are 0. "
                "A model that learned from yes alone gives low scores that rank: try a lower --threshold, or --run."
            )


@commands.command()
def features(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder for the features; the same command goes on where it stopped.")],
    backbone: Annotated[
        str | None, typer.Option(help="Backbone that makes features; default: a pretrained one.")
    ] = None,
    backbone_setting: Annotated[list[str] | None, typer.Option(help="A setting of the backbone. Repeatable.")] = None,
    size: Size = None,
    skip_bad: SkipBad = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    on: On = "here",
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Make features of pictures or texts once, for every other command to take as DATA."""
    from partly.cli.features import features as job

    settings = parse_settings(backbone_setting or [])
    count, width = job(
        data,
        out,
        backbone=backbone,
        settings=settings,
        size=size,
        skip_bad=skip_bad,
        device=device,
        on=on,
        address=address,
        say=say,
    )
    say(f"{count} items x {width} features: {out}")
    print_json({"items": count, "features": width, "out": out}, as_json)


@commands.command()
def export(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    onnx: Annotated[Path | None, typer.Option(help="An ONNX file: items in, logits and probabilities out.")] = None,
    model_card: Annotated[Path | None, typer.Option(help="A page (.md) about data, scores and limits.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there already.")] = False,
    as_json: Json = False,
) -> None:
    """Write a finished model for use elsewhere: as ONNX, with a model card, or both."""
    from partly.cli.export import export as job

    job(run, onnx, model_card, overwrite=overwrite, say=say)
    print_json({"onnx": onnx, "model_card": model_card}, as_json)


@commands.command()
def verify(
    run: Annotated[Path, typer.Argument(help="A run folder, or a model that was saved.")], as_json: Json = False
) -> None:
    """Read a run folder again, every file of it, and say whether it is whole: damage is found, tampering is not."""
    from partly.engine import verify as job

    found = list(job(run))
    if not print_json({"run": run, "read": found}, as_json):
        print("\n".join(found))
    say(f"{run}: whole")


@commands.command()
def explain(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    item: Annotated[str, typer.Argument(help="The id of an item that it was trained or is tested on.")],
    label: Annotated[str, typer.Argument(help="The name of a label.")],
    data: Annotated[str | None, typer.Option(help="Where its data is now, or other items.")] = None,
    labels: LabelsFile = None,
    absent: Absent = None,
    uncertain: Uncertain = None,
    missing: Missing = None,
    label_columns: LabelColumns = None,
    id_column: IdColumn = None,
    tag_separator: TagSeparator = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="Reasons of each kind, at most.")] = 5,
    as_json: Json = False,
) -> None:
    """Say why a run gives an entry its probability: features, known neighbours, the method's own reasons."""
    from partly.cli.explain import explain as job
    from partly.cli.explain import page
    from partly.data.label_semantics import LabelSemantics

    found = job(
        run,
        item,
        label,
        data,
        labels,
        LabelSemantics.from_options(absent, uncertain, missing, label_columns, id_column, tag_separator),
        count,
    )
    if not print_json(found, as_json):
        print(page(found))


@commands.command()
def methods(
    name: Annotated[
        str | None, typer.Argument(help="Show one method with its settings.", autocompletion=files_in("methods"))
    ] = None,
    as_json: Json = False,
    recipes: Annotated[bool, typer.Option("--recipes", help="Instead: how the papers trained, for --recipe.")] = False,
) -> None:
    """List the methods."""
    from partly import methods as there

    if recipes:
        _print_recipes(as_json)
        return
    every = there.methods() if name is None else {name: there.find(name).words()}
    if print_json(every, as_json):
        return
    for method, words in every.items():
        settings = ", ".join(f"{key}={value}" for key, value in words["settings"].items())
        print(f"{method}\n    {words['summary']}\n    {words['citation']}")
        print(f"    settings: {settings or 'none'}")


def _print_recipes(as_json: bool) -> None:
    from partly.engine import presets

    every = {name: vars(preset) for name, preset in presets.discover().items()}
    if print_json(every, as_json):
        return
    for name, said in every.items():
        print(f"{name}\n    {said['paper']}")
        for key, value in said["values"].items():
            print(f"    {key}: {value}")
        for key, words in said["beside"].items():
            print(f"    ({key.replace('_', ' ')}: {words})")
