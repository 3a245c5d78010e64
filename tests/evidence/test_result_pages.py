"""The pages that `make results` writes, and that those in docs/ are what the result lines give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from comparison.making import line, lines
from evidence import pages
from partly.errors import SettingError

ROOT = Path(__file__).resolve().parents[2]
RACE = {"full": [0.9, 0.9], "assume-negative": [0.5, 0.5], "bce": [0.6, 0.62], "partial-bce": [0.8, 0.79]}


@pytest.fixture(scope="module")
def results():
    return pages


@pytest.fixture
def root(tmp_path):
    for folder in ("evidence/results", "evidence/experiments", "docs"):
        (tmp_path / folder).mkdir(parents=True)
    text = "".join(json.dumps(one) + "\n" for one in lines(RACE))
    (tmp_path / "evidence" / "results" / "small.jsonl").write_text(text)
    toml = 'title = "A small one"\nabout = "Why."\ndata = ["x.npz"]\nmethods = ["bce"]\nscenarios = ["uniform:0.5"]\n'
    (tmp_path / "evidence" / "experiments" / "small.toml").write_text(toml)
    return tmp_path


def test_pages_are_written_once_and_old_ones_go(results, root):
    (root / "docs" / "results").mkdir()
    (root / "docs" / "results" / "old.svg").touch()
    assert results.main(root) == 0
    docs = root / "docs"
    written = ["claims.json", "gap.svg", "regimes.svg", "small.md"]
    assert sorted(path.name for path in (docs / "results").iterdir()) == written
    page = (docs / "results" / "small.md").read_text()
    assert page.startswith("# A small one\n\nWhy.\n\nRun by `partly compare evidence/exp")
    assert results.ONE_RECIPE not in page  # of baselines alone
    summary = (docs / "results.md").read_text()
    assert "(results/gap.svg)" in summary
    assert "- [A small one](results/small.md). " in summary
    assert "## Zhou et al. 2022" in (docs / "claims.md").read_text()
    assert results.main(root, check=True) == 0


@pytest.mark.parametrize(("name", "said"), [("small", True), ("equal-small", False), ("recipes-small", False)])
def test_pages_of_one_recipe_for_all_rows_say_so(results, root, name, said):
    folder = root / "evidence"
    text = (folder / "experiments" / "small.toml").read_text()
    (folder / "experiments" / f"{name}.toml").write_text(text.replace('"bce"', '"partial-bce"'))
    (folder / "results" / "small.jsonl").rename(folder / "results" / f"{name}.jsonl")
    page = results.build_pages(root)[f"results/{name}.md"].decode()
    assert (results.ONE_RECIPE in page) == said


def test_tables_of_claims_are_filled_in(results, root):
    page = "Before.\n\n<!-- claims: em-above-an-voc cls-nus -->\nold\n<!-- end of claims -->\n\nAfter.\n"
    (root / "docs" / "findings.md").write_text(page)
    results.main(root)
    text = (root / "docs" / "findings.md").read_text()
    assert "old" not in text
    assert text.startswith("Before.\n\n<!-- claims: em-above-an-voc cls-nus -->\n| claim |")
    assert "| undecided: not run |" in text
    assert "| undecided: the data is not here: NUS-WIDE |" in text
    assert text.endswith("\n<!-- end of claims -->\n\nAfter.\n")
    assert results.main(root, check=True) == 0


def test_a_stale_page_is_noticed(results, root, capsys):
    results.main(root)
    (root / "docs" / "claims.md").write_text("Everything holds.")
    (root / "docs" / "results" / "old.md").touch()
    assert results.main(root, check=True) == 1
    said = capsys.readouterr().err
    assert "docs/claims.md is stale" in said
    assert "docs/results/old.md is stale" in said


def test_lines_of_old_protocols_are_on_no_page(results, root):
    (root / "evidence" / "results" / "old.jsonl").write_text(json.dumps(line(protocol=1)) + "\n")
    assert "results/old.md" not in results.build_pages(root)


def test_results_without_their_experiment_are_refused(results, root):
    (root / "evidence" / "experiments" / "small.toml").unlink()
    with pytest.raises(SettingError, match=r"small\.toml"):
        results.main(root)


def test_a_page_has_the_areas_of_an_experiment_that_asks(results, root):
    rounds = [{"answers": n, "scores": dict.fromkeys(("P@1", "P@3", "P@5"), 0.5)} for n in (0, 5)]
    asks = {"query": "random", "rounds": 1, "questions": 5}
    made = line(validation="none", asks=asks, rounds=rounds, areas=dict.fromkeys(("P@1", "P@3", "P@5"), 0.5))
    (root / "evidence" / "results" / "small.jsonl").write_text(json.dumps(made) + "\n")
    with (root / "evidence" / "experiments" / "small.toml").open("a") as file:
        file.write('queries = ["random"]\n')
    pages = results.build_pages(root)
    text = pages["results/small.md"].decode()
    assert "## tiny, uniform:0.5, bce, linear, 1 rounds of 5\n\n![P@k" in text
    assert "| P@1 | **0.500** |" in text
    assert "results/small-tiny-uniform-0.5-bce-linear-1-rounds-of-5.svg" in pages


def test_docs_are_what_the_lines_give(results):
    assert results.main(ROOT, check=True) == 0, "run `make results`"
