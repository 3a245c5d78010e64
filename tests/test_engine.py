"""Run folders: they say what was run on what, go on with that and nothing else, and are read whole or not at all."""

# Long because each thing that a run folder says, takes or refuses has its own case.

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from partly import atomic_io, engine, methods
from partly.clock import Clock
from partly.engine import checkpoint, training
from partly.errors import CheckpointError, DataError, PartlyError, SettingError
from partly.items import Items, as_items, features, sparse_features
from partly.labels import Labels
from partly.method import EntryState, Method
from plans import fit_config, plan_of
from resealed import change_description

RECIPE = engine.make_config("partial-bce", "linear", epochs=2, batch_size=8, settings={"gamma": 0.5})


def data(seed: int = 0, names: list[str] | None = None) -> tuple[Items, Labels]:
    rng = np.random.default_rng(seed)
    x = as_items(rng.normal(size=(24, 4)).astype(np.float32))
    return x, Labels.from_nan(rng.choice([1.0, 0.0, np.nan], size=(24, 3)), names=names)


def fit(folder: Path | None, recipe: engine.ResolvedConfig = RECIPE, **more: Any) -> engine.FittedModel:
    return fit_config(recipe, *data(), folder=folder, **more)


def same(one: engine.FittedModel, other: engine.FittedModel) -> bool:
    a, b = one.method.state_dict(), other.method.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


class Interrupted(Exception):
    pass


def interrupt(clock: Clock, _: dict[str, float]) -> None:
    if clock.epoch == 1:
        raise Interrupted


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    fit(tmp_path)
    return tmp_path


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    with pytest.raises(Interrupted):
        fit(tmp_path, callback=interrupt, save_seconds=0)
    return tmp_path


# -------------------------------------------------------------------- recipes


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("epochs", 0, "a whole number, 1 or more"),
        ("epochs", -3, "a whole number, 1 or more"),
        ("epochs", 2.0, "a whole number, 1 or more"),
        ("epochs", True, "a whole number, 1 or more"),
        ("batch_size", 0, "a whole number, 1 or more"),
        ("batch_size", "32", "a whole number, 1 or more"),
        ("lr", 0, "a number above 0"),
        ("lr", -1e-3, "a number above 0"),
        ("lr", float("nan"), "a number above 0"),
        ("lr", float("inf"), "a number above 0"),
        ("lr", "fast", "a number above 0"),
        ("weight_decay", -0.1, "a number, 0 or more"),
        ("seed", None, "a whole number"),
        ("seed", 1.5, "a whole number"),
        ("seed", "one", "a whole number"),
        ("method", None, "a name"),
        ("head", 3, "a name"),
        ("optimizer", torch.optim.SGD, "a name"),
        ("settings", [("gamma", 1)], "a dictionary"),
    ],
)
def test_a_recipe_refuses_what_cannot_be(field: str, value: Any, words: str) -> None:
    with pytest.raises(SettingError, match=rf"^{field} = .* must be {words}"):
        replace(RECIPE, **{field: value})


def test_edges_of_a_recipe_are_allowed() -> None:
    replace(RECIPE, epochs=1, batch_size=1, lr=1e-300, weight_decay=0, seed=-5)


