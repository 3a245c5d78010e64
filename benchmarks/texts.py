"""Texts: the default of `auto` against TF-IDF with logistic regression, and against each of its two parts.

    python benchmarks/texts.py debtags-text.jsonl.gz [--train 2000] [--test 1000] [--tags 30] [--seeds 1]

The file holds a JSON object per line: `text` and `tags`. Each seed draws the items; the most frequent tags among the
training items are the labels, and all of them are known of the test items. Compared are

- `TF-IDF, logistic regression`: two lines of scikit-learn, unknown entries taken for no where only yes is known;
- `texts, auto`: raw texts with every default; `texts, plain`: the same features with `assume-negative` or `bce`;
- `TF-IDF, auto`: a sparse matrix of scikit-learn; `minilm, auto`: sentence vectors alone; `tfidf, auto`: words alone,
  which is the default where sentence vectors are not installed.

Seconds are those of the processor on one thread, from texts to scores of the test items, as multiples of those of
logistic regression. Nothing is taken from a cache of features, except where a row says so.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from partly import Classifier, Labels, metrics, scenarios

SCENARIOS = {"yes only": None, "uniform:0.1": 0.1, "uniform:0.3": 0.3}  # shares of known entries


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--train", type=int, default=2000)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--tags", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    with gzip.open(options.texts, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    print(f"{'scenario':12} {'seed':>4} {'features, method':30} {'mAP':>6} {'seconds':>8} {'ratio':>7}", flush=True)
    for seed in range(options.seeds):
        with tempfile.TemporaryDirectory() as cache:
            os.environ["XDG_CACHE_HOME"] = cache  # so that nothing is made before
            compare(rows, options.train, options.test, options.tags, seed)


def compare(rows: list[dict[str, Any]], train: int, test: int, tags: int, seed: int) -> None:
    """Print a line for each scenario and way of learning."""
    chosen = [rows[i] for i in np.random.default_rng(seed).permutation(len(rows))[: train + test]]
    texts = [row["text"] for row in chosen]
    counts = Counter(tag for row in chosen[:train] for tag in row["tags"])
    names = [tag for tag, _ in counts.most_common(tags)]
    truth = np.array([[tag in row["tags"] for tag in names] for row in chosen]).astype(np.int8)
    for scenario, share in SCENARIOS.items():
        whole = Labels.from_full(truth[:train])
        labels = Labels.from_positives(truth[:train]) if share is None else scenarios.uniform(whole, share, seed=seed)
        least = 0.0
        for name, predict in ways(texts[:train], texts[train:], labels, seed, share is None).items():
            begun = time.process_time()
            scores = predict()
            seconds = time.process_time() - begun
            least = least or seconds
            score = np.nanmean(metrics.average_precision(scores, Labels.from_full(truth[train:])))
            ratio = seconds / least
            print(f"{scenario:12} {seed:4} {name:30} {score:6.3f} {seconds:8.1f} {ratio:6.0f}x", flush=True)


def ways(train: list[str], test: list[str], labels: Labels, seed: int, only_yes: bool) -> dict[str, Callable[[], Any]]:
    """From texts to scores of the test items, [N, L]."""

    def fitted(method: str, backbone: str | None = None, head: str = "auto") -> Callable[[], Any]:
        frozen = None if backbone is None else {"freeze": "all"}
        how: dict[str, Any] = {"backbone": backbone, "backbone_settings": frozen, "head": head}
        return lambda: Classifier(method, seed=seed, progress=False, **how).fit(train, labels).predict_proba(test)

    plain = "assume-negative" if only_yes else "bce"
    return {
        "TF-IDF, logistic regression": lambda: logistic(train, test, labels),
        "texts, auto": fitted("auto"),
        f"texts, {plain} (cached)": fitted(plain),
        f"texts, {plain} linear (cached)": fitted(plain, head="linear"),
        "tfidf, auto": fitted("auto", "tfidf"),
        "minilm, auto": fitted("auto", "minilm"),
        "TF-IDF, auto": lambda: sparse("auto", "auto", train, test, labels, seed),
        f"TF-IDF, {plain} linear": lambda: sparse(plain, "linear", train, test, labels, seed),
        "TF-IDF, em linear": lambda: sparse("em", "linear", train, test, labels, seed),
    }


def tf_idf(train: list[str], test: list[str]) -> tuple[Any, Any]:
    words = TfidfVectorizer()
    return words.fit_transform(train), words.transform(test)


def logistic(train: list[str], test: list[str], labels: Labels) -> Any:
    x, tested = tf_idf(train, test)
    z, scores = labels.ternary(), np.zeros((len(test), labels.shape[1]))
    only_yes = not (z < 0).any()
    for label in range(labels.shape[1]):
        rows = np.arange(len(z)) if only_yes else np.flatnonzero(z[:, label])
        answers = z[rows, label] > 0
        if answers.any() and not answers.all():
            scores[:, label] = LogisticRegression(max_iter=300).fit(x[rows], answers).predict_proba(tested)[:, 1]
    return scores


def sparse(method: str, head: str, train: list[str], test: list[str], labels: Labels, seed: int) -> Any:
    x, tested = tf_idf(train, test)
    return Classifier(method, head=head, seed=seed, progress=False).fit(x, labels).predict_proba(tested)


if __name__ == "__main__":
    main()
