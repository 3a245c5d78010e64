"""`partly train`: train a classifier into a run folder and write its report.

Where items are held out, two models are trained: one without them, in a folder of its own within the run folder, which
is scored on them and chooses the number of epochs; then the final one on all items, with the same settings.

Everything that needs numpy or torch is imported inside the functions, so that `partly --help` answers at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partly.cli.app import command
from partly.cli.options import Data, DataOptions, Json, Method, Scenario, Seed
from partly.cli.printing import print_json, say, show
from partly.errors import CheckpointError, SettingError
from partly.registry import parse_settings

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from partly.cli.opening import Say
    from partly.cli.reporting import Scores
    from partly.data import Dataset, LabelSemantics
    from partly.engine import Asked, Fitted, Recipe
    from partly.engine.training import Validation
    from partly.items import Items
    from partly.labels import Labels

    Index = npt.NDArray[np.int64]

HOLD_OUT = 0.2
HELD_OUT_FOLDER = "held-out"  # in a run folder: the model that was scored, where the final one was refitted


@command("Models", name="train")
def train_command(
    data: Data,
    run: Annotated[Path, typer.Option(help="Run folder; the same command goes on where it stopped.")],
    *,
    reading: DataOptions,
    scenario: Scenario = None,
    method: Method = "auto",
    head: Annotated[str, typer.Option(help="linear, mlp, kernel, ...; auto takes what suits the method.")] = "auto",
    epochs: Annotated[int | None, typer.Option(help="Passes over the data.")] = None,
    batch_size: Annotated[int | None, typer.Option()] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.")] = None,
    weight_decay: Annotated[
        float | None, typer.Option(help="Weight decay; the penalty of a solved head, else found by cross-validation.")
    ] = None,
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
    dtype: Annotated[str, typer.Option(help="auto (bfloat16 on a GPU that can), float32 or bfloat16.")] = "auto",
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
    encode: Annotated[
        bool,
        typer.Option("--encode/--no-encode", help="Encode columns that are not numbers, and fill in missing values."),
    ] = True,
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
    refit: Annotated[
        bool,
        typer.Option(
            "--refit/--no-refit", help="Train the final model on all items, after scoring on the held-out ones."
        ),
    ] = True,
    start_from: Annotated[
        Path | None,
        typer.Option(help="A finished run to begin with, though labels were added, split, merged or renamed since."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    seed: Seed = 0,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Print details: memory, threads, how models are weighted.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Train a classifier and write its run folder with a report."""
    scores = train(
        data,
        run,
        labels=reading.labels,
        hierarchy=reading.hierarchy,
        meaning=reading.meaning,
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
            "dtype": dtype,
            "compile": compile,
            "settings": parse_settings(setting or []),
            "head_settings": parse_settings(head_setting or []),
            "backbone": backbone,
            "backbone_settings": parse_settings([*(backbone_setting or []), *(["freeze=all"] if freeze else [])]),
            "budget": budget,
            "augment": augment,
            "calibrate": calibrate,
            "thresholds": thresholds,
            "encode": encode,
            "device": device,
            "seed": seed,
        },
        skip_bad=reading.skip_bad,
        size=reading.size,
        evidence=evidence,
        start_from=start_from,
        refit=refit,
        say=say,
        detail=say if verbose else _ignore,
        show=_ignore if as_json else show,
    )
    say(f"Report: {run / 'report.html'}")
    print_json({"scores": scores, "report": run / "report.html"}, as_json)


def _ignore(text: str) -> None:
    """Print nothing."""


@dataclass(frozen=True)
class Telling:
    """Where words go: what is said on the way, details that only some want, and the result."""

    say: Say
    detail: Say
    show: Say