def test_numpy_numbers_are_plain_numbers(tmp_path: Path) -> None:
    numbers = {"epochs": np.int64(2), "batch_size": np.int32(8), "lr": np.float64(1e-3), "seed": np.uint8(0)}
    recipe = replace(RECIPE, **numbers)
    assert recipe == RECIPE
    assert same(fit(tmp_path, recipe), fit(None))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"method": "partial_bce"}, "There is no method 'partial_bce'. Did you mean 'partial-bce'?"),
        ({"head": "liner"}, "There is no head 'liner'. Did you mean 'linear'?"),
        ({"optimizer": "adamax"}, "There is no optimizer 'adamax'. Did you mean 'adam"),
        ({"schedule": "cosin"}, "There is no schedule 'cosin'. Did you mean 'cosine'?"),
        ({"schedule_settings": {"gamma": 0.5}}, "The schedule cosine has no setting 'gamma'."),
        ({"schedule_settings": {"warmup": 1.5}}, "warmup = 1.5: should be from 0 to 1."),
        ({"schedule": "step", "schedule_settings": {"every": 0}}, "every = 0: should be 1 or more."),
        (
            {"schedule": "plateau", "schedule_settings": {}},
            "schedule = 'plateau' goes by the score of validation items",
        ),
        ({"accumulate": 0}, "accumulate = 0 must be a whole number, 1 or more."),
        ({"accumulate": 1.5}, "accumulate = 1.5 must be a whole number, 1 or more."),
        ({"average": 1.0}, "average = 1.0 must be a number from 0 to below 1, such as 0.999."),
        ({"average": True}, "average = True must be a number from 0 to below 1"),
        ({"dtype": "float16"}, "dtype = 'float16' must be one of auto, float32, bfloat16."),
        ({"compile": "yes"}, "compile = 'yes' must be True or False."),
        ({"settings": {"gama": 1.0}}, "The method partial-bce has no setting 'gama'. Did you mean 'gamma'?"),
        ({"settings": {"gamma": "high"}}, "partial-bce: setting gamma = 'high' should be of type float."),
    ],
)
def test_a_recipe_that_is_refused_claims_no_folder(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    folder = tmp_path / "run"
    with pytest.raises(SettingError, match=re.escape(message)):
        fit(folder, replace(RECIPE, **{"schedule_settings": {}, **change}))
    assert not folder.exists()


# -------------------------------------------------------------------- what a folder says


def test_a_run_folder_says_what_was_run_on_what(finished: Path) -> None:
    x, labels = data()
    names = {path.name for path in finished.iterdir()}
    checkpoints = {f"checkpoint-00000{copy}.{kind}" for copy in (1, 2) for kind in ("json", "safetensors")}
    unseen = {"out_of_fold.npy", "out_of_fold.json"}  # what is solved has scores of entries by who has not seen them
    assert names == {"run.json", "history.json", ".lock"} | checkpoints | unseen
    description = engine.read_description(finished)
    assert description["recipe"] == {
        "method": "partial-bce",
        "start": "random",
        "lr_factors": [1.0],
        "head": "linear",
        "epochs": 2,
        "batch_size": 8,
        "lr": 0.001,
        "weight_decay": RECIPE.weight_decay,
        "penalty": None,
        "optimizer": "adamw",
        "seed": 0,
        "settings": methods.find("partial-bce").defaults() | {"gamma": 0.5},
        "head_settings": {"solve": True},
        "backbone": None,
        "backbone_settings": {},
        "augment": None,
        "schedule": "cosine",
        "schedule_settings": {"warmup": 0.05},
        "accumulate": 1,
        "average": None,
        "precision": "auto",
        "compile": False,
        "recipe": None,
        "hierarchy": None,
    }
    assert description["labels"] == ["0", "1", "2"]
    assert description["data"]["shape"] == [24, 4]
    assert description["data"]["kind"] == "features"
    assert description["data"]["sha256"] == x.digest()
    assert description["data"]["labels_sha256"] == labels.digest()
    assert description["data"]["known"]["yes"] == labels.summary()["yes"]
    assert description["validation"] is None
    assert description["machine"]["torch"] == torch.__version__
    history = json.loads((finished / "history.json").read_text())
    assert [line["epoch"] for line in history] == [1, 2]


def test_the_digest_sees_values_shape_and_type() -> None:
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    changed = x.clone()
    changed[2, 3] += 1
    others = [changed, x.reshape(4, 3), x.double(), x.T.contiguous(), x.int()]
    assert len({engine.digest(x), *map(engine.digest, others)}) == 6
    assert engine.digest(x) == engine.digest(x.clone())
    assert engine.digest(x.T) == engine.digest(x.T.contiguous())


# -------------------------------------------------------------------- going on


def test_the_same_run_goes_on(unfinished: Path) -> None:
    made: list[int] = []
    resumed = fit(unfinished, callback=lambda clock, _: made.append(clock.epoch))
    assert made == [1]  # the first epoch was there, and an epoch of what is solved has one step
    assert same(resumed, fit(None))


def test_settings_that_json_changes_are_still_the_same(tmp_path: Path) -> None:
    """A tuple comes back from JSON as a list."""
    recipe = engine.make_config("bce", head_settings={"hidden": (3, 4)})
    description = engine.describe(plan_of(recipe, *data()))
    engine.claim(tmp_path, description)
    engine.claim(tmp_path, description)


@pytest.mark.parametrize(
    ("what", "named"),
    [
        ({"seed": 1}, "recipe.seed: 0 there, 1 now"),
        ({"lr": 0.1}, "recipe.lr: 0.001 there, 0.1 now"),
        ({"settings": {}}, "'gamma': 0.5"),
        ({"method": "bce", "settings": {}}, "recipe.method: 'partial-bce' there, 'bce' now"),
    ],
)
def test_another_recipe_is_refused(unfinished: Path, what: dict[str, Any], named: str) -> None:
    before = contents(unfinished)
    with pytest.raises(CheckpointError) as caught:
        fit(unfinished, replace(RECIPE, **what))
    assert f"{unfinished} holds another run" in str(caught.value)
    assert named in str(caught.value)
    assert "lr" in what or "lr" not in str(caught.value)  # only what differs is listed
    assert contents(unfinished) == before


def test_other_data_is_refused(unfinished: Path) -> None:
    x, labels = data()
    array = x.take(slice(None)).numpy().copy()
    array[3, 2] += 1e-3
    nudged = as_items(array)
    z = labels.rows(slice(None)).copy()
    z[0, 0] = 0 if z[0, 0] else 1
    for items, known, key in (
        (nudged, labels, "data.sha256"),
        (x, Labels.from_ternary(z), "data.labels_sha256"),
        (x, data(names=["a", "b", "c"])[1], "labels: ['0', '1', '2'] there, ['a', 'b', 'c'] now"),
    ):
        with pytest.raises(CheckpointError, match="holds another run") as caught:
            fit_config(RECIPE, items, known, folder=unfinished)
        assert key in str(caught.value)


def test_other_validation_is_refused(unfinished: Path) -> None:
    with pytest.raises(CheckpointError, match=r"validation.sha256: None there"):
        fit(unfinished, validation=training.Validation(*data(seed=1)))


def test_leftovers_of_a_crash_vanish_at_the_start(unfinished: Path) -> None:
    leftovers = [
        f".{name}{atomic_io.TEMPORARY_SUFFIX}" for name in ("checkpoint-000009.json", "run.json", "history.json")
    ]
    for name in leftovers:
        (unfinished / name).write_bytes(b"half")
    of_a_folder = unfinished / f".converted{atomic_io.TEMPORARY_SUFFIX}"
    of_a_folder.mkdir()
    (of_a_folder / "some.xml").write_bytes(b"half")
    resumed = fit(unfinished)
    assert not set(leftovers) & set(contents(unfinished))
    assert not of_a_folder.exists()
    assert same(resumed, fit(None))


# -------------------------------------------------------------------- loading and saving


def test_what_is_loaded_is_what_was_trained(finished: Path) -> None:
    trained, loaded = fit(None), engine.load(finished)
    assert same(loaded, trained)
    assert loaded.config == RECIPE
    assert loaded.names == trained.names
    assert loaded.progress.history == trained.progress.history
    assert not loaded.method.training


def test_a_saved_model_is_loaded_with_the_same_bits(tmp_path: Path) -> None:
    fitted = fit(None)
    engine.save(fitted, tmp_path / "new" / "model")
    loaded = engine.load(tmp_path / "new" / "model")
    assert same(loaded, fitted)
    assert loaded.description == fitted.description


def test_saving_over_a_run_is_refused(unfinished: Path) -> None:
    before = contents(unfinished)
    with pytest.raises(CheckpointError, match="there is a run in this folder already"):
        engine.save(fit(None), unfinished)
    assert contents(unfinished) == before


def test_an_unfinished_run_is_not_a_model(unfinished: Path) -> None:
    with pytest.raises(CheckpointError, match=re.escape(f"{unfinished}: training has not finished. Start the same")):
        engine.load(unfinished)


def test_a_run_that_has_not_saved_yet_is_not_a_model(tmp_path: Path) -> None:
    engine.claim(tmp_path, engine.describe(plan_of(RECIPE, *data())))
    with pytest.raises(CheckpointError, match="training has not finished"):
        engine.load(tmp_path)


def test_a_folder_without_a_run_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(CheckpointError, match=re.escape(f"{folder}: no run here")):
            engine.load(folder)
    with pytest.raises(CheckpointError, match=re.escape(str(tmp_path / "file"))):
        engine.load(tmp_path / "file")


def test_a_damaged_model_is_taken_from_its_copy_and_said_to_be(unfinished: Path) -> None:
    fit(unfinished)
    newest = max(unfinished.glob("*.safetensors"))
    newest.write_bytes(newest.read_bytes()[:-1])
    with pytest.warns(UserWarning, match=f"took an older copy of the model: {newest.name} is damaged"):
        assert same(engine.load(unfinished), fit(None))
    with pytest.warns(UserWarning, match="older checkpoint"):
        assert same(fit(unfinished), fit(None))
    assert same(engine.load(unfinished), fit(None))


def test_a_model_damaged_in_both_copies_names_the_damage(finished: Path) -> None:
    for path in finished.glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"checkpoint-000001.safetensors is damaged"):
        engine.load(finished)


