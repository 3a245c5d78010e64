"""`partly complete`: fill in missing labels with guarantees, or write the questions that they take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from partly.cli.app import command
from partly.cli.options import (
    Data,
    DataOptionsWithoutSize,
    Device,
    Format,
    Head,
    Json,
    Method,
    Scenario,
    Seed,
    Teacher,
    model_option,
    option,
    output_option,
    question_option,
    training_option,
)
from partly.cli.printing import one_line, print_json, say
from partly.errors import SettingError

if TYPE_CHECKING:
    from partly.completion import Completion, Terms
    from partly.data import Dataset
    from partly.labels import Labels
    from partly.ledger import Ledger

AUTHOR = "partly complete"
MAX_LABELS_SHOWN = 30
guarantee_option = partial(option, panel="Guarantee")


@dataclass(frozen=True)
class Outputs:
    """Destinations of completed labels and questions."""

    out: Annotated[Path | None, output_option("File for the completed labels.")] = None
    ledger: Annotated[str | None, output_option("Ledger that the filled-in labels are added to, as one batch.")] = None
    form: Format = None
    questions: Annotated[Path | None, question_option("File for the questions.  [default: next to --out]")] = None
    preview: Annotated[Path | None, output_option("HTML page for the trade-off that --dry-run shows.")] = None


@command("Labels")
def complete(
    data: Data,
    *,
    outputs: Outputs,
    reading: DataOptionsWithoutSize,
    scenario: Scenario = None,
    precision: Annotated[float, guarantee_option("Minimum precision of the filled-in yes.")] = 0.95,
    max_missed: Annotated[
        float, guarantee_option("Maximum share of hidden yes filled in as no; 0 fills in yes only.")
    ] = 0.05,
    recall: Annotated[
        float | None, guarantee_option("Also certify this share of the hidden positives as found.")
    ] = None,
    confidence: Annotated[float, guarantee_option("Confidence level of the guarantee.")] = 0.95,
    mechanism: Annotated[
        str, guarantee_option("Certify by known entries (at-random) or by answers (auto, not-at-random).")
    ] = "auto",
    force: Annotated[bool, guarantee_option("Fill in labels without a guarantee, too.", "--force")] = False,
    dry_run: Annotated[bool, output_option("Show what would be filled in, and write nothing.", "--dry-run")] = False,
    budget_questions: Annotated[
        int, question_option("Maximum number of questions, unless --mechanism is at-random.")
    ] = 200,
    answers: Annotated[
        list[Path] | None, question_option("Answered questions of earlier calls. Repeatable: give all of them.")
    ] = None,
    method: Method = "auto",
    head: Head = "auto",
    budget: Annotated[
        str | None, training_option("Time limit for auto: minutes (default 5), 20x (the time of 20 fits), or inf.")
    ] = None,
    folds: Annotated[
        int | None, training_option("Number of folds for out-of-fold scores.  [default: the method's, or 5]")
    ] = None,
    teacher: Teacher = None,
    run: Annotated[Path | None, model_option("Run folder for the model, for `partly explain`.")] = None,
    compare: Annotated[bool, output_option("Train on the completed labels, too, and report whether they help.")] = True,
    device: Device = "auto",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Fill in missing labels with guarantees for yes and for no.

    Of the entries filled in as yes, at least --precision are yes. Of the hidden yes, at most --max-missed become no. A
    few questions for people are written, whose answers certify this; --mechanism at-random certifies by known entries.
    """
    import numpy as np

    from partly.cli._datasets import apply_scenario, select_items, with_ids
    from partly.cli.explain import record_source
    from partly.completion import complete as fill_in
    from partly.completion.downstream import measure_benefit
    from partly.config import TrainConfig
    from partly.engine.teaching import name_rows
    from partly.estimators.classifier import Classifier
    from partly.ledger import Ledger, without_password

    if outputs.form is not None and outputs.out is None:
        raise SettingError(f"--format {outputs.form} is the format of --out, which is not given.")
    if outputs.preview is not None and not dry_run:
        raise SettingError("--preview is a page about --dry-run, which is not given. Add --dry-run.")
    opened, _ = select_items(reading.open(data), method)
    opened = apply_scenario(opened, scenario, seed)
    # Opened before training, so that a missing ledger is reported at once.
    ledger = None if outputs.ledger is None else Ledger(without_password(outputs.ledger))
    model = Classifier(
        method,
        head=head,
        budget=budget,
        run_dir=run,
        device=device,
        seed=seed,
        hierarchy=opened.hierarchy,
        teacher=teacher,
    )
    if teacher is not None:
        rows = with_ids(opened.labels, np.arange(len(opened.labels)))
        model.set_params(teacher=name_rows(TrainConfig(teacher=teacher), rows.ids).teacher)
    answered = _read_answers(opened, answers or [])
    completion = fill_in(
        model,
        opened.items,
        opened.labels,
        precision,
        confidence,
        max_missed=max_missed or None,
        recall=recall,
        budget=budget_questions,
        answers=answered,
        force=force,
        missing=mechanism,
        hierarchy=opened.hierarchy,
        folds=folds,
        seed=seed,
    )
    if dry_run:
        _show_preview(completion, data, outputs.preview, as_json)
        return
    if run is not None:
        record_source(run, data, reading.labels, reading.meaning, scenario, seed)
    result: dict[str, Any] = {"words": completion.words, "labels": completion.table} | _plain(completion)
    result["questions"] = _write_questions(completion, opened.labels, outputs)
    result |= _write_labels(completion, outputs, ledger, answered, reading.absent)
    if compare and completion.filled:
        gain = measure_benefit(model, opened.items, opened.labels, completion, opened.hierarchy, seed)
        result["words"] = [*result["words"], gain.words]
        result["worth"] = vars(gain)
    say("\n".join([*result["words"], *_destinations(result)]))
    if not print_json(result, as_json) and completion.filled:
        _show_labels(completion)


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
        "estimates": None if (estimates := completion.certification.estimates) is None else asdict(estimates),
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
            note=f"{status}: {_describe_terms(terms)}",
        )
    return written


