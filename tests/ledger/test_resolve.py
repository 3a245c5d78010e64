"""The fold against one that goes through statements one by one, as the policy is written."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partly.ledger.resolve import RANKS, Statements, add_implied, resolve_entries
from partly.ledger.vocabulary import Change, Label, Vocabulary, apply


@dataclass(frozen=True)
class Said:
    item: int
    label: int
    z: int
    kind: str
    voice: int


LABELS = 5
said = st.builds(
    Said,
    st.integers(0, 3),
    st.integers(0, LABELS - 1),
    st.sampled_from([1, -1, 0]),
    st.sampled_from(list(RANKS)),
    st.integers(0, 2),
)
policies = st.sampled_from(["latest", "majority"])


def arrays(statements: list[Said]) -> Statements:
    voices = {one: i for i, one in enumerate(dict.fromkeys((s.kind, s.voice) for s in statements))}
    item, label = (np.array([getattr(s, name) for s in statements], np.int64) for name in ("item", "label"))
    z = np.array([s.z for s in statements], np.int8)
    voice = np.array([voices[s.kind, s.voice] for s in statements], np.int64)
    return Statements(item, label, z, voice, np.array([RANKS[s.kind] for s in statements], np.int8))


def slow(statements: list[Said], policy: str) -> dict[tuple[int, int], tuple[int, int, bool]]:
    """(item, label) -> (z, rank, do voices differ)."""
    current: dict[tuple[int, int], dict[tuple[str, int], Said]] = defaultdict(dict)
    for one in statements:
        voices = current[one.item, one.label]
        voices.pop((one.kind, one.voice), None)
        voices[one.kind, one.voice] = one  # last, as the one that spoke last
    found = {}
    for entry, voices in current.items():
        top = max(RANKS[one.kind] for one in voices.values())
        votes = [one.z for one in voices.values() if RANKS[one.kind] == top and one.z]
        z = votes[-1] if votes else 0
        if policy == "majority" and top == RANKS["person"]:
            z = int(np.sign(sum(votes)))
        words = {one.z for one in voices.values()}
        found[entry] = (z, top, {1, -1} <= words)
    return found


def as_dict(entries: object) -> dict[tuple[int, int], tuple[int, int, bool]]:
    rows = zip(*(part.tolist() for part in vars(entries).values()), strict=True)
    return {(item, label): (z, rank, conflicting) for item, label, z, rank, conflicting in rows}


@given(st.lists(said, max_size=40), policies)
def test_it_is_what_the_policy_says(statements: list[Said], policy: str) -> None:
    assert as_dict(resolve_entries(arrays(statements), policy)) == slow(statements, policy)


@given(st.lists(said, max_size=30), st.randoms(use_true_random=False), policies)
def test_the_order_of_independent_statements_does_not_matter(
    statements: list[Said], random: object, policy: str
) -> None:
    """Those about different entries are independent."""
    queues: dict[tuple[int, int], list[Said]] = defaultdict(list)
    for one in statements:
        queues[one.item, one.label].append(one)
    shuffled = []
    while left := [queue for queue in queues.values() if queue]:
        shuffled.append(random.choice(left).pop(0))  # type: ignore[attr-defined]
    assert as_dict(resolve_entries(arrays(statements), policy)) == as_dict(resolve_entries(arrays(shuffled), policy))


@given(st.lists(said, max_size=30, unique_by=lambda s: (s.item, s.label, s.kind, s.voice)), st.randoms())
def test_among_people_a_majority_needs_no_order(statements: list[Said], random: object) -> None:
    people = [Said(s.item, s.label, s.z, "person", s.voice) for s in statements]
    people = list({(s.item, s.label, s.voice): s for s in people}.values())
    other = people[:]
    random.shuffle(other)  # type: ignore[attr-defined]
    assert as_dict(resolve_entries(arrays(people), "majority")) == as_dict(resolve_entries(arrays(other), "majority"))


@given(st.lists(said, max_size=30), st.lists(said, max_size=10), policies)
def test_no_model_import_or_rule_changes_what_people_decide(
    people: list[Said], others: list[Said], policy: str
) -> None:
    people = [Said(s.item, s.label, s.z, "person", s.voice) for s in people]
    others = [s for s in others if s.kind != "person"]
    alone = as_dict(resolve_entries(arrays(people), policy))
    beside = as_dict(resolve_entries(arrays([*people, *others]), policy))
    assert {entry: beside[entry][:2] for entry in alone} == {entry: found[:2] for entry, found in alone.items()}


# ---------------------------------------------------------------- what follows


def vocabulary(*changes: Change) -> Vocabulary:
    labels: dict[int, Label] = {}
    for change in changes:
        apply(labels, change)
    return Vocabulary(MappingProxyType(labels))


def folded(made: Vocabulary, *rows: tuple[int, int, str]) -> dict[int, tuple[int, int]]:
    """Of one item: label -> (z, rank), from (label, z, kind)."""
    entries = resolve_entries(arrays([Said(0, label, z, kind, 0) for label, z, kind in rows]), "latest")
    return {label: found[:2] for (_, label), found in as_dict(add_implied(entries, made)).items()}


ANIMALS = vocabulary(Change("add", (), ((0, "Animal"),)), Change("split", (0,), ((1, "Cat"), (2, "Dog"))))
CARS = vocabulary(Change("add", (), ((0, "Car"), (1, "Auto"))), Change("merge", (0, 1), ((2, "Vehicle"),)))


def test_a_no_goes_down_and_a_yes_goes_up_with_its_rank() -> None:
    assert folded(ANIMALS, (0, -1, "person")) == {0: (-1, 3), 1: (-1, 3), 2: (-1, 3)}
    assert folded(ANIMALS, (1, 1, "model")) == {0: (1, 1), 1: (1, 1)}
    assert folded(ANIMALS, (0, 1, "person")) == {0: (1, 3)}, "children start unknown"
    assert folded(ANIMALS, (1, -1, "person")) == {1: (-1, 3)}


def test_the_higher_rank_wins_over_a_hierarchy_too() -> None:
    assert folded(ANIMALS, (0, -1, "model"), (1, 1, "person")) == {0: (1, 3), 1: (1, 3)}
    assert folded(ANIMALS, (0, -1, "person"), (1, 1, "model")) == {0: (-1, 3), 1: (-1, 3), 2: (-1, 3)}


def test_people_who_contradict_each_other_over_a_hierarchy_both_stay_and_are_listed() -> None:
    entries = resolve_entries(arrays([Said(0, 0, -1, "person", 0), Said(0, 1, 1, "person", 1)]), "latest")
    found = as_dict(add_implied(entries, ANIMALS))
    assert found[0, 0] == (-1, 3, True)
    assert found[0, 1] == (1, 3, True)
    assert found[0, 2] == (-1, 3, False)


def test_cannot_tell_gives_way_to_what_follows_from_the_same_rank_and_to_no_lower_one() -> None:
    assert folded(ANIMALS, (0, -1, "person"), (1, 0, "person"))[1] == (-1, 3)
    assert folded(ANIMALS, (0, -1, "model"), (1, 0, "person"))[1] == (0, 3)


@pytest.mark.parametrize(
    ("car", "auto", "merged"),
    [(1, 0, 1), (0, 1, 1), (1, -1, 1), (-1, -1, -1), (-1, None, None), (-1, 0, None), (None, None, None)],
)
def test_of_merged_labels_a_yes_is_a_yes_and_a_no_takes_all(
    car: int | None, auto: int | None, merged: int | None
) -> None:
    rows = [(label, z, "person") for label, z in ((0, car), (1, auto)) if z is not None]
    assert folded(CARS, *rows).get(2) == (None if merged is None else (merged, 3))


def test_what_is_said_of_the_merged_label_itself_stands_at_the_same_rank() -> None:
    assert folded(CARS, (0, 1, "person"), (2, -1, "person"))[2] == (-1, 3)
    assert folded(CARS, (0, 1, "person"), (2, -1, "model"))[2] == (1, 3)


def test_parts_of_a_merged_label_follow_it() -> None:
    made = vocabulary(
        Change("add", (), ((0, "A"), (1, "B"))),
        Change("split", (0,), ((2, "A1"),)),
        Change("merge", (0, 1), ((3, "C"),)),
    )
    assert folded(made, (2, 1, "person"))[3] == (1, 3)
    assert folded(made, (3, -1, "person"))[2] == (-1, 3)
    assert folded(made, (0, -1, "person"), (1, -1, "import")) == {0: (-1, 3), 1: (-1, 2), 2: (-1, 2), 3: (-1, 2)}


tree = vocabulary(
    Change("add", (), ((0, "a"),)),
    Change("split", (0,), ((1, "b"), (2, "c"))),
    Change("split", (1,), ((3, "d"), (4, "e"))),
)


@given(st.lists(said, max_size=30), policies)
def test_what_follows_never_overrules_a_person_and_is_complete(statements: list[Said], policy: str) -> None:
    entries = resolve_entries(arrays(statements), policy)
    before, after = as_dict(entries), as_dict(add_implied(entries, tree))
    for entry, (z, rank, _) in before.items():
        if rank == RANKS["person"] and z:
            assert after[entry][:2] == (z, rank)
    for (item, label), (z, rank, conflicting) in after.items():
        parent = tree.labels[label].parent
        above = after.get((item, parent)) if parent is not None else None
        if z == 1 and parent is not None:  # a yes below is a yes above, unless both are said at the same rank
            assert above is not None
            assert above[0] == 1 or (above[1] >= rank and (conflicting or above[2] or above[1] > rank))
