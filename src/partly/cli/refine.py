"""`partly refine`: train, ask about unknown entries, take the answers and continue training.

Rounds are simulated against complete labels of which a scenario hides a part, or held with people, one call per round.
With a ledger as --labels, a run folder learns from the state of the ledger at its first round and from its own answers;
answers are appended to the ledger, one batch per round.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from partly.cli.app import command
from partly.cli.ledger import user_name
from partly.cli.options import (
    Count,
    Data,
    DataOptionsWithoutSize,
    Device,
    Head,
    HeadSetting,
    Json,
    Method,
    MethodSetting,
    Query,
    QuerySetting,
    Scenario,
    Seed,
    option,
    output_option,
    question_option,
    training_option,
)
from partly.cli.printing import print_json, say, summarize
from partly.errors import CheckpointError, SettingError, Stopped
from partly.registry import parse_settings

if TYPE_CHECKING:
    from partly.active import Loop, LoopConfig
    from partly.data import Dataset
    from partly.estimators.classifier import Classifier
    from partly.labels import Labels
    from partly.ledger.location import Place

FIGURE, PAGE = "progress.svg", "report.html"
LEDGER_FILE = "ledger.json"  # in the run folder: which ledger it asks about, and after which batch
SIMULATED_ROUNDS = 10
simulation_option = partial(option, panel="Simulation")


@command("Annotation")
def refine(
    data: Data,
    run: Annotated[Path, output_option("Run folder; the same command resumes.")],
    *,
    reading: DataOptionsWithoutSize,
    answers: Annotated[Path | None, question_option("Answered questions of this round.")] = None,
    author: Annotated[
        str | None, question_option("Who answered, for a ledger as --labels.  [default: user name]")
    ] = None,
    query: Query = "look-ahead",
    query_setting: QuerySetting = None,
    count: Count = 100,
    scenario: Scenario = None,
    rounds: Annotated[
        int | None, simulation_option(f"Number of simulated rounds.  [default: {SIMULATED_ROUNDS}]")
    ] = None,
    random_control: Annotated[
        bool,
        simulation_option("Also simulate random questions, for comparison.", "--random-control", "--shadow"),
    ] = False,
    method: Method = "auto",
    head: Head = "auto",
    setting: MethodSetting = None,
    head_setting: HeadSetting = None,
    restart: Annotated[int, training_option("Train from scratch every N rounds; 0 always continues.")] = 10,
    round_epochs: Annotated[int, training_option("Epochs in a round that continues training.")] = 1,
    epochs: Annotated[int | None, training_option("Epochs of training from scratch.  [default: the method's]")] = None,
    lr: Annotated[float | None, training_option("Learning rate.  [default: the method's]")] = None,
    device: Device = "auto",
    seed: Seed = 0,
    as_json: Json = False,
) -> dict[str, Any]:
    """Train, ask questions and continue with the answers, in rounds.

    Without --scenario people answer: each call writes questions, and the next one reads them with --answers. With
    --scenario, labels are hidden and the complete labels answer.
    """
    from partly.active import LoopConfig
    from partly.cli._datasets import apply_scenario, select_items
    from partly.data.formats import ledger_db
    from partly.estimators.classifier import Classifier

    if scenario is None and (random_control or rounds is not None):
        raise SettingError("--random-control and --rounds are for simulations: add --scenario, or leave them out.")
    if scenario is not None and answers is not None:
        raise SettingError("In a simulation (--scenario) the complete labels answer: leave out --answers.")
    plan = LoopConfig(query, count, round_epochs, restart, settings=parse_settings(query_setting or []))
    session = None
    if reading.labels is not None and scenario is None and ledger_db.recognizes(reading.labels):
        session = LedgerSession.of(reading.labels, run)
        reading = replace(reading, labels=session.labels)
    opened, _ = select_items(reading.open(data), method)
    new_model = partial(
        Classifier,
        method,
        head=head,
        epochs=epochs,
        lr=lr,
        settings=parse_settings(setting or []),
        head_settings=parse_settings(head_setting or []),
        device=device,
        seed=seed,
    )
    try:
        if scenario is None:
            loop = _loop(opened, new_model(), run, plan)
            if session is not None:
                session.save(run)
            result = _ask_people(data, loop, answers, session, author)
        else:
            title = f"{data}, {scenario}"
            truth, opened = opened.labels, apply_scenario(opened, scenario, seed)
            say(f"{title}: {summarize(opened.labels.summary())}")
            arms = {query: (run, plan)}
            if random_control and query != "random":
                arms["random"] = (run / "random", replace(plan, query="random", settings={}))
            result = _simulate(title, opened, truth, arms, new_model, rounds or SIMULATED_ROUNDS)
    except KeyboardInterrupt:  # between two trainings
        raise Stopped(f"Stopped; finished rounds are in {run}.") from None
    print_json(result, as_json)
    return result


def _loop(opened: Dataset, model: Classifier, folder: Path, plan: LoopConfig) -> Loop:
    from partly.active import Loop, simulation

    measure = simulation.make_measure(opened)
    return Loop(model, opened.items, opened.labels, folder, plan, hierarchy=opened.hierarchy, measure=measure)


def _ask_people(
    data: str, loop: Loop, answers: Path | None, session: LedgerSession | None, author: str | None
) -> dict[str, Any]:
    """Take answers, train, and write the questions of the next round and the report."""
    from partly.active import rounds_page, simulation

    if answers is not None:
        say(f"Read {loop.read(answers)} answers from {answers}.")
    if session is not None:
        session.append_answers(loop, user_name(author))
    path, page = loop.folder / f"questions-{loop.round:03d}.csv", loop.folder / PAGE
    questions = loop.ask()
    count = len(questions)
    if count and not path.exists():  # a file that exists may be half answered
        loop.write(path)
    arms = {loop.plan.query: loop.rounds()}
    outcome = [
        simulation.describe_round(loop.rounds()[-1]),
        f"{count} questions: {path}" if count else "Nothing is left to ask.",
    ]
    rounds_page.write(page, f"{data}: questions", outcome, arms, loop.labels, questions)
    if count:
        outcome.append(f"Fill in the column `answer` (1 yes, 0 no), then repeat the command with --answers {path}")
    say("\n".join([*outcome, f"Report: {page}"]))
    return {"rounds": arms, "questions": str(path) if count else None, "report": str(page)}


def _simulate(
    title: str,
    opened: Dataset,
    truth: Labels,
    arms: dict[str, tuple[Path, LoopConfig]],
    new_model: Callable[[], Classifier],
    rounds: int,
) -> dict[str, Any]:
    """Let the complete labels answer the questions of each arm, and write the figure and the report of the first."""
    from partly.active import rounds_page, simulation
    from partly.atomic_io import write_file
    from partly.report import figures

    history, known = {}, {}
    for name, (folder, plan) in arms.items():
        loop = _loop(opened, new_model(), folder, plan)
        for number in range(rounds + 1):
            history[name] = loop.run(simulation.answers_from_truth(truth), number)
            if loop.round == number:
                say(f"{name}, {simulation.describe_round(history[name][-1])}")
        known[name] = loop.labels
    query, (run, _) = next(iter(arms.items()))
    titles, panels = simulation.SCORE_NAMES, rounds_page.make_panels(history)
    write_file(run / FIGURE, figures.draw_progress({titles.get(name, name): curves for name, curves in panels.items()}))
    outcome = simulation.summarize(history)
    rounds_page.write(run / PAGE, f"{title}: question strategies", outcome, history, known[query])
    say("\n".join([*outcome, f"Figure: {run / FIGURE}", f"Report: {run / PAGE}"]))
    return {"rounds": history, "questions": None, "report": str(run / PAGE)}


@dataclass(frozen=True)
class LedgerSession:
    """The ledger that a run folder asks about, in the state of its first round."""

    place: Place
    batch: int
    token: str  # marks the answers of this folder in the ledger

    @classmethod
    def of(cls, labels: Path, run: Path) -> LedgerSession:
        """Return the session of a run folder, or a new one in the present state of the ledger."""
        from partly import atomic_io
        from partly.ledger import Ledger, without_password

        place = without_password(labels)
        if (run / LEDGER_FILE).exists():
            recorded = atomic_io.read_checksummed(run / LEDGER_FILE)
            if recorded["ledger"] != place.address:
                raise CheckpointError(
                    f"{run}: asks about the ledger {recorded['ledger']}, not {place.address}. Choose another folder."
                )
            return cls(place, recorded["batch"], recorded["token"])
        batches = Ledger(place).log(dict(place.state).get("at"))
        return cls(place, batches[-1].number if batches else 0, secrets.token_hex(8))

    def save(self, run: Path) -> None:
        """Record the session in a new run folder."""
        from partly import atomic_io

        if not (run / LEDGER_FILE).exists():
            state = {"ledger": self.place.address, "batch": self.batch, "token": self.token}
            atomic_io.write_checksummed(run / LEDGER_FILE, state)

    @property
    def labels(self) -> Path:
        """Path of the labels in that state, as other commands accept it."""
        state = {**dict(self.place.state), "at": str(self.batch)}
        mark = "&" if "?" in self.place.address else "?"
        return Path(f"{self.place.address}{mark}{'&'.join(f'{name}={value}' for name, value in state.items())}")

    def append_answers(self, loop: Loop, author: str) -> None:
        """Append the answers of every round that is not in the ledger yet, under the present names of the labels."""
        from partly.ledger import Ledger

        ledger = Ledger(self.place)
        then, now = ledger.vocabulary(self.batch), ledger.vocabulary()
        renamed = {one.name: now.labels[one.number].name for one in then.visible_labels if one.number in now.labels}
        present = {batch.key for batch in ledger.log()}
        for number, asked, replies in loop.answers():
            answered = [i for i, reply in enumerate(replies) if reply is not None]
            key = f"{self.token}-{number:03d}"
            if not answered or key in present:
                continue
            labels = [loop.labels.names[int(asked.columns[i])] for i in answered]
            batch = ledger.append(
                [loop.labels.id_at(int(asked.rows[i])) for i in answered],
                [renamed.get(label, label) for label in labels],
                [replies[i] for i in answered],
                author=author,
                note=f"round {number} of {loop.folder.name}",
                key=key,
            )
            say(f"{self.place.address}: batch {batch}, {len(answered)} answers by {author}")