def train(
    data: str,
    run: Path,
    *,
    labels: Path | None = None,
    hierarchy: Path | None = None,
    scenario: str | None = None,
    hold_out: float | None = None,
    refit: bool = True,
    parameters: dict[str, Any],
    skip_bad: bool = False,
    meaning: LabelSemantics | None = None,
    size: int | None = None,
    evidence: bool = False,
    start_from: Path | None = None,
    say: Say = print,
    detail: Say | None = None,
    show: Say | None = None,
) -> Scores:
    """Train one classifier into a run folder; the report goes there too.

    hold_out: share of the items that is held out for scoring, and chooses the best epoch. None takes a fifth, but
    nothing where there is only one epoch to choose and a test part to report on. refit: train the final model on all
    items. start_from: a finished run to begin with. evidence: the report shows where in pictures it is. say, detail,
    show: take words on the way, details, and the result (None: as `say`). Of several processes all train, and the first
    one reports.
    """
    import numpy as np

    from partly.cli import train_summary
    from partly.cli.explain import remember
    from partly.cli.opening import hidden, of_use, open_data
    from partly.data import LabelSemantics, split_holdout
    from partly.data.formats import ledger_db
    from partly.distributed.group import process_group
    from partly.engine import Asked, backbones_of, words_of

    tell, meaning = Telling(say, detail or say, show or say), meaning or LabelSemantics()
    with process_group().rank_zero_first():  # the first looks at every picture, the others find what it has seen
        opened = open_data(data, labels, hierarchy, skip_bad, size, meaning)
    listed = len(opened.labels)
    opened, unlisted = of_use(opened, parameters.get("method", "auto"), say)
    opened = hidden(opened, scenario, parameters["seed"])
    said_by = hierarchy or (labels if labels is not None and ledger_db.recognizes(labels) else None)
    if said_by is not None and opened.hierarchy is not None:
        opened = replace(opened, labels=opened.hierarchy.deduce(opened.labels))
        tell.detail(f"Labels that follow from {said_by} are added.")
        parameters = parameters | {"hierarchy": opened.hierarchy}
    if evidence and opened.items.kind != "pictures":
        raise SettingError(f"--evidence shows where in pictures it is; the items of {data} are {opened.items.kind}.")
    say(train_summary.data_line(opened.labels))
    asked = Asked.of(parameters | {"run_dir": run})
    with process_group().rank_zero_first():
        opened = replace(opened, items=asked.first_stage(opened.items))
    origin = opened.items.origin
    if origin is not None:
        say(words_of(origin))
    if hold_out is None:
        settled = opened.test is not None and asked.complete(opened.items, opened.labels)[2].epochs == 1
        hold_out = 0.0 if settled else HOLD_OUT
    fit, hold = split_holdout(listed, hold_out, parameters["seed"])
    fit = np.append(fit, np.arange(listed, len(opened.labels)))  # of which nothing is known, so they choose nothing
    if len(hold):
        say(train_summary.held_out_line(len(hold), len(opened.labels), opened.test is not None))
    scored, final = _trained(asked, opened, fit, hold, refit, _start(start_from, labels), tell)
    if not process_group().first:
        return {}
    remember(run, data, labels, meaning, scenario, parameters["seed"])
    method, twice = scored.recipe.method, final is not scored
    say(train_summary.model_line(final))
    tell.detail(f"{method}: {final.reason}")
    for words in final.calibration.describe(final.names) if final.calibration is not None else ():
        tell.detail(words)
    say(train_summary.time_line([scored, final] if twice else [scored]))
    if evidence and not backbones_of(scored):
        say("No evidence is shown: the backbone makes no map of where in a picture something is.")
        evidence = False
    title = f"{data}: {method}"
    return _reported(title, run, opened, fit, hold, scored, final, evidence, unlisted, tell)


def _reported(
    title: str,
    run: Path,
    opened: Dataset,
    fit: Index,
    hold: Index,
    scored: Fitted,
    final: Fitted,
    evidence: bool,
    note: str,
    tell: Telling,
) -> Scores:
    """Write the report and the scores, and print them: of the final model on a test part, else of the scored one."""
    import numpy as np

    from partly.cli import train_summary
    from partly.cli.reporting import measured, report, scores
    from partly.engine import write_measured
    from partly.report import page
    from partly.report.summary import LOW_PROBABILITIES, trained_on_yes_only

    method, twice, on_test = scored.recipe.method, final is not scored, opened.test is not None
    learned = np.arange(len(opened.labels)) if on_test and twice else fit
    models = {method: final if on_test else scored}
    made = report(title, models, opened, learned, hold, evidence=evidence, examples_by={method: scored})
    refitted = train_summary.refit_sentence(len(opened.labels), on_test) if twice else ""
    made = replace(made, note=" ".join(filter(None, [note, refitted])))
    page.write(made, run / "report.html")
    write_measured(run, measured(made, opened, hold) | _origin_of_scores(scored, twice and not on_test))
    for line in train_summary.score_lines(made, opened, hold, scored):
        tell.show(line)
    if trained_on_yes_only(made.runs[0]):
        tell.show(f"{method}: {LOW_PROBABILITIES}")
    if refitted:
        tell.show(refitted)
    return scores(made)


