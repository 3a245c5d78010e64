"""The lines that `partly train` prints: data, held-out items, model, time and scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from partly.cli.printing import summarize
from partly.data import Dataset
from partly.engine import FittedModel
from partly.labels import Labels
from partly.report import page
from partly.report.summary import ONLY_YES, has_only_yes, margin_of_run

SCORE_TITLES = {"mAP": "mAP", "macro_f1": "F1 macro", "micro_f1": "F1 micro"}
MAX_NAMED_MODELS = 2  # of a portfolio, the heaviest are named
INDENT = 12  # width of the first column


def data_line(labels: Labels) -> str:
    """Describe the labels."""
    return f"{'Data':<{INDENT}}{summarize(labels.summary())}"


def holdout_line(count: int, items: int, test: bool) -> str:
    """Name the number of held-out items and their use."""
    use = "choosing the epoch; scores are on the test part" if test else "scoring"
    return f"{'Held out':<{INDENT}}{count:,} of {items:,} items, for {use}"


WITHOUT_LABELS = f"{'Model':<{INDENT}}none, because no label is known: all scores are the teacher's, and not calibrated"


def model_line(fitted: FittedModel) -> str:
    """Name the method, and of a portfolio its heaviest models."""
    recipe, parts = fitted.config, fitted.method.notes.get("portfolio", ())
    if not parts:
        epochs = f", {recipe.epochs} epochs" if recipe.epochs > 1 else ""
        return f"{'Model':<{INDENT}}{recipe.method}, head {recipe.head}{epochs}"
    ranked = sorted(parts, key=lambda part: -part["weight"])
    named = [f"{part['name'].replace('_', ' ')} {100 * part['weight']:.0f} %" for part in ranked[:MAX_NAMED_MODELS]]
    rest = ranked[MAX_NAMED_MODELS:]
    if rest:
        named.append(f"{len(rest)} others {100 * sum(part['weight'] for part in rest):.0f} %")
    description = f"{len(parts)} models, weighted by held-out log loss ({', '.join(named)})"
    return f"{'Model':<{INDENT}}{recipe.method}: {description}"


def start_lines(fitted: FittedModel) -> list[str]:
    """State how far a method moved from its solved start, or why it did not."""
    text = fitted.progress.notes.get("start", {}).get("text")
    return [f"{'Start':<{INDENT}}{fitted.config.method} {text}"] if text else []


def teacher_lines(fitted: FittedModel) -> list[str]:
    """Name the teachers with their pooled weights, and how to switch them off."""
    taught = fitted.teaching
    if taught is None:
        return []
    weights = taught.combination.weights()
    pooled = zip(taught.combination.names, weights["pooled"]["teachers"], strict=True)
    named = ", ".join(f"{name} {weight:.2f}" for name, weight in pooled if name in weights["used"])
    if not named:
        return [f"{'Teacher':<{INDENT}}{', '.join(taught.combination.names)}: left out, no gain on held-out entries"]
    return [
        f"{'Teacher':<{INDENT}}{named}, model {weights['pooled']['model']:.2f} (weights; --teacher none turns it off)"
    ]


def time_line(models: Sequence[FittedModel]) -> str:
    """Return the training time."""
    seconds = [model.progress.seconds for model in models]
    details = f" ({seconds[0]:.1f} s for scoring, {seconds[1]:.1f} s for the final model)" if seconds[1:] else ""
    return f"{'Time':<{INDENT}}{sum(seconds):.1f} s{details}"


def refit_sentence(items: int, on_test: bool) -> str:
    """State what the final model was trained on."""
    before = "" if on_test else " Scores are those of the model before refitting."
    return f"Final model refitted on all {items:,} items.{before}"


def score_lines(report: page.Report, data: Dataset, hold: npt.NDArray[np.int64], scored: FittedModel) -> list[str]:
    """Return the scores, the items they were measured on, and qualifications."""
    (run,), truth = report.run_scores, report.truth
    assert truth is not None
    assert run.scores is not None
    part = "test" if data.test is not None else "held-out" if len(hold) else "training"
    lines = ["", f"Scores on the {len(truth):,} {part} items ({run.scores['entries_known']:,} known entries)"]
    scores, margin = run.own or run.scores, margin_of_run(run, truth)
    numbers = [f"{name} {_number(scores[key])}" for key, name in SCORE_TITLES.items()]
    if margin == margin and scores["mAP"] == scores["mAP"]:
        numbers[0] += f" ± {margin:.3f} (95 %)"
    at = "0.5" if run.own is None else "the model's own thresholds"
    lines.append(f"  {'   '.join(numbers)}" + (f"   (F1 at {at})" if np.isfinite(scores["micro_f1"]) else ""))
    if run.missing is not None:
        lines += run.missing.describe()
    if run.uncorrected is not None:
        lines.append(f"Without this correction, the mAP on known entries is {_number(run.uncorrected['mAP'])}.")
    if has_only_yes(truth):
        lines += [ONLY_YES, *_unknown_as_no(scored)]
    return [*lines, ""]


def _number(value: float) -> str:
    return "–" if value != value else f"{value:.3f}"


def _unknown_as_no(fitted: FittedModel) -> list[str]:
    """Return the score that chose the epoch, where only yes is known."""
    values = [line.get("validation_mAP_unknown_as_no") for line in fitted.progress.history]
    scores = [value for value in values if value is not None]
    return (
        [f"mAP with unknown treated as no: {max(scores):.3f}. Use it to compare models, not as an estimate of the mAP."]
        if scores
        else []
    )
