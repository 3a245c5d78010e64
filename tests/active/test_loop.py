"""The loop: what it asks, what it learns from answers, and that no kill changes a question."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partly import Classifier, Dataset, Hierarchy, Labels, active, engine
from partly.active import Loop, LoopConfig
from partly.active.simulation import answers_from_truth, make_measure
from partly.comparison import Experiment
from partly.errors import CheckpointError, DataError, LabelError, SettingError
from partly.items import as_items

NAMES = ("top", "left", "right", "alone")
HIERARCHY = Hierarchy({"left": "top", "right": "top"})
ROUNDS = 2  # a fresh model, one that trains on, a fresh one again


def world(seed: int = 0, items: int = 16) -> tuple[np.ndarray, Labels, Labels]:
    """Items, their truth, and the little that is known at first: `top` of some, and all of two."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(items, 3)).astype(np.float32)
    y = x @ rng.normal(size=(3, 4)) > 0
    y[:, 0] = y[:, 1] | y[:, 2]
    truth = np.where(y, 1, -1)
    known = np.zeros_like(truth)
    known[::2, 0] = truth[::2, 0]
    known[:2] = truth[:2]
    ids = [f"item {i}" for i in range(items)]
    return x, *(Labels.from_ternary(z, names=NAMES, ids=ids) for z in (truth, known))


def loop(folder: Path, plan: LoopConfig | None = None, seed: int = 0, items: int = 16, **more: Any) -> Loop:
    x, truth, known = world(seed, items)
    model = Classifier("bce", head="linear", epochs=1, batch_size=8, lr=0.1, device="cpu", progress=False)
    more = {
        "hierarchy": HIERARCHY,
        "measure": make_measure(Dataset(as_items(x), known, truth, Dataset(as_items(x), truth))),
    } | more
    return Loop(model, x, known, folder, plan or LoopConfig("uncertainty", 4, restart=2), **more)


