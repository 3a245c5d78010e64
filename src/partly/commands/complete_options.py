"""The command line of `partly complete`: as in `cli`, parse, call, print; torch is imported inside."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from partly.commands.options import (
    Absent,
    Data,
    HierarchyFile,
    Json,
    LabelsFile,
    Method,
    Scenario,
    Seed,
    SkipBad,
    Uncertain,
)
from partly.commands.printing import print_json, say


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
    form: Annotated[str | None, typer.Option(help="The format of --out, where the ending says too little.")] = None,
    precision: Annotated[float, typer.Option(help="Of what is filled in, at least; of yes and of no.")] = 0.95,
    recall: Annotated[float | None, typer.Option(help="Certify too that so many of the hidden yes are found.")] = None,
    confidence: Annotated[float, typer.Option(help="Of the promise.")] = 0.95,
    budget_questions: Annotated[
        int, typer.Option(help="Questions to people, at most, where known entries do not speak for unknown ones.")
    ] = 200,
    missing: Annotated[
        str, typer.Option(help="Whether entries are known by chance: at-random, not-at-random; auto tests it.")
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
    from partly.commands.complete import Places
    from partly.commands.complete import complete as job
    from partly.completion import Terms
    from partly.data import Meaning

    how: dict[str, Any] = {"method": method, "head": head, "budget": budget, "run_dir": run}
    found = job(
        data,
        Places(out, form, ledger, questions, answers or ()),
        Terms(precision, confidence, recall, budget_questions),
        parameters=how | {"device": device, "seed": seed},
        labels=labels,
        hierarchy=hierarchy,
        scenario=scenario,
        missing=missing,
        force=force,
        compare=compare,
        folds=folds,
        skip_bad=skip_bad,
        meaning=Meaning(absent, uncertain),
        say=say,
    )
    print_json(found, as_json)
