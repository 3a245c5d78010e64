"""`partly refine`: train, ask about unknown entries, take the answers and train on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from partly.active import Loop, Plan, Round, simulation
from partly.commands.opening import Say, hidden, open_data
from partly.data import Dataset, Meaning
from partly.errors import SettingError, Stopped
from partly.estimator import Classifier
from partly.files import write_file
from partly.report import plots

PICTURE = "progress.svg"
BESIDE = {"all yes": "recovered_all_yes", "coin": "recovered_coin"}  # what else would recover so much


def refine(
    data: str,
    run: Path,
    *,
    labels: Path | None = None,
    scenario: str | None = None,
    hierarchy: Path | None = None,
    answers: Path | None = None,
    rounds: int = 10,
    shadow: bool = False,
    plan: Plan,
    parameters: dict[str, Any],
    skip_bad: bool = False,
    meaning: Meaning = Meaning(),  # noqa: B008 (it is frozen)
    say: Say = print,
) -> None:
    """Train, ask and train on: against a truth of which a scenario hides a part, or with people, a call per round."""
    opened = open_data(data, labels, hierarchy, skip_bad, meaning=meaning)
    if scenario is None and (shadow or rounds != 10):
        raise SettingError("--shadow and --rounds are for simulations; give a --scenario, or leave them out.")
    if scenario is not None and answers is not None:
        raise SettingError("With a --scenario the truth answers; leave out --answers.")
    try:
        if scenario is None:
            _with_people(_loop(opened, parameters, run, plan), answers, say)
        else:
            _simulated(opened, scenario, run, plan, parameters, rounds, shadow, say)
    except KeyboardInterrupt:  # between two trainings
        raise Stopped(f"Stopped; what was done is in {run}.") from None


def _with_people(loop: Loop, answers: Path | None, say: Say) -> None:
    if answers is not None:
        say(f"{loop.read(answers)} answers taken from {answers}.")
    path = loop.folder / f"questions-{loop.round:03d}.csv"
    count = len(loop.ask())
    if count and not path.exists():  # somebody may have begun to answer it
        loop.write(path)
    say(simulation.told(loop.rounds()[-1]))
    if count:
        say(f"{count} questions: {path}\nFill in `answer` (1 yes, 0 no), then the same command with --answers FILE")
    else:
        say("Nothing is left to ask.")


def _simulated(
    opened: Dataset,
    scenario: str,
    run: Path,
    plan: Plan,
    parameters: dict[str, Any],
    rounds: int,
    shadow: bool,
    say: Say,
) -> None:
    truth = opened.labels
    opened = hidden(opened, scenario, parameters["seed"])
    say(repr(opened.labels))
    wanted = {plan.query: (run, plan)}
    if shadow and plan.query != "random":
        wanted["random"] = (run / "random", replace(plan, query="random", settings={}))
    arms: dict[str, list[Round]] = {}
    for name, (folder, asks) in wanted.items():
        loop = _loop(opened, parameters, folder, asks)
        for number in range(rounds + 1):
            arms[name] = loop.run(simulation.from_truth(truth), number)
            if loop.round == number:
                say(f"{name}, {simulation.told(arms[name][-1])}")
    write_file(run / PICTURE, picture(arms))
    say("\n".join([*simulation.verdict(arms), f"Picture: {run / PICTURE}"]))


def picture(arms: Mapping[str, Sequence[Round]]) -> bytes:
    """SVG of the progression curves, a panel per score; beside what was recovered, what saying yes everywhere and
    tossing a coin would recover of the entries that the first arm leaves unknown."""
    names = [name for name in (*simulation.RANKS, "recovered") if all(_defined(r, name) for r in arms.values())]
    drawn = [(title, rounds, plots.look(place, privileged=False)) for place, (title, rounds) in enumerate(arms.items())]
    panels = {name: {title: _curve(rounds, name, look) for title, rounds, look in drawn} for name in names}
    if "recovered" in panels:
        first = next(iter(arms.values()))
        for place, (title, name) in enumerate(BESIDE.items(), len(arms)):
            panels["recovered"][title] = _curve(first, name, plots.look(place, privileged=True))
    return plots.progress(panels)


def _curve(rounds: Sequence[Round], name: str, look: plots.Look) -> plots.Curve:
    return plots.Curve(look, [one["answers"] for one in rounds], [one["scores"][name] for one in rounds])


def _defined(rounds: Sequence[Round], name: str) -> bool:
    return all(one["scores"].get(name) is not None for one in rounds)


def _loop(opened: Dataset, parameters: dict[str, Any], folder: Path, plan: Plan) -> Loop:
    model = Classifier(**parameters)
    measure = simulation.against(opened)
    return Loop(model, opened.items, opened.labels, folder, plan, hierarchy=opened.hierarchy, measure=measure)