def _start(start_from: Path | None, labels: Path | None) -> dict[str, Any]:
    """Return what training starts from, with the labels of a ledger whose weights new ones take over."""
    from partly.data.formats import ledger_db
    from partly.engine import read_description

    if start_from is None:
        return {}
    heirs = None
    if labels is not None and ledger_db.recognizes(labels):
        heirs = ledger_db.label_sources(labels, read_description(start_from)["labels"])
    return {"start_from": start_from, "heirs": heirs}


def _trained(
    asked: Asked, opened: Dataset, fit: Index, hold: Index, refit: bool, start: dict[str, Any], tell: Telling
) -> tuple[Fitted, Fitted]:
    """Return the model that is scored and the final one; they are the same where nothing is held out or refitted."""
    import numpy as np

    from partly.cli.opening import some
    from partly.engine import checkpoint
    from partly.engine.training import Validation
    from partly.items import prepare_like
    from partly.networks.backbones import weights_of
    from partly.optim import schedules

    items, known, recipe, reason = asked.complete(opened.items[fit], some(opened.labels, fit))
    validation = None
    if len(hold):
        validation = Validation(prepare_like(opened.items[hold], items), asked.deduced(opened.labels[hold]))
    if recipe.backbone is not None:
        weights = weights_of(recipe.backbone, recipe.backbone_settings)
        tell.say(f"Network: backbone {recipe.backbone}, {weights}, trained together with the head.")
    tell.detail(_needed(recipe, items, known, validation))
    tell.detail(_threads(opened, fit))
    if refit and validation is not None and schedules.needs_validation(recipe.schedule):
        tell.say(f"Not refitted on all items: the schedule {recipe.schedule} goes by held-out scores.")
        refit = False
    if not refit or validation is None:
        one = asked.train(items, known, recipe, reason, validation, **start)
        return one, one
    assert asked.run_dir is not None
    run = Path(asked.run_dir)
    apart = run / HELD_OUT_FOLDER
    if (run / checkpoint.RUN).exists() and not (apart / checkpoint.RUN).exists():
        raise CheckpointError(
            f"{run} holds another run, which was not refitted on all items. Use another folder, or --no-refit to go on."
        )
    scored = replace(asked, run_dir=apart).train(items, known, recipe, reason, validation, **start)
    every = np.arange(len(opened.labels))
    items, known, _, _ = asked.complete(opened.items, some(opened.labels, every))
    chosen = replace(recipe, epochs=scored.progress.best_epoch or recipe.epochs)
    return scored, asked.train(items, known, chosen, reason, **start)


def _origin_of_scores(scored: Fitted, before_refit: bool) -> dict[str, Any]:
    return {"before_refit": before_refit, "epochs": scored.recipe.epochs, "best_epoch": scored.progress.best_epoch}


def _threads(opened: Dataset, fit: npt.NDArray[np.int64]) -> str:
    """Choose how many there are, where nobody has, and say so."""
    import torch

    from partly.distributed import threads

    count, why = threads.choose(threads.size_of(opened.items[fit], opened.labels))
    if count:
        threads.set_threads(count)
    return f"Computes with {torch.get_num_threads()} thread(s): {why}."


def _needed(recipe: Recipe, items: Items, labels: Labels, validation: Validation | None) -> str:
    """What training will take for entries, said before it starts."""
    from partly.engine import available, entry_memory

    needed, (there, who) = entry_memory(recipe, items, labels, validation), available()
    return f"Needs about {needed / 2**20:.1f} MiB for entries; there are {there / 2**30:.1f} GiB ({who})."
