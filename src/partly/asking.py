"""The jobs of `partly query` and `partly refine`: open the data, ask, say what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from partly import active, checkpoint, plots, progression, scenarios
from partly.active import Loop, Plan, Round
from partly.clock import Clock
from partly.comparison.plan import parse_settings
from partly.data.answers import write_questions
from partly.data.parents import read_hierarchy
from partly.errors import SettingError, Stopped, listing
from partly.estimator import Classifier
from partly.jobs import Opened, Say, open_data
from partly.queries import choose

PICTURE = "progress.svg"
BESIDE = {"all yes": "recovered_all_yes", "coin": "recovered_coin"}  # what else would recover so much


def query(
    run: Path,
    data: str,
    out: Path,
    *,
    labels: Path | None = None,
    hierarchy: Path | None = None,
    query: str = "look-ahead",
    count: int = 100,
    settings: Sequence[str] = (),
    seed: int = 0,
) -> int:
    """Questions about the unknown entries of some items, by a finished run; how many there are."""
    model = Classifier.load(run)
    opened = _opened(data, labels, hierarchy, seed)
    if opened.labels.names != model.label_names_:
        raise SettingError(
            f"{run} was trained on other labels than those of {labels or data}, or in another order. "
            "Give labels of its own, in this order:" + listing(model.label_names_, len(model.label_names_))
        )
    x = model._items(opened.x, reset=False)
    found = choose(
        query,
        model.fitted_.method,
        x,
        opened.labels,
        count,
        Clock(seed),
        hierarchy=opened.hierarchy,
        settings=parse_settings(settings),
    )
    write_questions(out, opened.labels, found.rows, found.columns, found.scores)
    return len(found)


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
    say: Say = print,
) -> None:
    """Train, ask and train on: against a truth of which a scenario hides a part, or with people, a call a round."""
    opened = _opened(data, labels, hierarchy, parameters["seed"])
    if scenario is None and (shadow or rounds != 10):
        raise SettingError("--shadow and --rounds are for simulations; give a --scenario, or leave them out.")
    if scenario is not None and answers is not None:
        raise SettingError("With a --scenario the truth answers; leave out --answers.")
    parameters = parameters | {"settings": parse_settings(parameters["settings"])}
    try:
        if scenario is None:
            _with_people(Loop(*_given(opened, parameters), run, plan, **_measured(opened)), answers, say)
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
    say(progression.told(loop.rounds()[-1]))
    if count:
        say(f"{count} questions: {path}\nFill in `answer` (1 yes, 0 no), then the same command with --answers FILE")
    else:
        say("Nothing is left to ask.")


def _simulated(
    opened: Opened,
    scenario: str,
    run: Path,
    plan: Plan,
    parameters: dict[str, Any],
    rounds: int,
    shadow: bool,
    say: Say,
) -> None:
    truth = opened.labels
    played = scenarios.parse(scenario)(truth, parameters["seed"], opened.hierarchy)
    opened = replace(opened, labels=played, truth=truth)
    say(repr(played))
    wanted = {plan.query: (run, plan)}
    if shadow and plan.query != "random":
        wanted["random"] = (run / "random", replace(plan, query="random", settings={}))
    arms: dict[str, list[Round]] = {}
    for name, (folder, asks) in wanted.items():
        loop = Loop(*_given(opened, parameters), folder, asks, **_measured(opened))
        for number in range(rounds + 1):
            arms[name] = loop.run(progression.from_truth(truth), number)
            if loop.round == number:
                say(f"{name}, {progression.told(arms[name][-1])}")
    checkpoint.write_file(run / PICTURE, picture(arms))
    say("\n".join([*progression.verdict(arms), f"Picture: {run / PICTURE}"]))


def picture(arms: Mapping[str, Sequence[Round]]) -> bytes:
    """SVG of the progression curves, a panel a score; beside what was recovered, what saying yes everywhere and tossing
    a coin would recover of the entries that the first arm leaves unknown."""
    names = [name for name in (*progression.RANKS, "recovered") if all(_defined(r, name) for r in arms.values())]
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


def _opened(data: str, labels: Path | None, hierarchy: Path | None, seed: int) -> Opened:
    opened = open_data(data, labels, None, seed)
    return opened if hierarchy is None else replace(opened, hierarchy=read_hierarchy(hierarchy))


def _given(opened: Opened, parameters: dict[str, Any]) -> tuple[Classifier, Any, Any]:
    return Classifier(**parameters), opened.x, opened.labels


def _measured(opened: Opened) -> dict[str, Any]:
    measure: active.Measure = progression.against(opened.x, opened.truth, opened.test_x, opened.test)
    return {"hierarchy": opened.hierarchy, "measure": measure}
