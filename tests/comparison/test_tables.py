"""Tables of a comparison for papers and programs, from lines made by hand."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from comparison.making import lines
from partly.comparison import table, tables
from partly.comparison.groups import gather
from partly.errors import SettingError

RACE = {
    "full": [0.8, 0.9, 0.85],
    "assume-negative": [0.40, 0.42, 0.41],
    "bce": [0.61, 0.62, 0.63],
    "partial-bce": [0.7, 0.71, 0.72],
    "odd_one%&#{[~^<|": [0.699, 0.72, 0.70],
}


def test_latex_by_hand():
    head, *text = table(lines(RACE), "latex").splitlines()
    assert "booktabs" in head
    assert text == [
        "",
        "% uniform:0.5: tiny, linear",
        r"\begin{tabular}{lrrrrr}",
        r"\toprule",
        r"method & mAP & CF1 at 0.5 & OF1 at 0.5 & gap closed & seeds \\",
        r"\midrule",
        r"bce, all labels & 0.850 $\pm$ 0.124 & 0.400 $\pm$ 0.000 & 0.600 $\pm$ 0.000 &  & 3 \\",
        r"\textbf{partial-bce} & \textbf{0.710 $\pm$ 0.025} & 0.400 $\pm$ 0.000 & 0.600 $\pm$ 0.000 & 68 \% & 3 \\",
        r"odd\_one\%\&\#\{{[}\textasciitilde{}\textasciicircum{}\textless{}\textbar{} $\approx$ & 0.706 $\pm$ 0.029 & "
        r"0.400 $\pm$ 0.000 & 0.600 $\pm$ 0.000 & 67 \% & 3 \\",
        r"bce & 0.620 $\pm$ 0.025 & 0.400 $\pm$ 0.000 & 0.600 $\pm$ 0.000 & 48 \% & 3 \\",
        r"assume-negative & 0.410 $\pm$ 0.025 & 0.400 $\pm$ 0.000 & 0.600 $\pm$ 0.000 & 0 \% & 3 \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_text_from_the_data_stays_text_in_latex():
    assert tables.escape_latex("\\input{x}\n\\end{tabular}") == (
        r"\textbackslash{}input\{x\} \textbackslash{}end\{tabular\}"
    )
    made = lines({"bce": [0.5, 0.6]}, data="a\n\\input{x}")
    assert "\n\\input" not in table(made, "latex")  # not in a comment either


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no LaTeX on this machine")
def test_latex_is_set(tmp_path: Path):
    whole = rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}{table(lines(RACE))}\end{{document}}"
    (tmp_path / "t.tex").write_text(whole)
    subprocess.run(["pdflatex", "-interaction=batchmode", "-halt-on-error", "t.tex"], cwd=tmp_path, check=True)


def test_csv_and_json_have_the_same_rows_with_all_digits():
    made = lines(RACE) + lines({"bce": [0.5]}, scenario="single-positive")
    rows = list(csv.DictReader(io.StringIO(table(made, "csv"))))
    plain = json.loads(table(made, "json"))
    assert [row["method"] for row in rows] == [row["method"] for row in plain["rows"]]
    (best,) = (row for row in plain["rows"] if row["leader"] and row["scenario"] == "uniform:0.5")
    assert (best["method"], best["seeds"], best["kind"]) == ("partial-bce", 3, "")
    assert best["mAP"] == pytest.approx(0.71)
    assert best["mAP interval"] == pytest.approx(4.302653 * 0.01 / 3**0.5, rel=1e-6)
    assert [row["method"] for row in plain["rows"] if row["level"]] == ["odd_one%&#{[~^<|"]
    assert {float(row["mAP"]) for row in rows} == {row["mAP"] for row in plain["rows"]}
    single = next(row for row in plain["rows"] if row["scenario"] == "single-positive" and row["method"] == "bce")
    assert single["mAP interval"] is None
    assert plain["leaders"] == tables.find_leaders(gather(made))
    assert plain["leaders"][-1] | {"races": 0} == {
        "validation": "complete",
        "scenario": "uniform:0.5",
        "leader": "partial-bce",
        "level": ["odd_one%&#{[~^<|"],
        "verdict": "shared",
        "races": 0,
    }


def test_markdown_is_what_the_console_says():
    assert "| **partial-bce** | **0.710 ± 0.025** |" in table(lines(RACE), "markdown")


def test_other_formats_and_nothing_are_refused():
    with pytest.raises(SettingError, match=r"There is no table format 'latx'\. Did you mean 'latex'"):
        table(lines(RACE), "latx")
    with pytest.raises(SettingError, match=r"x\.docx: a table is written as \.tex, \.md, \.csv, \.json"):
        tables.find_format(Path("x.docx"))
    with pytest.raises(SettingError, match="nothing to tabulate"):
        table([], "csv")
