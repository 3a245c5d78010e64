"""Cells that ask questions: one line each, with the whole curve; and the table of their areas."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from partly import jobs
from partly.comparison import Experiment, read_experiment
from partly.comparison.areas import groups, markdown
from partly.comparison.lines import key_of, read
from partly.comparison.plan import Cell
from partly.comparison.protocol import open_source, run_cell
from partly.errors import SettingError

TEXT = """
data = ["tiny.npz"]
methods = ["bce"]
scenarios = ["coarse-only:0.2"]
heads = ["linear"]
seeds = 2
queries = ["random", "uncertainty"]
recipe = { epochs = 2, batch_size = 8 }
asks = { rounds = 2, questions = 3, epochs = 1, restart = 5 }
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 4)).astype(np.float32)
    y = (x @ rng.normal(size=(4, 3)) > 0).astype(int)
    parts = {"features_train": x[:28], "labels_train": y[:28], "features_test": x[28:], "labels_test": y[28:]}
    np.savez(tmp_path / "tiny.npz", **parts, names=np.array(["a", "b", "c"]), parents=np.array(["ab", "ab", ""]))
    (tmp_path / "asking.toml").write_text(TEXT)
    return tmp_path


def test_a_line_for_each_query_and_seed(tiny: Path) -> None:
    said: list[str] = []
    for _ in range(2):  # the second time everything is there
        jobs.compare(str(tiny / "asking.toml"), tiny / "out", asked={}, workers=1, say=said.append)
    lines = read(tiny / "out" / "asking.jsonl")
    assert {(line["asks"]["query"], line["seed"]) for line in lines} == {
        (query, seed) for query in ("random", "uncertainty") for seed in (0, 1)
    }
    assert len(lines) == 4
    for line in lines:
        assert [one["answers"] for one in line["rounds"]] == [0, 3, 6]
        curve = [one["scores"]["P@1"] for one in line["rounds"]]
        assert line["areas"]["P@1"] == pytest.approx((curve[1] + curve[2]) / 2)
        assert line["test"]["P@1"] == curve[-1]
        assert line["validation"] == "none"
    assert said[0] == said[1]
    assert "| area | random | uncertainty |" in said[0]
    assert b"<svg" in (tiny / "out" / "asking-0.svg").read_bytes()
    source = open_source(str(tiny / "tiny.npz"))
    experiment = read_experiment(tiny / "asking.toml")
    again = run_cell(experiment.cells()[0], source)
    (there,) = [line for line in lines if key_of(line) == key_of(again)]
    assert [again[name] for name in ("rounds", "predictions_sha256")] == [
        there[name] for name in ("rounds", "predictions_sha256")
    ]


def test_cells_that_ask_nothing_keep_their_key() -> None:
    assert "asks" not in Cell("d", "full", "bce", "linear", "adamw", 0).key()


def test_the_table_has_the_means() -> None:
    asks = {"rounds": 5, "questions": 10}
    lines = [
        {
            "data": "d",
            "scenario": "s",
            "method": "bce",
            "head": "mlp",
            "settings": {},
            "seed": seed,
            "asks": asks | {"query": query},
            "areas": {"P@1": area, "P@3": None, "P@5": area / 2},
        }
        for query, areas in (("random", (0.2, 0.3)), ("uncertainty", (0.4, 0.5)))
        for seed, area in enumerate(areas)
    ]
    assert list(groups(lines)) == ["d, s, bce, mlp, 5 rounds of 10"]
    (row,) = [row for row in markdown(lines).splitlines() if row.startswith("| P@1")]
    assert "0.250" in row
    assert "**0.450" in row


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queries": ("randm",)}, "no query 'randm'"),
        ({"asks": {"round": 3}}, "asks has no entry 'round'. Did you mean 'rounds'"),
        ({"asks": {"rounds": 0}}, "rounds = 0 must be"),
        ({"asks": {"questions": 0}}, "questions = 0 must be"),
    ],
)
def test_what_cannot_be_asked(change: dict, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Experiment(("d.npz",), ("bce",), ("full",), **{"queries": ("random",)} | change)
