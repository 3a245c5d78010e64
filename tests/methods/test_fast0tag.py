"""fast0tag: the two parts of the epochs, the small space, and label vectors of a file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from conformance.bench import make_clock, make_pool, make_task, x_of
from methods.ranking import LATE
from partly import losses
from partly.data.label_vectors import read_label_vectors
from partly.engine import training
from partly.errors import DataError, SettingError
from partly.methods.fast0tag import Fast0Tag


def test_logits_are_products_in_a_small_space() -> None:
    pool = make_pool()
    x = x_of(pool.items)
    made = Fast0Tag(make_task(pool), size=2).eval()
    assert torch.linalg.matrix_rank(made(x)) == 2
    places = made.network.features(x)
    torch.testing.assert_close(made(x), places @ made.network.head.weight.T)
    with pytest.raises(SettingError, match="size = 0"):
        Fast0Tag(make_task(pool), size=0)


def test_label_vectors_of_a_file_stay_as_they_are(tmp_path: Path) -> None:
    pool, path = make_pool(), tmp_path / "vectors.csv"
    given = {name: [float(i), -float(i)] for i, name in enumerate(["more", *reversed(pool.labels.names)])}
    path.write_text("item,a,b\n" + "".join(f"{n},{a},{b}\n" for n, (a, b) in given.items()), encoding="utf-8")
    task = make_task(pool, read_vectors=read_label_vectors)
    made = Fast0Tag(task, size=2, vectors=str(path))
    x = x_of(pool.items)
    before = made.network.features(x)
    training.train(made, pool, make_clock(pool))
    assert made.network.head.weight.tolist() == [given[name] for name in pool.labels.names]
    assert not torch.equal(made.network.features(x), before)
    loaded = Fast0Tag(make_task(pool, observed=None), size=2, vectors="not there any more.csv")
    loaded.load_state(made.state())
    assert torch.equal(loaded.eval()(x), made.eval()(x))
    with pytest.raises(SettingError, match="vectors of 2 numbers for size = 300"):
        Fast0Tag(task, vectors=str(path))
    path.write_text("item,a,b\n0,1,1\n", encoding="utf-8")
    with pytest.raises(DataError, match="4 of the 5 labels are not in it"):
        Fast0Tag(task, size=2, vectors=str(path))


@pytest.mark.parametrize("unknown_as_no", [False, True])
def test_first_logistic_then_ranks(unknown_as_no: bool) -> None:
    pool = make_pool()
    batch = pool.take(torch.arange(8))
    for clock, expected in ((make_clock(pool), losses.bce), (LATE, losses.rank_net)):
        made = Fast0Tag(make_task(pool), unknown_as_no=unknown_as_no).eval()
        given = {"unknown_as_no": unknown_as_no} if clock is LATE else {}
        value = expected(made(batch.x), batch.z, **given).mean().item()
        assert made.update(batch, clock)["loss"] == pytest.approx(value, rel=1e-6)
