"""The version is said in one place, and what must repeat it agrees; types are there for whoever uses the package."""

from __future__ import annotations

import datetime
import re
import textwrap
import tomllib
from pathlib import Path

import pytest
from mypy import api

import partly

ROOT = Path(__file__).resolve().parent.parent
KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_version_and_date_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert "version" not in project
    assert "version" in project["dynamic"]
    cited = dict(re.findall(r"^(version|date-released): (.*)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.M))
    assert cited["version"] == partly.__version__
    (version, date), *_ = releases()
    assert (version, date) == (partly.__version__, cited["date-released"])


def releases() -> list[tuple[str, str]]:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    return re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", text, re.M)


def test_the_changelog_has_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    found = releases()
    assert len(found) == len(re.findall(r"^## (?!\[Unreleased\])", text, re.M))
    assert [tuple(map(int, version.split("."))) for version, _ in found] == sorted(
        (tuple(map(int, version.split("."))) for version, _ in found), reverse=True
    )
    for _, date in found:
        datetime.date.fromisoformat(date)
    assert set(re.findall(r"^### (.*)$", text, re.M)) <= KINDS


def test_supported_pythons_are_those_that_are_tried() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    said = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    tried = re.search(r"python: \[(.*)\]", (ROOT / ".github/workflows/tests.yml").read_text("utf-8"))[1]
    assert said == [version.strip('" ') for version in tried.split(",")]
    assert project["requires-python"] == f">={said[0]}"


SCRIPT = """
    import numpy as np
    import numpy.typing as npt

    import partly
    from partly.model_selection import EntrySplit, cross_val_predict

    labels: partly.Labels = partly.Labels.from_nan(np.zeros((4, 2)), names=["cat", "dog"], ids=["a", "b", "c", "d"])
    observed: partly.Labels = partly.scenarios.uniform(labels, 0.5, seed=0)
    model: partly.Classifier = partly.Classifier("bce", head="linear", epochs=1).fit(np.zeros((4, 3)), observed)
    scores: npt.NDArray[np.float32] = model.predict_proba(np.zeros((4, 3)))
    found: dict[str, float] = partly.metrics.evaluate(scores, labels)
    held_out = cross_val_predict(model, np.zeros((4, 3)), labels, cv=EntrySplit(2))
    animals = partly.Hierarchy({"cat": "animal"}).deduce(labels)
    data: partly.Dataset = partly.read("digits")
    names: tuple[str, ...] = data.labels.names
    ledger: partly.Ledger = partly.Ledger.create("labels.db")
    batch: int = ledger.append(["a"], ["cat"], [1])
    filled: int = partly.complete(model, np.zeros((4, 3)), labels).filled
    methods: dict[str, dict[str, object]] = partly.methods()
    number: int = partly.metrics.evaluate(scores, labels)  # wrong: a dictionary
    typed: str = partly.Clasifier  # wrong: no such name
    partly.scenarios.uniform(labels, share="half", seed=0)  # wrong: no number
"""


def test_a_users_script_is_checked_strictly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right lines pass and wrong ones are found: types reach whoever uses the package. `make types` warms the cache."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    monkeypatch.chdir(ROOT)
    said, trouble, _ = api.run(["--strict", "--no-error-summary", str(script)])
    wrong = [n for n, line in enumerate(script.read_text().splitlines(), 1) if "# wrong" in line]
    assert [int(n) for n in re.findall(r"script\.py:(\d+): error", said)] == wrong, said + trouble