def _describe_terms(terms: Terms) -> str:
    no = "" if terms.max_missed is None else f", at most {terms.max_missed:g} of the hidden yes become no"
    return f"precision of yes {terms.precision:g}{no}, confidence {terms.confidence:g}"


def _show_preview(completion: Completion, data: str, page: Path | None, as_json: bool) -> None:
    """Print what several targets would fill in, and write it as a page."""
    from rich.console import Console
    from rich.table import Table

    from partly.completion import preview_page
    from partly.completion.preview import preview

    expected, budget = preview(completion.entry_scores, completion.terms), completion.terms.budget
    advice = (
        "No target is worthwhile: each would fill in less than a third of the hidden yes, or too little of it could be "
        "certified. Add known labels first, e.g. with `partly query`, or raise --budget-questions."
    )
    if expected.proposal is not None:
        advice = f"Proposal: --precision {expected.proposal:g} --max-missed 0.05."
    if page is not None:
        unknown = int(completion.entry_scores.candidates.sum())
        preview_page.write(page, f"Preview of completing {Path(data).name}", expected, unknown, budget, advice)
    if print_json(expected.to_json() | {"page": None if page is None else str(page)}, as_json):
        return
    headings = (
        "precision",
        "filled in as yes",
        "share of hidden yes",
        "expected errors",
        f"certified by {budget} answers",
    )
    yes = Table(*headings)
    for target in expected.yes:
        shares = f"{target.share_of_hidden_yes:.0%}", f"{target.wrong:.0f}", f"{target.certified:.0f}"
        yes.add_row(f"{target.precision:g}", str(target.filled), *shares)
    no = Table("missed share", "filled in as no", "hidden yes lost")
    for lost in expected.no:
        no.add_row(f"{lost.max_missed:g}", str(lost.filled), f"{lost.lost_yes:.0f} of {expected.hidden_yes:.0f}")
    Console().print(yes, no)
    say("Expected from the model's probabilities; nothing is certified or written.")
    say(advice if page is None else f"{advice}\nPage: {page}")


def _show_labels(completion: Completion) -> None:
    """Print how many entries of each label were filled in, and how many are yes, no and unknown now."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("label", "filled in as yes", "filled in as no", "yes", "no", "unknown")
    for label in completion.table[:MAX_LABELS_SHOWN]:
        counts = (str(label[key]) for key in ("filled_yes", "filled_no", "yes", "no", "unknown"))
        table.add_row(escape(one_line(label["label"])), *counts)
    Console().print(table)
    if len(completion.table) > MAX_LABELS_SHOWN:
        say(f"{len(completion.table) - MAX_LABELS_SHOWN} more labels: see --json.")


def _destinations(result: dict[str, Any]) -> list[str]:
    lines = [f"Labels: {result['out']}"] if result["out"] else []
    if result["batch"]:
        lines.append(f"Ledger: batch {result['batch']} (`partly ledger undo` removes it)")
    if result["questions"]:
        lines.append(
            f"Questions: {result['questions']}. Fill in the column `answer` (1 yes, 0 no), then repeat the "
            f"command with --answers {result['questions']} besides earlier --answers."
        )
    if result["filled"] and not (result["out"] or result["batch"]):
        lines.append("Nothing is saved: give --out FILE or --ledger LEDGER.")
    return lines
