"""`partly complete`: fill in missing labels with a guaranteed precision, or write the questions that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from partly.cli.app import command
from partly.cli.options import (
    MODEL,
    OUTPUT,
    TRAINING,
    Data,
    DataOptionsWithoutSize,
    Device,
    Format,
    Head,
    Json,
    Method,
    Scenario,
    Seed,
    option,
)
from partly.cli.printing import print_json, say
from partly.errors import SettingError

if TYPE_CHECKING:
    from partly.completion import Completion
    from partly.data import Dataset
    from partly.labels import Labels
    from partly.ledger import Ledger

AUTHOR = "partly complete"
GUARANTEE, QUESTIONS = "Guarantee", "Questions"


@dataclass(frozen=True)
class Outputs:
    """Where completed labels and questions are written."""

    out: Annotated[Path | None, option("File for the completed labels.", panel=OUTPUT)] = None
    ledger: Annotated[
        str | None, option("Ledger that the filled-in labels are added to, as one batch.", panel=OUTPUT)
    ] = None
    form: Format = None
    questions: Annotated[Path | None, option("File for the questions.  [default: next to --out]", panel=QUESTIONS)] = (
        None
    )


@command("Labels")
def complete(
    data: Data,
    *,
    outputs: Outputs,
    reading: DataOptionsWithoutSize,
    scenario: Scenario = None,
    precision: Annotated[
        float, option("Minimum precision of the filled-in yes, and of the filled-in no.", panel=GUARANTEE)
    ] = 0.95,
    recall: Annotated[
        float | None, option("Also certify this share of the hidden positives as found.", panel=GUARANTEE)
    ] = None,
    confidence: Annotated[float, option("Confidence level of the guarantee.", panel=GUARANTEE)] = 0.95,
    mechanism: Annotated[
        str, option("Assume at-random or not-at-random missing entries; auto tests it.", panel=GUARANTEE)
    ] = "auto",
    force: Annotated[bool, option("Fill in labels without a guarantee, too.", "--force", panel=GUARANTEE)] = False,
    budget_questions: Annotated[
        int, option("Maximum number of questions, if entries are not missing at random.", panel=QUESTIONS)
    ] = 200,
    answers: Annotated[
        list[Path] | None, option("Answered questions of earlier calls. Repeatable: give all of them.", panel=QUESTIONS)
    ] = None,
    method: Method = "auto",
    head: Head = "auto",
    budget: Annotated[
        str | None, option("Time limit for auto: minutes, or 20x for twenty plain fits.", panel=TRAINING)
    ] = None,
    folds: Annotated[
        int | None, option("Number of folds for out-of-fold scores.  [default: the method's, or 5]", panel=TRAINING)
    ] = None,
    run: Annotated[Path | None, option("Run folder for the model, for `partly explain`.", panel=MODEL)] = None,
    compare: Annotated[
        bool, option("Train on the completed labels, too, and report whether they help.", panel=OUTPUT)
    ] = True,
    device: Device = "auto",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Fill in missing labels with a guaranteed precision.

    Where the known entries cannot support the guarantee, questions for people are written instead.
    """
    from partly.cli.explain import remember
    from partly.cli.opening import hidden, of_use
    from partly.completion import complete as fill_in
    from partly.completion.downstream import measure_benefit
    from partly.estimators.classifier import Classifier
    from partly.ledger import Ledger, without_password

    if outputs.form is not None and outputs.out is None:
        raise SettingError(f"--format {outputs.form} is the format of --out, which is not given.")
    opened, _ = of_use(reading.open(data), method, say)
    opened = hidden(opened, scenario, seed)
    # Opened before training, so that a missing ledger is reported at once.
    ledger = None if outputs.ledger is None else Ledger(without_password(outputs.ledger))
    model = Classifier(
        method, head=head, budget=budget, run_dir=run, device=device, seed=seed, hierarchy=opened.hierarchy
    )
    answered = _read_answers(opened, answers or [])
    completion = fill_in(
        model,
        opened.items,
        opened.labels,
        precision,
        confidence,
        recall=recall,
        budget=budget_questions,
        answers=answered,
        force=force,
        missing=mechanism,
        hierarchy=opened.hierarchy,
        folds=folds,
        seed=seed,
    )
    if run is not None:
        remember(run, data, reading.labels, reading.meaning, scenario, seed)
    result: dict[str, Any] = {"words": completion.words, "labels": completion.table} | _plain(completion)
    result["questions"] = _write_questions(completion, opened.labels, outputs)
    result |= _write_labels(completion, outputs, ledger, answered, reading.absent)
    if compare and completion.filled:
        gain = measure_benefit(model, opened.items, opened.labels, completion, opened.hierarchy, seed)
        result["words"] = [*result["words"], gain.words]
        result["worth"] = vars(gain)
    say("\n".join([*result["words"], *_destinations(result)]))
    print_json(result, as_json)


