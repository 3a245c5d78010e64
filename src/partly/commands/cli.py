"""The command line: parse, call, print. No logic; torch is imported inside the commands."""

# Long because it is a list of commands with their options, a function each.

from __future__ import annotations

import os
import signal
import sys
from contextlib import AbstractContextManager, redirect_stderr
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import partly
from partly.catalogue import parse_settings
from partly.commands.complete_options import complete
from partly.commands.options import (
    Absent,
    Count,
    Data,
    HierarchyFile,
    Json,
    LabelsFile,
    Method,
    Query,
    QuerySetting,
    SafeCsv,
    Scenario,
    Seed,
    Size,
    SkipBad,
    Uncertain,
    files_in,
)
from partly.commands.printing import print_json, print_scores, say
from partly.errors import PartlyError, SettingError, Stopped
from partly.processes.launched import launched


def _hush(context: typer.Context, quiet: bool) -> None:
    """What is said on the way, and progress bars, go to stderr, as nothing else does but errors at the end."""
    if quiet:
        nowhere = context.with_resource(open(os.devnull, "w"))  # noqa: SIM115, the context closes it
        context.with_resource(redirect_stderr(nowhere))


_quiet = typer.Typer(add_completion=False)  # a command of which nothing is wanted but its option


@_quiet.command()
def _(
    quiet: Annotated[
        bool,
        typer.Option(
            "-q", "--quiet", expose_value=False, callback=_hush, help="Say nothing on the way; errors remain."
        ),
    ] = False,
) -> None: ...


(QUIET,) = typer.main.get_command(_quiet).params


class Commands(TyperGroup):
    """Commands that all can be quiet, whoever adds them."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is not None and QUIET not in command.params:
            command.params.append(QUIET)
        return command


app = typer.Typer(
    cls=Commands,
    help="Learn multi-label classifiers from partly known labels (yes / no / unknown).",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"partly {partly.__version__}")
        raise typer.Exit


@app.callback()
def _all(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Only for what comes before the command."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs and the report.")] = Path("demo"),
    items: Annotated[int, typer.Option(help="Digits to learn from.")] = 1200,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train on handwritten digits with one yes known of each, and write a report."""
    from partly.commands.demo import demo as job

    scores = job(out, items=items, seed=seed, say=say)
    print_scores(scores, out / "report.html", as_json)


