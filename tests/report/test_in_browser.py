"""What the script of the pages does, in a real browser. Skipped where there is none."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from partly import metrics
from partly.labels import Labels
from partly.report import layout, operating_points, page
from report.test_page import NASTY, labels, run

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
PROBE = """
const all = (what) => [...document.querySelectorAll(what)];
const rows = (what) => all(what + " tbody tr").map((row) => [...row.cells].map((cell) => cell.textContent.trim()));
all("table.labels th button")[1].click();
const down = rows("table.labels").map((row) => row[1]);
all("table.labels th button")[1].click();
const up = rows("table.labels").map((row) => row[1]);
const slider = document.querySelector(".slider input");
slider.value = 80;
slider.dispatchEvent(new Event("input"));
const plot = document.querySelector(".ruled"), box = plot.getBoundingClientRect();
const [x, y, words] = JSON.parse(plot.dataset.points)[30];
const there = { clientX: box.left + x * box.width, clientY: box.top + y * box.height };
plot.dispatchEvent(new PointerEvent("pointermove", there));
const found = {
  down, up, words,
  bubble: document.querySelector(".bubble").textContent,
  hidden: document.querySelector(".slider").hidden,
  runs: rows(".runs"), labels: all("[data-label]").map((row) => [...row.cells].map((cell) => cell.textContent.trim())),
  title: document.title,
};
const out = document.body.appendChild(document.createElement("pre"));
out.id = "found";
out.textContent = JSON.stringify(found);
"""


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium on this machine")
def test_tables_sort_pictures_speak_and_thresholds_move(tmp_path: Path) -> None:
    observed, truth = labels(30, NASTY, 0.5), labels(60, NASTY, 0.8, seed=1)
    z = np.array(truth.ternary())
    z[:, 2] = np.minimum(z[:, 2], 0)  # of one label no yes is known
    truth = Labels.from_ternary(z, names=truth.names)
    views = (run("one", observed, truth), run("</script><b>two", observed, truth, 2.0, 1))
    made = page.render(page.Report("Title", observed, views, truth))
    allowed = f"'{layout.DIGEST}' 'sha256-{base64.b64encode(hashlib.sha256(PROBE.encode()).digest()).decode()}'"
    stranger = "<script>document.title = 'a stranger ran'</script>"
    made = made.replace(f"'{layout.DIGEST}'", allowed).replace("</body>", f"{stranger}<script>{PROBE}</script></body>")
    (tmp_path / "page.html").write_text(made, "utf-8")
    words = [str(BROWSER), *FLAGS.split(), f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    done = subprocess.run(
        [*words, f"file://{tmp_path / 'page.html'}"], capture_output=True, text=True, timeout=300, check=True
    )
    found = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.S)[1]))
    assert found["title"] == "Title"  # no other script runs than those whose digest the page names
    ap = metrics.average_precision(views[0].probabilities, truth)
    order = [f"{value:.3f}" for value in sorted(ap[~np.isnan(ap)])]
    assert found["down"] == [*order[::-1], "–"]
    assert found["up"] == [*order, "–"]  # what is undefined stays last
    assert found["hidden"] is False
    assert found["bubble"] == found["words"] != ""
    for row, view in zip(found["runs"], views, strict=True):
        scores = metrics.evaluate(view.probabilities, truth, 0.8)
        assert row[1:] == [f"{scores[key]:.3f}" for key in (*operating_points.MICRO, *operating_points.MACRO)]
    table = metrics.by_label(views[1].probabilities, truth, 0.8)  # of the best run
    for j, row in enumerate(found["labels"]):
        ratios = [table[key][j] for key in ("precision", "recall", "F1")]
        assert row[1:4] == ["–" if np.isnan(value) else f"{value:.3f}" for value in ratios]
        assert row[4] == str(table["predicted"][j])
