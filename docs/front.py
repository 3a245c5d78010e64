"""Write docs/front.svg, the first picture of the README: naive, `auto` and all labels, from committed result lines.

python -m docs.front            write it
python -m docs.front --check    fail where it is not what the lines give
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from partly.comparison import results
from partly.comparison.results import Record
from partly.report import figures, plots

ROOT = Path(__file__).resolve().parent.parent
SOURCE, DATA = "evidence/results/front.jsonl", "voc2012"
BARS = {  # title -> method, head and scenario of its lines
    "unknown treated as no": ("assume-negative", "linear", "single-positive"),
    "partly: auto": ("auto", "auto", "single-positive"),
    "all labels known": ("bce", "linear", "full"),
}
SCORES = {"OF1_at_chosen_thresholds": "micro F1, thresholds chosen on validation", "mAP": "mean average precision"}
COLOURS = (plots.NO, plots.YES, plots.UNKNOWN)


def means(found: list[Record]) -> dict[str, dict[str, tuple[float, int]]]:
    """Score -> title -> mean over seeds, and their number."""
    made: dict[str, dict[str, tuple[float, int]]] = {name: {} for name in SCORES}
    for title, wanted in BARS.items():
        ours = [
            line["test"]
            for line in found
            if (line["method"], line["head"], line["scenario"]) == wanted
            and line["data"] == DATA
            and line["validation"] == "complete"
            and not (line["tune"] or line["recipe"])
        ]
        for name in SCORES:
            made[name][title] = (float(np.mean([test[name] for test in ours])), len(ours))
    return made


def picture(root: Path = ROOT) -> bytes:
    """SVG: a panel a score, a bar each; it says where its numbers come from."""
    found = means(results.read(root / SOURCE))
    with figures.new_figure(7.6, 2.5) as figure:
        for axes, (name, words) in zip(figure.subplots(1, 2, sharey=True), SCORES.items(), strict=True):
            for place, (value, _) in enumerate(found[name].values()):
                axes.barh(place, value, color=COLOURS[place], height=0.62)
                axes.text(value - 0.02, place, f"{value:.3f}", ha="right", va="center")
            axes.set(title=words, xlim=(0, 1), ylim=(2.5, -0.5), xticks=[0, 0.25, 0.5, 0.75])
            axes.set_yticks(range(len(BARS)), list(BARS))
            axes.grid(visible=False, axis="y")
        seeds = " / ".join(str(count) for _, count in found["mAP"].values())
        figure.supxlabel(
            f"VOC 2012, one known label per image; test part, means of {seeds} seeds. From {SOURCE}.", fontsize=8
        )
        return figures.to_svg(figure)


def main(check: bool = False) -> int:
    made, place = picture(), ROOT / "docs" / "front.svg"
    if check:
        return int(not place.exists() or place.read_bytes() != made)
    place.write_bytes(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