def described(folder: Path) -> dict[str, Any] | None:
    try:
        return engine.read_description(folder)
    except CheckpointError:
        return None


def test_every_change_to_the_description_is_noticed(finished: Path) -> None:
    path = finished / "run.json"
    whole = path.read_bytes()
    meant = engine.read_description(finished)
    rng = np.random.default_rng(0)
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1 << int(rng.integers(8))
        for damaged in (bytes(changed), whole[:place]):
            path.unlink()
            path.write_bytes(damaged)
            assert described(finished) in (None, meant), place  # equal only where a blank became another blank
    path.write_bytes(whole.replace(b'"seed": 0', b'"seed": 1'))
    with pytest.raises(CheckpointError, match="damaged or edited"):
        engine.load(finished)
    path.write_text("[1, 2]")
    with pytest.raises(CheckpointError, match="damaged or edited"):
        engine.load(finished)


# -------------------------------------------------------------------- memory


class Hungry(Method):
    entry_state = (EntryState("held", torch.float64),)


@pytest.fixture
def hungry(monkeypatch: pytest.MonkeyPatch) -> None:
    bce = methods.find("bce")
    info = replace(bce, name="hungry", make=Hungry, about=replace(bce.about, terms=None))  # trained by steps
    monkeypatch.setattr(methods, "find", lambda _: info)
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**18}.__getitem__)  # 1 GiB