def _read_answers(opened: Dataset, paths: Sequence[Path]) -> Labels | None:
    """Return the answers of all files; None where there are none."""
    import numpy as np

    from partly.data.answers import read_answers

    if not paths:
        return None
    answers = opened.labels.mapped(lambda z, _: np.zeros_like(z))
    for path in paths:
        answers = read_answers(path, opened.labels, opened.hierarchy).apply_to(answers)
    return answers


def _plain(completion: Completion) -> dict[str, Any]:
    return {
        "certified": completion.certified,
        "filled": completion.filled,
        "expected_errors": completion.expected_errors,
        "audited": completion.certification.why,
        "sides": {side.word: vars(side) | {"labels": list(side.labels)} for side in completion.sides},
    }


def _write_questions(completion: Completion, labels: Labels, outputs: Outputs) -> str | None:
    """Write the open questions in the order of asking; keep a file that exists, since it may be half answered."""
    from partly.data.answers import write_questions

    rows, columns = completion.questions
    if not len(rows):
        return None
    asked = sum(side.asked for side in completion.certification.sides)
    target = Path("completion.csv") if outputs.out is None else outputs.out
    path = outputs.questions or target.with_name(f"{target.stem}-questions-{asked:03d}.csv")
    if not path.exists():
        write_questions(path, labels, rows, columns, {"score": completion.entry_scores.chance[rows, columns]})
    return str(path)


def _write_labels(
    completion: Completion, outputs: Outputs, ledger: Ledger | None, answers: Labels | None, absent: str | None
) -> dict[str, Any]:
    """Write the completed labels to a file, a ledger or both; return the file and the batch."""
    from partly.data import write_labels

    written: dict[str, Any] = {"out": None, "batch": None}
    if not completion.filled:
        return written
    if outputs.out is not None:
        write_labels(completion.labels, outputs.out, form=outputs.form, absent=absent)
        written["out"] = str(outputs.out)
    if ledger is not None:
        if answers is not None:  # the key makes repeated calls append them once
            ledger.append_labels(answers, kind="person", author=AUTHOR, key=f"answers {answers.digest()[:32]}")
        rows, columns, z, chance = completion.entries()
        ids, names, terms = completion.labels.ids, completion.labels.names, completion.terms
        status = "certified" if completion.certified else "NOT certified, by --force"
        written["batch"] = ledger.append(
            [ids[i] for i in rows.tolist()],
            [names[j] for j in columns.tolist()],
            (z == 1).astype(int).tolist(),
            kind="model",
            author=AUTHOR,
            run=str(completion.model.run_dir or f"{completion.model.method_} on {completion.known.digest()[:12]}"),
            confidence=chance,
            note=f"{status}: precision {terms.precision:g}, confidence {terms.confidence:g}",
        )
    return written


def _destinations(result: dict[str, Any]) -> list[str]:
    lines = [f"Labels: {result['out']}"] if result["out"] else []
    if result["batch"]:
        lines.append(f"Ledger: batch {result['batch']} (`partly ledger undo` removes it)")
    if result["questions"]:
        lines.append(
            f"Questions: {result['questions']}. Fill in the column `answer` (1 yes, 0 no), then repeat the "
            f"command with --answers {result['questions']}."
        )
    if result["filled"] and not (result["out"] or result["batch"]):
        lines.append("Nothing is saved: give --out FILE or --ledger LEDGER.")
    return lines
