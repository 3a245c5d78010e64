"""Mutate files of every format and read them, in child processes with a time and a memory limit.

    python tests/fuzz_readers.py [--mutations 200000] [--only coco,npz] [--seed 0] [--keep failures/]

A mutated file must be read, or refused with an error of this package. Anything else is a failure: another exception,
a process that dies, more than 2 GB of memory, more than 20 seconds. Failing files are kept with the mutation's number,
so that `--only FORMAT --start NUMBER --mutations 1` repeats it. The exit status is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import partly
from partly import Dataset, Labels, Ledger
from partly.data import read_labels, write_labels
from partly.data.scores import read_scores
from partly.errors import PartlyError
from partly.items import features, sparse_features
from partly.ledger import exchange

MEMORY_BYTES = 2 * 2**30
SECONDS = 20
CHUNK = 500  # mutations per child process
GZIP_MAGIC = b"\x1f\x8b"
NAMES = ("cat", "dog", "bird")
Read = Callable[[Path], object]

LABEL_FILES = {
    "wide": "labels.csv",
    "wide-gz": "labels.csv.gz",
    "wide-parquet": "wide.parquet",
    "long": "long.csv",
    "long-parquet": "long.parquet",
    "labels-npz": "labels.npz",
    "coco": "coco.json",
    "coco-gz": "coco.json.gz",
    "label-studio": "studio.json",
    "chexpert": "chexpert.csv",
    "open-images": "open.csv",
    "tags": "tags.csv",
    "voc-sets": "train.txt",
}
DATA_FILES = {
    "npz": "data.npz",
    "svmlight": "data.svm",
    "feature-table": "features.csv",
    "feature-parquet": "features.parquet",
    "feature-npy": "features.npy",
    "text-table": "texts.csv",
}
TOKENS = (
    b"9" * 5000,
    b"-1",
    b"1e999",
    b"NaN",
    b'"',
    b"'",
    b"\x00",
    b"\xff\xfe",
    b"\\ud800",
    b"[" * 300,
    b"{" * 300,
    b",",
    b"\n",
    b"\t",
    b"4294967295",
    b"\x7f\xff\xff\xff",
    b"null",
    b"(1073741824, 0)",
)


def make_samples(folder: Path) -> dict[str, tuple[Path, Read]]:
    """Write one valid file per format; return name -> (file, how to read it)."""
    rng = np.random.default_rng(0)
    z = rng.choice([-1, 0, 1], size=(12, len(NAMES))).astype(np.int8)
    ids = [f"item-{i}" for i in range(len(z))]
    labels = Labels.from_ternary(z, names=NAMES, ids=ids)
    only_yes = Labels.from_ternary(np.maximum(z, 0), names=NAMES, ids=ids)
    x = rng.normal(size=(len(z), 4)).astype(np.float32)
    samples: dict[str, tuple[Path, Read]] = {}

    def read_any_labels(path: Path) -> object:
        return read_labels(path, absent="unknown", uncertain="unknown")

    for name, file in LABEL_FILES.items():
        form = name.removesuffix("-gz").removesuffix("-parquet")
        path = folder / name / file
        path.parent.mkdir()
        write_labels(only_yes if form == "tags" else labels, path, form=form)
        samples[name] = (path, read_any_labels)
    written = {
        "npz": Dataset(features(x), labels),
        "svmlight": Dataset(sparse_features(abs(x)), Labels.from_full(z > 0)),
    }
    for name, file in DATA_FILES.items():
        path = folder / name / file
        path.parent.mkdir()
        if name in written:
            partly.write(written[name], path)
        elif file.endswith(".npy"):
            np.save(path, x)
        elif name == "text-table":
            path.write_text("id,text\n" + "".join(f"{i},some words\n" for i in ids))
        else:
            header = "id," + ",".join(f"f{j}" for j in range(x.shape[1]))
            path.write_text(
                header + "\n" + "".join(f"{i},{','.join(map(str, row))}\n" for i, row in zip(ids, x, strict=True))
            )
            if path.suffix == ".parquet":
                _as_parquet(path, ids, x)
        samples[name] = (path, lambda path: _consume(partly.read(path)))
    samples["ledger"] = (_ledger(folder / "ledger", labels), lambda path: Ledger(path).labels())
    samples["ledger-parquet"] = (_exported(folder / "ledger-parquet", samples["ledger"][0]), _import_ledger)
    samples["scores"] = (_scores(folder / "scores", ids), read_scores)
    samples["run"] = (_run(folder / "run", x, labels) / "run.json", lambda path: partly.Classifier.load(path.parent))
    return samples


def _consume(data: Dataset) -> object:
    return data.items.digest(), data.items.take(slice(0, 4))


def _as_parquet(path: Path, ids: list[str], x: np.ndarray) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": ids} | {f"f{j}": x[:, j] for j in range(x.shape[1])}), path)


def _ledger(folder: Path, labels: Labels) -> Path:
    folder.mkdir()
    ledger = Ledger.create(folder / "labels.db", names=NAMES)
    ledger.append(["a", "b"], ["cat", "dog"], [1, 0], author="anna")
    return folder / "labels.db"


def _exported(folder: Path, ledger: Path) -> Path:
    folder.mkdir()
    exchange.export(Ledger(ledger), folder / "ledger.parquet")
    return folder / "ledger.parquet"


def _import_ledger(path: Path) -> object:
    with tempfile.TemporaryDirectory() as folder:
        return exchange.restore(Path(folder) / "again.db", path)


def _scores(folder: Path, ids: list[str]) -> Path:
    folder.mkdir()
    lines = [f"{i},0.1,0.2,0.3\n" for i in ids]
    (folder / "scores.csv").write_text(f"id,{','.join(NAMES)}\n" + "".join(lines))
    return folder / "scores.csv"


def _run(folder: Path, x: np.ndarray, labels: Labels) -> Path:
    partly.Classifier("bce", head="linear", progress=False, run_dir=folder).fit(x, labels)
    return folder


def mutate(content: bytes, rng: random.Random) -> bytes:
    """Apply one to four random changes: flip bits, cut, repeat, insert a hostile token, overwrite, remove."""
    for _ in range(rng.randrange(1, 5)):
        at, size = rng.randrange(len(content) + 1), rng.randrange(1, 64)
        kind = rng.randrange(7)
        if kind == 0 and at < len(content):
            content = content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
        elif kind == 1:
            content = content[:at]
        elif kind == 2:
            content = content[:at] + content[at : at + size] * rng.randrange(2, 50) + content[at + size :]
        elif kind == 3:
            content = content[:at] + rng.choice(TOKENS) + content[at:]
        elif kind == 4:
            content = content[:at] + rng.choice(TOKENS) + content[at + size :]
        elif kind == 5:
            content = content[:at] + content[at + size :]
        else:
            content = content[:at] + rng.randbytes(size) + content[at + size :]
    return content


def mutated_file(content: bytes, seed: int, name: str, number: int | str) -> bytes:
    """Return mutation `number` of a file; half of the mutations of a packed file change what is inside."""
    rng = random.Random(f"{seed}:{name}:{number}")
    if content.startswith(GZIP_MAGIC) and rng.random() < 0.5:
        return gzip.compress(mutate(gzip.decompress(content), rng), 1)
    return mutate(content, rng)


def run_chunk(name: str, path: Path, read: Read, numbers: range, seed: int, log: Path) -> None:
    """Read mutations in this process. The log's last line says which one was under way."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(TimeoutError(f"more than {SECONDS} s")))
    original, folder = path.read_bytes(), path.parent
    with log.open("a") as lines:
        for number in numbers:
            path.write_bytes(mutated_file(original, seed, name, number))
            print(f"begin {number}", file=lines, flush=True)
            signal.alarm(SECONDS)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    read(path)
            except PartlyError:
                pass
            except BaseException as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{Path(last.filename).name}:{last.lineno}"
                print(f"fail {number} {type(error).__name__} at {where}: {str(error)[:200]!r}", file=lines, flush=True)
            finally:
                signal.alarm(0)
    for extra in folder.glob("*.db-*"):
        extra.unlink()


