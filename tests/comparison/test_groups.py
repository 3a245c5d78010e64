from __future__ import annotations

import copy

import pytest

from comparison.making import line, lines
from partly import methods
from partly.comparison import markdown, page
from partly.comparison.groups import gather
from partly.comparison.protocol import ProtocolError

RACE = {"full": [0.8, 0.9], "assume-negative": [0.4, 0.5], "bce": [0.5, 0.6], "partial-bce": [0.6, 0.7]}


def rows(made):
    (block,) = gather(made)
    return {row.name: row for row in block.rows}


def test_a_block_has_the_full_row_then_the_best():
    (block,) = gather(lines(RACE))
    assert [row.name for row in block.rows] == ["bce, all labels", "partial-bce", "bce", "assume-negative"]
    assert [row.kind for row in block.rows] == ["full", "", "naive", "naive"]
    assert [row.best for row in block.rows] == [False, True, False, False]
    assert block.title == "tiny, linear"
    assert (block.full, block.naive) == (block.rows[0], block.rows[3])
    assert set(block.contestants) == {"partial-bce", "bce", "assume-negative"}


def test_numbers_of_a_row():
    found = rows(lines(RACE))["partial-bce"]
    assert found.mean().value == pytest.approx(0.65)
    assert found.mean().count == 2
    assert found.mean("CF1").value == pytest.approx(0.4)
    assert found.gap == pytest.approx(0.5)
    assert rows(lines(RACE))["assume-negative"].gap == 0
    assert rows(lines(RACE))["bce, all labels"].gap is None


def test_seconds_are_a_mean_and_memory_is_a_peak():
    made = [line(seed=0, seconds=1.0, memory_mb=10.0), line(seed=1, seconds=3.0, memory_mb=70.0)]
    found = rows(made)["bce"]
    assert (found.seconds, found.memory_mb) == (2.0, 70.0)


@pytest.mark.parametrize(
    ("change", "other"),
    [
        ({"head": "mlp"}, "tiny, mlp"),
        ({"data": "other"}, "other, linear"),
        ({"scenario": "uniform:0.1"}, "tiny, linear"),
        ({"validation": "partial"}, "tiny, linear"),
        ({"optimizer": "sgd"}, "tiny, linear, sgd"),
        ({"recipe": {"epochs": 3}}, "tiny, linear, epochs 3"),
        ({"torch": "9.9"}, "tiny, linear, torch 9.9"),
        ({"machine": "another machine"}, "tiny, linear, another machine"),
    ],
)
def test_what_differs_in_more_than_the_seed_is_another_block(change, other):
    made = [line(seed=0, score=0.2), line(seed=1, score=0.8, **change)]
    blocks = gather(made)
    assert [len(block.rows) for block in blocks] == [1, 1]
    assert {block.rows[0].mean().value for block in blocks} == {0.2, 0.8}
    assert other in [block.title for block in blocks]


def test_settings_and_searches_are_rows_of_their_own_and_spelled_as_one_asks_for_them():
    usual = methods.find("partial-bce").defaults()
    made = [
        line("partial-bce", score=0.1, settings=usual),
        line("partial-bce", score=0.2, settings=usual | {"value": 9.0}),
        line("partial-bce", score=0.3, settings=usual, tune=8),
        line("gone", score=0.4, settings={"strategy": "wild", "on": True}),
    ]
    assert list(rows(made)) == [
        "gone[strategy=wild,on=true]",
        "partial-bce, tuned 8",
        "partial-bce[value=9.0]",
        "partial-bce",
    ]


def test_lines_of_one_name_but_another_origin_are_refused():
    made = lines({"bce": [0.1, 0.2]})
    changed = copy.deepcopy(made)
    changed[1]["ran"]["epochs"] = 99
    with pytest.raises(
        ProtocolError, match=r"(?s)uniform:0.5, linear, bce: records of different origin.*\"epochs\": 99"
    ):
        gather(changed)
    usual = methods.find("partial-bce").defaults()
    made = [line("partial-bce", 0, settings=usual), line("partial-bce", 1, settings={})]
    with pytest.raises(ProtocolError, match="cannot be averaged"):
        gather(made)


def test_tuned_lines_may_have_run_with_what_each_seed_found():
    made = [line(seed=seed, tune=4, ran={"lr": 0.1 * seed, "seed": seed}) for seed in (1, 2)]
    assert rows(made)["bce, tuned 4"].mean().count == 2


def test_lines_that_do_not_belong_together_are_refused():
    with pytest.raises(ProtocolError, match="another mask"):
        gather([line("bce", mask_sha256="a"), line("assume-negative", mask_sha256="b")])


def test_an_oracle_is_marked_and_cannot_win():
    made = lines({"bce": [0.3, 0.4]}) + [line("seer", seed, 0.9, needs_truth=True) for seed in (0, 1)]
    found = rows(made)
    assert (found["seer"].kind, found["seer"].best, found["bce"].best) == ("oracle", False, True)
    (block,) = gather(made)
    assert "seer" not in block.contestants


def test_rows_that_are_not_shown_to_be_worse_are_marked():
    found = rows(
        lines({"bce": [0.80, 0.81, 0.82], "assume-negative": [0.81, 0.80, 0.81], "partial-bce": [0.2, 0.2, 0.2]})
    )
    assert [found[name].tied for name in ("bce", "assume-negative", "partial-bce")] == [False, True, False]


def test_an_undefined_score_is_no_zero():
    found = rows(lines({"bce": [None, 0.5], "assume-negative": [None, None]}))
    assert found["bce"].mean().value == 0.5
    assert found["assume-negative"].mean() is None
    assert list(found) == ["bce", "assume-negative"]


