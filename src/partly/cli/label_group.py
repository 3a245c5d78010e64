"""Commands about labels themselves: parse, call, print. What they do is in a module each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from partly.cli.options import (
    Absent,
    Data,
    HierarchyFile,
    IdColumn,
    Json,
    LabelColumns,
    LabelsFile,
    Method,
    Missing,
    Scenario,
    Seed,
    SkipBad,
    TagSeparator,
    Uncertain,
)
from partly.cli.printing import print_json, say

commands = typer.Typer()


@commands.command()
def doctor(
    labels: Annotated[str, typer.Argument(help="A file of labels, or a data set by itself.")],
    data: Annotated[str | None, typer.Argument(help="The items of these labels, as for `partly train`.")] = None,
    method: Annotated[str, typer.Option(help="What makes out-of-fold scores; see `partly methods`.")] = "auto",
    absent: Absent = None,
    uncertain: Uncertain = None,
    missing: Missing = None,
    label_columns: LabelColumns = None,
    id_column: IdColumn = None,
    tag_separator: TagSeparator = None,
    skip_bad: SkipBad = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Say what is known of labels, how it is missing, what is wrong with it, and what to do about it."""
    from partly.cli.doctor import doctor as job
    from partly.cli.doctor import page
    from partly.data.label_semantics import LabelSemantics

    meaning = LabelSemantics.from_options(absent, uncertain, missing, label_columns, id_column, tag_separator)
    found = job(labels, data, method=method, skip_bad=skip_bad, meaning=meaning, seed=seed, say=say)
    if not print_json(found, as_json):
        print(page(found))


@commands.command()
def convert(
    source: Annotated[str, typer.Argument(help="Labels, or items with labels, in any format: docs/formats.md.")],
    target: Annotated[Path, typer.Argument(help="The file or folder to write.")],
    form: Annotated[str | None, typer.Option(help="The format to write, where the ending says too little.")] = None,
    labels: LabelsFile = None,
    absent: Absent = None,
    uncertain: Uncertain = None,
    missing: Missing = None,
    label_columns: LabelColumns = None,
    id_column: IdColumn = None,
    tag_separator: TagSeparator = None,
    part: Annotated[str | None, typer.Option(help="Of data with a test part: train or test.")] = None,
    scores: Annotated[
        Path | None, typer.Option(help="Probabilities (`partly predict`), as predictions in Label Studio's tasks.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write labels, or items with labels, in another format."""
    from partly.cli.convert import convert as job
    from partly.data.label_semantics import LabelSemantics

    job(
        source,
        target,
        form,
        labels=labels,
        meaning=LabelSemantics.from_options(absent, uncertain, missing, label_columns, id_column, tag_separator),
        part=part,
        scores=scores,
        say=say,
    )
    print_json({"out": target}, as_json)


@commands.command()
def complete(
    data: Data,
    out: Annotated[Path | None, typer.Option(help="A file for the completed labels: docs/formats.md.")] = None,
    ledger: Annotated[
        str | None, typer.Option(help="A ledger for what is filled in, as one batch that can be taken back.")
    ] = None,
    labels: LabelsFile = None,
    hierarchy: HierarchyFile = None,
    absent: Absent = None,
    uncertain: Uncertain = None,
    missing: Missing = None,
    label_columns: LabelColumns = None,
    id_column: IdColumn = None,
    tag_separator: TagSeparator = None,
    form: Annotated[str | None, typer.Option(help="The format of --out, where the ending says too little.")] = None,
    precision: Annotated[float, typer.Option(help="Of what is filled in, at least; of yes and of no.")] = 0.95,
    recall: Annotated[float | None, typer.Option(help="Certify too that so many of the hidden yes are found.")] = None,
    confidence: Annotated[float, typer.Option(help="Of the promise.")] = 0.95,
    budget_questions: Annotated[
        int, typer.Option(help="Questions to people, at most, where known entries do not speak for unknown ones.")
    ] = 200,
    mechanism: Annotated[
        str, typer.Option(help="Whether entries are missing at random: at-random, not-at-random; auto tests it.")
    ] = "auto",
    questions: Annotated[Path | None, typer.Option(help="A file for questions; else one beside --out.")] = None,
    answers: Annotated[
        list[Path] | None, typer.Option(help="Questions of an earlier call, with answers. Repeatable: all so far.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Fill in what cannot be certified, and say so.")] = False,
    compare: Annotated[
        bool, typer.Option(help="Train on completed labels too, and say whether completing helped.")
    ] = True,
    run: Annotated[Path | None, typer.Option(help="Run folder of the model, for `partly explain`.")] = None,
    scenario: Scenario = None,
    method: Method = "auto",
    head: Annotated[str, typer.Option(help="linear, mlp, kernel, ...; auto takes what suits the method.")] = "auto",
    budget: Annotated[str | None, typer.Option(help="How long auto may take: minutes, or 20x.")] = None,
    folds: Annotated[int | None, typer.Option(help="Models for held-out scores; else the method's own, or 5.")] = None,
    skip_bad: SkipBad = False,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda, ...")] = "auto",
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Fill in missing labels to a precision that is promised, or ask what is needed to promise it."""
    from partly.cli.complete import Places
    from partly.cli.complete import complete as job
    from partly.completion import Terms
    from partly.data.label_semantics import LabelSemantics

    how: dict[str, Any] = {"method": method, "head": head, "budget": budget, "run_dir": run}
    found = job(
        data,
        Places(out, form, ledger, questions, answers or ()),
        Terms(precision, confidence, recall, budget_questions),
        parameters=how | {"device": device, "seed": seed},
        labels=labels,
        hierarchy=hierarchy,
        scenario=scenario,
        missing=mechanism,
        force=force,
        compare=compare,
        folds=folds,
        skip_bad=skip_bad,
        meaning=LabelSemantics.from_options(absent, uncertain, missing, label_columns, id_column, tag_separator),
        say=say,
    )
    print_json(found, as_json)