def attack(name: str, path: Path, read: Read, start: int, count: int, seed: int, keep: Path | None) -> list[str]:
    """Run mutations of one file in child processes; return the failures."""
    failures, number, original = [], start, path.read_bytes()
    log = path.parent.parent / f"{name}.log"
    while number < start + count:
        numbers = range(number, min(number + CHUNK, start + count))
        log.write_text("")
        child = os.fork()
        if not child:
            run_chunk(name, path, read, numbers, seed, log)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        lines = log.read_text().splitlines()
        failures += [f"{name}: {line.removeprefix('fail ')}" for line in lines if line.startswith("fail ")]
        number = numbers.stop
        if status:
            number = int(lines[-1].split()[1]) + 1
            failures.append(f"{name}: {number - 1} the process died (status {status})")
        path.write_bytes(original)
    if keep is not None and failures:
        keep.mkdir(parents=True, exist_ok=True)
        for failure in failures:
            which = failure.removeprefix(f"{name}: ").split()[0]
            (keep / f"{name}-{which}{path.suffix}").write_bytes(mutated_file(original, seed, name, which))
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=200_000, help="in all, shared by the formats")
    parser.add_argument("--only", default="", help="formats, separated by commas")
    parser.add_argument("--start", type=int, default=0, help="number of the first mutation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for failing files")
    options = parser.parse_args()
    failures: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        samples = make_samples(Path(folder))
        wanted = [name for name in options.only.split(",") if name] or list(samples)
        share = -(-options.mutations // len(wanted))
        for name in wanted:
            began, (path, read) = time.monotonic(), samples[name]
            failed = attack(name, path, read, options.start, share, options.seed, options.keep)
            print(f"{name}: {share} mutations, {len(failed)} failures, {time.monotonic() - began:.0f} s", flush=True)
            print(*failed[:20], sep="\n", end="\n" if failed else "")
            failures += failed
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
