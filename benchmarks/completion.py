"""Does what `partly.complete` promises hold, and what does it fill in? On the shared data sets, whose truth is known.

    python benchmarks/completion.py [--data ../shared/data] [--sets scene,...] [--scenarios uniform:0.1,...]
                                    [--model linear] [--seeds 20] [--items 1500 --axes 24 --labels 12]
                                    [--out lines.jsonl] [--page] [--quick]

A cell is a data set x scenario x seed: one model is fitted, and all targets are taken from it. Features are brought to
their first 24 principal axes and sets are cut to some items and to their 12 most frequent labels, so that a cell takes
about a second. The truth answers the questions. `--page` writes the table of docs/measurements/completion.md and its
picture from the lines. Cells that are in the file are not run again. Besides the scenarios of `partly.scenarios` there
are `easy` (only entries on the right side of a model of the truth, the surest ones, are known) and `mostly-yes` (in
half of the items nearly only yes is known).
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.special import expit
from scipy.stats import beta, binom
from sklearn.decomposition import PCA

import partly
from partly import Labels, scenarios
from partly.completion import Terms, certify_by_answers, certify_by_known
from partly.completion.certificate import count_zones
from partly.completion.completer import reason_not_mar
from partly.completion.entry_scores import EntryScores, build_entry_scores
from partly.completion.result import compute_filling

Array = np.ndarray[Any, Any]
SETS = "scene,yeast,voc2012,coco,corel5k,debtags,delicious"
SCENARIOS = "uniform:0.1,uniform:0.3,dense:0.1,single-positive,propensity"
TARGETS = (0.8, 0.9, 0.95)
BUDGET = 200
MAX_MISSED = Terms().max_missed
LENIENT = Terms(0.9, 0.9)  # besides the targets, at a confidence of 95 %
ITEMS, LABELS, AXES = 1500, 12, 24
PAGE_TERMS = ((0.9, 0.95), (0.0, 0.95))  # targets and confidences on the page; 0: methods without a target
RESULTS = Path(__file__).with_suffix(".jsonl")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "measurements" / "completion.md"
PICTURE = PAGE.with_suffix(".svg")
BEGIN, END = "<!-- results: written by benchmarks/completion.py --page -->", "<!-- end of results -->"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[2] / "shared" / "data")
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--scenarios", default=SCENARIOS)
    parser.add_argument("--model", default="linear", help="a solved linear head; auto, curriculum, mapie")
    parser.add_argument("--items", type=int, default=ITEMS, help="of each set, at most")
    parser.add_argument("--axes", type=int, default=AXES, help="principal axes of the features, at most")
    parser.add_argument("--labels", type=int, default=LABELS, help="of each set, the most frequent ones")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--page", action="store_true", help="print the tables and write the picture, and run nothing")
    parser.add_argument("--quick", action="store_true", help="one small cell, to see that all of it runs")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.quick:
        options.sets, options.scenarios, options.seeds = "scene", "uniform:0.3,single-positive", 1
    lines = [json.loads(line) for line in options.out.open()] if options.out.exists() else []
    if not options.page:
        run(options, lines)
    found = [*tables(lines, PAGE_TERMS if options.page else None), "", *broken_table(lines), "", *set_table(lines)]
    print("\n".join(found))
    if options.page:
        picture(lines, PICTURE)
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        PAGE.write_text("\n".join([before + BEGIN, *found, END + after]), "utf-8")


def run(options: argparse.Namespace, lines: list[dict[str, Any]]) -> None:
    """Every cell that is not there yet; seed after seed, so that all sets grow alike."""
    done = {(line["set"], line["items"], line["scenario"], line["model"], line["seed"]) for line in lines}
    paths = {name: options.data / f"{name}.npz" for name in options.sets.split(",")}
    sets = {name: taken(path, options.items, options.axes, options.labels) for name, path in paths.items()}
    for seed in range(options.seeds):
        for name, (x, truth) in sets.items():
            for scenario in options.scenarios.split(","):
                model = options.model
                line = {"set": name, "items": len(x), "scenario": scenario, "model": model, "seed": seed}
                if tuple(line.values()) in done:
                    continue
                lines.append(line | cell(x, truth, scenario, model, seed))
                options.out.parent.mkdir(parents=True, exist_ok=True)
                with options.out.open("a") as file:
                    file.write(json.dumps(lines[-1]) + "\n")


def taken(path: Path, items: int, axes: int, labels: int) -> tuple[Array, Labels]:
    """Features and truth of some items, the same every time."""
    data = partly.read(path)
    rows = np.sort(np.random.default_rng(12345).permutation(len(data.items))[:items])
    x = np.asarray(data.items.take(torch.from_numpy(rows)), np.float32)
    x = (x - x.mean(axis=0)) / (x.std(axis=0) + 1e-6)
    if x.shape[1] > axes:
        x = PCA(axes, random_state=0).fit_transform(x).astype(np.float32)
    z = data.labels.rows(rows)
    columns = np.sort(np.argsort(-(z == 1).sum(axis=0), kind="stable")[:labels])
    return x, Labels.from_ternary(z[:, columns], names=[data.labels.names[j] for j in columns])


# -------------------------------------------------------------------- one cell


def cell(x: Array, truth: Labels, scenario: str, model: str, seed: int) -> dict[str, Any]:
    start = time.process_time()
    observed = observe(x, truth, scenario, seed)
    z, only_yes = truth.rows(slice(None)), not observed.counts()[1].any()
    method = model if model == "auto" else ("assume-negative" if only_yes else "bce")
    head = {} if model == "auto" else {"head": "linear"}
    if model == "curriculum":
        weak = partly.Classifier("curriculum", head="mlp", progress=False, seed=seed).fit(x, observed).beliefs_
        rows = plain("curriculum", np.sign(np.asarray(weak, np.float32) - 0.5), observed, z)
        return {"seconds": time.process_time() - start, "rows": rows}
    fitted = partly.Classifier(method, **head, progress=False, seed=seed).fit(x, observed)
    scores = np.asarray(fitted.out_of_fold_, np.float64)
    if model == "mapie":
        rows = [mapie(target, expit(scores), observed, z) for target in TARGETS]
        return {"seconds": time.process_time() - start, "rows": rows}
    why = reason_not_mar(observed, x, seed) if scenario in UNFAIR else "only yes" * only_yes
    board = build_entry_scores(scores, observed, observed, None, True, seed)
    rows = [_audit(board, observed, z, terms, seed, calibrated=not why) for terms in all_terms()]
    if not only_yes:
        board = build_entry_scores(scores, observed, observed, None, False, seed)
        found = ((terms, certify_by_known(board, terms).sides) for terms in all_terms())
        rows += [judged("complete", terms, sides, board, observed, z) for terms, sides in found]
        rows += [limits("pooled bound", terms, pooled_bound(board, terms), board, z) for terms in all_terms()]
    rows += [limits("oracle", terms, oracle(board, z, terms), board, z) for terms in all_terms()]
    rows += plain("fixed 0.9", fixed(fitted.predict_proba(x)), observed, z)
    spread = {"spread": bool(board.is_random_sample), "rejected": bool(why)}
    return {"seconds": time.process_time() - start} | spread | {"rows": rows}


def all_terms() -> list[Terms]:
    return [LENIENT, *(Terms(target, budget=BUDGET) for target in TARGETS)]


UNFAIR = ("easy", "mostly-yes")


def observe(x: Array, truth: Labels, scenario: str, seed: int) -> Labels:
    """What is known: by a scenario of the package, or by one of the two that no user should call random."""
    if scenario not in UNFAIR:
        return scenarios.parse(scenario)(truth, seed)
    z, rng = truth.rows(slice(None)), np.random.default_rng(seed)
    if scenario == "mostly-yes":
        half = rng.random((len(z), 1)) < 0.5
        known = rng.random(z.shape) < np.where(half & (z == -1), 0.02, 0.2)
    else:
        model = partly.Classifier("bce", head="linear", progress=False, seed=seed).fit(x, truth)
        margin = z * np.asarray(model.out_of_fold_)
        known = (margin >= np.quantile(margin, 0.4)) & (rng.random(z.shape) < 0.3)
    return Labels.from_ternary(np.where(known, z, 0), names=truth.names)


def _audit(board: EntryScores, observed: Labels, z: Array, terms: Terms, seed: int, calibrated: bool) -> dict[str, Any]:
    """The truth answers, batch after batch. Only what was answered is known beside what was observed."""
    known, found = observed, certify_by_answers(board, observed, terms, "benchmark", seed, calibrated)
    while len(found.questions[0]):
        known = known.with_entries(*found.questions, z[found.questions])
        found = certify_by_answers(board, known, terms, "benchmark", seed, calibrated)
    said = compute_filling(board, found.sides, known)
    asked = known.known_per_item().sum() - observed.known_per_item().sum()
    answered_yes = int(known.counts()[0].sum() - observed.counts()[0].sum())
    row = {"method": f"complete, {BUDGET} questions", "target": terms.precision, "confidence": terms.confidence}
    return row | counts(said, observed, z) | {"asked": int(asked), "answered_yes": answered_yes}


def pooled_bound(board: EntryScores, terms: Terms) -> float:
    """Laxest zone whose Clopper-Pearson bound holds by itself, though many were tried: no guarantee."""
    zones = count_zones(board, 1)
    known, errors = zones.known.sum(axis=1), zones.errors.sum(axis=1)
    passed = binom.cdf(errors, known, 1 - terms.precision) <= terms.risk
    return float(zones.thresholds[np.flatnonzero(passed)[-1]]) if passed.any() else np.inf


def oracle(board: EntryScores, z: Array, terms: Terms) -> float:
    """Laxest threshold that has the precision in truth: all that these scores can separate."""
    inside = board.candidates & board.fillable
    order = np.argsort(-board.chance[inside], kind="stable")
    precision = np.cumsum(z[inside][order] == 1) / np.arange(1, len(order) + 1)
    good = np.flatnonzero(precision >= terms.precision)
    return float(board.chance[inside][order[good[-1]]]) if len(good) else np.inf


def limits(name: str, terms: Terms, threshold: float, board: EntryScores, z: Array) -> dict[str, Any]:
    """Fill in every candidate from a threshold on as yes, and nothing as no."""
    said = np.where(board.candidates & board.fillable & (board.chance >= threshold), 1, 0).astype(np.int8)
    observed = Labels.from_ternary(board.observed, names=board.names)
    return {"method": name, "target": terms.precision, "confidence": terms.confidence} | counts(said, observed, z)


def judged(name: str, terms: Terms, sides: Any, board: EntryScores, observed: Labels, z: Array) -> dict[str, Any]:
    said = compute_filling(board, sides, observed)
    alone = {"alone": [alone_right(side, said, z, observed, terms) for side in sides]}
    row = {"method": name, "target": terms.precision, "confidence": terms.confidence}
    return row | counts(said, observed, z) | alone


def alone_right(side: Any, said: Array, z: Array, observed: Labels, terms: Terms) -> tuple[int, int]:
    """Labels that are certified by themselves, and how many of them fall short."""
    columns = [observed.names.index(name) for name in side.labels]
    short = [((z[:, j] == side.value)[said[:, j] == side.value]).mean() < terms.precision for j in columns]
    return len(columns), int(sum(short))


def fixed(probability: Array) -> Array:
    """What many do: the model's own probabilities of the items it has learned from, from 0.9 on."""
    return np.where(probability >= 0.9, 1, np.where(probability <= 0.1, -1, 0)).astype(np.int8)


