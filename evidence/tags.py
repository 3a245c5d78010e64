"""The set of texts with all its tags, and a class of each item as side information: for `make evidence`.

    python -m evidence.tags ../shared/data/debtags-text.jsonl.gz [--out evidence/prepared]

The file holds a JSON object a line: `name`, `section`, `text` and `tags`. Of three quarters of the items, drawn once,
features are learned (TF-IDF, then 256 singular vectors); the rest is the test part. Writes `tags.npz`, and
`sections.csv`, which has the section of each training item.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import MultiLabelBinarizer

HERE = Path(__file__).resolve().parent
WIDTH = 256
TEST_SHARE = 0.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--out", type=Path, default=HERE / "prepared")
    options = parser.parse_args()
    prepare(options.texts, options.out)


def prepare(texts: Path, out: Path) -> None:
    out.mkdir(exist_ok=True)
    with gzip.open(texts, "rt", encoding="utf-8") as file:
        items = [json.loads(line) for line in file]
    order = np.random.default_rng(0).permutation(len(items))
    parts = np.split(order, [round((1 - TEST_SHARE) * len(items))])
    words = TfidfVectorizer(sublinear_tf=True, min_df=3, max_df=0.2, dtype=np.float32)
    made = TruncatedSVD(WIDTH, random_state=0)
    tags = MultiLabelBinarizer()
    tags.fit([item["tags"] for item in items])
    arrays: dict[str, Any] = {"names": np.array(tags.classes_, dtype=str)}
    for name, rows, called in zip(("train", "test"), parts, ("fit_transform", "transform"), strict=True):
        counted = getattr(words, called)(items[row]["text"] for row in rows)
        arrays[f"features_{name}"] = getattr(made, called)(counted).astype(np.float16)
        arrays[f"ids_{name}"] = np.array([items[row]["name"] for row in rows])
        arrays[f"labels_{name}"] = tags.transform([items[row]["tags"] for row in rows]).astype(np.int8)
    with (out / "sections.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["item", "class"])
        writer.writerows([items[row]["name"], items[row]["section"]] for row in parts[0])
    np.savez_compressed(out / "tags.npz", **arrays)
    print({name: array.shape for name, array in arrays.items()}, len({item["section"] for item in items}), "sections")


if __name__ == "__main__":
    main()
