"""Figures of hidden entries: the scores of hidden yes and hidden no, and metrics by epoch.

Papers: D. Zhou and others, ECCV 2022, "distinguishability"; G. Lyu and others, AAAI 2025, figure 3; C.-Y. Hsieh and
others, arXiv 2109.14676, "recover rate".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from partly.report import figures, plots

Run = dict[str, Any]  # of evidence/hidden_entries.py: a method and seed with its epochs and histograms


def draw_densities(runs: Sequence[Run], methods: Sequence[str]) -> bytes:
    """SVG of the shares of hidden yes and hidden no by score, a panel per method; mean over seeds."""
    with figures.new_figure(2.3 * len(methods), 2.6) as figure:
        panels = np.atleast_1d(figure.subplots(1, len(methods), sharey=True))
        for axes, name in zip(panels, methods, strict=True):
            same = [run for run in runs if run["method"] == name]
            for kind, color, dashes in (("yes", plots.YES, "-"), ("no", plots.NO, "--")):
                share = np.mean([run["scores"][kind] for run in same], axis=0)
                edges = np.linspace(0, 1, len(share) + 1)
                axes.stairs(100 * share, edges, color=color, ls=dashes, lw=1.5, label=f"hidden {kind}")
            distance = np.mean([run["epochs"][-1]["wasserstein"] for run in same])
            axes.set(title=f"{name}\ndistance {distance:.2f}", xlabel="score", yscale="log", ylim=(0.05, 100))
        panels[0].set_ylabel("share, %")
        panels[0].legend(frameon=False)
        return figures.to_svg(figure)


def draw_epochs(runs: Sequence[Run], metrics: dict[str, str]) -> bytes:
    """SVG of metrics over training, a panel per metric (name -> title) and a line per method; mean over seeds."""
    methods = list(dict.fromkeys(run["method"] for run in runs))
    with figures.new_figure(4.2 * len(metrics), 3.0) as figure:
        panels = np.atleast_1d(figure.subplots(1, len(metrics)))
        for axes, (name, title) in zip(panels, metrics.items(), strict=True):
            for place, method in enumerate(methods):
                same = [run["epochs"] for run in runs if run["method"] == method]
                if name not in same[0][0]:
                    continue
                style = plots.choose_style(place)
                values = 100 * np.mean([[epoch[name] for epoch in epochs] for epochs in same], axis=0)
                progress = np.arange(1, len(values) + 1) / len(values)
                axes.plot(progress, values, color=style.color, marker=style.marker, ms=3, lw=1.3, label=method)
            axes.set(title=title, xlabel="share of epochs", ylabel="per cent", ylim=(0, None))
            axes.legend(frameon=False, fontsize=8)
        return figures.to_svg(figure)
