"""Hidden layers beside a solved path: they count where they help on the fold that they have not seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from partly import Classifier, Labels, engine
from partly.clock import Clock
from partly.items import as_items
from partly.pool import Pool
from partly.solvers import folds
from partly.solvers.mlp_with_linear_path import BLEND_SHARES, MlpWithLinearPath
from plans import fit_config

RECIPE = engine.make_config("bce", "mlp", epochs=3, batch_size=32, head_settings={"hidden": 16})


def data(bent: bool, items: int = 240) -> tuple[np.ndarray, np.ndarray]:
    """Labels that follow the features in a straight line, or (bent) only by their product."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(items, 4)).astype(np.float32)
    score = x[:, :2] * x[:, 2:] * 3 if bent else x[:, :2] + 0.5 * x[:, 2:]
    return x, score + 0.3 * rng.normal(size=score.shape) > 0


def fitted(x: np.ndarray, y: np.ndarray, **changes: object) -> MlpWithLinearPath:
    recipe = engine.make_config(**{**vars(RECIPE), **changes})
    method = fit_config(recipe, as_items(x), Labels.from_full(y.astype(int))).method
    assert isinstance(method, MlpWithLinearPath)
    return method


def test_without_a_share_it_is_the_solved_path() -> None:
    x, y = data(bent=False)
    method = fitted(x, y)
    method.share.zero_()
    scaled = (x - x.mean(axis=0)) / x.std(axis=0)
    with torch.no_grad():
        logits = method(torch.from_numpy(x)).numpy()
    for j in range(2):
        other = LogisticRegression(C=method.strength.item(), tol=1e-8).fit(scaled, y[:, j]).decision_function(scaled)
        assert np.corrcoef(logits[:, j], other)[0, 1] > 0.9999  # one slope for all labels apart


def test_the_share_follows_what_helps() -> None:
    """A product has no straight line, so hidden layers count; and where a straight line says it all, they may not."""
    assert fitted(*data(bent=True), epochs=60, lr=3e-3, weight_decay=0.0).share > 0.5
    x, y = data(bent=True)
    plain, beside = (Classifier("bce", head=head, progress=False).fit(x[:180], y[:180]) for head in ("linear", "mlp"))
    assert beside.score(x[180:], y[180:]) >= plain.score(x[180:], y[180:]) - 0.02


def test_the_network_never_learns_from_the_fold_that_weighs_it() -> None:
    """Turning all labels of that fold round leaves the network as it is."""
    x, y = data(bent=True)
    labels = Labels.from_full(y.astype(int))
    found = []
    for turned in (False, True):
        method = engine.build_method(RECIPE, as_items(x), 2, labels)
        assert isinstance(method, MlpWithLinearPath)
        pool = Pool(as_items(x), labels, 32)
        method._solve(pool)
        z = torch.from_numpy(labels.rows(slice(None)).copy())
        apart = method.apart.numpy()
        assert 0 < apart.sum() < len(x)
        z[apart] *= -1 if turned else 1
        batch = pool.take(torch.arange(64))
        torch.manual_seed(0)
        clock = Clock(0, 3, 8)
        method.update(type(batch)(batch.x, z[:64], batch.index), clock)
        found.append({name: value.clone() for name, value in method.network.state_dict().items()})
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


def test_it_goes_on_and_is_loaded_like_every_run(tmp_path: Path) -> None:
    x, y = data(bent=True)
    labels = Labels.from_full(y.astype(int))
    whole = fit_config(RECIPE, as_items(x), labels)

    def stop(clock: object, logs: object) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        fit_config(RECIPE, as_items(x), labels, folder=tmp_path, save_seconds=0, callback=stop)
    fit_config(RECIPE, as_items(x), labels, folder=tmp_path)
    loaded = engine.load(tmp_path)
    assert (loaded.predict(as_items(x)) == whole.predict(as_items(x))).all()
    assert whole.progress.history[-1]["share"] in BLEND_SHARES


def test_a_single_item_is_no_fold_to_weigh_by() -> None:
    one = fitted(*(part[:1] for part in data(bent=False)))
    assert torch.isfinite(one(torch.zeros(2, 4))).all()
    assert len(np.bincount(folds.assign_folds(1, 0))) == 1
