"""Ledgers in a file and on a server: appended to, taken back, travelled through, and with a vocabulary that changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partly import Hierarchy, Labels, Ledger
from partly.errors import LabelError, SettingError
from partly.ledger import reader
from partly.ledger.history import History
from partly.ledger.reader import read_vocabulary_history

Place = Callable[[], str]
NAMES = ("cat", "dog", "Animal")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "labels.db", names=NAMES)


def known(ledger: Ledger, **how: object) -> dict[tuple[str, str], bool]:
    labels = ledger.labels(**how)  # type: ignore[arg-type]
    row, column, value = labels.entries()
    return {(labels.ids[i], labels.names[j]): bool(v) for i, j, v in zip(row, column, value, strict=True)}


def test_the_same_story_in_a_file_and_on_a_server(place: Place) -> None:
    ledger = Ledger.create(place(), names=NAMES)
    first = ledger.append(["a", "b", "c"], ["cat", "cat", "Animal"], [1, 0, 0], author="anna")
    guess = ledger.append(["a", "c"], ["cat", "dog"], [0, 1], kind="model", run="runs/1", confidence=[0.75, 1])
    ledger.split("Animal", ["Bird", "Fish"], author="anna")
    assert (first, guess) == (2, 3)
    said = {("a", "cat"): True, ("b", "cat"): False, ("c", "Animal"): False}
    below = {("c", "Bird"): False, ("c", "Fish"): False}
    assert known(ledger) == said | below
    assert known(ledger, models=True) == said | below | {("c", "dog"): True}
    assert known(ledger, at=2) == said
    assert ledger.labels().names == (*NAMES, "Bird", "Fish")
    assert ledger.hierarchy() == Hierarchy({"Bird": "Animal", "Fish": "Animal"})
    assert ledger.disagreements(models=True) == [("a", "cat")]
    assert ledger.disagreements() == []
    assert [(one.label, one.value, one.confidence, one.counts) for one in ledger.show("a")] == [
        ("cat", "yes", None, True),
        ("cat", "no", 0.75, True),
    ]
    undo = ledger.undo(first, by="ben")
    assert known(ledger) == {}
    assert ledger.labels().ids == (), "nobody speaks of any item any more"
    assert [one.undone_by for one in ledger.log()] == [0, undo, 0, 0, 0]
    ledger.undo(undo)
    assert known(ledger) == said | below
    again = Ledger(ledger.store.place)
    assert again.labels() == ledger.labels()
    assert again.log() == ledger.log()


def test_values_are_yes_no_and_cannot_tell(ledger: Ledger) -> None:
    ledger.append(list("abcdef"), ["cat"] * 6, [True, False, None, float("nan"), 1.0, 0], author="anna")
    ledger.append(["c"], ["cat"], [1], kind="import", author="file")
    assert known(ledger) == {(i, "cat"): v for i, v in zip("abef", (True, False, True, False), strict=True)}
    assert ledger.labels().ids == tuple("abcdef")
    with pytest.raises(LabelError, match="these are not\n  -1\n  'yes'"):
        ledger.append(list("abc"), ["cat"] * 3, [-1, 1, "yes"], author="anna")
    with pytest.raises(LabelError, match="got -1, 7"):
        ledger.append(list("abc"), ["cat"] * 3, np.array([-1, 1, 7]), author="anna")


def test_labels_go_in_and_come_out(ledger: Ledger) -> None:
    nan = float("nan")
    labels = Labels.from_nan([[1, 0, nan], [nan, nan, nan], [nan, 1, 0]], names=NAMES, ids=["x", "y", "z"])
    ledger.append_labels(labels, author="labels.csv")
    assert ledger.labels() == labels
    assert ledger.log()[-1].count == 4


def test_a_batch_names_an_entry_once(ledger: Ledger) -> None:
    batch = ledger.append(["a", "a"], ["cat", "cat"], [1, 1], author="anna")
    assert ledger.log()[batch - 1].count == 1
    with pytest.raises(LabelError, match="have two different values in one batch\n  item 'a', label 'cat'"):
        ledger.append(["a", "a"], ["cat", "cat"], [1, 0], author="anna")


def test_nothing_of_a_refused_batch_stays(ledger: Ledger) -> None:
    before = ledger.log()
    for refused in (
        lambda: ledger.append(["new"], ["kat"], [1], author="anna"),
        lambda: ledger.append(["new"], ["cat"], [1], author=" "),
        lambda: ledger.append(["new"], ["cat"], [1], kind="model", author="anna"),
        lambda: ledger.append(["new"], ["cat"], [1], kind="god", author="anna"),
        lambda: ledger.append(["new"], ["cat", "dog"], [1], author="anna"),
        lambda: ledger.append(["new"], ["cat"], [1], author="anna", confidence=2),
        lambda: ledger.append(["a\0b"], ["cat"], [1], author="anna"),
        lambda: ledger.append(["\ud800"], ["cat"], [1], author="anna"),
    ):
        with pytest.raises((LabelError, SettingError)):
            refused()
    assert ledger.log() == before
    with pytest.raises(SettingError, match="no statement about 'new'"):
        ledger.show("new")


def test_a_name_that_is_near_is_told(ledger: Ledger) -> None:
    with pytest.raises(LabelError, match=r"'Cat': never existed\. Did you mean 'cat'\?"):
        ledger.append(["a"], ["Cat"], [1], author="anna")


def test_a_key_stands_for_one_batch(ledger: Ledger) -> None:
    one = ledger.append(["a"], ["cat"], [1], author="anna", key="7")
    assert ledger.append(["a"], ["cat"], [1], author="anna", key="7") == one
    assert len(ledger.log()) == one
    with pytest.raises(SettingError, match="has this key and other statements"):
        ledger.append(["a"], ["cat"], [0], author="anna", key="7")
    with pytest.raises(SettingError, match="has this key and other statements"):
        ledger.append(["a"], ["cat"], [1], author="ben", key="7")
    with pytest.raises(SettingError, match="has this key and other statements"):
        ledger.append(["other"], ["cat"], [1], author="anna", key="7")
    with pytest.raises(SettingError, match="no statement about"):
        ledger.show("other")


# ---------------------------------------------------------------- taking back


def test_one_statement_is_taken_back(ledger: Ledger) -> None:
    batch = ledger.append(["a", "a", "b"], ["cat", "dog", "cat"], [1, 1, 0], author="anna")
    undo = ledger.undo(batch, item="a", label="dog")
    assert known(ledger) == {("a", "cat"): True, ("b", "cat"): False}
    assert [one.counts for one in ledger.show("a")] == [True, False]
    ledger.undo(batch, item="a")
    assert known(ledger) == {("b", "cat"): False}
    with pytest.raises(SettingError, match="has no statement about 'a'"):
        ledger.undo(batch, item="a")
    ledger.undo(undo)
    assert known(ledger) == {("a", "dog"): True, ("b", "cat"): False}


def test_a_source_is_taken_back(ledger: Ledger) -> None:
    ledger.append(["a"], ["cat"], [1], kind="model", run="runs/1")
    ledger.append(["a"], ["dog"], [1], author="anna")
    ledger.append(["b"], ["cat"], [1], kind="model", run="runs/1")
    ledger.append(["b"], ["dog"], [1], kind="model", run="runs/2")
    undo = ledger.undo(kind="model", run="runs/1")
    assert known(ledger, models=True) == {("a", "dog"): True, ("b", "dog"): True}
    assert len(ledger.log()[undo - 1].taken_back) == 2
    ledger.undo(undo)
    assert len(known(ledger, models=True)) == 4


def test_what_cannot_be_taken_back(ledger: Ledger) -> None:
    batch = ledger.append(["a"], ["cat"], [1], author="anna")
    undo = ledger.undo(batch)
    with pytest.raises(SettingError, match=f"undone already, by batch {undo}"):
        ledger.undo(batch)
    for wrong in ({"batch": 99}, {"batch": 0}, {}, {"batch": batch, "kind": "person"}, {"author": "nobody"}):
        with pytest.raises(SettingError):
            ledger.undo(**wrong)  # type: ignore[arg-type]


def test_a_change_on_which_others_build_is_not_taken_back_before_them(ledger: Ledger) -> None:
    split = ledger.split("Animal", ["Bird"])
    rename = ledger.rename("Bird", "Birds")
    with pytest.raises(SettingError, match=f"undo them first. batch {rename}"):
        ledger.undo(split)
    ledger.undo(rename)
    ledger.undo(split)
    assert ledger.labels().names == NAMES


def test_a_writer_knows_what_others_have_changed_meanwhile(place: Place) -> None:
    """What he has seen is remembered: also that a change, or its undo, is taken back by somebody else."""
    one = Ledger.create(url := place(), names=NAMES)
    two = Ledger(url)

    def seen() -> tuple[str, ...]:
        one.append(["a"], ["cat"], [1], author="anna")
        with one.store.reading() as connection:
            new = read_vocabulary_history(Ledger(url).store, connection)
        assert one.store.known_structure is not None
        assert one.store.known_structure[1] == new
        return new.vocabulary.names

    assert seen() == NAMES
    bird = two.add(["Bird"])
    assert seen() == (*NAMES, "Bird")
    undo = two.undo(bird)
    assert seen() == NAMES
    two.undo(undo)
    assert seen() == (*NAMES, "Bird")
    with pytest.raises(LabelError, match="two different values"):
        one.append(["a", "a"], ["new", "new"], [1, 0], author="anna", add_labels=True)  # was added in vain
    assert seen() == (*NAMES, "Bird")
    two.rename("Bird", "Birds")
    one.append(["a"], ["Birds"], [1], author="anna")


def test_many_labels_do_not_hold_up_an_answer(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger.add([f"label {i}" for i in range(500)])
    assert len(ledger.labels().names) == 503
    ledger.append(["a"], ["cat"], [1], author="anna")
    monkeypatch.setattr("partly.ledger.history.apply", None)
    ledger.append(["b"], ["cat"], [1], author="anna")  # the vocabulary is not made again


steps = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from("ab"), st.sampled_from(NAMES), st.sampled_from([1, 0, None])),
        st.tuples(st.just("undo"), st.integers(2, 12)),
    ),
    max_size=8,
)


def test_taking_back_an_answer_does_not_read_all_others(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """It happens under the lock of all writers, so its work must not grow with the batches that there are."""
    numbers = [ledger.append([f"item {i}"], ["cat"], [1], author="anna") for i in range(10)]
    undone = [ledger.undo(number) for number in numbers[:8:2]]
    assert [one.number for one in loaded(ledger).batches] == [1]  # the vocabulary alone
    with monkeypatch.context() as patched:
        patched.setattr(reader, "read_batches", None)  # whoever reads all of them fails
        again = ledger.undo(undone[0])
        ledger.undo(numbers[1])
        for number, by in ((numbers[2], undone[1]), (undone[0], again)):
            with pytest.raises(SettingError, match=f"Batch {number} is undone already, by batch {by}"):
                ledger.undo(number)
        for number in (0, -1, 1000, True, "1"):
            with pytest.raises(SettingError, match="There is no batch"):
                ledger.undo(number)  # type: ignore[arg-type]
    gone = {numbers[i] for i in (1, 2, 4, 6)}
    assert {one.number for one in ledger.log() if one.undone_by and one.number in numbers} == gone
    split = ledger.split("cat", ["kitten"])
    taken = ledger.undo(split)
    assert loaded(ledger).vocabulary == ledger.vocabulary()
    ledger.undo(taken)
    assert loaded(ledger).vocabulary == ledger.vocabulary()
    assert ledger.labels().names == (*NAMES, "kitten")


def loaded(ledger: Ledger) -> History:
    """What a writer knows who has seen nothing before."""
    store = Ledger(ledger.store.place).store
    with store.reading() as connection:
        return read_vocabulary_history(store, connection)


@settings(max_examples=12)
@given(steps)
def test_undo_of_everything_gives_the_start_and_undo_of_that_gives_all_back(steps: list[tuple[object, ...]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger.create(Path(folder) / "labels.db", names=NAMES)
        start = ledger.labels()
        states = {1: start}
        for step in steps:
            if step[0] == "say":
                number = ledger.append([step[1]], [step[2]], [step[3]], author="anna")
            else:
                there = ledger.log()
                meant = [one.number for one in there if one.number == step[1] and not one.undone_by]
                if not meant:
                    continue
                number = ledger.undo(meant[0])
            states[number] = ledger.labels()
        for number, labels in states.items():
            assert ledger.labels(at=number) == labels, "the past does not change"
        end = ledger.labels()
        undone = []
        while left := [one.number for one in ledger.log() if not one.undone_by and one.number > 1][::-1]:
            left = [number for number in left if number not in undone]
            if not left:
                break
            undone.append(ledger.undo(left[0]))
        for one in reversed(undone):
            ledger.undo(one)
        assert ledger.labels() == end
        said = [(s[1], s[2], s[3]) for s in steps if s[0] == "say"]
        words = {1: "yes", 0: "no", None: "cannot tell"}
        for item in {one[0] for one in said}:
            told = [(item, one.label, one.value) for one in ledger.show(str(item))]
            assert told == [(a, b, words[c]) for a, b, c in said if a == item], "nothing a person said is ever lost"


# ---------------------------------------------------------------- time


def test_a_state_by_time(ledger: Ledger) -> None:
    for item in "abc":
        ledger.append([item], ["cat"], [1], author="anna")
    times = [one.time for one in ledger.log()]
    assert times == sorted(times)
    assert ledger.labels(at=times[2]).ids == ("a", "b")
    assert ledger.labels(at=times[2].isoformat()).ids == ("a", "b")
    assert ledger.labels(at=times[2].astimezone(UTC).replace(tzinfo=None)).ids == ("a", "b")
    assert ledger.labels(at=times[0] - timedelta(seconds=1)).shape == (0, 0)
    assert ledger.labels(at=datetime.now(UTC) + timedelta(days=1)) == ledger.labels(at="4") == ledger.labels()
    for wrong in ("yesterday", 9, -1, 2.5, True):
        with pytest.raises(SettingError, match="at = "):
            ledger.labels(at=wrong)  # type: ignore[arg-type]


def test_a_clock_that_is_set_back_does_not_turn_the_order(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partly.ledger.writer.now", lambda: 1)
    ledger.append(["a"], ["cat"], [1], author="anna")
    first, second = ledger.log()
    assert second.time == first.time


def test_what_differs(ledger: Ledger) -> None:
    ledger.append(["a", "b"], ["cat", "dog"], [1, 1], author="anna")
    before = ledger.append(["c"], ["cat"], [1], author="anna")
    ledger.append(["a", "b"], ["cat", "cat"], [0, 1], author="ben")
    ledger.undo(2, item="b", label="dog")
    ledger.rename("cat", "Cat")
    found = [(one.item, one.label, one.before, one.after) for one in ledger.diff(before)]
    assert found == [("a", "Cat", "yes", "no"), ("b", "Cat", "unknown", "yes"), ("b", "dog", "yes", "unknown")]
    assert ledger.diff(before, before) == []


# ---------------------------------------------------------------- the vocabulary changes


def test_a_rename_keeps_what_was_said(ledger: Ledger) -> None:
    batch = ledger.append(["a"], ["cat"], [1], author="anna")
    ledger.rename("cat", "Tomcat")
    assert known(ledger) == {("a", "Tomcat"): True}
    assert known(ledger, at=batch) == {("a", "cat"): True}
    with pytest.raises(LabelError, match="is called 'Tomcat' now"):
        ledger.append(["a"], ["cat"], [1], author="anna")


def test_a_retired_label_is_hidden_and_still_speaks(ledger: Ledger) -> None:
    ledger.split("Animal", ["Bird"])
    ledger.append(["a"], ["Animal"], [0], author="anna")
    ledger.retire(["Animal"])
    assert known(ledger) == {("a", "Bird"): False}
    assert ledger.hierarchy() is None
    with pytest.raises(LabelError, match="was retired"):
        ledger.append(["a"], ["Animal"], [1], author="anna")
    ledger.add(["animal"])  # the name is free
    assert ledger.labels().names == ("cat", "dog", "Bird", "animal")


def test_merged_labels(ledger: Ledger) -> None:
    ledger.append(["a", "a", "b", "b", "c"], ["cat", "dog"] * 2 + ["cat"], [1, 0, 0, 0, 0], author="anna")
    merge = ledger.merge(["cat", "dog"], "cat")
    assert ledger.labels().names == ("Animal", "cat")
    assert known(ledger) == {("a", "cat"): True, ("b", "cat"): False}
    ledger.append(["c"], ["cat"], [1], author="anna")
    assert known(ledger)["c", "cat"] is True
    ledger.undo(merge)
    assert known(ledger) == {
        (i, j): i + j == "acat" for i, j in [*((i, j) for i in "ab" for j in ("cat", "dog")), ("c", "cat")]
    }


def test_changes_that_cannot_be(ledger: Ledger) -> None:
    ledger.split("Animal", ["Bird"])
    before = ledger.log()
    for wrong in (
        lambda: ledger.add(["CAT"]),
        lambda: ledger.add(["x", "X"]),
        lambda: ledger.add(["x"], parent="Anima"),
        lambda: ledger.split("Animal", []),
        lambda: ledger.split("Animal", ["dog"]),
        lambda: ledger.split("nobody", ["x"]),
        lambda: ledger.merge(["cat"], "x"),
        lambda: ledger.merge(["cat", "cat"], "x"),
        lambda: ledger.merge(["cat", "Bird"], "dog"),
        lambda: ledger.merge(["Animal", "Bird"], "x"),
        lambda: ledger.rename("cat", "dog"),
        lambda: ledger.rename("cat", " "),
        lambda: ledger.retire(["cat", "nobody"]),
        lambda: ledger.add(["a\0b"]),
    ):
        with pytest.raises(LabelError):
            wrong()
    assert ledger.log() == before


def test_several_parents_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LabelError, match=r"A ledger holds one parent.*\n.*'cat': animal, pet"):
        Ledger.create(tmp_path / "labels.db", ["cat"], Hierarchy({"cat": ["animal", "pet"]}))


def test_a_hierarchy_from_the_start(tmp_path: Path) -> None:
    parents = Hierarchy({"tabby": "cat", "cat": "animal"})
    ledger = Ledger.create(tmp_path / "labels.db", names=["tabby", "stone"], hierarchy=parents)
    assert set(ledger.labels().names) == {"tabby", "cat", "animal", "stone"}
    assert ledger.hierarchy() == parents
    ledger.append(["a"], ["animal"], [0], author="anna")
    assert known(ledger) == dict.fromkeys([("a", "tabby"), ("a", "cat"), ("a", "animal")], False)


def test_weights_come_from_the_label_itself_its_parts_or_its_parent(ledger: Ledger) -> None:
    ledger.split("Animal", ["Bird"])
    ledger.split("Bird", ["Owl"])
    ledger.rename("cat", "Cat")
    ledger.merge(["Cat", "dog"], "Pet")
    ledger.add(["stone"])
    there = ledger.vocabulary()
    assert there.names == ("Animal", "Bird", "Owl", "Pet", "stone")
    assert there.sources(NAMES) == [(2,), (2,), (2,), (0, 1), ()]
    assert there.sources(["Pet", "Bird"]) == [(), (1,), (1,), (0,), ()]


# ---------------------------------------------------------------- two of them


def test_labels_of_another_vocabulary(ledger: Ledger) -> None:
    nan = float("nan")
    names, ids = ["kitty", "tiger", "puppy"], ["x", "y", "z"]
    labels = Labels.from_nan([[1, 0, nan], [0, 0, 1], [0, nan, 0]], names=names, ids=ids)
    with pytest.raises(LabelError, match="3 labels are not in the vocabulary"):
        ledger.append_labels(labels, author="theirs.csv")
    ledger.append_labels(labels, author="theirs.csv", mapping={"kitty": "cat", "tiger": "cat", "puppy": "dog"})
    assert known(ledger) == {("x", "cat"): True, ("y", "cat"): False, ("y", "dog"): True, ("z", "dog"): False}
    with pytest.raises(LabelError, match="mapping names labels that are not there, of 3\n  'lion'"):
        ledger.append_labels(labels, author="theirs.csv", mapping={"lion": "cat"})
    ledger.append_labels(labels, author="theirs.csv", add_labels=True)
    assert ledger.labels().names == (*NAMES, *names)


def test_another_ledger_with_all_its_voices(ledger: Ledger, place: Place) -> None:
    other = Ledger.create(place(), names=["kitty", "stone"])
    other.append(["a", "b"], ["kitty", "kitty"], [1, None], author="ben")
    other.append(["a"], ["kitty"], [0], kind="model", run="runs/1")
    other.append(["b"], ["stone"], [0], author="ben")
    other.undo(other.append(["c"], ["stone"], [1], author="carl"))
    ledger.append(["b"], ["cat"], [1], kind="import", author="file")
    batches = ledger.append_ledger(other, mapping={"kitty": "cat"}, add_labels=True)
    assert [(one.kind, one.author, one.run) for one in ledger.log() if one.number in batches] == [
        ("model", "", "runs/1"),
        ("person", "ben", ""),
    ]
    assert known(ledger) == {("a", "cat"): True, ("b", "stone"): False}, "ben cannot tell of b, which stands"
    assert ledger.disagreements(models=True) == [("a", "cat")]


def test_a_repeated_batch_is_skipped_on_request(place: Place) -> None:
    """Only the last of its source, only while it counts; an import under another name is the same import."""
    ledger = Ledger.create(place(), names=NAMES)
    labels = Labels.from_ternary([[1, 0, -1], [0, 0, 0]], names=NAMES, ids=["a", "b"])
    other = Labels.from_ternary([[1, 0, 1], [0, 0, 0]], names=NAMES, ids=["a", "b"])

    def again(said: Labels, author: str, kind: str = "import") -> int:
        return ledger.append_labels(said, kind=kind, author=author, skip_repeated=True)

    first = again(labels, "one.csv")
    assert again(labels, "one.csv") == again(labels, "copy.csv") == first
    assert len(ledger.log()) == first
    assert again(labels, "anna", "person") == first + 1  # people may agree
    assert again(labels, "ben", "person") == first + 2
    assert again(labels, "ben", "person") == first + 2
    assert again(other, "one.csv") == first + 3  # other values
    assert again(labels, "one.csv") == first + 4  # and back
    assert again(labels[:1], "one.csv") == first + 5  # the same entries of other items
    ledger.undo(first + 5)
    assert again(labels[:1], "one.csv") == first + 7  # what is taken back may be said again
    ledger.undo(first + 7, item="a", label="cat")
    assert again(labels[:1], "one.csv") == first + 9
    assert ledger.append_labels(labels[:1], author="one.csv") == first + 10  # nobody asked
    ledger.rename("cat", "Katze")
    renamed = Labels.from_ternary([[1, 0, -1]], names=["Katze", "dog", "Animal"], ids=["a"])
    assert again(renamed, "one.csv") == first + 10  # still the same label


def test_another_ledger_twice(tmp_path: Path, ledger: Ledger) -> None:
    ledger.append(["a"], ["cat"], [1], author="anna")
    ledger.append(["a"], ["dog"], [1], author="ben")
    target = Ledger.create(tmp_path / "all.db", names=NAMES)
    first = target.append_ledger(ledger, skip_repeated=True)
    assert target.append_ledger(ledger, skip_repeated=True) == first
    ledger.append(["b"], ["dog"], [1], author="ben")
    assert target.append_ledger(ledger, skip_repeated=True) == [first[0], first[-1] + 1]
