"""`partly evaluate`: score probabilities of any program, or of runs, against labels.

Only known entries count, so only their probabilities are kept: a file is read once, in blocks of rows and in any order;
a run predicts block after block. Memory grows with the known entries, not with items x labels. Estimates for all
entries (`--mechanism`) read the scores a second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partly.cli.app import command
from partly.cli.options import DataOptions, Json, LabelFormatOptions, data_option, option, output_option
from partly.cli.printing import print_json, print_table, say, show
from partly.errors import SettingError, within

if TYPE_CHECKING:
    from partly.cli._score_sources import Source
    from partly.labels import Labels
    from partly.metrics import Slice, WholeMatrix
    from partly.report.evaluation import Evaluation, ModelScores

LOW_SCORES = (
    "No known yes has a score of {} or more: CF1 and OF1 are 0. A model trained on positives only gives low "
    "scores that still rank: try a lower --threshold, or --run."
)

NO_INTERVALS = "Corrected scores have no intervals. Estimates for all entries have: add --mechanism auto."


@command("Models")
def evaluate(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="SCORES... [LABELS]",
            help="Score files or runs; several are compared. Without --labels the last one is the label file. A run "
            "predicts the items of a data set.",
        ),
    ],
    labels: Annotated[Path | None, data_option("Labels to score against.", "--labels")] = None,
    threshold: Annotated[float, option("Minimum probability of a predicted yes.")] = 0.5,
    run: Annotated[Path | None, option("Run whose thresholds, one per label, replace --threshold.")] = None,
    confidence: Annotated[float, option("Confidence level of the intervals.")] = 0.95,
    metric: Annotated[
        list[str] | None,
        option("Metric of the tables and comparisons, such as nDCG@3. Repeatable.  [default: eight main ones]"),
    ] = None,
    by: Annotated[
        list[str] | None,
        option("Also score parts: frequency, known (entries), or a column of --groups. Repeatable."),
    ] = None,
    groups: Annotated[Path | None, option("Table with ids and the columns that --by names.  [default: LABELS]")] = None,
    hierarchy: Annotated[
        Path | None, data_option("Hierarchy, for hierarchical F1, Fmax, Smin and federated mAP.", "--hierarchy")
    ] = None,
    mechanism: Annotated[
        str | None,
        option("Estimate metrics of all entries, known or not: auto, at-random, positives-only or audit."),
    ] = None,
    audited: Annotated[Path | None, option("Answers to random unknown entries, for --mechanism audit.")] = None,
    prior: Annotated[float | None, option("Share of yes of every label.  [default: estimated per label]")] = None,
    output: Annotated[
        list[Path] | None, output_option("Write a .html, .md, .tex, .csv or .json file. Repeatable.", "--output", "-o")
    ] = None,
    *,
    reading: LabelFormatOptions,
    as_json: Json = False,
) -> None:
    """Score predictions against known labels, and compare models."""
    from partly.report.evaluation_tables import to_dict

    for path in output or ():
        _find_writer(path)  # refuses wrong endings before anything is read
    mechanism = mechanism or ("auto" if audited else None)
    request = Request(tuple(by or ()), groups, mechanism, audited, prior, confidence, hierarchy, tuple(metric or ()))
    result = evaluate_files(files, labels, threshold, run, reading, request)
    for path in output or ():
        _write(result, path)
    if print_json(to_dict(result), as_json):
        return
    _print(result, threshold, run)


@dataclass(frozen=True)
class Request:
    """Options of an evaluation: parts, estimates for all entries, and the level of the intervals."""

    by: tuple[str, ...] = ()
    groups: Path | None = None
    mechanism: str | None = None
    audit: Path | None = None
    prior: float | None = None
    confidence: float = 0.95
    hierarchy: Path | None = None
    metrics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        within(0, 1, confidence=self.confidence)
        if self.mechanism is None and self.prior is not None:
            raise SettingError("--prior is for estimates of all entries. Give --mechanism positives-only, too.")


def evaluate_files(
    paths: Sequence[Path],
    labels: Path | None = None,
    threshold: float = 0.5,
    run: Path | None = None,
    reading: DataOptions = DataOptions(),  # noqa: B008 (frozen)
    request: Request = Request(),  # noqa: B008 (frozen)
) -> Evaluation:
    """Score files and runs on the same labels.

    Items and labels are matched by id and by name. `paths` end with the labels, or with the data that a run predicts;
    score files alone need `labels`. `run` provides thresholds.
    """
    from partly.cli._score_sources import open_sources, read_thresholds
    from partly.report.evaluation import Evaluation, check_metrics, score_model
    from partly.report.summary import ONLY_YES, has_only_yes

    within(0, 1, threshold=threshold)
    chosen = check_metrics(request.metrics)
    sources, data, truth = open_sources(paths, labels, reading)
    thresholds = threshold if run is None else read_thresholds(run, truth.names)
    slices = _slices(truth, request, labels or Path(data), reading)
    answers = None if request.audit is None else _read_audit(request.audit, truth)
    models: list[ModelScores] = []
    warnings: list[str] = []
    for name, source in zip(_titles(paths[: len(sources)]), sources, strict=True):
        known, missing = source.gather()
        whole = _estimate(source, thresholds, request, answers)
        coherent = None if request.hierarchy is None else _score_with_hierarchy(source, request, threshold)
        models.append(score_model(name, known, truth, thresholds, missing, request.confidence, slices, whole, coherent))
        prefix = f"{name}: " if len(sources) > 1 else ""
        warnings += [*source.notes, *(prefix + sentence for sentence in missing.describe())]
    corrected = any(model.missing.weights is not None for model in models)
    warnings += [NO_INTERVALS] if corrected and request.mechanism is None else []
    warnings += [ONLY_YES] if has_only_yes(truth) else []
    return Evaluation(truth, thresholds, request.confidence, models, warnings, chosen)


def _titles(paths: Sequence[Path]) -> list[str]:
    """Return the shortest distinct names of the files."""
    names = [path.name for path in paths]
    if len(set(names)) == len(names):
        return names
    full = [str(path) for path in paths]
    if len(set(full)) < len(full):
        raise SettingError("The same score file is given twice. Give each one once.")
    return full


# ---------------------------------------------------------------- parts and estimates


def _slices(truth: Labels, request: Request, labels: Path, reading: DataOptions) -> list[tuple[str, Slice]]:
    from partly import metrics
    from partly.data.item_groups import read_groups
    from partly.metrics.slices import LABEL_SLICES

    slices = []
    for name in request.by:
        if name in LABEL_SLICES:
            new_slices = metrics.slice_labels(truth, name)
        else:
            new_slices = metrics.slice_items(
                truth, read_groups(request.groups or labels, name, reading.id_column), name
            )
        slices += [(name, part) for part in new_slices]
    return slices


def _read_audit(path: Path, truth: Labels) -> Labels:
    """Return the answers of an audit: a label file, or a question file about items and labels of the truth."""
    from partly import data as files
    from partly.data.answers import is_question_file, read_answers
    from partly.labels import Labels

    if is_question_file(path):
        answers = read_answers(path, truth)
        return Labels.from_codes(answers.rows, answers.columns, answers.z > 0, truth.names, truth.given_ids, len(truth))
    return files.read_labels(path)


def _estimate(source: Source, thresholds: Any, request: Request, audit: Labels | None) -> WholeMatrix | None:
    from partly import metrics

    if request.mechanism is None:
        return None
    return metrics.estimate_parts(
        source.blocks(), source.truth, thresholds, request.mechanism, request.prior, audit, request.confidence
    )


def _score_with_hierarchy(source: Source, request: Request, threshold: float) -> dict[str, Any]:
    """Return the metrics that count known labels with those that follow from them, and their `intervals`."""
    from partly import metrics
    from partly.data import read_hierarchy
    from partly.labels.scored import gather_known
    from partly.metrics.hierarchical import federated_mean

    truth = source.truth
    assert request.hierarchy is not None
    hierarchy = read_hierarchy(request.hierarchy, truth.names)
    scores = metrics.hierarchical(source.blocks(), truth, hierarchy, threshold, confidence=request.confidence)
    implied = hierarchy.deduce(truth)
    value, ends = federated_mean(gather_known(source.blocks(), implied), implied, request.confidence)
    return {"federated_mAP": value} | scores | {"intervals": {"federated_mAP": ends} | scores["intervals"]}


# ---------------------------------------------------------------- output


def _find_writer(path: Path) -> Any:
    from partly.report.evaluation_tables import writer_for

    return writer_for(path, (".html",))


def _write(result: Evaluation, path: Path) -> None:
    from partly.atomic_io import write_file
    from partly.report import evaluation_page

    writer = _find_writer(path) or evaluation_page.render
    write_file(path, writer(result).encode("utf-8", "replace"))
    say(f"Written: {path}")


def _print(result: Evaluation, threshold: float, run: Path | None) -> None:
    """Print all tables and remarks; the page and the JSON hold further metrics."""
    from partly.report.evaluation_tables import all_tables

    for table in all_tables(result):
        print_table(table.title, table.header, table.rows)
    verdicts = list(result.sentences())
    for sentence in result.remarks():
        (show if sentence in verdicts else say)(sentence)
    if all(model.values["OR"] == 0 for model in result.models):
        say(LOW_SCORES.format("its threshold" if run else f"{threshold:g}"))
