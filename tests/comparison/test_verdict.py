from __future__ import annotations

import numpy as np
from markupsafe import Markup

from comparison.making import lines
from partly.comparison import verdict
from partly.comparison.groups import gather


def said(made, text=str, bold=str):
    """Headline and evidence, first of all races, then of each scenario."""
    (ours,) = verdict.judge(gather(made))
    heads = [verdict.headline(ours[0], text, bold, ours[1:]), *(verdict.headline(one, text, bold) for one in ours[1:])]
    return [(head, verdict.evidence(one, text, bold)) for head, one in zip(heads, ours, strict=True)]


def many(offsets, noise=0.001, races=8, **changes):
    """Races on as many data sets; offsets: method -> how far below 0.9 it is."""
    rng = np.random.default_rng(0)
    made = []
    for number in range(races):
        scores = {name: 0.9 - below + rng.normal(0, noise, 2) for name, below in offsets.items()}
        made += lines({name: values.tolist() for name, values in scores.items()}, data=f"d{number}", **changes)
    return made


def test_a_clear_win():
    ((head, evidence),) = said(many({"bce": 0.3, "assume-negative": 0.2, "partial-bce": 0.1}))
    assert head == "partial-bce wins at uniform:0.5."
    assert evidence.startswith("partial-bce is best in 8 of 8 comparisons, on average 0.1")
    assert "above assume-negative (p = 0.016 or less against each other method)." in evidence  # 2 x 2 / 2^8


def test_a_shared_lead():
    ((head, evidence),) = said(many({"bce": 0.3, "assume-negative": 0.1, "partial-bce": 0.1}))
    assert "share the lead" in head
    assert "bce share" not in head.replace("partial-bce share", "")
    assert "between these two, p = 0.016 or less against the rest" in evidence


def test_a_crowded_lead_names_the_first_few():
    level = dict.fromkeys(["asymmetric", "assume-negative", "hill", "partial-bce", "focal"], 0.1)
    races = many(level | {"bce": 0.3}, races=20)
    ((head, _),) = said(races)
    assert " and 2 others share the lead" in head
    assert sum(name in head for name in level) == 3
    ((head, _),) = said([line for line in races if line["method"] != "focal"])
    assert "others" not in head
    assert all(name in head for name in level if name != "focal")


def test_no_winner():
    ((head, evidence),) = said(many({"bce": 0.1, "assume-negative": 0.1, "partial-bce": 0.1}, noise=0.05))
    assert head.startswith("No winner at uniform:0.5: ")
    assert "Friedman test over all methods: p = 0." in evidence


def test_it_depends_on_the_scenario():
    made = many({"bce": 0.3, "assume-negative": 0.1}, scenario="single-positive")
    made += many({"bce": 0.1, "assume-negative": 0.3}, scenario="uniform:0.1")
    (head, _), *others = said(made)
    assert head == "It depends on the scenario: assume-negative leads at single-positive; bce leads at uniform:0.1."
    assert [head for head, _ in others] == ["assume-negative wins at single-positive.", "bce wins at uniform:0.1."]


def test_one_winner_in_every_scenario():
    made = many({"bce": 0.3, "assume-negative": 0.1}, scenario="single-positive")
    made += many({"bce": 0.3, "assume-negative": 0.1}, scenario="uniform:0.1")
    assert said(made)[0][0] == "assume-negative wins."


def test_one_race_is_told_by_its_seeds():
    made = lines({"bce": [0.50, 0.51, 0.52, 0.50], "assume-negative": [0.40, 0.42, 0.41, 0.40]})
    ((head, evidence),) = said(made)
    assert head == "bce wins at uniform:0.5."
    assert evidence == "bce is on average 0.100 mAP above assume-negative (p < 0.001)."


def test_one_seed_is_not_enough():
    made = lines({"bce": [0.9], "assume-negative": [0.1]})
    ((head, evidence),) = said(made)
    assert head.startswith("No winner")
    assert evidence == "bce is on average 0.800 mAP above assume-negative (one seed: not tested)."
    ((one,),) = verdict.judge(gather(made))
    assert "one seed" in verdict.describe_test(one)


def test_a_method_alone():
    assert said(lines({"bce": [0.9, 0.8]})) == [("bce is the only method: there is nothing to compare it with.", "")]


def test_kinds_of_validation_are_told_apart():
    made = lines({"bce": [0.9, 0.8], "assume-negative": [0.1, 0.2]})
    made += lines({"bce": [0.1, 0.2], "assume-negative": [0.9, 0.8]}, validation="partial")
    found = [ours[0] for ours in verdict.judge(gather(made))]
    assert [(one.validation, one.ranking.names[0]) for one in found] == [
        ("complete", "bce"),
        ("partial", "assume-negative"),
    ]


def test_labels_as_they_are_are_a_race_where_several_methods_ran_on_them():
    made = lines({"bce": [0.9, 0.8, 0.85], "assume-negative": [0.1, 0.2, 0.15]}, scenario="full")
    ((one,),) = verdict.judge(gather(made))
    assert verdict.headline(one, str, str) == "bce wins with all known labels."
    beside = verdict.judge(gather(made + lines({"bce": [0.1, 0.2, 0.3], "assume-negative": [0.1, 0.3, 0.2]})))
    assert [one.scenario for one in beside[0]] == ["", "full", "uniform:0.5"]


def test_the_row_that_saw_all_labels_is_no_race_of_its_own():
    ((one,),) = verdict.judge(gather(lines({"full": [0.9, 0.8], "bce": [0.1, 0.2]})))
    assert (one.scenario, one.ranking.names) == ("uniform:0.5", ("bce",))


def test_nothing_defined_no_verdict():
    assert verdict.judge(gather(lines({"bce": [None], "assume-negative": [None]}))) == []


def test_how_it_was_tested_says_what_is_not_known():
    made = many({"bce": 0.3, "assume-negative": 0.1}) + many({"bce": 0.3, "assume-negative": 0.1}, head="mlp")
    made += lines({"partial-bce": [0.99, 0.99]}, data="d0")
    ((one,),) = verdict.judge(gather(made))
    words = verdict.describe_test(one)
    assert "each of 16 comparisons" in words
    assert "(8 data sets) are not independent" in words
    assert words.endswith("Not ranked, because of too few comparisons or seeds: partial-bce.")


def test_names_are_escaped_in_markup():
    made = many({"a<b>": 0.3, "c&d": 0.1}, scenario="uniform:0.1")
    ((head, evidence),) = said(made, Markup, lambda name: Markup("<i>{}</i>").format(name))
    assert head == "<i>c&amp;d</i> wins at uniform:0.1."
    assert "<i>a&lt;b&gt;</i>" in evidence
