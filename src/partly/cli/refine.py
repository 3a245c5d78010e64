"""`partly refine`: train, ask about unknown entries, take the answers and train on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from partly.active import Loop, LoopConfig, Round, rounds_page, simulation
from partly.atomic_io import write_file
from partly.cli import ledger_rounds
from partly.cli.ledger import user
from partly.cli.opening import Say, hidden, of_use, open_data
from partly.data import Dataset, Meaning
from partly.data.formats import ledger_db
from partly.errors import SettingError, Stopped
from partly.estimators.classifier import Classifier
from partly.labels import Labels
from partly.report import drawings

PICTURE, PAGE = "progress.svg", "report.html"
ROUNDS = 10  # of a simulation, unless the caller says otherwise


def refine(
    data: str,
    run: Path,
    *,
    labels: Path | None = None,
    scenario: str | None = None,
    hierarchy: Path | None = None,
    answers: Path | None = None,
    rounds: int | None = None,
    shadow: bool = False,
    plan: LoopConfig,
    parameters: dict[str, Any],
    skip_bad: bool = False,
    meaning: Meaning = Meaning(),  # noqa: B008 (it is frozen)
    author: str | None = None,
    say: Say = print,
) -> dict[str, Any]:
    """Train, ask and train on: against a truth of which a scenario hides a part, or with people, a call per round. What
    is noted of the rounds of each query, where the questions are, if there are any, and where the page is. Where the
    labels are a ledger, the answers of people go there too, as statements of their `author`."""
    if scenario is None and (shadow or rounds is not None):
        raise SettingError("--shadow and --rounds are for simulations; give a --scenario, or leave them out.")
    if scenario is not None and answers is not None:
        raise SettingError("With a --scenario the truth answers; leave out --answers.")
    home = None
    if labels is not None and scenario is None and ledger_db.recognizes(labels):
        home = ledger_rounds.Home.of(labels, run)
        labels = home.labels
    opened, _ = of_use(open_data(data, labels, hierarchy, skip_bad, meaning=meaning), parameters["method"], say)
    try:
        if scenario is None:
            loop = _loop(opened, parameters, run, plan)
            return _with_people(data, loop, answers, say, home, author)
        return _simulated(data, opened, scenario, run, plan, parameters, rounds or ROUNDS, shadow, say)
    except KeyboardInterrupt:  # between two trainings
        raise Stopped(f"Stopped; what was done is in {run}.") from None


def _with_people(
    data: str, loop: Loop, answers: Path | None, say: Say, home: ledger_rounds.Home | None, author: str | None
) -> dict[str, Any]:
    if answers is not None:
        say(f"{loop.read(answers)} answers taken from {answers}.")
    if home is not None:
        home.tell(loop, user(author), say)
    path, page = loop.folder / f"questions-{loop.round:03d}.csv", loop.folder / PAGE
    questions = loop.ask()
    count = len(questions)
    if count and not path.exists():  # somebody may have begun to answer it
        loop.write(path)
    arms = {loop.plan.query: loop.rounds()}
    asked = f"{count} questions: {path}" if count else "Nothing is left to ask."
    said = [simulation.describe_round(loop.rounds()[-1]), asked]
    rounds_page.write(page, f"{data}: questions", said, arms, loop.labels, questions)
    fill = ["Fill in `answer` (1 yes, 0 no), then the same command with --answers FILE"] * bool(count)
    say("\n".join([*said, *fill, f"Report: {page}"]))
    return {"rounds": arms, "questions": str(path) if count else None, "report": str(page)}


def _simulated(
    data: str,
    opened: Dataset,
    scenario: str,
    run: Path,
    plan: LoopConfig,
    parameters: dict[str, Any],
    rounds: int,
    shadow: bool,
    say: Say,
) -> dict[str, Any]:
    truth = opened.labels
    opened = hidden(opened, scenario, parameters["seed"])
    say(repr(opened.labels))
    wanted = {plan.query: (run, plan)}
    if shadow and plan.query != "random":
        wanted["random"] = (run / "random", replace(plan, query="random", settings={}))
    arms: dict[str, list[Round]] = {}
    known: dict[str, Labels] = {}
    for name, (folder, asks) in wanted.items():
        loop = _loop(opened, parameters, folder, asks)
        for number in range(rounds + 1):
            arms[name] = loop.run(simulation.answers_from_truth(truth), number)
            if loop.round == number:
                say(f"{name}, {simulation.describe_round(arms[name][-1])}")
        known[name] = loop.labels
    write_file(run / PICTURE, drawings.progress(rounds_page.make_panels(arms)))
    said = simulation.summarize(arms)
    rounds_page.write(run / PAGE, f"{data}, {scenario}: which questions pay?", said, arms, known[plan.query])
    say("\n".join([*said, f"Picture: {run / PICTURE}", f"Report: {run / PAGE}"]))
    return {"rounds": arms, "questions": None, "report": str(run / PAGE)}


def _loop(opened: Dataset, parameters: dict[str, Any], folder: Path, plan: LoopConfig) -> Loop:
    model = Classifier(**parameters)
    measure = simulation.make_measure(opened)
    return Loop(model, opened.items, opened.labels, folder, plan, hierarchy=opened.hierarchy, measure=measure)
