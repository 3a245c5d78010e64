"""report.html: one self-contained file about one run, or about several on the same partly known labels.

What a reader sees is put together here and laid out by templates/report.html. No score is made here: all come
from `partly.metrics`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.atomic_io import write_file
from partly.engine.training import Progress
from partly.errors import DataError, listing
from partly.labels import Labels
from partly.labels.scored import KnownScores
from partly.model_choice.missingness import EntrySums
from partly.report import operating_points, plots, reliability, words
from partly.report.examples import Examples, cards, spread
from partly.report.layout import template
from partly.report.sights import is_tiny, picture_uri, sights
from partly.report.words import RunView, Scored

__all__ = ["Examples", "Report", "RunView", "picture", "render", "view", "write"]

HEADLINE = {"mAP": "mAP", "CF1": "CF1", "OF1": "OF1", "P@1": "P@1", "exact_match": "exact match"}
ITEMS, LABELS = 40, 200  # of the label matrix, at most this many are drawn
NAMED = 40  # columns of the matrix that are wide enough for a name, and labels that are listed at once
GROUPS = {"fair": "A fair sample", "wrong": "Most confidently wrong", "unknown": "Most surely yes, and nobody said"}
EXTREMES = 10  # of more labels, so many of the strongest and of the weakest are listed first


@dataclass(frozen=True, eq=False)
class Report:
    """What goes into one file. Without examples, evaluation items are shown."""

    title: str
    labels: Labels  # observed, of the training items
    runs: tuple[RunView, ...]
    truth: Labels | None = None  # of the evaluation items; may be partly known
    examples: Examples | None = None
    note: str = ""  # about the data, in plain words

    @cached_property
    def scored(self) -> list[Scored]:
        """The runs with their scores, which are worked out once."""
        return words.score(self.runs, self.truth)


def view(
    title: str,
    description: dict[str, Any],
    progress: Progress,
    reason: str = "",
    probabilities: KnownScores | None = None,
    privilege: str = "",
    thresholds: npt.NDArray[Any] | None = None,
    told: Sequence[str] = (),
    entries: EntrySums | None = None,
) -> RunView:
    """What a run has left behind, as the report takes it. probabilities: of the evaluation items; thresholds [L]: its
    own, where it has chosen some; told: how these and the probabilities were found; entries: sums over the evaluation
    items that tell how their entries are missing."""
    past = (progress.history, progress.best_epoch, progress.seconds)
    portfolio = tuple(progress.notes.get("portfolio", ()))
    return RunView(
        title, description, *past, reason, probabilities, privilege, portfolio, thresholds, tuple(told), entries
    )


def write(report: Report, path: Path) -> None:
    """Write the report: afterwards the old file or the new one is there, never half of one."""
    write_file(path, render(report).encode("utf-8", "replace"))


def render(report: Report) -> str:
    """The report as HTML."""
    _check(report)
    runs = report.scored
    best = words.best(runs)
    filters: dict[str, Any] = {
        "number": words.number,
        "duration": _duration,
        "flat": _flat,
        "picture": picture_uri,
        "tiny": is_tiny,
    }
    return template("report.html", **filters).render(
        title=report.title,
        note=report.note,
        runs=runs,
        scored=[run for run in runs if run.scores is not None],
        best=best,
        verdict=words.sentences(runs, report.truth),
        headline=HEADLINE,
        highest=_highest(runs),
        evaluated=0 if report.truth is None else len(report.truth),
        known=_known(report.labels),
        panels=_panels(runs),
        trust=_trust(report, runs),
        labels=_by_label(report.labels, runs, best),
        extremes=EXTREMES if report.labels.shape[1] > NAMED else 0,
        labels_named=report.labels.names,
        owned=any(run.own for run in runs),
        operating=operating_points.section(runs, best, report.truth),
        examples=_examples(report, runs, best),
        plots=plots,
    )


def picture(report: Report) -> bytes:
    """The report in one compact PNG: what is known, mAP of the runs, a few examples where they are pictures."""
    from partly.report import front_picture  # matplotlib takes longer to import than a short training does

    _check(report)
    runs, known = report.scored, _known(report.labels)
    shown = _examples(report, runs, words.best(runs))
    pictures = []
    if shown is not None and any(sight.pixels is not None for sight in shown["sights"].values()):
        for card in shown["cards"][:5]:
            predicted = [line.name + " ✗" * line.wrong for line in card.lines if line.predicted == 1]
            pictures.append((shown["sights"][card.item].pixels, predicted))
    return front_picture.overview(
        known["z"],
        known["names"],
        f"{known['known_share']:.0%} of the entries are known",
        [(run.look, run.view.title, run.mean_ap) for run in runs if run.scores is not None],
        pictures,
        "" if shown is None else shown["title"],
    )


def _check(report: Report) -> None:
    """Everything must be of the same labels, items and runs."""
    examples, names = report.examples or Examples(()), report.labels.names
    problems = [] if report.runs and all(report.labels.shape) else ["nothing to show: no run, no item or no label"]
    if report.examples is not None and len(examples.probabilities) != len(report.runs):
        problems.append(f"examples.probabilities: of {len(examples.probabilities)} runs, not of {len(report.runs)}")
    labelled = {"truth": report.truth, "examples.truth": examples.truth, "examples.given": examples.given}
    for what, labels in labelled.items():
        if labels is not None and labels.names != names:
            problems.append(f"{what}: other labels than those of training, or in another order")
    for p in (*examples.probabilities, *(run.probabilities for run in report.runs)):
        if p is not None and (p.ndim != 2 or p.shape[1] != len(names) or np.isnan(p.sum())):
            problems.append(f"probabilities of the shape {p.shape}: must be items x {len(names)}, without NaN")
    parts = (*examples.probabilities, examples.truth, examples.given, examples.items)
    sizes = sorted({len(part) for part in parts if part is not None})
    if sizes[1:]:
        problems.append(f"examples: of {' and '.join(map(str, sizes))} items")
    if problems:
        raise DataError(f"The report {report.title!r} does not fit together" + listing(problems, len(problems)))


# ---------------------------------------------------------------- the parts of the page


def _highest(runs: Sequence[Scored]) -> dict[str, float]:
    """The highest of each headline score, where runs without privilege differ in it."""
    peers = [run.scores for run in runs if run.scores is not None and not run.view.privilege]
    values = {key: {scores[key] for scores in peers} for key in HEADLINE}
    return {key: max(found) for key, found in values.items() if len(found) > 1}


def _known(labels: Labels) -> dict[str, Any]:
    """The label matrix, or items and labels of it at even distances, and its summary."""
    items, columns = (spread(count, most) for count, most in zip(labels.shape, (ITEMS, LABELS), strict=True))
    z = labels.rows(items)[:, columns]
    names = [labels.names[j] for j in columns] if len(columns) <= NAMED else []
    return labels.summary() | {"z": z, "names": names, "png": plots.matrix(z)}


def _panels(runs: Sequence[Scored]) -> list[dict[str, Any]]:
    """Learning curves: a picture for the loss, and one for each kind of validation score; none where every run has one
    epoch, since a point is no curve."""
    if all(len(run.view.history) < 2 for run in runs):
        return []
    keys = {"loss": "training loss"}
    for key in (key for run in runs for line in run.view.history for key in line if key.startswith("validation_")):
        keys[key] = key.replace("_", " ").replace("mAP unknown as no", "mAP, unknown taken for no")
    panels = []
    for key, title in keys.items():
        drawn = []
        for run in runs:
            points = {line["epoch"]: line[key] for line in run.view.history if line.get(key) is not None}
            best = None if key == "loss" else run.view.best_epoch  # it was chosen by validation
            if points:
                name = run.view.title if runs[1:] else ""
                drawn.append(plots.Curve(run.look, list(points), list(points.values()), best, name))
        if drawn:
            panels.append({"title": title, "drawing": plots.curves(drawn)})
    return panels


def _trust(report: Report, runs: Sequence[Scored]) -> dict[str, Any] | None:
    """Whether probabilities mean what they say, and how they were calibrated; None without evaluation items."""
    able = [run for run in runs if run.scores is not None and not (run.missing is not None and run.missing.withheld)]
    if report.truth is None or not able:
        return None
    weights = {run: None if run.missing is None else run.missing.weights for run in able}
    found = {run: reliability.reliability(run.view.probabilities, report.truth, weights[run]) for run in able}
    drawn = [(run.look, of) for run, of in found.items() if of is not None]
    lines = [(run, "" if of is None else reliability.words(of)) for run, of in found.items()]
    return {"svg": reliability.drawn(drawn) if drawn else None, "lines": lines}


def _by_label(labels: Labels, runs: Sequence[Scored], best: Scored | None) -> dict[str, Any]:
    """AP of each label beside what was known of it, the best first; without AP, what is best known first."""
    yes, no = labels.counts()
    ap = {run: run.ap for run in runs if run.ap is not None}
    order, defined = -(yes + no), len(labels.names)
    if best is not None:
        order, defined = np.nan_to_num(-ap[best], nan=np.inf), int(np.count_nonzero(~np.isnan(ap[best])))
    lines = [
        {"name": labels.names[j], "yes": int(yes[j]), "no": int(no[j]), "ap": [float(ap[run][j]) for run in ap]}
        for j in np.argsort(order, kind="stable")
    ]
    many = ap and len(lines) > NAMED
    drawn = [(run.look, run.view.title, values) for run, values in ap.items()]
    drawing = plots.scatter(labels.names, yes, drawn) if many else None
    return {
        "lines": lines,
        "runs": list(ap),
        "drawing": drawing,
        "defined": defined,
        "most": max(1, int((yes + no).max())),
    }


def _examples(report: Report, runs: Sequence[Scored], best: Scored | None) -> dict[str, Any] | None:
    """Cards with the predictions of the best run, or else of the first that has any."""
    examples = report.examples
    if examples is None:
        able = [run for run in runs if run.view.probabilities is not None]
        run = best or (able[0] if able else None)
        if run is None:
            return None
        examples = Examples((np.asarray(run.view.probabilities),), report.truth)
    else:
        run = best or runs[0]
        examples = replace(examples, probabilities=(examples.probabilities[runs.index(run)],))
    shown = cards(examples, report.labels.names, run.view.thresholds)
    seen = {}
    if examples.items is not None and shown:
        at, labels = ([getattr(card, what) for card in shown] for what in ("item", "label"))
        evidence = examples.evidence[runs.index(run)] if examples.evidence else None
        seen = dict(zip(at, sights(examples.items, at, labels, evidence), strict=True))
    groups = [(title, [card for card in shown if card.kind == kind]) for kind, title in GROUPS.items()]
    return {
        "title": run.view.title,
        "of": examples,
        "cards": shown,
        "groups": [(title, some) for title, some in groups if some],
        "sights": seen,
        "own_thresholds": run.view.thresholds is not None,
    }


# ---------------------------------------------------------------- filters of the template


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _flat(part: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested names and values, one a line. Of long lists, such as the labels, only the length."""
    for key, value in part.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{key} · ")
        elif isinstance(value, list) and len(value) > 8:
            yield f"{prefix}{key}", f"{len(value)}"
        else:
            yield f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value)
