from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import partly
from comparison.making import write_split
from partly import atomic_io
from partly.comparison import compare, protocol, results, runner
from partly.comparison.live_view import LiveView
from partly.comparison.plan import Experiment, read_experiment
from partly.comparison.protocol import ProtocolError
from partly.errors import CheckpointError, DataError

RECIPE = {"epochs": 2, "batch_size": 32}


@pytest.fixture
def experiment(tmp_path) -> Experiment:
    file = write_split(tmp_path / "tiny.npz")
    return Experiment(str(file), "bce", "uniform:0.5", "linear", seeds=2, recipe=RECIPE, name="small")


@pytest.fixture
def here(monkeypatch):
    """Cells run in this process, which starts no others; those that ran are listed."""
    ran = []

    def finished(todo, experiment, workers):
        for cell in todo:
            ran.append(cell)
            yield runner._work(cell, runner._how(experiment))

    monkeypatch.setattr(runner, "_run_cells", finished)
    runner._open_cached.cache_clear()
    return ran


def untimed(path: Path) -> list[dict]:
    return [{k: v for k, v in line.items() if k not in results.TIMING} for line in results.read(path)]


# ---------------------------------------------------------------- for real, in processes


def test_neither_workers_nor_kills_change_a_number(tmp_path):
    """One worker; two workers, killed five times with a torn line each, resumed and finished."""
    write_split(tmp_path / "tiny.npz")
    file = tmp_path / "small.toml"
    file.write_text(
        'data = "tiny.npz"\nmethods = ["partial-bce"]\nscenarios = ["single-positive", "uniform:0.5"]\n'
        'heads = ["linear"]\nseeds = 4\nrecipe = {epochs = 2}\n'
    )
    script = [sys.executable, str(Path(__file__).with_name("killed.py")), str(file), str(tmp_path / "killed")]
    with subprocess.Popen(script, stdout=subprocess.PIPE, text=True) as harm:
        returned = runner.run(read_experiment(file), tmp_path / "one", workers=1, progress=False)
        seen = json.loads(harm.communicate()[0])
    assert len(returned) == 4 * (1 + 2 * 3)
    assert seen["finished"] == 0
    assert seen["orphans"] == []
    assert len(set(seen["seen"])) == 5  # each went on where the one before was killed
    assert 0 < min(seen["seen"]) <= max(seen["seen"]) < len(returned)
    one, killed = (untimed(tmp_path / folder / "small.jsonl") for folder in ("one", "killed"))
    assert one == killed
    assert {line["machine"].rpartition(", ")[2] for line in one} == {"1 thread(s) a cell"}


# ---------------------------------------------------------------- what is run, and what is not