@pytest.fixture(autouse=True, scope="module")
def quick_disk() -> Iterator[None]:
    """Nobody pulls the plug here, and waiting for a busy disk takes most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda file: None)
        yield


def story(folder: Path) -> list[Any]:
    """All that was asked, answered and noted."""
    paths = sorted(p for p in folder.glob("*-*.json") if p.name.startswith(("round", "questions", "answers")))
    return [(path.name, json.loads(path.read_text())) for path in paths]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unbroken")
    loop(folder).run(answers_from_truth(world()[1]), ROUNDS)
    return folder


# -------------------------------------------------------------------- what is asked


@settings(max_examples=6)
@given(
    seed=st.integers(0, 10**6),
    query=st.sampled_from(["random", "uncertainty"]),  # of look-ahead see tests/queries
    last=st.booleans(),
    silent=st.integers(0, 3),
)
def test_never_what_follows_never_twice(
    seed: int, query: str, last: bool, silent: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """To the end, with an annotator who sometimes does not know."""
    _, truth, known = world(seed, 8)
    asking = loop(tmp_path_factory.mktemp("loop"), LoopConfig(query, 9, last_child=last), seed, 8, measure=None)
    seen: set[tuple[int, int]] = set()
    z = known.rows(slice(None)).copy()
    rng = np.random.default_rng(seed)
    while len(questions := asking.ask()):
        follow(z, last)
        np.testing.assert_array_equal(asking.labels.rows(slice(None)), z)
        entries = list(zip(questions.rows.tolist(), questions.columns.tolist(), strict=True))
        assert len(set(entries)) == len(entries) <= 9
        assert not seen & set(entries)
        assert all(z[entry] == 0 for entry in entries)
        seen |= set(entries)
        said = [None if rng.integers(4) < silent else one for one in answers_from_truth(truth)(questions)]
        for entry, one in zip(entries, said, strict=True):
            z[entry] = 0 if one is None else 1 if one else -1
        asking.answer(said)
    follow(z, last)
    assert all(entry in seen for entry in map(tuple, np.argwhere(z == 0).tolist()))
    assert silent or (z != 0).all()


def follow(z: np.ndarray, last: bool) -> None:
    """Slow deduction: left and right are parts of top."""
    for row in z:
        if row[0] == -1:
            row[1] = row[2] = -1
        if 1 in (row[1], row[2]):
            row[0] = 1
        for one, other in ((1, 2), (2, 1)):
            if last and row[0] == 1 and row[one] == -1 and row[other] == 0:
                row[other] = 1


def test_implied_answers_cost_nothing(unbroken: Path) -> None:
    rounds = loop(unbroken).rounds()
    assert [one["round"] for one in rounds] == [0, 1, 2]
    assert [one["answers"] for one in rounds] == [0, 4, 8]
    _, truth, known = world()
    z = known.rows(slice(None)).copy()
    follow(z, last=False)
    first = (z != 0).sum()
    for number, one in enumerate(rounds):
        assert one["known"] == (z != 0).sum() == first + one["answers"] + one["implied"]
        if number < ROUNDS:
            asked = json.loads((unbroken / f"questions-{number:03d}.json").read_text())
            z[asked["rows"], asked["columns"]] = truth.rows(slice(None))[asked["rows"], asked["columns"]]
            follow(z, last=False)
    assert rounds[-1]["implied"] > 0


def test_rounds_train_on_and_start_anew(tmp_path: Path) -> None:
    asking = loop(tmp_path, LoopConfig("random", 2, epochs=3, restart=2))
    began, epochs, seeds = [], [], set()
    before: dict[str, Any] = {}
    for _ in range(4):
        asking.train()
        description = asking.model.fitted_.description
        began.append("start" in description)
        epochs.append(description["recipe"]["epochs"])
        seeds.add(description["recipe"]["seed"])
        if began[-1]:
            assert description["start"] == {name: engine.digest(weight) for name, weight in before.items()}
        before = {name: weight.clone() for name, weight in asking.model.fitted_.method.weights().items()}
        kept = engine.state_of(max(tmp_path.glob("model-*")))  # what it keeps for entries, though it only predicts now
        before |= {name: kept[name].clone() for name in kept if name.startswith("entries.")}
        asking.ask()
        asking.answer([True] * 2)
    assert began == [False, True, False, True]
    assert epochs == [1, 3, 1, 3]
    assert len(seeds) == 4
    assert [path.name for path in tmp_path.glob("model-*")] == ["model-003"]


def test_it_learns_from_answers(tmp_path: Path) -> None:
    rounds = loop(tmp_path, LoopConfig("uncertainty", 8, epochs=20)).run(answers_from_truth(world()[1]), 4)
    assert rounds[-1]["scores"]["mAP"] > rounds[0]["scores"]["mAP"]


def test_the_folder_is_a_run_folder(unbroken: Path) -> None:
    x, *_ = world()
    expected = loop(unbroken).train().predict_proba(x)
    np.testing.assert_array_equal(Classifier.load(unbroken).predict_proba(x), expected)


# -------------------------------------------------------------------- kills


class Killed(BaseException):
    """No `except Exception` stops it."""


def killed_at(monkeypatch: pytest.MonkeyPatch, call: int) -> Callable[[], int]:
    """Die before the so-many-th write to the disk; how many there were."""
    calls, replace = [0], os.replace

    def dying(beside: Path, path: Path) -> None:
        calls[0] += 1
        if calls[0] == call:
            raise Killed
        replace(beside, path)

    monkeypatch.setattr(os, "replace", dying)
    return lambda: calls[0]


def test_a_kill_before_any_write_changes_nothing(unbroken: Path, tmp_path: Path) -> None:
    truth, expected = world()[1], story(unbroken)
    assert [name for name, _ in expected] == [
        *(f"answers-{n:03d}.json" for n in range(ROUNDS)),
        *(f"questions-{n:03d}.json" for n in range(ROUNDS)),
        *(f"round-{n:03d}.json" for n in range(ROUNDS + 1)),
    ]
    with pytest.MonkeyPatch.context() as patch:
        writes = killed_at(patch, 0)
        loop(tmp_path / "count").run(answers_from_truth(truth), ROUNDS)
        total = writes()
    assert total > 20
    for call in range(1, total + 1):
        folder = tmp_path / f"{call}"
        with pytest.MonkeyPatch.context() as patch:
            killed_at(patch, call)
            with pytest.raises(Killed):
                loop(folder).run(answers_from_truth(truth), ROUNDS)
        loop(folder).run(answers_from_truth(truth), ROUNDS)
        assert story(folder) == expected, call
        assert [path.name for path in folder.glob("model-*")] == [f"model-{ROUNDS:03d}"], call


def test_more_rounds_go_on_from_fewer(unbroken: Path, tmp_path: Path) -> None:
    for rounds in (0, 1, 1, ROUNDS):
        loop(tmp_path).run(answers_from_truth(world()[1]), rounds)
    assert story(tmp_path) == story(unbroken)


def test_another_loop_in_the_folder_is_refused(unbroken: Path) -> None:
    with pytest.raises(CheckpointError, match=r"asks.query: 'uncertainty' there, 'random' now"):
        loop(unbroken, LoopConfig("random", 4, restart=2))
    with pytest.raises(CheckpointError, match=r"asks.hierarchy: "):
        loop(unbroken, hierarchy=None)
    with pytest.raises(CheckpointError, match=r"data.labels_sha256"):
        loop(unbroken, seed=1)


@pytest.mark.parametrize("name", ["answers-001.json", "questions-001.json", "round-001.json", "known-002.json"])
def test_damage_is_noticed(unbroken: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(unbroken, folder)
    if not name.startswith(("known", "round")):  # else the newest snapshot tells all that there is to know
        (folder / "known-002.json").unlink()
    text = (folder / name).read_text()
    (folder / name).write_text(text.replace("true", "false", 1) if "true" in text else text.replace("1", "2", 1))
    with pytest.raises(CheckpointError, match=f"{name}: damaged or edited"):
        loop(folder).rounds()


# -------------------------------------------------------------------- answers


def test_answers_by_file(unbroken: Path, tmp_path: Path) -> None:
    """Round after round by files, each opened anew, is the same as in one go."""
    truth = world()[1]
    for number in range(ROUNDS):
        path = tmp_path / f"{number}.csv"
        assert loop(tmp_path / "run").write(path) == 4
        lines = path.read_text().splitlines()
        entries = [[word.strip('"') for word in line.split(",")[:2]] for line in lines[1:]]
        z = [truth.rows([truth.ids.index(i)])[0][NAMES.index(name)] for i, name in entries]
        path.write_text(
            "\n".join([lines[0], *(f"{line}{int(one == 1)}" for line, one in zip(lines[1:], z, strict=True))])
        )
        assert loop(tmp_path / "run").read(path) == 4
    loop(tmp_path / "run").train()
    assert story(tmp_path / "run") == story(unbroken)
    with pytest.raises(DataError, match=rf"not asked this time: 4\n  {path}:2: 'item "):
        loop(tmp_path / "run").read(path)


def test_blank_answers_stay_unknown_and_are_not_asked_again(tmp_path: Path) -> None:
    asking = loop(tmp_path / "run")
    before = asking.labels
    asking.write(tmp_path / "q.csv")
    first = asking.ask()
    with pytest.raises(DataError, match="none of the 4 questions is answered, and the round is not over"):
        asking.read(tmp_path / "q.csv")
    assert asking.round == loop(tmp_path / "run").round == 0
    asking.answer([None] * 4)
    assert asking.labels == before
    second = asking.ask()
    entries = [set(zip(q.rows.tolist(), q.columns.tolist(), strict=True)) for q in (first, second)]
    assert not entries[0] & entries[1]


def test_answers_that_do_not_fit(tmp_path: Path) -> None:
    asking = loop(tmp_path)
    with pytest.raises(CheckpointError, match="nothing was asked in round 0"):
        asking.answer([True])
    asking.ask()
    for said in ([True] * 3, [True, False, None, 0.5], [True, False, None, float("nan")]):
        with pytest.raises(LabelError, match=r"4 questions need as many answers.*(3\.|4\n  (0\.5|nan))$"):
            asking.answer(said)
    other = loop(tmp_path)
    asking.answer([True, np.True_, None, False])
    with pytest.raises(CheckpointError, match="answered meanwhile"):
        other.answer([True] * 4)
    assert asking.round == loop(tmp_path).round == 1


def test_plans_that_cannot_be() -> None:
    for wrong in ({"query": "randm"}, {"questions": 0}, {"epochs": True}, {"restart": -1}, {"settings": {"rate": 1}}):
        with pytest.raises(SettingError, match=r"random|questions|epochs|restart|rate"):
            LoopConfig(**{"query": "random"} | wrong)


def test_a_plan_spells_out_its_settings() -> None:
    """A changed default of a query must not pass for the same plan."""
    assert LoopConfig("look-ahead", settings={"rate": 2.0}).settings == {"rate": 2.0, "fine_items": 256}
    (cell,) = Experiment(
        ("d.npz",), ("bce",), ("full",), seeds=1, queries=("look-ahead",), asks={"settings": {"rate": 2.0}}
    ).cells()
    assert cell.asks["settings"] == {"rate": 2.0, "fine_items": 256}


def test_the_loop_has_no_truth(tmp_path: Path) -> None:
    """Without a measure nothing is noted but what is known."""
    assert loop(tmp_path, measure=None).run(lambda q: [None] * len(q), 1)[0]["scores"] == {}
    assert active.LoopConfig().query == "look-ahead"


def test_opening_does_not_replay_the_rounds(unbroken: Path, tmp_path: Path) -> None:
    """The newest snapshot is enough: what was asked and answered before it need not be there any more."""
    folder = tmp_path / "copy"
    shutil.copytree(unbroken, folder)
    for path in (*folder.glob("answers-*.json"), *folder.glob("questions-*.json"), folder / "known-001.json"):
        path.unlink()
    found, expected = loop(folder), loop(unbroken)
    assert found.labels == expected.labels
    assert (found.round, found.answered, found.given) == (ROUNDS, expected.answered, expected.given)
    first, again = (one.ask() for one in (expected, found))
    assert (first.rows.tolist(), first.columns.tolist()) == (again.rows.tolist(), again.columns.tolist())


def test_a_refused_loop_claims_no_folder(tmp_path: Path) -> None:
    wrong = Hierarchy({"top": "alone", "left": "top"})
    with pytest.raises(LabelError, match="are yes below a label that is no"):
        loop(tmp_path / "run", hierarchy=wrong)
    assert not (tmp_path / "run").exists()


def test_a_query_that_the_method_cannot_be_asked_by_claims_no_folder(tmp_path: Path) -> None:
    model = Classifier("per-label", progress=False)
    where = (np.eye(4), np.array([[1, np.nan], [0, 1], [np.nan, 0], [1, np.nan]]), tmp_path / "run")
    with pytest.raises(SettingError, match="look-ahead needs a method that is trained by gradients"):
        Loop(model, *where, LoopConfig("look-ahead"))
    assert not (tmp_path / "run").exists()
    assert len(Loop(model, *where, LoopConfig("uncertainty")).ask())  # the same folder, another way


def test_the_folder_has_the_beliefs_of_the_last_round_under_their_ids(tmp_path: Path) -> None:
    x, truth, known = world()
    model = Classifier("role", head="linear", epochs=1, batch_size=8, device="cpu", progress=False)
    asking = Loop(model, x, known, tmp_path, LoopConfig("uncertainty", 4), hierarchy=HIERARCHY)
    asking.run(answers_from_truth(truth), 1)
    assert engine.read_ids(tmp_path) == known.ids
    beliefs = Classifier.load(tmp_path).beliefs_
    np.testing.assert_array_equal(beliefs, model.beliefs_)
    z = asking.labels.rows(slice(None))
    assert (beliefs[z == 1] == 1).all()
    assert (beliefs[z == -1] == 0).all()
