"""Texts from the command line: sentence vectors of `minilm` against TF-IDF, sparse, each with a linear head and `auto`.

    python benchmarks/texts.py debtags-text.jsonl.gz [--train 3000] [--test 1000] [--least 50] [--out FOLDER]

The file holds a JSON object a line: `name`, `text` and `tags`. Of a random part of the items, tags with at least so
many yes among the training items are the labels; all of them are known of the test items, and a scenario hides most of
those of the training items. What is measured are the commands that a person would give: `partly features --backbone
minilm` once, then `partly train` on its folder, and on a sparse `.npz` of TF-IDF whose words are those of the training
items. Seconds are those of the processor for the whole command, on one thread. A folder that is kept (`--out`) is gone
on with.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from partly import Labels, data

SCENARIOS = {"uniform:0.1": "bce", "uniform:0.3": "bce", "single-positive": "assume-negative"}  # and the plain method


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--train", type=int, default=3000)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--least", type=int, default=50, help="yes that a tag has among the training items")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        out: Path = options.out or Path(scratch)
        out.mkdir(parents=True, exist_ok=True)
        labels = prepare(options.texts, options.train, options.test, options.least, out)
        yes = (labels.ternary() > 0).sum(axis=1).mean()
        print(f"{options.train} / {options.test} texts, {labels.shape[1]} tags, {yes:.1f} an item")
        seconds = called("features", str(out / "texts.jsonl"), "--backbone", "minilm", "--out", str(out / "minilm"))[1]
        print(f"partly features: {seconds:.0f} s (nothing to compute where the folder was there)")
        print(f"{'scenario':16} {'features':8} {'method':16} {'mAP':>6} {'seconds':>8}", flush=True)
        for scenario, plain in SCENARIOS.items():
            for name, items in (("minilm", out / "minilm"), ("tf-idf", out / "tf-idf.npz")):
                for method, head in ((plain, "linear"), ("auto", "auto")):
                    score, seconds = trained(items, out, scenario, method, head)
                    print(f"{scenario:16} {name:8} {method:16} {score:6.3f} {seconds:8.0f}", flush=True)


def prepare(path: Path, train: int, test: int, least: int, out: Path) -> Labels:
    """The texts, their labels with the column `split`, and the sparse features, each in a file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows: list[dict[str, Any]] = [json.loads(line) for line in file]
    rng = np.random.default_rng(0)
    rows = [rows[i] for i in rng.permutation(len(rows))[: train + test]]
    count = Counter(tag for row in rows[:train] for tag in row["tags"])
    tags = sorted(tag for tag, yes in count.items() if yes >= least)
    truth = np.array([[tag in row["tags"] for tag in tags] for row in rows])
    ids = [row["name"] for row in rows]
    (out / "texts.jsonl").write_text(
        "".join(json.dumps({"name": row["name"], "text": row["text"]}) + "\n" for row in rows), encoding="utf-8"
    )
    labels = Labels.from_full(truth, names=tags, ids=ids)
    data.write_labels(labels, out / "whole.csv", form="wide")
    header, *lines = (out / "whole.csv").read_text(encoding="utf-8").splitlines()
    parts = ["split", *["train"] * train, *["test"] * test]
    both = (f"{line},{part}" for line, part in zip([header, *lines], parts, strict=True))
    (out / "labels.csv").write_text("\n".join(both) + "\n", encoding="utf-8")
    words = TfidfVectorizer(sublinear_tf=True, min_df=2, stop_words="english", dtype=np.float32)
    words.fit(row["text"] for row in rows[:train])
    x = words.transform(row["text"] for row in rows).tocsr()
    parts_of = {"data": x.data, "indices": x.indices, "indptr": x.indptr, "shape": np.array(x.shape)}
    np.savez(out / "tf-idf.npz", ids=np.array(ids), **parts_of)
    return labels


def trained(items: Path, out: Path, scenario: str, method: str, head: str) -> tuple[float, float]:
    """(test mAP, seconds of the command)."""
    run = out / f"{items.stem}-{scenario.replace(':', '-')}-{method}"
    words = ["train", str(items), "--labels", str(out / "labels.csv"), "--scenario", scenario, "--run", str(run)]
    said, seconds = called(*words, "--method", method, "--head", head)
    return float(said.rpartition(f" {method} ")[2].split()[1]), seconds  # the first cell of the row of this method


def called(*words: str) -> tuple[str, float]:
    """What a command says, and the seconds of the processor that it takes."""
    before = used()
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "partly", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=one_thread)
    if done.returncode:
        raise SystemExit(f"partly {' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout, used() - before


def used() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


if __name__ == "__main__":
    main()
