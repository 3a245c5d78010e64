"""Parts of one fit in worker processes: the bits of a fit without them, and a killed worker costs one part."""

from __future__ import annotations

import multiprocessing
import os
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import partly
from partly.errors import PartlyError
from partly.executors import is_parallel, local, parallel_config, run_parts
from partly.methods.auto import Auto

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)).astype(np.float32)
Y = np.where(RNG.random((60, 3)) < 0.7, X[:, :3] + RNG.normal(size=(60, 3)) > 0, np.nan)


def die_once(folder: Path, part: str) -> str:
    if part.startswith("deadly") and not (folder / part).exists():
        if part != "deadly always":
            (folder / part).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    with (folder / "log").open("a") as file:
        file.write(f"{part}\n")
    return part.upper()


def test_a_killed_worker_costs_one_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fork = multiprocessing.get_context("fork")
    monkeypatch.setattr(local.multiprocessing, "get_context", lambda _: fork)
    parts, work = ["a", "deadly", "b", "c"], partial(die_once, tmp_path)
    with parallel_config(count=2):
        assert is_parallel()
        assert dict(run_parts(parts, work)) == {part: part.upper() for part in parts}
        with pytest.raises(PartlyError, match=r"deadly always: its process ended \(SIGKILL.*, twice"):
            dict(run_parts(["deadly always"], work))
    assert sorted((tmp_path / "log").read_text().split()) == sorted(parts)  # each finished once
    assert not is_parallel()


def test_parts_run_in_order_and_in_this_process_by_default() -> None:
    assert list(run_parts([3, 1, 2], lambda part: (part, os.getpid()))) == [(i, (i, os.getpid())) for i in (3, 1, 2)]


def test_auto_and_its_folds_have_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    def fitted() -> tuple[np.ndarray, np.ndarray]:
        model = partly.Classifier(progress=False).fit(X, Y)
        assert [part["name"] for part in model.portfolio_][-1] == "forest"
        return model.predict_proba(X), model.out_of_fold_

    expected = fitted()
    with parallel_config(count=1), monkeypatch.context() as patch:
        patch.setattr(Auto, "compute_fit", None)  # nothing is computed in this process
        found = fitted()
    assert all((a == b).all() for a, b in zip(found, expected, strict=True))


def test_cross_fitting_and_labels_have_the_same_bits(tmp_path: Path) -> None:
    def fitted(folder: Path) -> tuple[np.ndarray, np.ndarray]:
        model = partly.Classifier("focal", head="linear", epochs=2, folds=2, progress=False, run_dir=folder).fit(X, Y)
        labels = partly.PerLabel(LogisticRegression(), progress=False, run_dir=folder / "labels").fit(X, Y)
        return model.out_of_fold_, labels.predict_proba(X)

    expected = fitted(tmp_path / "here")
    with parallel_config(count=1):
        found = fitted(tmp_path / "workers")
    assert all((a == b).all() for a, b in zip(found, expected, strict=True))
    assert (tmp_path / "workers/fold-2-of-2").is_dir()
