"""Hierarchies in which labels have several parents, by hand and against slow loops over one item at a time."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partly.errors import LabelError
from partly.labels import Labels
from partly.labels.hierarchy import Hierarchy

PETS = Hierarchy({"house cat": ["cat", "pet"], "cat": "animal", "goldfish": ["fish", "pet"], "fish": "animal"})
Values = dict[str, int]  # name -> +1, -1, 0, of one item
Graph = dict[str, list[str]]


def labels_of(**values: int) -> Labels:
    return Labels.from_ternary([list(values.values())], names=[name.replace("_", " ") for name in values])


def test_structure_by_hand() -> None:
    assert PETS.roots == ("pet", "animal")
    assert PETS.names == ("pet", "animal", "cat", "fish", "house cat", "goldfish")
    assert dict(PETS.children)["pet"] == ("house cat", "goldfish")
    assert PETS.leaves == ("house cat", "goldfish")
    assert PETS.parents["house cat"] == ("cat", "pet")
    assert PETS.parents["cat"] == "animal"
    assert not PETS.is_forest
    assert PETS.ancestors("house cat") == ("cat", "pet", "animal")
    assert copy.deepcopy(PETS) == PETS == Hierarchy(dict(PETS.parents))
    assert Hierarchy({"a": ["b", "b"]}) == Hierarchy({"a": "b"})


def test_deduction_by_hand() -> None:
    up = PETS.deduce(labels_of(house_cat=1, cat=0, pet=0, animal=0, goldfish=0))
    assert up.ternary().tolist() == [[1, 1, 1, 1, 0]]
    down = PETS.deduce(labels_of(house_cat=0, cat=0, pet=-1, animal=1, goldfish=0))
    assert down.ternary().tolist() == [[-1, 0, -1, 1, -1]]


def test_a_last_child_raises_its_other_parents() -> None:
    graph = Hierarchy({"a": ["p", "q"], "b": "q", "q": "r", "s": "r"})
    labels = Labels.from_ternary([[1, 0, 0, 0, 0, -1]], names=["p", "q", "a", "b", "r", "s"])
    assert graph.deduce(labels, last_child=True).ternary().tolist() == [[1, 1, 1, 0, 1, -1]]


def test_a_contradiction_names_the_path_to_the_no() -> None:
    labels = labels_of(house_cat=1, cat=1, pet=-1, animal=1)
    with pytest.raises(LabelError, match=r"'house cat' is yes and 'pet' is no \(house cat -> pet\)"):
        PETS.check(labels)
    labels = Labels.from_ternary([[1, 0, -1]], names=["house cat", "pet", "animal"])
    with pytest.raises(LabelError, match=r"\(house cat -> cat -> animal\)"):
        PETS.check(labels)


@pytest.mark.parametrize(
    ("parents", "words"),
    [
        ({"a": ["b", "c"], "c": ["a"]}, ["below itself", "a -> c -> a"]),
        ({"a": ["b", None]}, ["'a': ['b', None]"]),
        ({"a": []}, ["'a': []"]),
    ],
)
def test_refusals(parents: Any, words: list[str]) -> None:
    with pytest.raises(LabelError) as caught:
        Hierarchy(parents)
    assert all(word in str(caught.value) for word in words)


def test_positions_of_parents() -> None:
    names = ("house cat", "cat", "pet", "animal")
    assert PETS.restrict(names).parent_positions(names) == ((1, 3, 2, 3), (2, 1, 2, 3))  # type: ignore[union-attr]
    assert set(PETS.lines(names)) == {(0, 1), (0, 2), (0, 3), (1, 3)}


def test_restriction_reaches_across_names_that_are_left_out() -> None:
    part = PETS.restrict(("house cat", "pet", "animal"))
    assert part is not None
    assert dict(part.parents) == {"house cat": ("pet", "animal")}


def test_a_user_with_one_parent_per_label_refuses_several() -> None:
    assert Hierarchy({"a": "b"}).single_parents("A ledger") == {"a": "b"}
    with pytest.raises(LabelError, match=r"A ledger holds one parent.*\n.*'house cat': cat, pet"):
        PETS.single_parents("A ledger")


# -------------------------------------------------------------------- against slow loops


@st.composite
def graphs(draw: st.DrawFn) -> tuple[Graph, Labels]:
    """A random acyclic graph in random order, and labels over some of its names."""
    size = draw(st.integers(2, 7))
    graph = {"1": ["0"]}
    for i in range(2, size):
        above = draw(st.lists(st.integers(0, i - 1), unique=True, max_size=3))
        graph |= {str(i): [str(j) for j in above]} if above else {}
    graph = {child: graph[child] for child in draw(st.permutations(list(graph)))}
    inside = sorted({*graph, *(name for above in graph.values() for name in above)})
    names = draw(st.lists(st.sampled_from(inside), unique=True, min_size=1))
    values = st.sampled_from([0, 0, 0, 1, -1])
    z = draw(st.lists(st.lists(values, min_size=len(names), max_size=len(names)), min_size=1, max_size=6))
    return graph, Labels.from_ternary(np.array(z, np.int8), names=names)


def by_item(labels: Labels) -> list[Values]:
    return [dict(zip(labels.names, map(int, row), strict=True)) for row in labels.rows(slice(None))]


def slow_deduction(values: Values, graph: Graph, last_child: bool = False) -> Values | None:
    """Rule after rule until nothing changes; None for a contradiction."""
    every = dict.fromkeys([*graph, *(name for above in graph.values() for name in above)], 0) | values
    pairs = [(child, parent) for child, above in graph.items() for parent in above]
    while True:
        before = dict(every)
        for child, parent in pairs:
            if every[child] == 1 and every[parent] == -1:
                return None
            if every[child] == 1:
                every[parent] = 1
            if every[parent] == -1:
                every[child] = -1
        if every == before and last_child:
            for parent in {parent for _, parent in pairs}:
                possible = [child for child, above in pairs if above == parent and every[child] != -1]
                if every[parent] == 1 and len(possible) == 1:
                    every[possible[0]] = 1
        if every == before:
            return {name: every[name] for name in values}


@given(graphs(), st.booleans())
def test_deduction_is_the_closure_of_its_rules(case: tuple[Graph, Labels], last_child: bool) -> None:
    graph, labels = case
    hierarchy = Hierarchy(graph)
    consistent = labels[[slow_deduction(values, graph) is not None for values in by_item(labels)]]
    expected = [slow_deduction(values, graph, last_child) for values in by_item(consistent)]
    assert by_item(hierarchy.deduce(consistent, last_child)) == expected
    if len(consistent) < len(labels):
        with pytest.raises(LabelError, match="yes below a label that is no"):
            hierarchy.check(labels)
    else:
        hierarchy.check(labels)


@given(graphs())
def test_names_are_in_topological_order(case: tuple[Graph, Labels]) -> None:
    graph, _ = case
    names = Hierarchy(graph).names
    assert sorted(names) == sorted({*graph, *(name for above in graph.values() for name in above)})
    assert all(names.index(parent) < names.index(child) for child, above in graph.items() for parent in above)


@given(graphs())
def test_ancestors_are_those_of_a_slow_closure(case: tuple[Graph, Labels]) -> None:
    graph, _ = case

    def above(name: str) -> set[str]:
        return set().union(*({parent} | above(parent) for parent in graph.get(name, [])))

    hierarchy = Hierarchy(graph)
    assert all(set(hierarchy.ancestors(name)) == above(name) for name in hierarchy.names)


@given(graphs())
def test_coarse_labels_are_those_of_a_slow_search(case: tuple[Graph, Labels]) -> None:
    graph, labels = case
    consistent = labels[[slow_deduction(values, graph) is not None for values in by_item(labels)]]

    def slow(name: str, values: Values) -> int:
        children = [child for child, above in graph.items() if name in above]
        if values.get(name, 0) or not children:
            return values.get(name, 0)
        below = {slow(child, values) for child in children}
        return 1 if 1 in below else -1 if below == {-1} else 0

    coarse = Hierarchy(graph).coarsen(consistent)
    assert by_item(coarse) == [{name: slow(name, values) for name in coarse.names} for values in by_item(consistent)]