def test_the_full_row_is_that_of_the_same_data_head_and_recipe():
    made = lines(RACE) + lines({"full": [0.1, 0.1], "bce": [0.05, 0.06]}, head="mlp")
    found = {block.title: block.full.mean().value for block in gather(made)}
    assert found == {"tiny, linear": pytest.approx(0.85), "tiny, mlp": pytest.approx(0.1)}


def test_full_labels_are_a_block_only_where_several_methods_saw_them():
    assert gather(lines({"full": [0.5]})) == []
    made = [*lines({"full": [0.5]}), line("partial-bce", scenario="full", score=0.6)]
    (block,) = gather(made)
    assert [row.name for row in block.rows] == ["partial-bce", "bce"]
    assert block.full is None


def test_who_is_told_no_head_runs_in_every_race_on_the_same_known_entries():
    alone = [line("auto", seed, 0.65, head="auto") for seed in (0, 1)]
    races = [*lines(RACE), *lines(RACE, head="mlp", optimizer="sgd", recipe={"epochs": 9})]
    elsewhere = lines({"bce": [0.5, 0.5]}, scenario="uniform:0.1")
    blocks = gather([*alone, *races, *elsewhere])
    assert sorted((block.title, block.scenario, "auto" in block.contestants) for block in blocks) == [
        ("tiny, linear, adamw, default recipe", "uniform:0.1", False),
        ("tiny, linear, adamw, default recipe", "uniform:0.5", True),
        ("tiny, mlp, sgd, epochs 9", "uniform:0.5", True),
    ]
    (block,) = gather(alone)  # a race of its own, where there is no other
    assert block.title == "tiny, auto"


def test_of_pictures_they_run_along_with_the_features_of_the_backbone_as_it_comes():
    tuned = {"backbone": "small-conv", "backbone_settings": {"freeze": 1}, "epochs": 5}
    frozen = {"backbone": "small-conv", "backbone_settings": {"freeze": "all"}}
    (block,) = gather([line("bce", recipe=tuned), line("auto", head="auto", score=0.6, recipe=frozen)])
    assert [row.name for row in block.rows] == ["auto", "bce"]
    titles = {one.title for one in gather([line("bce", recipe=tuned), line("bce", recipe=frozen)])}
    shared = "tiny, linear, backbone small-conv"
    assert titles == {f"{shared}, freeze all", f"{shared}, freeze 1, epochs 5"}


def test_versions_of_one_protocol_are_one_race():
    (block,) = gather([line("bce", 0, partly="0.1.0"), line("bce", 1, partly="0.2.0")])
    assert [len(row.records) for row in block.rows] == [2]


def test_races_that_leave_out_items_without_labels_are_their_own():
    blocks = gather([*lines(RACE), *lines({"bce": [0.7, 0.7]}, known_only=True)])
    assert sorted(block.title for block in blocks) == [
        "tiny, linear, all items",
        "tiny, linear, items with labels only",
    ]


def test_lines_of_before_a_recipe_could_say_a_thing_stand_beside_those_that_do_not_say_it():
    older, newer = line(seed=0), line(seed=1)
    newer["ran"] |= {"seed": 1, "hierarchy": None}
    assert len(rows([older, newer])["bce"].records) == 2
    newer["ran"] |= {"hierarchy": "a file"}
    with pytest.raises(ProtocolError, match="different origin"):
        gather([older, newer])


TUNED = {"estimator": "tuned-logistic-regression"}
BASELINES = {"assume-negative": [0.4, 0.5], "bce": [0.50, 0.60], "partial-bce": [0.6, 0.7]}


def references(*scores: float, **changes):
    how = {"head": "auto", "settings": TUNED} | changes
    return [line("per-label", seed, score, **how) for seed, score in enumerate(scores)]


def behind(*more):
    (block,) = gather([*lines(BASELINES), *more])
    return block.baseline_deficit


def test_the_best_naive_row_is_measured_by_tuned_scikit_learn_seed_by_seed():
    assert behind(*references(0.52, 0.61)) == pytest.approx(0.015)
    assert behind(*references(0.45, 0.55)) == pytest.approx(-0.05)
    assert behind(*references(0.52)) == pytest.approx(0.02)  # the seed that both have


def test_a_tuned_naive_row_counts_as_well():
    assert behind(*references(0.52, 0.61), *(line("bce", s, 0.7, tune=3) for s in (0, 1))) == pytest.approx(-0.135)


def test_what_is_no_reference_does_not_count():
    assert behind() is None
    assert behind(*references(0.9, 0.9, settings={})) is None  # not tuned
    (block,) = gather(references(0.9, 0.9))  # nobody to be measured
    assert block.baseline_deficit is None


@pytest.mark.parametrize(("ahead", "shown"), [(0.004, True), (0.006, False)])
def test_a_table_whose_baseline_is_not_at_its_best_is_not_shown(ahead, shown):
    found = [*lines(BASELINES), *references(0.5 + ahead, 0.6 + ahead)]
    text, html = markdown.render(found), page.render(found)
    assert ("| **partial-bce**" in text) == shown
    assert ("wins at uniform:0.5" in text) == shown  # nor does it have a say in who wins
    assert ("Not shown: the best naive baseline is 0.6 points of mAP below" in text) == (not shown)
    assert ('<th scope="row"><bdi>partial-bce</bdi>' in html) == shown
    assert html.count("Not shown: the best naive baseline is 0.6 points of mAP below") == 2 * (
        not shown
    )  # picture and table
    assert ("every baseline is far below tuned scikit-learn" in html) == (not shown)