def mapie(target: float, chance: Array, observed: Labels, z: Array) -> dict[str, Any]:
    """What MAPIE (pip install mapie) predicts for items of which nothing is known, by wholly known ones and by
    the same scores; at 0.975, the confidence that `complete` has for yes by itself."""
    from mapie.risk_control import MultiLabelClassificationController

    whole = observed.known_per_item() == len(observed.names)
    judges = whole & (z == 1).any(axis=1)  # it refuses items without any yes
    control = MultiLabelClassificationController(
        predict_function=lambda scores: scores, risk="precision", target_level=target, confidence_level=0.975
    )
    said = np.zeros_like(z)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where no threshold does
        control.calibrate(chance[judges], (z[judges] == 1).astype(int))
        if len(np.ravel(control.valid_index[0])):
            said[~whole] = np.reshape(control.predict(chance[~whole]), (-1, z.shape[1])).astype(np.int8)
    return {"method": "MAPIE", "target": target} | counts(said, observed, z)


def plain(name: str, said: Array, observed: Labels, z: Array) -> list[dict[str, Any]]:
    hidden = np.where(observed.rows(slice(None)) == 0, said, 0).astype(np.int8)
    return [{"method": name, "target": None} | counts(hidden, observed, z)]


def counts(said: Array, observed: Labels, z: Array) -> dict[str, Any]:
    """Of yes and of no: filled in, rightly so, and hidden in all."""
    hidden = observed.rows(slice(None)) == 0
    return {
        word: [int((said == v).sum()), int(((said == v) & (z == v)).sum()), int((hidden & (z == v)).sum())]
        for word, v in (("yes", 1), ("no", -1))
    }


