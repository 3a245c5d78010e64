"""`partly train`: one classifier into a run folder, with its report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from partly.commands.explain import remember
from partly.commands.opening import Say, hidden, of_use, open_data, some
from partly.commands.reporting import Scores, measured, report, scores
from partly.data import Dataset, Meaning, held_out, ledger_db
from partly.errors import SettingError
from partly.items import Items, as_trained, origin_of
from partly.labels import Labels
from partly.networks.backbones import weights_of
from partly.processes import threads
from partly.processes.group import here
from partly.report import page
from partly.report.words import LOW, learned_from_yes
from partly.run import Asked, Recipe, available, backbones_of, entry_memory, read_description, words_of, write_measured
from partly.training import Validation

HOLD_OUT = 0.2


def train(
    data: str,
    run: Path,
    *,
    labels: Path | None = None,
    hierarchy: Path | None = None,
    scenario: str | None = None,
    hold_out: float | None = None,
    parameters: dict[str, Any],
    skip_bad: bool = False,
    meaning: Meaning = Meaning(),  # noqa: B008 (it is frozen)
    size: int | None = None,
    evidence: bool = False,
    start_from: Path | None = None,
    say: Say = print,
) -> Scores:
    """Train one classifier into a run folder; the report goes there too.

    hold_out: share of the items that chooses the best epoch. None takes a fifth, but nothing where there is only one
    epoch to choose and a test part to report on. start_from: a finished run to begin with. evidence: the report shows
    where in pictures it is. Of several processes all train, and the first one reports.
    """
    with here().in_turn():  # the first looks at every picture, the others find what it has seen
        opened = open_data(data, labels, hierarchy, skip_bad, size, meaning)
    listed = len(opened.labels)
    opened, unlisted = of_use(opened, parameters.get("method", "auto"), say)
    opened = hidden(opened, scenario, parameters["seed"])
    say(f"{data}: {opened.labels!r}")
    said_by = hierarchy or (labels if labels is not None and ledger_db.recognises(labels) else None)
    if said_by is not None and opened.hierarchy is not None:
        opened = replace(opened, labels=opened.hierarchy.deduce(opened.labels))
        say(f"With what follows from {said_by}: {opened.labels!r}")
        parameters = parameters | {"hierarchy": opened.hierarchy}
    if evidence and opened.items.kind != "pictures":
        raise SettingError(f"--evidence shows where in pictures it is; the items of {data} are {opened.items.kind}.")
    asked = Asked.of(parameters | {"run_dir": run})
    with here().in_turn():
        opened = replace(opened, items=asked.first_stage(opened.items))
    origin = origin_of(opened.items)
    if origin is not None:
        say(words_of(origin))
    if hold_out is None:
        settled = opened.test is not None and asked.complete(opened.items, opened.labels)[2].epochs == 1
        hold_out = 0.0 if settled else HOLD_OUT
    fit, hold = held_out(listed, hold_out, parameters["seed"])
    fit = np.append(fit, np.arange(listed, len(opened.labels)))  # of which nothing is known, so they choose nothing
    items, known, recipe, reason = asked.complete(opened.items[fit], some(opened.labels, fit))
    validation = None
    if len(hold):
        validation = Validation(as_trained(opened.items[hold], items), asked.deduced(opened.labels[hold]))
    if recipe.backbone is not None:
        weights = weights_of(recipe.backbone, recipe.backbone_settings)
        say(f"Network: backbone {recipe.backbone}, {weights}, trained together with the head.")
    say(_needed(recipe, items, known, validation))
    say(_threads(opened, fit))
    heirs = None
    if start_from is not None and labels is not None and ledger_db.recognises(labels):
        heirs = ledger_db.heirs(labels, read_description(start_from)["labels"])
    fitted = asked.train(items, known, recipe, reason, validation, start_from=start_from, heirs=heirs)
    if not here().first:
        return {}
    remember(run, data, labels, meaning, scenario, parameters["seed"])
    method = recipe.method
    say(f"{method}: {fitted.reason}")
    for words in fitted.calibration.told(fitted.names) if fitted.calibration is not None else ():
        say(words)
    if evidence and not backbones_of(fitted):
        say("No evidence is shown: the backbone makes no map of where in a picture something is.")
        evidence = False
    made = report(f"{data}: {method}", {method: fitted}, opened, fit, hold, evidence=evidence)
    made = replace(made, note=unlisted)
    page.write(made, run / "report.html")
    if learned_from_yes(made.runs[0]):
        say(f"{method}: {LOW}")
    write_measured(run, measured(made, opened, hold))
    return scores(made)


def _threads(opened: Dataset, fit: npt.NDArray[np.int64]) -> str:
    """Choose how many there are, where nobody has, and say so."""
    count, why = threads.choose(threads.size_of(opened.items[fit], opened.labels))
    if count:
        threads.set_threads(count)
    return f"Computes with {torch.get_num_threads()} thread(s): {why}."


def _needed(recipe: Recipe, items: Items, labels: Labels, validation: Validation | None) -> str:
    """What training will take for entries, said before it starts."""
    needed, (there, who) = entry_memory(recipe, items, labels, validation), available()
    return f"Needs about {needed / 2**20:.1f} MiB for entries; there are {there / 2**30:.1f} GiB ({who})."