def test_a_script_needs_no_guard(tmp_path):
    """Workers do not run it again: it says hello once, and compares once."""
    write_split(tmp_path / "tiny.npz")
    script = tmp_path / "script.py"
    script.write_text(
        "import partly\nprint('hello')\n"
        "found = partly.compare('tiny.npz', ['bce'], ['full'], heads=['linear'], seeds=1, recipe={'epochs': 1}, "
        "workers=1, progress=False)\nprint(len(found), 'lines')\n"
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("hello\n2 lines\n", 0), done.stderr


def test_a_cell_that_is_there_is_not_run_again(experiment, here, tmp_path):
    first = runner.run(experiment, tmp_path / "out", progress=False)
    assert len(first) == len(here) == 6  # full, bce, assume-negative; two seeds
    text = (tmp_path / "out" / "small.jsonl").read_bytes()
    assert runner.run(experiment, tmp_path / "out", progress=False) == first
    assert len(here) == 6
    assert (tmp_path / "out" / "small.jsonl").read_bytes() == text
    more = runner.run(replace(experiment, methods=("partial-bce",), seeds=3), tmp_path / "out", progress=False)
    assert len(more) == 12
    assert len(here) == 12
    assert len(runner.run(experiment, tmp_path / "out", progress=False)) == 6  # those that were asked for


def test_other_data_of_the_same_name_is_not_taken_for_the_same(experiment, here, tmp_path):
    runner.run(experiment, tmp_path / "out", progress=False)
    write_split(Path(experiment.data[0]), seed=1)
    runner._open_cached.cache_clear()
    with pytest.raises(ProtocolError, match="other data under the same name"):
        runner.run(experiment, tmp_path / "out", progress=False)
    assert len(results.read(tmp_path / "out" / "small.jsonl")) == 6


def test_a_line_of_another_protocol_is_refused_before_anything_runs(experiment, here, tmp_path):
    path = tmp_path / "out" / "small.jsonl"
    runner.run(experiment, tmp_path / "out", progress=False)
    first, *others = results.read(path)
    results.write_sorted(path, [first | {"protocol": 0}, *others])
    with pytest.raises(ProtocolError, match="another protocol"):
        runner.run(replace(experiment, seeds=9), tmp_path / "out", progress=False)
    assert len(here) == 6


def test_lines_of_an_earlier_version_of_the_same_protocol_are_gone_on_from(experiment, here, tmp_path, monkeypatch):
    runner.run(experiment, tmp_path / "out", progress=False)
    monkeypatch.setattr(partly, "__version__", "9.9")
    found = runner.run(replace(experiment, seeds=3), tmp_path / "out", progress=False)
    assert [one["partly"] for one in found].count("9.9") == len(found) - 6


def test_a_mask_that_differs_between_methods_is_refused(experiment, here, tmp_path, monkeypatch):
    original = protocol.mask

    def unfair(cell, split):
        return original(replace(cell, seed=cell.seed + 7) if cell.method == "bce" else cell, split)

    monkeypatch.setattr(protocol, "mask", unfair)
    with pytest.raises(ProtocolError, match="another mask"):
        runner.run(experiment, tmp_path / "out", progress=False)
    results.check_consistency(
        results.read(tmp_path / "out" / "small.jsonl")
    )  # the line that does not fit was not written


def test_a_method_that_peeks_is_refused_before_it_runs(experiment, here, tmp_path, monkeypatch):
    def peeks(method, settings=None):
        raise ProtocolError(f"{method} uses the truth")

    monkeypatch.setattr(runner, "check_no_leak", peeks)
    runner._check_no_leak_once.cache_clear()
    with pytest.raises(ProtocolError, match="uses"):
        runner.run(experiment, tmp_path / "out", progress=False)
    assert results.read(tmp_path / "out" / "small.jsonl") == []


def test_an_error_in_a_cell_leaves_the_finished_ones(experiment, here, tmp_path, monkeypatch):
    original = runner.run_cell

    def sometimes(cell, source):
        if cell.seed == 1:
            raise DataError("no such luck")
        return original(cell, source)

    monkeypatch.setattr(runner, "run_cell", sometimes)
    with pytest.raises(runner.Incomplete) as caught:
        runner.run(experiment, tmp_path / "out", progress=False)
    assert "3 of 6 cells failed" in str(caught.value)
    assert "tiny, uniform:0.5, bce, linear, seed 1: no such luck" in str(caught.value)
    assert len(caught.value.records) == 3
    path = tmp_path / "out" / "small.jsonl"
    assert len(results.read(path)) == len(results.read_failed(path)) == 3
    assert {line["failed"] for line in results.read_failed(path)} == {"no such luck"}
    # Run again, each is tried once more, and only those.
    count = len(here)
    with pytest.raises(runner.Incomplete, match="3 of 6 cells failed"):
        runner.run(experiment, tmp_path / "out", progress=False)
    assert len(here) == count + 3
    assert len(path.read_text().splitlines()) == 6
    monkeypatch.setattr(runner, "run_cell", original)
    assert len(runner.run(experiment, tmp_path / "out", progress=False)) == 6
    assert results.read_failed(path) == []
    assert len(path.read_text().splitlines()) == 6


def test_what_is_no_error_of_ours_is_a_line_too(experiment, here, tmp_path, monkeypatch):
    def broken(cell, source):
        raise ZeroDivisionError("by hand")

    monkeypatch.setattr(runner, "run_cell", broken)
    with pytest.raises(runner.Incomplete, match="ZeroDivisionError: by hand"):
        runner.run(experiment, tmp_path / "out", progress=False)


def test_two_at_once_in_one_folder_are_refused(experiment, here, tmp_path):
    with atomic_io.locked(tmp_path / "out"), pytest.raises(CheckpointError, match="another process"):
        runner.run(experiment, tmp_path / "out", progress=False)


def test_compare_from_python(here, tmp_path):
    file = write_split(tmp_path / "tiny.npz")
    found = compare(
        file, ["bce"], ["uniform:0.5"], heads=["linear"], seeds=1, recipe=RECIPE, out=tmp_path / "out", progress=False
    )
    assert {(line["scenario"], line["method"]) for line in found} == {
        ("full", "bce"),
        ("uniform:0.5", "bce"),
        ("uniform:0.5", "assume-negative"),
    }
    assert (tmp_path / "out" / "compare.jsonl").exists()


def test_both_kinds_of_validation_and_the_search_are_lines_of_their_own(experiment, here, tmp_path):
    both = replace(experiment, validation=("complete", "partial"), tune=2, seeds=1)
    found = runner.run(both, tmp_path / "out", progress=False)
    rows = [(line["scenario"], line["method"], line["validation"], line["tune"]) for line in found]
    assert len(set(rows)) == len(rows) == 1 + 2 * 2 * 2
    scores = {row: line["validation_score"] for row, line in zip(rows, found, strict=True)}
    for (scenario, method, kind, tune), score in scores.items():
        if tune:
            assert score >= scores[scenario, method, kind, 0]  # the untuned model is the first candidate


# ---------------------------------------------------------------- what a person sees meanwhile


def test_what_is_shown_while_it_runs(capsys):
    line = {"data": "d", "scenario": "s", "head": "h", "method": "m", "test": {"mAP": 0.5}}
    with LiveView(3, [line], enabled=True) as live:
        live.add(line | {"test": {"mAP": 0.6}})
        live.add(line | {"test": {"mAP": None}})
    assert "3 of 3 cells, done" in capsys.readouterr().err
    (shown,) = live.build_table().columns[3].cells
    assert shown == "0.550 (2)"


def test_nothing_is_shown_where_nobody_wants_to_see_it(capsys):
    with LiveView(1, [], enabled=False) as live:
        live.add({"data": "d", "scenario": "s", "head": "h", "method": "m", "test": {"mAP": 0.5}})
    assert capsys.readouterr().err == ""


def test_bad_pictures_are_left_out_where_that_is_asked_for_and_another_size_is_another_cell(tmp_path, here):
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    rng = np.random.default_rng(0)
    for i in range(12):
        Image.fromarray(rng.integers(0, 255, (20, 20, 3), np.uint8)).save(pictures / f"{i:02d}.png")
    (pictures / "11.png").write_text("no picture")
    z = partly.Labels.from_full(rng.integers(0, 2, (12, 2)), ids=[f"{i:02d}.png" for i in range(12)])
    partly.data.write_labels(z, tmp_path / "labels.csv")
    how = {"heads": ["linear"], "seeds": 1, "labels": tmp_path / "labels.csv", "recipe": {"epochs": 1}}
    how |= {"out": tmp_path / "out", "progress": False}
    with pytest.raises(DataError, match="bad files: 1 of 12"):
        compare(str(pictures), ["bce"], ["full"], **how)
    with pytest.warns(UserWarning, match="bad files: 1 of 12"):
        compare(str(pictures), ["bce"], ["full"], **how, skip_bad=True, size=16)
    assert {cell.size for cell in here} == {16}
    count = len(here)
    compare(str(pictures), ["bce"], ["full"], **how, skip_bad=True, size=16)
    assert len(here) == count
    with pytest.warns(UserWarning, match="bad files"):
        compare(str(pictures), ["bce"], ["full"], **how, skip_bad=True, size=24)
    assert len(here) == 2 * count