@pytest.mark.usefixtures("hungry")
def test_state_that_would_not_fit_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    recipe = replace(RECIPE, method="hungry", settings={})
    most = int(engine.MEMORY_SHARE * 2**30 / 8)
    fits, too_much = (Labels.from_positives(_sparse(n // 1000, 1000)) for n in (most, most + 1000))
    engine.check_memory(plan_of(recipe, as_items(np.zeros((len(fits), 1))), fits))
    with pytest.raises(PartlyError) as caught:
        fit_config(recipe, as_items(np.zeros((len(too_much), 1))), too_much, folder=tmp_path / "run")
    assert "hungry keeps 0.6 GiB for 80531 x 1000 entries" in str(caught.value)
    assert "60% of the 1.0 GiB of this machine" in str(caught.value)
    assert not (tmp_path / "run").exists()


def _sparse(items: int, labels: int) -> Any:
    import scipy.sparse as sp

    return sp.csr_array(([1], ([0], [0])), shape=(items, labels))


@pytest.mark.parametrize("name", methods.discover())
def test_every_method_that_keeps_entries_declares_them(name: str) -> None:
    """Per-entry state is a buffer of N x L: then the declared memory must cover it."""
    x, labels = data()
    recipe = engine.spell_out(replace(RECIPE, method=name, settings={}))
    method = engine.build_method(recipe, x, labels.shape[1], labels)
    kept = sum(t.nbytes for t in method.buffers() if t.ndim >= 2 and tuple(t.shape[:2]) == labels.shape)
    assert kept == methods.find(name).memory(engine.make_task(recipe, x, labels.shape[1], labels), recipe.settings)[0]


# -------------------------------------------------------------------- what is there to train is not the model


BELIEVERS = ["role", "em-apl", "refine", "curriculum"]


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


@pytest.mark.parametrize("name", BELIEVERS)
def test_a_finished_model_does_not_grow_with_the_items(tmp_path: Path, name: str) -> None:
    recipe = replace(RECIPE, method=name, settings={})
    x, labels = data()
    fit_config(recipe, x[:12], labels[:12], folder=tmp_path / "half")
    engine.save(fit(tmp_path / "all", recipe), tmp_path / "saved")
    assert size(tmp_path / "half") == size(tmp_path / "all") == 2 * size(tmp_path / "saved")  # a folder has a copy
    assert not (tmp_path / "saved" / "beliefs.npy").exists()


@pytest.mark.parametrize("name", BELIEVERS)
def test_what_is_loaded_to_predict_holds_nothing_for_entries(tmp_path: Path, name: str) -> None:
    fitted = fit(tmp_path, replace(RECIPE, method=name, settings={}))
    for one in (fitted, engine.load(tmp_path)):
        assert one.method.entries()
        assert all(not tensor.numel() for tensor in one.method.entries().values())
        assert not one.method.optimizers()
        assert same(one, fitted)


@pytest.mark.parametrize("name", BELIEVERS)
def test_beliefs_are_a_file_of_their_own(tmp_path: Path, name: str) -> None:
    recipe = replace(RECIPE, method=name, settings={})
    fitted = fit(tmp_path, recipe)
    loaded = engine.load(tmp_path)
    assert isinstance(loaded.beliefs, np.memmap)
    in_memory = fit(None, recipe).beliefs
    assert in_memory is not None
    assert fitted.beliefs is not None
    assert loaded.beliefs.tolist() == fitted.beliefs.tolist() == in_memory.tolist()
    z = data()[1].rows(slice(None))
    assert (loaded.beliefs[z == 1] == 1).all()
    assert (loaded.beliefs[z == -1] == 0).all()


def test_without_beliefs_there_is_no_file(finished: Path) -> None:
    assert engine.load(finished).beliefs is None
    assert not (finished / "beliefs.npy").exists()


def test_a_start_goes_on_with_weights_and_entries(tmp_path: Path) -> None:
    """What another run kept for its entries is where this one begins."""
    recipe = replace(RECIPE, method="refine", settings={"rate": 0.5, "start": 0.25}, epochs=1)
    fit(tmp_path / "one", recipe, keep_entries=True)
    state = engine.state_of(tmp_path / "one")
    assert "entries.pseudo" in state
    began: list[Tensor] = []
    second = fit(tmp_path / "two", replace(recipe, lr=1e-30), start=state)
    began.append(second.method.state_dict()["network.head.weight"])
    assert torch.allclose(began[0], state["method.network.head.weight"])
    assert set(second.description["start"]) == set(state)


def test_head_settings_are_checked_used_and_written_down(tmp_path: Path) -> None:
    recipe = engine.make_config("bce", "mlp", epochs=1, head_settings={"hidden": 7})
    fitted = fit(tmp_path, recipe)
    assert fitted.method.network.features[1][0].out_features == 7
    assert engine.read_description(tmp_path)["recipe"]["head_settings"] == {
        "hidden": 7,
        "dropout": 0.5,
        "solve": True,
    }
    assert engine.load(tmp_path).config == recipe
    with pytest.raises(SettingError, match=r"The head mlp has no setting 'hiden'\. Did you mean 'hidden'\?"):
        engine.make_config("bce", "mlp", head_settings={"hiden": 7})
    with pytest.raises(SettingError, match="there is no backbone to set"):
        engine.make_config("bce", backbone_settings={"widths": [8]})


def test_beliefs_have_the_ids_of_their_items_and_a_checksum(tmp_path: Path) -> None:
    x, labels = data()
    ids = [f"item {i}" for i in range(24)]
    recipe = replace(RECIPE, method="role", settings={})
    fit_config(recipe, x, labels.with_ids(ids), folder=tmp_path)
    assert engine.read_ids(tmp_path) == tuple(ids)
    path = tmp_path / "beliefs.npy"
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:200] + bytes([whole[200] ^ 1]) + whole[201:], None):
        path.unlink() if damaged is None else path.write_bytes(damaged)
        loaded = engine.load(tmp_path)  # predicting needs none of it
        assert loaded.predict(x).shape == (24, 3)
        with pytest.raises(CheckpointError, match=r"beliefs.npy: missing or damaged"):
            loaded.beliefs  # noqa: B018


def test_features_are_matched_by_name() -> None:
    x, labels = data()
    array = x.take(slice(None)).numpy()
    named = features(array, names=("a", "b", "c", "d"))
    fitted = fit_config(RECIPE, named, labels)
    turned, order = array[:, [2, 0, 1, 3]], ("c", "a", "b", "d")
    for other in (features(turned, names=order), sparse_features(sp.csr_array(turned), names=order)):
        assert (fitted.predict(other[4:9]) == fitted.predict(named)[4:9]).all()
    with pytest.raises(
        DataError, match=r"missing, 1:\n  'b'\nnot in training, 2:\n  'x'\n  'y'\nGive exactly the same"
    ):
        fitted.predict(features(array[:, [0, 0, 1, 2, 3]], names=("a", "x", "c", "d", "y")))
    assert (fitted.predict(x) == fitted.predict(named)).all()  # where nobody says names, position counts


def test_a_tensor_that_cannot_be_saved_says_so(tmp_path: Path) -> None:
    checkpoint.save(tmp_path, {"small": torch.zeros(3, dtype=torch.int16)}, {})
    with pytest.raises(CheckpointError, match=r"odd: torch\.complex64 cannot be saved"):
        checkpoint.save(tmp_path, {"odd": torch.zeros(3, dtype=torch.complex64)}, {})


def test_a_run_from_before_there_were_schedules_goes_on_and_is_read(finished: Path) -> None:
    """run.json without what recipes did not have then."""

    def forget(description: dict[str, Any]) -> None:
        for name in ("schedule", "schedule_settings", "accumulate", "average", "precision", "compile", "recipe"):
            del description["recipe"][name]

    change_description(finished, forget)
    assert engine.load(finished).config == RECIPE
    again = fit(finished)
    assert (again.predict(data()[0]) == engine.load(finished).predict(data()[0])).all()
    with pytest.raises(CheckpointError, match=r"recipe\.schedule: 'cosine' there, 'constant' now"):
        fit(finished, replace(RECIPE, schedule="constant", schedule_settings={}))
