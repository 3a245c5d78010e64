"""The wheel holds the package, its templates and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import partly

ROOT = Path(__file__).resolve().parent.parent


def test_the_wheel_holds_what_it_needs_and_no_more(tmp_path: Path) -> None:
    source = tmp_path / "source"
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, files.split("\0")):
        if name.startswith("src/") or "/" not in name:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        tmp_path,
        source,
    ]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith(f"partly-{partly.__version__}-py3")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {"partly", f"partly-{partly.__version__}.dist-info"}
    inside = {name.removeprefix("partly/") for name in names if name.startswith("partly/")}
    on_disk = {str(p.relative_to(ROOT / "src/partly")) for p in (ROOT / "src/partly").rglob("*.py")}
    assert on_disk <= inside
    assert {"py.typed", "report/templates/report.html", "report/templates/comparison.html"} <= inside
    # Code and nothing that slipped in: no data, no weights, no pictures, no evidence.
    large = {info.filename for info in zipfile.ZipFile(wheel).infolist() if info.file_size > 30_000}
    assert {name for name in large if not name.endswith("/RECORD")} == set()  # RECORD: a line a file
    assert wheel.stat().st_size < 1_250_000  # about 500 files of code


def test_public_names_are_there() -> None:
    for name in partly.__all__:
        assert getattr(partly, name) is not None
    assert set(partly.methods()) >= {"bce", "assume-negative", "partial-bce"}
