"""The files that the guides speak of, small: what their readers have of their own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from PIL import Image
from scipy import sparse

import partly
from partly.labels import Labels

ITEMS, NEW = 90, 12
NAMES = ["cat", "dog", "animal", "sofa"]
PARENTS = {"cat": "animal", "dog": "animal"}


def prepare(folder: Path) -> None:
    """One made-up world in every form: the same items, by the same ids, as features, pictures and texts."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ITEMS + NEW, 6)).astype(np.float32)
    animal = x[:, 0] > 0
    truth = np.stack([animal & (x[:, 1] > 0), animal & (x[:, 1] < 0), animal, x[:, 2] > 0.3], axis=1)
    ids = [f"{number}.jpg" for number in range(ITEMS + NEW)]
    old, new = slice(ITEMS), slice(ITEMS, None)
    complete = Labels.from_full(truth.astype(int), names=NAMES, ids=ids)
    observed = partly.scenarios.uniform(complete[old], 0.5, seed=0)
    labels(folder, observed, complete[new])
    scores(folder, observed, complete[old])
    for name, rows in (("features", old), ("new", new)):
        table(folder / f"{name}.csv", ids[rows], {f"f{j}": x[rows, j] for j in range(x.shape[1])})
    numbers(folder, x, old, new, observed, complete[new])
    pictures(folder, ids, truth, old, new)
    texts(folder, ids, truth, old)


def labels(folder: Path, observed: Labels, test: Labels) -> None:
    partly.write(observed, folder / "labels.csv")
    partly.write(test, folder / "truth.csv")
    partly.write(observed, folder / "tags.csv", form="tags", absent="unknown")
    partly.write(observed, folder / "export.json", form="label-studio")
    kinds = Labels.from_ternary(observed.ternary()[:, [0, 0, 1]], names=["kitty", "tomcat", "puppy"], ids=observed.ids)
    partly.write(kinds, folder / "theirs.csv")
    partly.Ledger.create(folder / "theirs.db", names=["cat"]).append(["0.jpg"], ["cat"], [1], author="berta")
    table(folder / "parents.csv", list(PARENTS), {"parent": list(PARENTS.values())}, "child")
    yes = [(row + 1, column + 1) for row, column in np.argwhere(observed.positive)]
    coco = {
        "images": [{"id": row + 1, "file_name": name} for row, name in enumerate(observed.ids)],
        "categories": [{"id": column + 1, "name": name} for column, name in enumerate(NAMES)],
        "annotations": [{"id": n + 1, "image_id": i, "category_id": j} for n, (i, j) in enumerate(yes)],
    }
    (folder / "instances.json").write_text(json.dumps(coco, default=int))
    for row, image in enumerate(coco["images"]):
        image["neg_category_ids"] = (np.flatnonzero(observed.negative[row]) + 1).tolist()
        image["not_exhaustive_category_ids"] = []
    (folder / "lvis.json").write_text(json.dumps(coco, default=int))
    (folder / "names.txt").write_text("\n".join(NAMES) + "\n")


def scores(folder: Path, observed: Labels, complete: Labels) -> None:
    """Two models of other programs, groups of the items, and answers to random unknown entries."""
    rng = np.random.default_rng(1)
    truth = np.array(complete.positive)
    p = [np.clip(0.35 + 0.3 * truth + rng.normal(0, 0.15, truth.shape), 0, 1) for _ in range(2)]
    partly.data.write_scores(folder / "a.parquet", p[0], observed.ids, NAMES)
    rows = [(name, label, p[1][i, j]) for i, name in enumerate(observed.ids) for j, label in enumerate(NAMES)]
    items, words, values = zip(*rows, strict=True)
    table(folder / "b.csv", list(items), {"label": list(words), "score": list(values)})
    table(folder / "sites.csv", list(observed.ids), {"site": ["north", "south"] * (ITEMS // 2)})
    unknown = rng.permutation(np.argwhere(np.array(observed.ternary()) == 0))[:50]
    answers = {"label": [NAMES[j] for _, j in unknown], "value": [int(truth[i, j]) for i, j in unknown]}
    table(folder / "answers.csv", [observed.ids[i] for i, _ in unknown], answers)


def numbers(folder: Path, x: np.ndarray, old: slice, new: slice, observed: Labels, test: Labels) -> None:
    """Arrays without ids, and the whole of it in one file."""
    for name, rows in (("features", old), ("new", new), ("test", new)):
        np.save(folder / f"{name}.npy", x[rows])
    partly.write(Labels.from_ternary(observed.ternary(), names=NAMES), folder / "labels.npz")
    partly.write(Labels.from_ternary(test.ternary(), names=NAMES), folder / "test.npz")
    sparse.save_npz(folder / "tf-idf.npz", sparse.csr_array(np.maximum(x[old], 0)))
    parts = {"features_train": x[old], "features_test": x[new], "names": np.array(NAMES)}
    known = {"labels_train": (observed.ternary() > 0).astype(np.int8), "labels_test": test.positive.astype(np.int8)}
    np.savez(folder / "data.npz", **parts, **known)


def pictures(folder: Path, ids: list[str], truth: np.ndarray, old: slice, new: slice) -> None:
    rng = np.random.default_rng(1)
    for name, rows in (("photos", old), ("images", old), ("new-photos", new)):
        (folder / name).mkdir()
        for item, row in zip(ids[rows], truth[rows], strict=True):
            pixels = rng.integers(0, 60, (24, 24, 3), dtype=np.uint8) + 150 * row[[0, 1, 3]].astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / item)


def texts(folder: Path, ids: list[str], truth: np.ndarray, old: slice) -> None:
    words = [" and ".join(np.array(NAMES)[row]) or "nothing" for row in truth[old]]
    table(folder / "texts.csv", ids[old], {"text": words})
    lines = [json.dumps({"item": item, "text": text}) for item, text in zip(ids[old], words, strict=True)]
    (folder / "texts.jsonl").write_text("\n".join(lines) + "\n")


def table(path: Path, ids: list[str], columns: dict[str, object], first: str = "item") -> None:
    pa.csv.write_csv(pa.table({first: ids, **columns}), path)
