"""`partly train`: train a classifier into a run folder and write its report.

Where items are held out, two models are trained: one without them, in a folder of its own within the run folder, which
is scored on them and chooses the number of epochs; then the final one on all items, with the same settings.

Everything that needs numpy or torch is imported inside the functions, so that `partly --help` answers at once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from partly.cli.app import command
from partly.cli.options import (
    Address,
    Data,
    DataOptions,
    Json,
    Scenario,
    data_option,
    model_option,
    option,
    output_option,
    training_option,
)
from partly.cli.printing import print_json, say, show
from partly.config import TrainConfig
from partly.errors import CheckpointError, SettingError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from partly.cli._reporting import Scores
    from partly.data import Dataset
    from partly.engine import FittedModel, Plan, PreparedData

    Index = npt.NDArray[np.int64]
    Say = Callable[[str], None]

HOLD_OUT = 0.2
HELD_OUT_FOLDER = "held-out"  # in a run folder: the model that was scored, where the final one was refitted


@command("Models", name="train")
def train_command(
    data: Data,
    run: Annotated[Path, output_option("Run folder; the same command resumes where it stopped.")],
    *,
    reading: DataOptions,
    scenario: Scenario = None,
    hold_out: Annotated[
        float | None,
        data_option("Share of items held out to score and to choose the epoch.  [default: 0.2 if needed]"),
    ] = None,
    config: TrainConfig,
    descriptions: Annotated[Path | None, model_option("TOML file that describes labels, for --teacher names.")] = None,
    freeze: Annotated[
        bool, model_option("Train the head only, on features that the backbone computes once.", "--freeze")
    ] = False,
    refit: Annotated[
        bool, training_option("Refit the final model on all items after scoring.", "--refit/--no-refit")
    ] = True,
    start_from: Annotated[
        Path | None, training_option("Finished run to start from; labels may have changed since.")
    ] = None,
    evidence: Annotated[
        bool, output_option("Show in the report which image regions support a label.", "--evidence")
    ] = False,
    on: Annotated[
        str | None,
        option("Where to run models and folds in workers: here or ray.  [default: in this process]", "--on"),
    ] = None,
    address: Address = None,
    verbose: Annotated[
        bool, output_option("Print details: memory, threads, how models are weighted.", "--verbose")
    ] = False,
    as_json: Json = False,
) -> None:
    """Train a classifier and write its run folder with a report."""
    if freeze:
        config = replace(config, backbone_settings=config.backbone_settings | {"freeze": "all"})
    if descriptions is not None:
        config = replace(config, teacher=_add_descriptions(config.teacher, descriptions))
    with _workers(on, address):
        scores = train(
            data,
            run,
            config,
            reading,
            scenario=scenario,
            hold_out=hold_out,
            evidence=evidence,
            start_from=start_from,
            refit=refit,
            say=say,
            detail=say if verbose else _ignore,
            show=_ignore if as_json else show,
        )
    say(f"Report: {run / 'report.html'}")
    print_json({"scores": scores, "report": run / "report.html"}, as_json)


def _workers(on: str | None, address: str | None) -> AbstractContextManager[None]:
    """Return the context in which models and folds run in workers, if they are requested."""
    from partly.executors import parallel_config

    return nullcontext() if on is None and address is None else parallel_config(on or "here", address)


def _add_descriptions(teacher: str | None, descriptions: Path) -> list[Any]:
    """Return the teachers with descriptions of labels for their names."""
    from partly.teachers import NAMES, LabelNames

    return [LabelNames(descriptions) if part == NAMES else part for part in (teacher or NAMES).split(",")]


def _ignore(text: str) -> None:
    """Print nothing."""


@dataclass(frozen=True)
class Output:
    """Functions that print: progress, details, and the result."""

    say: Say
    detail: Say
    show: Say


def train(
    data: str,
    run: Path,
    config: TrainConfig,
    reading: DataOptions = DataOptions(),  # noqa: B008 (frozen)
    *,
    scenario: str | None = None,
    hold_out: float | None = None,
    refit: bool = True,
    evidence: bool = False,
    start_from: Path | None = None,
    say: Say = print,
    detail: Say | None = None,
    show: Say | None = None,
) -> Scores:
    """Train one classifier into a run folder, and write its report there.

    hold_out: share of the items that is held out for scoring and to choose the best epoch. None holds out a fifth, but
    nothing where there is one epoch only and a test part to report on. Of several processes all train, and the first
    one reports. Other arguments: the options of the command.
    """
    import numpy as np

    from partly import engine
    from partly.cli import _train_summary as summary
    from partly.cli._datasets import apply_scenario, select_items, with_ids
    from partly.cli.explain import record_source
    from partly.data import split_holdout
    from partly.data.formats import ledger_db
    from partly.distributed.group import process_group
    from partly.engine import teaching

    out, labels = Output(say, detail or say, show or say), reading.labels
    with process_group().rank_zero_first():  # the first process scans every image, the others find its results
        opened = reading.open(data)
    listed = len(opened.labels)
    opened, unlisted = select_items(opened, config.method)
    opened = apply_scenario(opened, scenario, config.seed)
    source = reading.hierarchy or (labels if labels is not None and ledger_db.recognizes(labels) else None)
    if source is not None and opened.hierarchy is not None:
        config = replace(config, hierarchy=opened.hierarchy)
        out.detail(f"Labels that follow from {source} are added.")
    if evidence and opened.items.kind != "pictures":
        raise SettingError(f"--evidence needs images, but the items of {data} are {opened.items.kind}. Leave it out.")
    config = replace(config, run_dir=run)
    prepared = _prepare(config, opened, out)
    opened = replace(opened, items=prepared.items, labels=prepared.labels)
    config = teaching.name_rows(config, with_ids(opened.labels, np.arange(len(opened.labels))).ids)
    nothing_known = not opened.labels.known_per_item().any()
    if hold_out is None and nothing_known:
        hold_out = 0.0  # there is nothing to score
    if hold_out is None:
        hold_out = 0.0 if opened.test is not None and _has_one_epoch(config, prepared) else HOLD_OUT
    fit, hold = split_holdout(listed, hold_out, config.seed)
    fit = np.append(fit, np.arange(listed, len(opened.labels)))  # items without any label are never held out
    if len(hold):
        say(summary.holdout_line(len(hold), len(opened.labels), opened.test is not None))
    scored, final = _fit(config, prepared, fit, hold, refit, _start(start_from, labels), out)
    if not process_group().first:
        return {}
    record_source(run, data, labels, reading.meaning, scenario, config.seed)
    method, twice = scored.config.method, final is not scored
    say(summary.WITHOUT_LABELS if nothing_known else summary.model_line(final))
    for line in (*summary.start_lines(final), *summary.teacher_lines(final)):
        say(line)
    if silent := teaching.describe_silent_names(config, prepared.items, prepared.labels.names):
        say(f"{'Names':<{summary.INDENT}}{silent}")
    for warning in teaching.describe_circular_runs(final.teaching, prepared.items):
        say(f"Warning: {warning}")
    out.detail(f"{'Reason':<{summary.INDENT}}{final.reason}")
    for line in final.calibration.describe(final.names) if final.calibration is not None else ():
        out.detail(line)
    say(summary.time_line([scored, final] if twice else [scored]))
    if evidence and not engine.backbones_of(scored):
        say("The report shows no evidence: this backbone has no feature maps.")
        evidence = False
    return _write_report(f"{data}: {method}", run, opened, fit, hold, scored, final, evidence, unlisted, out)


def _prepare(config: TrainConfig, opened: Dataset, out: Output) -> PreparedData:
    """Compute features and implied labels of all items, once, and print what they are."""
    from partly import engine
    from partly.cli import _train_summary as summary
    from partly.distributed.group import process_group

    labels = engine.apply_hierarchy(config, opened.labels)
    out.say(summary.data_line(labels))
    with process_group().rank_zero_first():
        items = engine.precompute_features(opened.items, config, engine.device_of(config.device))
    origin = items.origin
    if origin is not None:
        out.say(engine.describe_backbone(origin))
    return engine.PreparedData(items, labels)


def _has_one_epoch(config: TrainConfig, data: PreparedData) -> bool:
    """Return whether there is no best epoch to choose."""
    from partly.engine import resolve_config
    from partly.items import prepare_for_training

    return resolve_config(config, prepare_for_training(data.items), data.labels)[0].epochs == 1


def _write_report(
    title: str,
    run: Path,
    opened: Dataset,
    fit: Index,
    hold: Index,
    scored: FittedModel,
    final: FittedModel,
    evidence: bool,
    note: str,
    out: Output,
) -> Scores:
    """Write the report and the scores, and print them: of the final model on a test part, else of the scored one."""
    import numpy as np

    from partly.cli import _train_summary as summary
    from partly.cli._reporting import build_report, list_scores, score_record
    from partly.engine import write_scores
    from partly.report import page
    from partly.report.summary import LOW_PROBABILITIES, is_threshold_arbitrary

    method, twice, on_test = scored.config.method, final is not scored, opened.test is not None
    learned = np.arange(len(opened.labels)) if on_test and twice else fit
    models = {method: final if on_test else scored}
    report = build_report(title, models, opened, learned, hold, evidence=evidence, examples_by={method: scored})
    refitted = summary.refit_sentence(len(opened.labels), on_test) if twice else ""
    report = replace(report, note=" ".join(filter(None, [note, refitted])))
    page.write(report, run / "report.html")
    write_scores(run, score_record(report, opened, hold) | _origin_of_scores(scored, twice and not on_test))
    for line in summary.score_lines(report, opened, hold, scored):
        out.show(line)
    if is_threshold_arbitrary(report.runs[0]):
        out.show(f"{method}: {LOW_PROBABILITIES}")
    if refitted:
        out.show(refitted)
    return list_scores(report)


def _start(start_from: Path | None, labels: Path | None) -> dict[str, Any]:
    """Return what training starts from; a ledger says which old labels a new one was made of."""
    from partly.data.formats import ledger_db
    from partly.engine import read_description

    if start_from is None:
        return {}
    sources = None
    if labels is not None and ledger_db.recognizes(labels):
        sources = ledger_db.label_sources(labels, read_description(start_from)["labels"])
    return {"start_from": start_from, "label_sources": sources}


def _fit(
    config: TrainConfig, data: PreparedData, fit: Index, hold: Index, refit: bool, start: dict[str, Any], out: Output
) -> tuple[FittedModel, FittedModel]:
    """Return the model that is scored and the final one: the same, where nothing is held out or refitted."""
    import numpy as np

    from partly import engine
    from partly.cli._datasets import with_ids
    from partly.engine import checkpoint
    from partly.optim import schedules

    held = engine.PreparedData(data.items[hold], data.labels[hold]) if len(hold) else None
    plan = engine.resolve(config, engine.PreparedData(data.items[fit], with_ids(data.labels, fit)), held)
    _print_plan(plan, out)
    if refit and held is not None and schedules.needs_validation(plan.config.schedule):
        out.say(
            f"The final model is not refitted on all items: the schedule {plan.config.schedule} needs held-out scores."
        )
        refit = False
    if not refit or held is None:
        fitted = engine.fit_calibrated(plan, **start)
        return fitted, fitted
    assert config.run_dir is not None
    run = Path(config.run_dir)
    held_out_folder = run / HELD_OUT_FOLDER
    if (run / checkpoint.RUN).exists() and not (held_out_folder / checkpoint.RUN).exists():
        raise CheckpointError(f"{run} holds a run without refit. Use another folder, or --no-refit to resume that run.")
    scored = engine.fit_calibrated(replace(plan, config=replace(plan.config, run_dir=held_out_folder)), **start)
    best_epoch = scored.progress.best_epoch
    if best_epoch == 0:  # no step was better than the solved start, so the final model is the solved start, too
        final_config = replace(plan.config, lr_factors=())
    else:
        final_config = replace(plan.config, epochs=best_epoch or plan.config.epochs)
    labels = with_ids(data.labels, np.arange(len(data.labels)))
    final = engine.resolve(final_config, engine.PreparedData(data.items, labels), reason=plan.reason)
    return scored, engine.fit_calibrated(final, **start)


def _print_plan(plan: Plan, out: Output) -> None:
    """Print the network, and in detail the memory and the threads."""
    import torch

    from partly.cli._train_summary import INDENT
    from partly.distributed import threads
    from partly.engine import available
    from partly.networks.backbones import weights_of

    config = plan.config
    if config.backbone is not None:
        weights = weights_of(config.backbone, config.backbone_settings)
        out.say(f"{'Network':<{INDENT}}backbone {config.backbone}, {weights}, trained together with the head")
    limit, source = available()
    needed = plan.memory.total() / 2**20
    out.detail(f"{'Memory':<{INDENT}}about {needed:.1f} MiB for entries, of {limit / 2**30:.1f} GiB ({source})")
    count, why = threads.choose(threads.size_of(plan.items, plan.labels))
    if count:
        threads.set_threads(count)
    out.detail(f"{'Threads':<{INDENT}}{torch.get_num_threads()} ({why})")


def _origin_of_scores(scored: FittedModel, before_refit: bool) -> dict[str, Any]:
    return {"before_refit": before_refit, "epochs": scored.config.epochs, "best_epoch": scored.progress.best_epoch}
