"""`partly evaluate`: score probabilities against labels.

Only known entries count, so only their probabilities are kept: a file is read once, in blocks of rows and in any order;
a run predicts block after block. Memory grows with the known entries, not with items x labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partly.cli.app import command
from partly.cli.options import DataOptions, Json, LabelFormatOptions, data_option, option
from partly.cli.printing import print_json, print_scores, say
from partly.errors import SettingError, within

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from partly.labels import Labels
    from partly.labels.scored import KnownScores
    from partly.model_choice.missingness import EntrySums

LOW_SCORES = (
    "No known yes has a score of {} or more: CF1 and OF1 are 0. A model trained on positives only gives low "
    "scores that still rank: try a lower --threshold, or --run."
)


@command("Models")
def evaluate(
    scores: Annotated[Path, typer.Argument(help="Probabilities of `partly predict`, or a run that predicts DATA.")],
    labels: Annotated[str, typer.Argument(help="Labels to score against, or DATA (its test part, if any).")],
    observed: Annotated[Path | None, data_option("Labels of DATA, where a run predicts it.", "--labels")] = None,
    threshold: Annotated[float, option("Probability from which on an entry is predicted yes.")] = 0.5,
    run: Annotated[Path | None, option("Run whose own thresholds, one per label, are used instead.")] = None,
    *,
    reading: LabelFormatOptions,
    as_json: Json = False,
) -> None:
    """Score predictions against known labels."""
    result, qualifications = evaluate_scores(scores, labels, threshold, run, reading, observed)
    if print_json(result | {"warnings": qualifications}, as_json):
        return
    print_scores({scores.name: result})
    for sentence in qualifications:
        say(sentence)
    if result["OR"] == 0:
        say(LOW_SCORES.format("its threshold" if run else f"{threshold:g}"))


def evaluate_scores(
    scores: Path,
    labels: str,
    threshold: float = 0.5,
    run: Path | None = None,
    reading: DataOptions = DataOptions(),  # noqa: B008 (frozen)
    observed: Path | None = None,
) -> tuple[dict[str, float], list[str]]:
    """Return metrics, corrected where entries are not missing at random, and sentences that qualify them.

    Items and labels are matched by id and by name. `scores` is a table, or a run folder whose model predicts the items
    of the data set `labels`, with the labels `observed` where it has none. `run` provides thresholds.
    """
    from partly import data as files
    from partly import metrics
    from partly.labels.scored import gather_known
    from partly.model_choice.missingness import EntrySums
    from partly.report.summary import ONLY_YES, has_only_yes

    within(0, 1, threshold=threshold)
    how = reading.label_format()
    if scores.is_dir():
        known, truth, entries = _predict_known(scores, labels, observed, reading)
    elif observed is not None:
        raise SettingError(f"--labels is for a run that predicts DATA, but {scores} holds scores. Leave it out.")
    else:
        test = files.read(labels, **how).test if files.is_whole(labels) else None
        truth = files.read_labels(labels, **how) if test is None else test.labels
        entries = EntrySums(truth)
        known = gather_known(entries.passing(files.read_score_blocks(scores, truth.ids, truth.names)), truth)
    thresholds = threshold if run is None else _thresholds(run, truth.names)
    missing = entries.missingness
    result = metrics.both(known, truth, thresholds, missing)[0]
    return result, missing.describe() + ([ONLY_YES] if has_only_yes(truth) else [])


def _predict_known(
    run: Path, data: str, observed: Path | None, reading: DataOptions
) -> tuple[KnownScores, Labels, EntrySums]:
    """Predict the known entries of a data set, or of its test part."""
    import numpy as np

    from partly.data.matching import find_positions
    from partly.engine import load
    from partly.images.progress import track_progress
    from partly.labels.scored import enumerate_rows, gather_known
    from partly.model_choice.missingness import EntrySums

    fitted, opened = load(run), replace(reading, labels=observed).open(data)
    part = opened.test or opened
    columns = find_positions(part.labels.names, fitted.names, run, "label")
    in_same_order = np.array_equal(columns, np.arange(len(fitted.names)))
    blocks: Any = track_progress(fitted.predict_blocks(part.items), len(part.items), data, weight=len)
    if not in_same_order:
        blocks = (block[:, columns] for block in blocks)
    entries = EntrySums(part.labels)
    return gather_known(entries.passing(enumerate_rows(blocks)), part.labels), part.labels, entries


def _thresholds(run: Path, names: Sequence[str]) -> npt.NDArray[np.float32]:
    """Return the thresholds that a run has chosen for these labels."""
    from partly.data.matching import find_positions
    from partly.engine import load

    fitted = load(run)
    if not fitted.has_thresholds:
        raise SettingError(
            f"{run}: {fitted.config.method} chooses no thresholds. Give --threshold instead of --run, or train with "
            "--thresholds f1."
        )
    return fitted.thresholds[find_positions(names, fitted.names, run, "label")]