@app.command()
def train(
    data: Data,
    run: Annotated[Path, typer.Option(help="Run folder; the same command goes on where it stopped.")],
    labels: LabelsFile = None,
    hierarchy: HierarchyFile = None,
    absent: Absent = None,
    uncertain: Uncertain = None,
    scenario: Scenario = None,
    method: Method = "auto",
    head: Annotated[str, typer.Option(help="linear, mlp, kernel, ...; auto takes what suits the method.")] = "auto",
    epochs: Annotated[int | None, typer.Option(help="Passes over the data.")] = None,
    batch_size: Annotated[int | None, typer.Option()] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    weight_decay: Annotated[float | None, typer.Option()] = None,
    optimizer: Annotated[str | None, typer.Option(help="adamw (if not given), sgd, adam or rmsprop.")] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="Train as a paper did, where nothing else is asked for: `partly methods --recipes`."),
    ] = None,
    schedule: Annotated[
        str | None, typer.Option(help="Of the learning rate: cosine (if not given), step, plateau or constant.")
    ] = None,
    schedule_setting: Annotated[list[str] | None, typer.Option(help="A setting of the schedule. Repeatable.")] = None,
    accumulate: Annotated[int, typer.Option(help="Batches that make one step of the optimiser.")] = 1,
    average: Annotated[
        float | None, typer.Option(help="Keep an exponential average of the weights, and leave it: 0.999, say.")
    ] = None,
    precision: Annotated[str, typer.Option(help="auto (bfloat16 on a GPU that can), float32 or bfloat16.")] = "auto",
    compile: Annotated[bool, typer.Option("--compile", help="Compile networks; needs a C++ compiler.")] = False,
    setting: Annotated[list[str] | None, typer.Option(help="A setting of the method: name=value. Repeatable.")] = None,
    head_setting: Annotated[
        list[str] | None, typer.Option(help="A setting of the head: hidden=256. Repeatable.")
    ] = None,
    backbone: Annotated[str | None, typer.Option(help="What makes features of pictures (docs/backbones.md).")] = None,
    backbone_setting: Annotated[list[str] | None, typer.Option(help="A setting of the backbone. Repeatable.")] = None,
    freeze: Annotated[
        bool, typer.Option("--freeze", help="Train the head alone, on features that the backbone makes once.")
    ] = False,
    budget: Annotated[
        str | None, typer.Option(help="How long auto may take: minutes, or 20x for twenty plain fits.")
    ] = None,
    augment: Annotated[
        bool | None,
        typer.Option("--augment/--no-augment", help="Change pictures at random: crop, flip, light."),
    ] = None,
    size: Size = None,
    skip_bad: SkipBad = False,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="In the report, show where in pictures the evidence for a label is.")
    ] = False,
    hold_out: Annotated[
        float | None,
        typer.Option(help="Share of the items that chooses the best epoch, 0 for none; 0.2 where there is a choice."),
    ] = None,
    calibrate: Annotated[
        str | None, typer.Option(help="Calibrate probabilities on out-of-fold scores: platt or isotonic.")
    ] = None,
    thresholds: Annotated[
        str | None,
        typer.Option(help="Call yes for the best f1, precision:0.9, recall:0.9, or the expected share of yes."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train a classifier and write its run folder with a report."""
    from partly.commands.train import train as job
    from partly.data import Meaning

    scores = job(
        data,
        run,
        labels=labels,
        hierarchy=hierarchy,
        meaning=Meaning(absent, uncertain),
        scenario=scenario,
        hold_out=hold_out,
        parameters={
            "method": method,
            "head": head,
            "epochs": epochs,
            "batch_size": batch_size,
            "lr": lr,
            "weight_decay": weight_decay,
            "optimizer": optimizer,
            "recipe": recipe,
            "schedule": schedule,
            "schedule_settings": parse_settings(schedule_setting or []),
            "accumulate": accumulate,
            "average": average,
            "precision": precision,
            "compile": compile,
            "settings": parse_settings(setting or []),
            "head_settings": parse_settings(head_setting or []),
            "backbone": backbone,
            "backbone_settings": parse_settings([*(backbone_setting or []), *(["freeze=all"] if freeze else [])]),
            "budget": budget,
            "augment": augment,
            "calibrate": calibrate,
            "thresholds": thresholds,
            "device": device,
            "seed": seed,
        },
        skip_bad=skip_bad,
        size=size,
        evidence=evidence,
        say=say,
    )
    print_scores(scores, run / "report.html", as_json)


@app.command()
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
    beliefs: Annotated[
        bool, typer.Option("--beliefs", help="Instead: what the method believes of the entries it was trained on.")
    ] = False,
    calls: Annotated[
        bool, typer.Option("--calls", help="Instead of probabilities: 1 (yes) or 0 (no), by the run's thresholds.")
    ] = False,
    safe_csv: SafeCsv = False,
    as_json: Json = False,
) -> None:
    """Write the probability of every label for every item (of the test part, where DATA has one)."""
    from partly.commands import predict as job
    from partly.data import Meaning

    if (data is None) != beliefs:
        raise SettingError("Give DATA to be scored, or --beliefs for the items that the run was trained on.")
    if beliefs and calls:
        raise SettingError("Give --beliefs or --calls: beliefs are not called yes or no.")
    meaning = Meaning(absent, uncertain)
    with _for_spreadsheets(safe_csv):
        count = job.beliefs(run, out) if data is None else job.predict(run, data, out, known, skip_bad, meaning, calls)
    say(f"{count} items scored: {out}")
    print_json({"items": count, "out": out}, as_json)


@app.command()
def export(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    onnx: Annotated[Path | None, typer.Option(help="An ONNX file: items in, logits and probabilities out.")] = None,
    model_card: Annotated[Path | None, typer.Option(help="A page (.md) about data, scores and limits.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there already.")] = False,
    as_json: Json = False,
) -> None:
    """Write a finished model for use elsewhere: as ONNX, with a model card, or both."""
    from partly.commands.export import export as job

    job(run, onnx, model_card, overwrite=overwrite, say=say)
    print_json({"onnx": onnx, "model_card": model_card}, as_json)


@app.command()
def verify(
    run: Annotated[Path, typer.Argument(help="A run folder, or a model that was saved.")], as_json: Json = False
) -> None:
    """Read a run folder again, every file of it, and say whether it is whole: damage is found, tampering is not."""
    from partly.run import verify as job

    found = list(job(run))
    if not print_json({"run": run, "read": found}, as_json):
        print("\n".join(found))
    say(f"{run}: whole")


@app.command()
def evaluate(
    scores: Annotated[Path, typer.Argument(help="Probabilities, as `partly predict` writes them.")],
    labels: Annotated[str, typer.Argument(help="Labels (.csv, .parquet, .npz), or DATA whose test part is meant.")],
    threshold: Annotated[float, typer.Option(help="A probability of at least this is a yes.")] = 0.5,
    run: Annotated[
        Path | None, typer.Option(help="Instead: the thresholds that the method of this run has chosen, one a label.")
    ] = None,
    absent: Absent = None,
    uncertain: Uncertain = None,
    as_json: Json = False,
) -> None:
    """Score probabilities against labels; only known entries count."""
    from partly.commands.evaluate import evaluate as job
    from partly.data import Meaning

    result = job(scores, labels, threshold, run, Meaning(absent, uncertain))
    if not print_json(result, as_json):
        print_scores({scores.name: result})
        if result["OR"] == 0:
            cut = "its threshold" if run else f"{threshold:g}"
            say(
                f"No known yes has a score of {cut} or more: CF1 and OF1 are 0. "
                "A model that learned from yes alone gives low scores that rank: try a lower --threshold, or --run."
            )


@app.command()
def simulate(
    data: Annotated[
        str, typer.Argument(help="Truth: scenes, digits, an .npz with a train part, or a table of labels.")
    ],
    scenario: Annotated[
        str, typer.Option(help="uniform:0.1, single-positive, positives:0.25, propensity, dense:0.1, ...")
    ],
    out: Annotated[Path, typer.Option(help="The partly known labels: .csv, .parquet or .npz.")],
    safe_csv: SafeCsv = False,
    seed: Seed = 0,
    as_json: Json = False,
    absent: Absent = None,
    uncertain: Uncertain = None,
) -> None:
    """Hide labels as a scenario says, and write what is left."""
    from partly.commands.simulate import simulate as job
    from partly.data import Meaning

    with _for_spreadsheets(safe_csv):
        observed = job(data, scenario, out, seed, Meaning(absent, uncertain))
    say(repr(observed))
    print_json(observed.summary() | {"out": out}, as_json)


@app.command()
def compare(
    data: Annotated[
        str, typer.Argument(help="scenes, digits, .npz files, a table of features, or an experiment (.toml).")
    ],
    methods: Annotated[str, typer.Option(help="a,b,... (see `partly methods`); settings as a[name=value].")] = "all",
    scenarios: Annotated[
        str, typer.Option(help="uniform:0.1,single-positive,...; full takes the labels as they are.")
    ] = "full",
    heads: Annotated[str, typer.Option(help="linear,mlp,...; auto takes what suits each method.")] = "auto",
    seeds: Annotated[int, typer.Option(help="Runs of each cell.")] = 5,
    validation: Annotated[str, typer.Option(help="complete, partial or both (complete,partial).")] = "complete",
    tune: Annotated[int, typer.Option(help="Trials for each method's settings; 0 for the defaults alone.")] = 0,
    labels: LabelsFile = None,
    absent: Absent = None,
    uncertain: Uncertain = None,
    size: Size = None,
    skip_bad: SkipBad = False,
    out: Annotated[Path, typer.Option(help="Folder for the result lines and the report.")] = Path("results"),
    workers: Annotated[int | None, typer.Option(help="Processes; all cores if not given.")] = None,
    as_json: Json = False,
) -> None:
    """Run methods side by side under one protocol; what is there already is not run again."""
    from partly.commands.compare import compare as job

    page = job(
        data,
        out,
        asked={
            "methods": _names(methods),
            "scenarios": _names(scenarios),
            "heads": _names(heads),
            "seeds": seeds,
            "validation": _names(validation),
            "tune": tune,
            "labels": None if labels is None else str(labels),
            "skip_bad": skip_bad,
            "size": size,
            "absent": absent,
            "uncertain": uncertain,
        },
        workers=workers,
        say=say if as_json else print,
    )
    say(f"Report: {page}")
    print_json({"report": page, "results": page.with_suffix(".jsonl")}, as_json)


@app.command()
def study(
    data: Annotated[
        str, typer.Argument(help="scenes, digits, an .npz, a table of features, or an experiment (.toml).")
    ],
    shares: Annotated[str, typer.Option(help="Shares of right labels.")] = "0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1",
    scenarios: Annotated[str, typer.Option(help="Ways to annotate.")] = "uniform,dense,noisy,noisy-plus",
    head: Annotated[str, typer.Option(help="linear, mlp, gnn, ...")] = "mlp",
    seeds: Annotated[int, typer.Option(help="Runs of each cell.")] = 3,
    labels: LabelsFile = None,
    absent: Absent = None,
    uncertain: Uncertain = None,
    size: Size = None,
    skip_bad: SkipBad = False,
    out: Annotated[Path, typer.Option(help="Folder for the result lines, the page and the picture.")] = Path("results"),
    workers: Annotated[int | None, typer.Option(help="Processes; all cores if not given.")] = None,
    as_json: Json = False,
) -> None:
    """Find out what is the best way to spend a budget of labels; what is there already is not run again."""
    from partly.commands.study import study as job

    asked = {"shares": _shares(shares), "scenarios": _names(scenarios), "head": head, "seeds": seeds, "labels": labels}
    asked |= {"size": size, "skip_bad": skip_bad, "absent": absent, "uncertain": uncertain}
    page = job(data, out, asked=asked, workers=workers, say=say if as_json else print)
    say(f"Report: {page}")
    print_json({"report": page, "results": page.with_suffix(".jsonl")}, as_json)


@app.command()
def claims(
    results: Annotated[
        Path | None, typer.Argument(help="Folder of result lines (*.jsonl); ./results if not given.", metavar="RESULTS")
    ] = None,
    paper: Annotated[str, typer.Option(help="Of one paper alone: a part of its authors, title or year.")] = "",
    as_json: Json = False,
) -> None:
    """Say of every claim of the papers whether result lines bear it out: holds, does not hold, or undecided."""
    from partly.commands.claims import claims as job

    print(job(results, paper, as_json=as_json, say=say))


@app.command()
def query(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    data: Data,
    out: Annotated[Path, typer.Option(help="The questions: .csv or .parquet, with a column for the answers.")],
    labels: LabelsFile = None,
    absent: Absent = None,
    uncertain: Uncertain = None,
    hierarchy: HierarchyFile = None,
    query: Query = "look-ahead",
    count: Count = 100,
    query_setting: QuerySetting = None,
    skip_bad: SkipBad = False,
    safe_csv: SafeCsv = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Write the unknown entries that are most worth asking people about."""
    from partly.commands.query import query as job
    from partly.data import Meaning

    with _for_spreadsheets(safe_csv):
        found = job(
            run,
            data,
            out,
            labels=labels,
            meaning=Meaning(absent, uncertain),
            hierarchy=hierarchy,
            query=query,
            count=count,
            settings=parse_settings(query_setting or []),
            seed=seed,
            skip_bad=skip_bad,
        )
    say(f"{found} questions: {out}")
    print_json({"questions": found, "out": out}, as_json)


@app.command()
def refine(
    data: Data,
    run: Annotated[Path, typer.Option(help="Run folder; the same command goes on where it stopped.")],
    labels: LabelsFile = None,
    absent: Absent = None,
    uncertain: Uncertain = None,
    hierarchy: HierarchyFile = None,
    scenario: Annotated[
        str | None, typer.Option(help="Simulate: hide labels (coarse-only:0.01, ...), and let the truth answer.")
    ] = None,
    answers: Annotated[Path | None, typer.Option(help="The questions of this round, with answers.")] = None,
    query: Query = "look-ahead",
    query_setting: QuerySetting = None,
    count: Count = 100,
    rounds: Annotated[int, typer.Option(help="Of a simulation.")] = 10,
    shadow: Annotated[bool, typer.Option("--shadow", help="Simulate random questions too, to compare with.")] = False,
    restart: Annotated[int, typer.Option(help="The model starts anew every so many rounds; 0: never.")] = 10,
    round_epochs: Annotated[int, typer.Option(help="Passes over the data in a round that trains on.")] = 1,
    method: Method = "auto",
    head: Annotated[str, typer.Option(help="linear, mlp, kernel, ...; auto takes what suits the method.")] = "auto",
    epochs: Annotated[int | None, typer.Option(help="Passes over the data of a new model.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    setting: Annotated[list[str] | None, typer.Option(help="A setting of the method: name=value. Repeatable.")] = None,
    head_setting: Annotated[
        list[str] | None, typer.Option(help="A setting of the head: hidden=256. Repeatable.")
    ] = None,
    skip_bad: SkipBad = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Train, ask about unknown entries, take the answers, train on: simulated, or with people, a call per round."""
    from partly.active import Plan
    from partly.commands.refine import refine as job
    from partly.data import Meaning

    how = {"method": method, "head": head, "epochs": epochs, "lr": lr, "settings": parse_settings(setting or [])}
    how |= {"head_settings": parse_settings(head_setting or [])}
    found = job(
        data,
        run,
        labels=labels,
        meaning=Meaning(absent, uncertain),
        scenario=scenario,
        hierarchy=hierarchy,
        answers=answers,
        rounds=rounds,
        shadow=shadow,
        plan=Plan(query, count, round_epochs, restart, settings=parse_settings(query_setting or [])),
        parameters=how | {"device": device, "seed": seed},
        skip_bad=skip_bad,
        say=say,
    )
    print_json(found, as_json)


app.command()(complete)


@app.command()
def features(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder for the features; the same command goes on where it stopped.")],
    backbone: Annotated[str | None, typer.Option(help="What makes features; None takes what such items have.")] = None,
    backbone_setting: Annotated[list[str] | None, typer.Option(help="A setting of the backbone. Repeatable.")] = None,
    size: Size = None,
    skip_bad: SkipBad = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    as_json: Json = False,
) -> None:
    """Make features of pictures or texts once, for every other command to take as DATA."""
    from partly.commands.features import features as job

    settings = parse_settings(backbone_setting or [])
    count, width = job(data, out, backbone=backbone, settings=settings, size=size, skip_bad=skip_bad, device=device)
    say(f"{count} items x {width} features: {out}")
    print_json({"items": count, "features": width, "out": out}, as_json)


@app.command()
def explain(
    run: Annotated[Path, typer.Argument(help="A finished run folder.")],
    item: Annotated[str, typer.Argument(help="The id of an item that it was trained or is tested on.")],
    label: Annotated[str, typer.Argument(help="The name of a label.")],
    data: Annotated[str | None, typer.Option(help="Where its data is now, or other items.")] = None,
    labels: LabelsFile = None,
    absent: Absent = None,
    uncertain: Uncertain = None,
    count: Annotated[int, typer.Option("-n", "--count", min=1, help="Reasons of each kind, at most.")] = 5,
    as_json: Json = False,
) -> None:
    """Say why a run gives an entry its probability: features, known neighbours, the method's own reasons."""
    from partly.commands.explain import explain as job
    from partly.commands.explain import page
    from partly.data import Meaning

    found = job(run, item, label, data, labels, Meaning(absent, uncertain), count)
    if not print_json(found, as_json):
        print(page(found))


@app.command()
def doctor(
    labels: Annotated[str, typer.Argument(help="A file of labels, or a data set by itself.")],
    data: Annotated[str | None, typer.Argument(help="The items of these labels, as for `partly train`.")] = None,
    method: Annotated[str, typer.Option(help="What makes out-of-fold scores; see `partly methods`.")] = "auto",
    absent: Absent = None,
    uncertain: Uncertain = None,
    skip_bad: SkipBad = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Say what is known of labels, how it is missing, what is wrong with it, and what to do about it."""
    from partly.commands.doctor import doctor as job
    from partly.commands.doctor import page
    from partly.data import Meaning

    meaning = Meaning(absent, uncertain)
    found = job(labels, data, method=method, skip_bad=skip_bad, meaning=meaning, seed=seed)
    if not print_json(found, as_json):
        print(page(found))


@app.command()
def convert(
    source: Annotated[str, typer.Argument(help="Labels, or items with labels, in any format: docs/formats.md.")],
    target: Annotated[Path, typer.Argument(help="The file or folder to write.")],
    form: Annotated[str | None, typer.Option(help="The format to write, where the ending says too little.")] = None,
    labels: LabelsFile = None,
    absent: Absent = None,
    uncertain: Uncertain = None,
    part: Annotated[str | None, typer.Option(help="Of data with a test part: train or test.")] = None,
    scores: Annotated[
        Path | None, typer.Option(help="Probabilities (`partly predict`), as predictions in Label Studio's tasks.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write labels, or items with labels, in another format."""
    from partly.commands.convert import convert as job
    from partly.data import Meaning

    job(source, target, form, labels=labels, meaning=Meaning(absent, uncertain), part=part, scores=scores, say=say)
    print_json({"out": target}, as_json)


@app.command()
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
    from partly.run import presets

    every = {name: vars(preset) for name, preset in presets.discover().items()}
    if print_json(every, as_json):
        return
    for name, said in every.items():
        print(f"{name}\n    {said['paper']}")
        for key, value in said["values"].items():
            print(f"    {key}: {value}")
        for key, words in said["beside"].items():
            print(f"    ({key.replace('_', ' ')}: {words})")


def main() -> None:
    """The entry point: errors of ours are one message, not a traceback; a signal ends it with the code of its own."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        if launched().count > 1 and sys.argv[1:2] != ["train"]:
            raise SettingError("Only `partly train` works with several processes. Start other commands by themselves.")
        app()
    except PartlyError as error:
        print(f"partly: {error}", file=sys.stderr)
        sys.exit(2)
    except Stopped as stopped:
        print(f"partly: {stopped} Start the same command again to go on.", file=sys.stderr)
        sys.exit(stopped.code)
    except SystemExit as left:
        if type(left.__context__).__name__ == "Abort":  # what typer makes of Ctrl-C
            sys.exit(128 + signal.SIGINT)
        raise


def _for_spreadsheets(wanted: bool) -> AbstractContextManager[None]:
    from partly.data import for_spreadsheets

    return for_spreadsheets(wanted)


def _names(text: str) -> list[str]:
    """'a,b[c=1,d=2]' -> ['a', 'b[c=1,d=2]']: commas inside brackets belong to a method's settings."""
    names, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and not depth:
            names.append("")
        else:
            names[-1] += letter
    return [name.strip() for name in names if name.strip()]


def _shares(text: str) -> list[float]:
    try:
        return [float(share) for share in _names(text)]
    except ValueError:
        raise SettingError(f"--shares {text!r} should be numbers from 0 to 1 with commas: 0.1,0.5.") from None