# -------------------------------------------------------------------- what came out


def tables(lines: list[dict[str, Any]], only: tuple[tuple[float, float], ...] | None) -> list[str]:
    """Per scenario, model, method and terms: runs in which a guarantee was broken, and what was filled in.

    only: targets, 0 for methods without, and confidences to show.
    """
    heads = ("known", "model", "method", "target", "runs", "yes found", "of the oracle", "no found")
    heads += ("precision of yes", "hidden yes lost", "broken", "asked")
    found = [f"| {' | '.join(heads)} |", "|---|---|---|" + "---:|" * (len(heads) - 3)]
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for line in lines:
        size = "" if line["items"] <= ITEMS else f", {line['set']} of {line['items']:,} items"
        model = "linear" if line["model"] in ("mapie", "curriculum") else line["model"]
        for row in line["rows"]:
            terms = row["target"] or 0, row.get("confidence", Terms().confidence)
            groups.setdefault((line["scenario"] + size, model, *terms, row["method"]), []).append(row)
    oracle = {key[:4]: _yes_found(rows) for key, rows in groups.items() if key[4] == "oracle"}
    for (*key, method), rows in sorted(groups.items()):
        scenario, model, target, confidence = key
        if only is not None and ((target, confidence) not in only or method == "oracle"):
            continue
        terms_word = f"{target:g} at {confidence:g}" if target else ""
        best = oracle.get(tuple(key), 0)
        cells = [scenario, model, method, terms_word, f"{len(rows)}", f"{_yes_found(rows):.1%}"]
        cells += [f"{_yes_found(rows) / best:.0%}" if best else ""]
        cells += [f"{np.mean([r['no'][1] / max(r['no'][2], 1) for r in rows]):.1%}"]
        filled, right = (sum(r["yes"][k] for r in rows) for k in (0, 1))
        cells += [f"{right / filled:.3f}" if filled else "", f"{np.mean([_lost(r) for r in rows]):.1%}"]
        cells += [f"{sum(is_broken(r) for r in rows)}"]
        cells += [f"{np.mean([r['asked'] for r in rows]):.0f}" if "asked" in rows[0] else ""]
        found.append(f"| {' | '.join(cells)} |")
    return found


