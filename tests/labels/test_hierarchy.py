"""Hierarchy: its shape, and what follows from it, against slow loops over one item at a time."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from partly.errors import LabelError
from partly.labels import Labels, matrix
from partly.labels.hierarchy import Hierarchy

ZOO = Hierarchy({"cat": "feline", "lion": "feline", "feline": "animal", "dog": "animal", "oak": "plant"})
Said = dict[str, int]  # name -> +1, -1, 0, of one item


# -------------------------------------------------------------------- shape


def test_what_is_there() -> None:
    assert ZOO.roots == ("animal", "plant")
    assert ZOO.names == ("animal", "plant", "feline", "dog", "oak", "cat", "lion")
    assert ZOO.leaves == ("dog", "oak", "cat", "lion")
    assert dict(ZOO.children) == {"animal": ("feline", "dog"), "plant": ("oak",), "feline": ("cat", "lion")}
    assert list(ZOO.children) == ["animal", "plant", "feline"]
    assert ZOO.parents["cat"] == "feline"
    assert repr(ZOO) == "Hierarchy(7 labels: 2 roots, 4 leaves)"


def test_a_hierarchy_does_not_change() -> None:
    parents = {"cat": "animal"}
    hierarchy = Hierarchy(parents)
    parents["dog"] = "animal"
    assert hierarchy.names == ("animal", "cat")
    for mapping in (hierarchy.parents, hierarchy.children):
        with pytest.raises(TypeError):
            mapping["dog"] = "animal"  # type: ignore[index]
    with pytest.raises(AttributeError):
        hierarchy.parents = {}  # type: ignore[misc]
    assert copy.deepcopy(hierarchy) == hierarchy == Hierarchy({"cat": "animal"}) != ZOO


@pytest.mark.parametrize(
    ("parents", "words"),
    [
        ({"a": "a"}, ["below itself", "a -> a"]),
        ({"a": "b", "b": "c", "c": "a"}, ["below itself", "a -> b -> c -> a"]),
        ({"x": "a", "a": "b", "b": "a", "c": "c"}, ["a -> b -> a", "c -> c"]),
        ({"cat": None}, ["'cat': None", "child -> parent"]),
        ({"animal": ["cat", 1]}, ["'animal': ['cat', 1]", "child -> parent"]),
        ({"animal": []}, ["'animal': []", "child -> parent"]),
        ({1: "animal"}, ["1: 'animal'"]),
        ([("cat", "animal")], ["mapping", "list", "child -> parent"]),
        ({"cat": ""}, ["empty or missing name"]),
        ({"cat": "Animal", "dog": "animal"}, ["'Animal' and 'animal'"]),
    ],
)
def test_what_is_no_hierarchy_is_refused(parents: Any, words: list[str]) -> None:
    with pytest.raises(LabelError) as caught:
        Hierarchy(parents)
    for word in words:
        assert word in str(caught.value)


def test_a_long_chain_needs_no_recursion() -> None:
    count = 3000
    chain = Hierarchy({str(i + 1): str(i) for i in range(count)})
    z = np.zeros((2, count + 1), np.int8)
    z[0, -1], z[1, 0] = 1, -1
    deduced = chain.deduce(Labels.from_ternary(z)).ternary()
    assert (deduced[0] == 1).all()
    assert (deduced[1] == -1).all()


# -------------------------------------------------------------------- worked by hand


def zoo(**said: int) -> Labels:
    return Labels.from_ternary([list(said.values())], names=list(said))


def test_deduction_by_hand() -> None:
    up = ZOO.deduce(zoo(animal=0, feline=0, cat=1, lion=0, dog=-1, oak=0))
    assert up.ternary().tolist() == [[1, 1, 1, 0, -1, 0]]
    down = ZOO.deduce(zoo(animal=-1, feline=0, cat=0, lion=0, dog=0, oak=0))
    assert down.ternary().tolist() == [[-1, -1, -1, -1, -1, 0]]


def test_the_last_child_by_hand() -> None:
    labels = zoo(animal=1, feline=0, cat=-1, lion=0, dog=-1, oak=0)
    assert ZOO.deduce(labels) == labels
    last = ZOO.deduce(labels, last_child=True)
    assert last.ternary().tolist() == [[1, 1, -1, 1, -1, 0]]  # feline, and then lion
    only = ZOO.deduce(zoo(plant=1, oak=0), last_child=True)
    assert only.ternary().tolist() == [[1, 1]]
    all_no = zoo(plant=1, oak=-1)  # something that is no oak: nothing to add, nothing to take away
    assert ZOO.deduce(all_no, last_child=True) == all_no


def test_a_child_without_a_column_may_be_the_one() -> None:
    labels = zoo(animal=1, dog=-1)
    assert ZOO.deduce(labels, last_child=True) == labels
    assert ZOO.deduce(zoo(animal=-1, cat=0)).ternary().tolist() == [[-1, -1]]  # across the feline that is not there


def test_labels_outside_the_hierarchy_are_left_alone() -> None:
    labels = Labels.from_ternary([[0, 1, 0], [1, 0, -1]], names=["stone", "cat", "animal"], ids=["p", "q"])
    deduced = ZOO.deduce(labels)
    assert deduced.names == labels.names
    assert deduced.ids == labels.ids
    assert deduced.ternary().tolist() == [[0, 1, 1], [1, -1, -1]]


def test_coarse_labels_of_fine_ones_by_hand() -> None:
    names = ["cat", "lion", "dog", "oak"]
    z = [[1, 0, 0, -1], [-1, -1, 0, 0], [-1, -1, -1, 1], [0, -1, -1, 0]]
    coarse = ZOO.coarsen(Labels.from_ternary(z, names=names, ids=["p", "q", "r", "s"]))
    assert coarse.names == ("animal", "plant", "feline")
    assert coarse.ids == ("p", "q", "r", "s")
    assert coarse.ternary().tolist() == [[1, -1, 1], [0, 0, -1], [-1, 1, -1], [0, 0, 0]]


def test_a_coarse_label_that_is_known_is_used() -> None:
    assert ZOO.coarsen(zoo(animal=1, dog=-1, feline=-1)).ternary().tolist() == [[1, 0, -1]]
    assert ZOO.coarsen(zoo(animal=0, dog=-1)).ternary().tolist() == [[0, 0, 0]]  # nobody said anything of felines


def test_contradictions_show_the_shortest_way() -> None:
    labels = Labels.from_ternary(
        [[-1, 0, 1, 1], [0, 0, 1, 1], [-1, -1, 1, -1], [-1, 1, 1, 0]],
        names=["animal", "feline", "cat", "dog"],
        ids=["p", "q", "r", "s"],
    )
    with pytest.raises(LabelError) as caught:
        ZOO.check(labels)
    assert str(caught.value).splitlines()[1:] == [
        "  item 'p': 'dog' is yes and 'animal' is no (dog -> animal)",
        "  item 'p': 'cat' is yes and 'animal' is no (cat -> feline -> animal)",
        "  item 'r': 'cat' is yes and 'feline' is no (cat -> feline)",
        "  item 's': 'feline' is yes and 'animal' is no (feline -> animal)",
    ]
    for method in (ZOO.deduce, ZOO.coarsen):
        with pytest.raises(LabelError, match="4 labels are yes below a label that is no"):
            method(labels)


def test_names_that_do_not_fit() -> None:
    with pytest.raises(LabelError, match="None of the 7 names"):
        ZOO.check(Labels.from_full([[1]], names=["stone"]))
    with pytest.raises(LabelError, match="hierarchy 'animal', labels 'Animal'"):
        ZOO.deduce(Labels.from_full([[1, 1]], names=["cat", "Animal"]))


# -------------------------------------------------------------------- against slow loops


def above(name: str, parents: dict[str, str]) -> list[str]:
    way = []
    while name in parents:
        name = parents[name]
        way.append(name)
    return way


def slow_contradictions(said: Said, parents: dict[str, str]) -> set[tuple[str, str]]:
    """(yes, no above it) with nothing known between the two."""
    found = set()
    for name in said:
        way = above(name, parents)
        for k, other in enumerate(way):
            if said[name] == 1 and said.get(other) == -1 and not any(said.get(between) for between in way[:k]):
                found.add((name, other))
    return found


def slow_deduction(said: Said, parents: dict[str, str], last_child: bool) -> Said:
    """Rule after rule, until nothing changes."""
    everything = dict.fromkeys([*parents, *parents.values()], 0) | said
    changed = True
    while changed:
        before = dict(everything)
        for child, parent in parents.items():
            if everything[child] == 1:
                everything[parent] = 1
            if everything[parent] == -1:
                everything[child] = -1
        for parent in set(parents.values()) if last_child else ():
            children = [child for child in parents if parents[child] == parent]
            open_ = [child for child in children if everything[child] != -1]
            if everything[parent] == 1 and len(open_) == 1:
                everything[open_[0]] = 1
        changed = everything != before
    return {name: everything[name] for name in said}


def slow_coarse(name: str, said: Said, parents: dict[str, str]) -> int:
    if said.get(name, 0) or name not in parents.values():
        return said.get(name, 0)
    below = [slow_coarse(child, said, parents) for child in parents if parents[child] == name]
    return 1 if 1 in below else -1 if set(below) == {-1} else 0


@st.composite
def forests(draw: st.DrawFn) -> tuple[dict[str, str], Labels]:
    """A random forest in random order, and labels over some of its names and a strange one."""
    size = draw(st.integers(2, 7))
    parents = {"1": "0"} | {str(i): str(draw(st.integers(0, i - 1))) for i in range(2, size) if draw(st.integers(0, 4))}
    parents = {child: parents[child] for child in draw(st.permutations(list(parents)))}
    inside = sorted({*parents, *parents.values()})
    names = draw(st.lists(st.sampled_from([*inside, "strange"]), unique=True, min_size=1))
    if not set(names) & set(inside):
        names.append("0")
    mostly_unknown = st.sampled_from([0, 0, 0, 1, -1])
    z = draw(st.lists(st.lists(mostly_unknown, min_size=len(names), max_size=len(names)), min_size=1, max_size=6))
    kind = draw(st.sampled_from([np.array, sp.csr_array]))
    return parents, Labels.from_ternary(kind(np.array(z, np.int8)), names=names)


def by_item(labels: Labels) -> list[Said]:
    return [dict(zip(labels.names, map(int, row), strict=True)) for row in labels.rows(slice(None))]


def consistent(labels: Labels, parents: dict[str, str]) -> Labels:
    return labels[[not slow_contradictions(said, parents) for said in by_item(labels)]]


@given(forests(), st.sampled_from([1, 1 << 22]))
def test_contradictions_are_those_of_a_slow_search(case: tuple[dict[str, str], Labels], block: int) -> None:
    parents, labels = case
    expected = {
        f"item {item!r}: {yes!r} is yes and {no!r} is no"
        for item, said in zip(labels.ids, by_item(labels), strict=True)
        for yes, no in slow_contradictions(said, parents)
    }
    if not expected:
        Hierarchy(parents).check(labels)
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix, "BLOCK", block)
        with pytest.raises(LabelError) as caught:
            Hierarchy(parents).check(labels)
    first, *lines = str(caught.value).splitlines()
    assert first.startswith(f"{len(expected)} labels")
    assert {line.split(" (")[0].strip() for line in lines if "... and" not in line} <= expected
    assert len(lines) == min(len(expected), 6)


@given(forests(), st.booleans(), st.sampled_from([1, 1 << 22]))
def test_deduction_is_the_closure_of_its_rules(
    case: tuple[dict[str, str], Labels], last_child: bool, block: int
) -> None:
    parents, labels = case[0], consistent(*reversed(case))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matrix, "BLOCK", block)
        deduced = Hierarchy(parents).deduce(labels, last_child=last_child)
    assert by_item(deduced) == [slow_deduction(said, parents, last_child) for said in by_item(labels)]
    assert deduced.sparse == labels.sparse
    assert deduced.names == labels.names
    assert deduced.ids == labels.ids
    z, before = deduced.rows(slice(None)), labels.rows(slice(None))
    assert (z[before != 0] == before[before != 0]).all()  # no observation is overwritten
    if not last_child:
        Hierarchy(parents).check(deduced)
        assert Hierarchy(parents).deduce(deduced) == deduced


@given(forests(), st.booleans(), st.data())
def test_deduction_of_some_items_is_that_of_all_where_the_others_are_deduced(
    case: tuple[dict[str, str], Labels], last_child: bool, data: st.DataObject
) -> None:
    parents, labels = case[0], consistent(*reversed(case))
    hierarchy = Hierarchy(parents)
    count = len(labels)
    chosen = data.draw(st.lists(st.integers(0, count - 1)) if count else st.just([]))  # any order, also twice
    others = np.setdiff1d(np.arange(count), np.array(chosen, int))
    deduced = hierarchy.deduce(labels, last_child=last_child)
    z = labels.rows(slice(None)).copy()
    z[others] = deduced.rows(others)
    kind = sp.csr_array if labels.sparse else np.array
    start = Labels.from_ternary(kind(z), names=labels.names, ids=labels.ids)
    before = start.digest()
    found = hierarchy.deduce(start, last_child=last_child, items=chosen)
    assert found == deduced
    assert found.digest() == deduced.digest()
    assert found.sparse == labels.sparse
    assert start.digest() == before


@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_of_other_items_nothing_is_deduced_or_refused(kind: Any) -> None:
    z = [[-1, 1], [0, 1], [-1, 0]]  # a contradiction, and twice something that follows
    labels = Labels.from_ternary(kind(np.array(z, np.int8)), names=["animal", "dog"], ids=["p", "q", "r"])
    for items, expected in (([1], [[-1, 1], [1, 1], [-1, 0]]), ([2, 1], [[-1, 1], [1, 1], [-1, -1]]), ([], z)):
        some = ZOO.deduce(labels, items=items)
        assert some.rows(slice(None)).tolist() == expected
        assert some.ids == labels.ids
    with pytest.raises(LabelError, match="item 'p': 'dog' is yes and 'animal' is no"):
        ZOO.deduce(labels, items=[2, 0])


@given(forests())
def test_coarse_labels_are_those_of_a_slow_search(case: tuple[dict[str, str], Labels]) -> None:
    parents, labels = case[0], consistent(*reversed(case))
    hierarchy = Hierarchy(parents)
    coarse = hierarchy.coarsen(labels)
    assert coarse.names == tuple(hierarchy.children)
    assert coarse.sparse == labels.sparse
    expected = [{name: slow_coarse(name, said, parents) for name in coarse.names} for said in by_item(labels)]
    assert by_item(coarse) == expected


@given(forests())
def test_every_name_comes_once_and_after_its_parent(case: tuple[dict[str, str], Labels]) -> None:
    parents, _ = case
    names = Hierarchy(parents).names
    assert sorted(names) == sorted({*parents, *parents.values()})
    assert all(names.index(parent) < names.index(child) for child, parent in parents.items())
