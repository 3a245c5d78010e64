"""What a run needs is counted before it starts, against what this process may really have."""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from partly import Classifier, engine
from partly.engine import memory
from partly.engine.training import Validation
from partly.errors import PartlyError
from partly.items import as_items
from partly.labels import Labels
from plans import fit_config, plan_of

GIB = 1 << 30
RNG = np.random.default_rng(0)
X, Y = as_items(RNG.normal(size=(24, 4)).astype(np.float32)), Labels.from_nan(RNG.choice([1.0, 0.0, np.nan], (24, 3)))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """8 GiB, and a root folder for what else may be said."""
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2 * GIB // 1024}.__getitem__)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    return tmp_path


def said(root: Path, name: str, text: object) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def test_where_nobody_says_less_it_is_the_machine(machine: Path) -> None:
    assert memory.available(machine) == (8 * GIB, "this machine")
    said(machine, "proc/self/cgroup", "0::/a")
    said(machine, "sys/fs/cgroup/a/memory.max", "max")
    assert memory.available(machine) == (8 * GIB, "this machine")


@pytest.mark.parametrize("where", ["a/b/memory.max", "a/memory.max", "memory.max"])
def test_a_control_group_of_version_2_or_one_above_it(machine: Path, where: str) -> None:
    said(machine, "proc/self/cgroup", "1:cpu:/elsewhere\n0::/a/b")
    said(machine, f"sys/fs/cgroup/{where}", 3 * GIB)
    assert memory.available(machine) == (3 * GIB, "this process's control group")


def test_a_control_group_of_version_1(machine: Path) -> None:
    said(machine, "proc/self/cgroup", "4:memory:/a\n2:cpu:/b")
    said(machine, "sys/fs/cgroup/memory/a/memory.limit_in_bytes", 2 * GIB)
    said(machine, "sys/fs/cgroup/memory/memory.limit_in_bytes", 9223372036854771712)
    said(machine, "sys/fs/cgroup/cpu/b/memory.limit_in_bytes", 1)
    assert memory.available(machine) == (2 * GIB, "this process's control group")


def test_address_space_beside_what_is_in_use(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said(machine, "proc/self/statm", f"{GIB // 4096} 1 1")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (4 * GIB, resource.RLIM_INFINITY))
    assert memory.available(machine) == (3 * GIB, "`ulimit -v`, beside what is in use")


@pytest.mark.parametrize(("optimizer", "copies"), [("adamw", 2), ("sgd", 1), ("adam", 2), ("rmsprop", 1)])
def test_every_copy_of_the_weights_is_counted(optimizer: str, copies: int) -> None:
    """Themselves, gradients, what the optimizer has after a step, and those of the best epoch."""
    recipe = engine.make_config("bce", "linear", optimizer=optimizer, head_settings={"solve": False}, epochs=1)
    method = engine.build_method(recipe, X, 3, Y)
    learned = sum(p.nbytes for p in method.parameters())
    every = sum(tensor.nbytes for tensor in method.state_dict().values())
    assert every > learned == 4 * (4 * 3 + 3)
    assert memory.weight_memory(method) == every + (1 + copies) * learned
    assert memory.weight_memory(method, Validation(X, Y)) == 2 * every + (1 + copies) * learned
    held = [state for state in _after_a_step(recipe).values() if state.ndim]
    assert sum(state.nbytes for state in held) == copies * learned


def _after_a_step(recipe: engine.ResolvedConfig) -> dict[str, np.ndarray]:
    from partly.clock import Clock
    from partly.pool import Pool

    method, pool, clock = engine.build_method(recipe, X, 3, Y), Pool(X, Y, 64), Clock(0, 1, 1)
    method.update(next(pool.batches(clock)), clock)
    return {name: tensor for name, tensor in method.state().items() if name.startswith("optimizer.")}


def test_weights_that_would_not_fit_are_refused_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = engine.make_config("bce", "mlp", head_settings={"solve": False, "hidden": 2000})
    monkeypatch.setattr(memory, "available", lambda: (100_000, "this machine"))
    with pytest.raises(
        PartlyError, match=r"0\.\d MiB for weights and what trains them; the limit is 60% of the 0\.1 MiB"
    ):
        fit_config(recipe, X, Y, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_loading_asks_whether_it_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit_config(engine.make_config("bce", "linear", epochs=1), X, Y, folder=tmp_path)
    monkeypatch.setattr(memory, "available", lambda: (100, "this process's control group"))
    with pytest.raises(PartlyError, match=r"loading it takes .* of this process's control group\. Load it where"):
        engine.load(tmp_path)


def test_a_refusal_says_what_would_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the entries, where there is room for half of what they need; and methods that keep nothing."""
    recipe = engine.make_config("role", "linear", epochs=1, settings={"expected_yes": 1.0})
    needed = plan_of(recipe, X, Y).memory.total()
    monkeypatch.setattr(memory, "available", lambda: (int(needed / 2 / memory.MEMORY_SHARE) + 1, "a test"))
    with pytest.raises(PartlyError, match="About 12 items with these labels would fit") as caught:
        engine.check_memory(plan_of(recipe, X, Y))
    told = str(caught.value).split("Nothing is kept for entries by ")[1]
    assert "cls" in told
    assert not {"role", "em-apl", "refine", "auto"} & set(told.split(", "))


def test_scores_that_cannot_be_held_are_refused_before_they_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Classifier("bce", "linear", epochs=1, progress=False).fit(X, Y)
    assert model.predict_proba(X).nbytes == 4 * 24 * 3
    monkeypatch.setattr(memory, "available", lambda: (4 * 24 * 3 - 1, "a test"))
    with pytest.raises(PartlyError, match=r"Scores of 24 x 3 entries take .* block after block"):
        model.predict_proba(X)
    assert sum(map(len, model.predict_proba_blocks(X))) == 24
    with pytest.raises(PartlyError, match="Out-of-fold scores of 24 x 3 entries"):
        Classifier("bce", "linear", epochs=1, folds=2, progress=False).resolve(X, Y)


def test_validation_is_counted_by_what_is_known() -> None:
    z = sp.random_array((4000, 50), density=0.01, rng=0, dtype=np.float32)
    z.data[:] = 1
    z.data[::2] = -1
    sparse = Labels.from_ternary(sp.csr_array(z).astype(np.int8))
    items = as_items(np.zeros((4000, 1), np.float32))
    assert sparse.sparse
    dense = Labels.from_ternary(sparse.rows(slice(None)))
    assert Validation(items, sparse).memory() == 17 * 2000 + 4 * 4000 * 50
    assert Validation(items, dense).memory() == (4 + 8) * 4000 * 50