def broken_table(lines: list[dict[str, Any]]) -> list[str]:
    """Per scenario and way of certifying: runs of all targets, those that certify, and those that break a guarantee."""
    groups: dict[tuple[str, str, float], list[tuple[bool, bool]]] = {}
    for line in lines:
        for row in (row for row in line["rows"] if row["method"].startswith("complete")):
            certified = bool(row["yes"][0] or row["no"][0])
            key = line["scenario"], row["method"], row["confidence"]
            groups.setdefault(key, []).append((certified, is_broken(row)))
    found = [
        "| known | method | stated risk | runs | certify | broken | at most |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for (scenario, method, confidence), runs in sorted(groups.items()):
        certified, broken = np.sum(runs, axis=0)
        bound = beta.ppf(0.95, broken + 1, len(runs) - broken) if broken < len(runs) else 1.0
        cells = [scenario, method, f"{1 - confidence:.0%}", len(runs), certified, broken, f"{bound:.1%}"]
        found.append(f"| {' | '.join(map(str, cells))} |")
    return found


def set_table(lines: list[dict[str, Any]]) -> list[str]:
    """What answers certify at 0.9, set by set, where the oracle finds at least a twentieth of the hidden yes."""
    groups: dict[tuple[str, str, str], list[tuple[float, float, bool]]] = {}
    for line in lines:
        rows = {row["method"]: row for row in line["rows"] if (row["target"], row.get("confidence")) == PAGE_TERMS[0]}
        if (asked := rows.get(f"complete, {BUDGET} questions")) is not None:
            key = line["scenario"], f"{line['set']}, {line['items']:,} items", line["model"]
            groups.setdefault(key, []).append(
                (_yes_found([asked]), _yes_found([rows["oracle"]]), bool(asked["yes"][0]))
            )
    found = [
        "| known | set | model | runs | certify | yes found | oracle | of the oracle |",
        "|---|---|---|" + "---:|" * 5,
    ]
    for key, runs in sorted(groups.items()):
        share, oracle, certify = np.mean(runs, axis=0)
        if oracle >= 0.05:
            cells = [*key, f"{len(runs)}", f"{certify:.0%}", f"{share:.1%}", f"{oracle:.1%}", f"{share / oracle:.0%}"]
            found.append(f"| {' | '.join(cells)} |")
    return found


def is_broken(row: dict[str, Any]) -> bool:
    """Whether the precision of yes is below the target, or too many of the hidden yes became no."""
    return bool(row["yes"][1] < (row["target"] or 0.9) * row["yes"][0] or _lost(row) > MAX_MISSED)


def _yes_found(rows: list[dict[str, Any]]) -> float:
    return float(np.mean([r["yes"][1] / max(r["yes"][2], 1) for r in rows]))


def _lost(row: dict[str, Any]) -> float:
    """Share of the hidden yes that were filled in as no."""
    filled, right, _ = row["no"]
    return float((filled - right) / max(row["yes"][2], 1))


def picture(lines: list[dict[str, Any]], path: Path) -> None:
    """Share of the hidden entries that is rightly filled in, against the precision of what is, per method: a point is a
    set and a target, by its median over seeds; a line joins a set's targets."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "partly"
    kinds = [name for name in SCENARIOS.split(",") if any(line["scenario"] == name for line in lines)]
    size = (3.2 * len(kinds), 6.4)
    figure, axes = plt.subplots(2, len(kinds), figsize=size, sharex="row", sharey=True, squeeze=False)
    for row, word in enumerate(("yes", "no")):
        for column, scenario in enumerate(kinds):
            at = axes[row][column]
            for number, method in enumerate(METHODS):
                _points(at, [line for line in lines if line["scenario"] == scenario], method, word, f"C{number}")
            at.set_title(f"{word}, {scenario}", fontsize=9)
            at.grid(alpha=0.3)
            if row:
                at.set_xlabel("precision of what is filled in")
        axes[row][0].set_ylabel(f"share of hidden {word} found")
    handles = [plt.Line2D([], [], color=f"C{k}", marker="o", label=name) for k, name in enumerate(METHODS)]
    figure.legend(handles=handles, loc="lower center", ncol=len(METHODS), frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, metadata={"Date": None})


METHODS = ("complete", "complete, 200 questions", "pooled bound", "oracle", "fixed 0.9", "curriculum")


def _points(at: Any, lines: list[dict[str, Any]], method: str, word: str, color: str) -> None:
    for name in dict.fromkeys(line["set"] for line in lines):
        found: dict[float, list[tuple[float, float]]] = {}
        for line in lines:
            for row in line["rows"]:
                filled, right, hidden = row[word]
                if line["set"] == name and line["model"] != "auto" and row["method"] == method and filled:
                    found.setdefault(row["target"] or 0, []).append((right / filled, right / max(hidden, 1)))
        points = [np.median(found[target], axis=0) for target in sorted(found)]
        if points:
            at.plot(*np.transpose(points), color=color, marker="o", markersize=3, linewidth=0.8, alpha=0.8)


if __name__ == "__main__":
    main()
