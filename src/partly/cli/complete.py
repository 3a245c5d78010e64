"""`partly complete`: fill in missing labels to a precision that is promised, or ask what is needed to promise it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from partly import data as files
from partly.cli.explain import remember
from partly.cli.opening import Say, hidden, of_use, open_data
from partly.completion import Completion, Terms
from partly.completion import complete as completed
from partly.completion.downstream import measure_benefit
from partly.data.answers import read_answers, write_questions
from partly.errors import SettingError
from partly.estimators.classifier import Classifier
from partly.labels import Labels
from partly.ledger import Ledger, without_password

AUTHOR = "partly complete"


@dataclass(frozen=True)
class Places:
    """Where labels are written (a file, a ledger, both or nowhere), and questions; where answers are read."""

    out: Path | None = None
    form: str | None = None
    ledger: str | None = None
    questions: Path | None = None
    answers: Sequence[Path] = ()


def complete(
    data: str,
    places: Places,
    terms: Terms,
    *,
    parameters: dict[str, Any],
    labels: Path | None = None,
    hierarchy: Path | None = None,
    scenario: str | None = None,
    missing: str = "auto",
    force: bool = False,
    compare: bool = True,
    folds: int | None = None,
    skip_bad: bool = False,
    meaning: files.LabelSemantics = files.LabelSemantics(),  # noqa: B008 (it is frozen)
    say: Say = print,
) -> dict[str, Any]:
    """What was filled in and what is promised of it, as plain data; said in words on the way."""
    if places.form is not None and places.out is None:
        raise SettingError(f"--form {places.form}: is that of --out, which is not given.")
    opened, _ = of_use(open_data(data, labels, hierarchy, skip_bad, meaning=meaning), parameters["method"], say)
    opened = hidden(opened, scenario, parameters["seed"])
    # Before the work, so that one that is not there is told of at once.
    ledger = None if places.ledger is None else Ledger(without_password(places.ledger))
    model, seed = Classifier(hierarchy=opened.hierarchy, **parameters), parameters["seed"]
    answers = _answers(opened, places.answers)
    how: dict[str, Any] = {"recall": terms.recall, "budget": terms.budget, "answers": answers, "force": force}
    how |= {"missing": missing, "hierarchy": opened.hierarchy, "folds": folds, "seed": seed}
    found = completed(model, opened.items, opened.labels, terms.precision, terms.confidence, **how)
    if model.run_dir is not None:
        remember(Path(model.run_dir), data, labels, meaning, scenario, seed)
    told: dict[str, Any] = {"words": found.words, "labels": found.table} | _plain(found)
    told["questions"] = _ask(found, opened.labels, places)
    told |= _written(found, places, ledger, answers, meaning)
    if compare and found.filled:
        value = measure_benefit(model, opened.items, opened.labels, found, opened.hierarchy, seed)
        told["words"] = [*told["words"], value.words]
        told["worth"] = vars(value)
    say("\n".join([*told["words"], *_where(told)]))
    return told


def _answers(opened: files.Dataset, paths: Sequence[Path]) -> Labels | None:
    """What was answered in all of these files; None where there is none."""
    if not paths:
        return None
    nothing = opened.labels.mapped(lambda z, _: np.zeros_like(z))
    for path in paths:
        said = read_answers(path, opened.labels, opened.hierarchy)
        nothing = said.told(nothing)
    return nothing


def _plain(found: Completion) -> dict[str, Any]:
    return {
        "certified": found.certified,
        "filled": found.filled,
        "expected_errors": found.expected_errors,
        "audited": found.certification.why,
        "sides": {side.word: vars(side) | {"labels": list(side.labels)} for side in found.sides},
    }


def _ask(found: Completion, labels: Labels, places: Places) -> str | None:
    """Write the open questions, in the order of asking. A file that is there stays: it may be half answered."""
    rows, columns = found.questions
    if not len(rows):
        return None
    asked = sum(side.asked for side in found.certification.sides)
    beside = Path("completion.csv") if places.out is None else places.out
    path = places.questions or beside.with_name(f"{beside.stem}-questions-{asked:03d}.csv")
    if not path.exists():
        write_questions(path, labels, rows, columns, {"score": found.entry_scores.chance[rows, columns]})
    return str(path)


def _written(
    found: Completion, places: Places, ledger: Ledger | None, answers: Labels | None, meaning: files.LabelSemantics
) -> dict[str, Any]:
    """Where labels went: nowhere, where nothing is filled in."""
    told: dict[str, Any] = {"out": None, "batch": None}
    if not found.filled:
        return told
    if places.out is not None:
        files.write_labels(found.labels, places.out, form=places.form, absent=meaning.absent)
        told["out"] = str(places.out)
    if ledger is not None:
        if answers is not None:  # once, however often they are read
            ledger.append_labels(answers, kind="person", author=AUTHOR, key=f"answers {answers.digest()[:32]}")
        rows, columns, z, chance = found.entries()
        ids, names = found.labels.ids, found.labels.names
        promise = "certified" if found.certified else "NOT certified, by force"
        note = f"{promise}: precision {found.terms.precision:g}, confidence {found.terms.confidence:g}"
        told["batch"] = ledger.append(
            [ids[i] for i in rows.tolist()],
            [names[j] for j in columns.tolist()],
            (z == 1).astype(int).tolist(),
            kind="model",
            author=AUTHOR,
            run=str(found.model.run_dir or f"{found.model.method_} on {found.known.digest()[:12]}"),
            confidence=chance,
            note=note,
        )
    return told


def _where(told: dict[str, Any]) -> list[str]:
    lines = [f"Labels: {told['out']}"] if told["out"] else []
    if told["batch"]:
        lines.append(f"In the ledger: batch {told['batch']}; `partly ledger undo` takes it back whole.")
    if told["questions"]:
        lines.append(f"Questions: {told['questions']}. Fill in `answer` (1 yes, 0 no); then --answers with this file.")
    if told["filled"] and not (told["out"] or told["batch"]):
        lines.append("Nothing is written: give --out FILE or --ledger LEDGER.")
    return lines
