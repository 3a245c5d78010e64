"""Whether a change left every result as it was: digests of predictions, before and after, on the same machine.

    python benchmarks/unchanged.py --against COMMIT

Every method is trained on small features and small pictures, with and without a validation part, a few heads beside
it; a comparison runs from the command line, and a loop of questions for two rounds. Each is a digest of what came out.
The same is done with the code of COMMIT, in a work tree of its own, and the two lists are compared. Digests depend on
the machine, so this is no test.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", help="a commit, or a folder with another checkout")
    options = parser.parse_args()
    if options.against is None:
        print(json.dumps(digests(), indent=1))
        return
    with tempfile.TemporaryDirectory() as folder:
        other = Path(options.against)
        if not other.is_dir():
            other = Path(folder) / "before"
            subprocess.run(["git", "worktree", "add", "--detach", other, options.against], cwd=ROOT, check=True)
        after, before = (_of(tree) for tree in (ROOT, other))
        if other.is_relative_to(folder):
            subprocess.run(["git", "worktree", "remove", "--force", other], cwd=ROOT, check=True)
    differ = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    print(f"{len(after)} results, {len(differ)} differ" + "".join(f"\n  {name}" for name in differ))
    sys.exit(bool(differ))


def _of(tree: Path) -> dict[str, str]:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    environment = os.environ | threads | {"PYTHONPATH": str(tree / "src")}
    done = subprocess.run([sys.executable, __file__], env=environment, check=True, stdout=subprocess.PIPE)
    found: dict[str, str] = json.loads(done.stdout)
    return found


def digests() -> dict[str, str]:
    import numpy as np

    import partly

    rng = np.random.default_rng(0)
    features = rng.normal(size=(90, 12)).astype(np.float32) * np.logspace(-2, 2, 12, dtype=np.float32)
    pictures = rng.integers(0, 256, (60, 20, 24, 3), dtype=np.uint8)
    truth = (features @ rng.normal(size=(12, 6)) / np.logspace(-2, 2, 12).mean() > 0.3).astype(float)
    labels = {
        "uniform": np.where(rng.random(truth.shape) < 0.5, truth, np.nan),
        "positives": np.where((rng.random(truth.shape) < 0.6) & (truth == 1), 1.0, np.nan),
    }
    labels["uniform"][:12] = truth[:12]
    found = {}
    for method in partly.methods():
        for known, y in labels.items():
            for held_out in (False, True):
                model = partly.Classifier(method, head="mlp", epochs=4, batch_size=16, progress=False)
                validation = (features[60:], truth[60:]) if held_out else None
                model.fit(features[:60], y[:60], validation=validation)
                found[f"{method}, {known}, {held_out}"] = sha(model.predict_proba(features))
        model = partly.Classifier(method, head="linear", epochs=2, batch_size=16, progress=False)
        found[f"{method}, pictures"] = sha(model.fit(pictures, labels["uniform"][:60]).predict_proba(pictures))
    for head in ("linear", "gnn", "ml-gcn", "label-transformer", "c-tran", "weldon"):
        for method in ("bce", "cls", "imcl"):
            model = partly.Classifier(method, head=head, epochs=3, batch_size=16, optimizer="sgd", progress=False)
            found[f"{method}, {head}"] = sha(model.fit(features, labels["uniform"]).predict_proba(features))
    with tempfile.TemporaryDirectory() as folder:
        found["loop"] = _loop(Path(folder) / "loop", features, labels["uniform"], truth)
        found |= _compared(Path(folder), features, truth)
    return found


def _loop(folder: Path, features: object, y: object, truth: object) -> str:
    import numpy as np

    import partly
    from partly.active import Loop, LoopConfig

    model = partly.Classifier("refine", head="mlp", epochs=3, batch_size=16, progress=False)
    loop = Loop(model, features, partly.Labels.from_nan(y), folder, LoopConfig(questions=9))
    full = np.asarray(truth)
    loop.run(lambda questions: [bool(a) for a in full[questions.rows, questions.columns]], rounds=2)
    return sha(model.predict_proba(features))


def _compared(folder: Path, features: object, truth: object) -> dict[str, str]:
    import numpy as np

    x, y = np.asarray(features), np.asarray(truth).astype(np.int8)
    parts = {"features_train": x[:60], "labels_train": y[:60], "features_test": x[60:], "labels_test": y[60:]}
    np.savez(folder / "small.npz", **parts, names=np.array([f"label {j}" for j in range(y.shape[1])]))
    words = "compare small.npz --methods role,cls --scenarios uniform:0.5,single-positive --seeds 1 --out ."
    subprocess.run([sys.executable, "-m", "partly", *words.split()], cwd=folder, check=True, capture_output=True)
    lines = map(json.loads, (folder / "compare.jsonl").read_text().splitlines())
    return {f"compare, {line['scenario']}, {line['method']}": line["predictions_sha256"] for line in lines}


def sha(array: object) -> str:
    import numpy as np

    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


if __name__ == "__main__":
    main()
