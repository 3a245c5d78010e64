"""Pictures and texts on the command line: features, train, predict and query, and what is said of bad files."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from images.making import encoded, folder_of, noise
from partly.cli import main
from partly.data import read, read_scores

COUNT = 20


@pytest.fixture
def data(tmp_path: Path) -> tuple[str, str]:
    """Pictures and their labels, some of them to test on."""
    folder_of(tmp_path / "x", {f"{i:02d}.png": encoded(noise(30, 30, i)) for i in range(COUNT)})
    rng = np.random.default_rng(0)
    lines = (f"{i:02d}.png,{'train' if i % 4 else 'test'},{rng.integers(2)},{rng.integers(2)}\n" for i in range(COUNT))
    (tmp_path / "labels.csv").write_text("item,split,a,b\n" + "".join(lines))
    return str(tmp_path / "x"), str(tmp_path / "labels.csv")


def call(monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", ["partly", *map(str, words)])
    with pytest.raises(SystemExit) as left:
        main.main()
    assert left.value.code in (0, None), left.value.code


def test_pictures_from_a_folder_to_scores(
    data: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, labels = data
    run = tmp_path / "run"
    how = ("--method", "bce", "--head", "linear", "--epochs", 1, "--size", 16, "--device", "cpu")
    call(monkeypatch, "train", folder, "--labels", labels, "--run", run, *how)
    assert (run / "report.html").read_text().count("data:image/") > 1
    call(monkeypatch, "predict", run, folder, "--out", tmp_path / "scores.csv")
    assert len(read_scores(tmp_path / "scores.csv").ids) == COUNT
    call(monkeypatch, "evaluate", tmp_path / "scores.csv", labels)
    how = ("--query", "uncertainty", "--count", 3)
    (tmp_path / "asked.csv").write_text("item,a,b\n01.png,1,\n02.png,,0\n")
    call(monkeypatch, "query", run, folder, "--labels", tmp_path / "asked.csv", "--out", tmp_path / "q.csv", *how)
    assert len((tmp_path / "q.csv").read_text().splitlines()) == 1 + 3  # also of pictures that no label speaks of


def test_features_are_data_for_every_command(
    data: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, labels = data
    made, run = tmp_path / "made", tmp_path / "run"
    how = ("--backbone", "small-conv", "--backbone-setting", "widths=[4,6]", "--size", 16, "--device", "cpu")
    call(monkeypatch, "features", folder, "--out", made, *how)
    assert f"{COUNT} items x 12 features: {made}" in capsys.readouterr().err
    call(monkeypatch, "train", made, "--labels", labels, "--run", run, "--method", "bce", "--head", "linear")
    call(monkeypatch, "predict", run, made, "--out", tmp_path / "scores.csv")
    assert read_scores(tmp_path / "scores.csv").ids == read(folder).labels.ids


def test_a_bad_file_ends_every_command_unless_it_is_left_out(
    data: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, labels = data
    for name in ("03.png", "05.png"):
        (Path(folder) / name).write_bytes(b"nothing")
    out = tmp_path / "made"
    monkeypatch.setattr(sys, "argv", ["partly", "features", folder, "--out", str(out), "--size", "16"])
    with pytest.raises(SystemExit) as left:
        main.main()
    assert left.value.code == 2
    told = capsys.readouterr().err
    assert "bad files: 2 of 20" in told
    assert "03.png: not an image" in told
    assert "05.png: not an image" in told
    assert not out.exists()
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        call(monkeypatch, "features", folder, "--out", out, "--size", 16, "--skip-bad")
    told = capsys.readouterr().err
    assert f"Warning: {folder}: bad files: 2 of 20\n" in told  # a line of the console, and no source line
    assert "They are skipped.\n" in told
    assert "UserWarning" not in told
    assert len(read(out).labels.ids) == COUNT - 2
    how = ("--method", "bce", "--head", "linear", "--epochs", 1, "--size", 16, "--no-augment", "--skip-bad")
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        call(monkeypatch, "train", folder, "--labels", labels, "--run", tmp_path / "run", *how)


def test_texts_from_a_table_to_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = "".join(f'{{"item": "t{i}", "text": "a {("cat", "dog")[i % 2]} number {i}"}}\n' for i in range(30))
    (tmp_path / "t.jsonl").write_text(rows)
    (tmp_path / "labels.csv").write_text("item,cat\n" + "".join(f"t{i},{1 - i % 2}\n" for i in range(30)))
    table, run = tmp_path / "t.jsonl", tmp_path / "run"
    how = ("--method", "bce", "--head", "linear", "--epochs", 2, "--device", "cpu")
    call(monkeypatch, "train", table, "--labels", tmp_path / "labels.csv", "--run", run, *how)
    call(monkeypatch, "predict", run, table, "--out", tmp_path / "scores.csv")
    assert len(read_scores(tmp_path / "scores.csv").ids) == 30


def test_a_whole_data_set_has_no_items_by_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["partly", "features", "scenes", "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit):
        main.main()
    assert "scenes: is a data set with a test part" in capsys.readouterr().err
