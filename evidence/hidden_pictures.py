"""Pictures of hidden entries: the scores of hidden yes and hidden no, and what is found of them epoch by epoch.

Papers: D. Zhou and others, ECCV 2022, "distinguishability"; G. Lyu and others, AAAI 2025, figure 3; C.-Y. Hsieh and
others, arXiv 2109.14676, "recover rate".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partly.report import figures, plots

Line = dict[str, Any]  # of evidence/hidden_entries.py: a method and seed with its epochs and histograms


def densities(lines: Sequence[Line], methods: Sequence[str]) -> bytes:
    """SVG: of each method the share of hidden yes and of hidden no in bins of the score, the mean over seeds."""
    with figures.new_figure(2.3 * len(methods), 2.6) as figure:
        panels = np.atleast_1d(figure.subplots(1, len(methods), sharey=True))
        for axes, name in zip(panels, methods, strict=True):
            ours = [line for line in lines if line["method"] == name]
            for kind, colour, dashes in (("yes", plots.YES, "-"), ("no", plots.NO, "--")):
                share = np.mean([line["scores"][kind] for line in ours], axis=0)
                edges = np.linspace(0, 1, len(share) + 1)
                axes.stairs(100 * share, edges, color=colour, ls=dashes, lw=1.5, label=f"hidden {kind}")
            apart = np.mean([line["epochs"][-1]["wasserstein"] for line in ours])
            axes.set(title=f"{name}\n{apart:.2f} apart", xlabel="score", yscale="log", ylim=(0.05, 100))
        panels[0].set_ylabel("per cent of them")
        panels[0].legend(frameon=False)
        return figures.to_svg(figure)


def over_epochs(lines: Sequence[Line], what: dict[str, str]) -> bytes:
    """SVG: a panel for each number of an epoch, with its words, and a line for each method that has it; the mean over
    seeds, over the share of the epochs that have passed."""
    methods = list(dict.fromkeys(line["method"] for line in lines))
    with figures.new_figure(4.2 * len(what), 3.0) as figure:
        panels = np.atleast_1d(figure.subplots(1, len(what)))
        for axes, (name, words) in zip(panels, what.items(), strict=True):
            for place, method in enumerate(methods):
                ours = [line["epochs"] for line in lines if line["method"] == method]
                if name not in ours[0][0]:
                    continue
                look = plots.choose_style(place)
                values = 100 * np.mean([[epoch[name] for epoch in epochs] for epochs in ours], axis=0)
                passed = np.arange(1, len(values) + 1) / len(values)
                axes.plot(passed, values, color=look.color, marker=look.marker, ms=3, lw=1.3, label=method)
            axes.set(title=words, xlabel="share of the epochs", ylabel="per cent", ylim=(0, None))
            axes.legend(frameon=False, fontsize=8)
        return figures.to_svg(figure)
