"""A linear classifier of single positives, unknown taken for no, by whom else one would ask: side by side in one run.

    python benchmarks/peers.py [--rounds 5] [--spml FOLDER]

Seconds of CPU for an epoch (the best of the rounds, in which all take turns), and for as many epochs as it takes to
come to 99 % of the mAP that scikit-learn's logistic regressions, one a label, have on the test part; at most 40 are
tried. 5,717 x 1,280 features, 20 labels, batches of 128, one thread, AdamW at 1e-3 for all that go by steps. FOLDER: a
checkout of the public code of Cole et al. (CVPR 2021, github.com/elijahcole/single-positive-multi-label), of which only
the training phase is run, in its linear mode, with the loss `an`. skorch is left out where it is not installed.
"""

from __future__ import annotations

import argparse
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn
from torch.nn import functional as F

import partly
from partly import scenarios
from partly.clock import Clock
from partly.engine import build_method, make_config, prediction, training
from partly.items import as_items
from partly.labels import Labels
from partly.pool import Pool

ITEMS, TEST, WIDTH, LABELS, BATCH, RATE, MOST = 5717, 2000, 1280, 20, 128, 1e-3, 40
Epoch = Callable[[], None]
Scores = Callable[[], Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--spml", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    x, truth = drawn()
    known = scenarios.single_positive(Labels.from_full(truth[:ITEMS]), seed=0)
    z, test = known.ternary(), Labels.from_full(truth[ITEMS:])
    mean, scale = x[:ITEMS].mean(axis=0), x[:ITEMS].std(axis=0)
    ready = torch.from_numpy((x - mean) / scale)
    peers: dict[str, tuple[Epoch, Scores]] = {
        "plain torch": plain(ready, z),
        "partly": own(x, known),
        **skorch(ready, z),
        **(authors(options.spml, ready, z) if options.spml else {}),
    }
    score = lambda scores: partly.metrics.evaluate(scores, test)["mAP"]  # noqa: E731
    seconds, wanted = per_label(ready.numpy(), z, score)
    print(f"{'':22} {'s an epoch':>11} {'epochs':>7} {'s to the same mAP':>18} {'mAP':>7}")
    print(f"{'scikit-learn per label':22} {'':>11} {'':>7} {seconds:18.2f} {wanted:7.4f}", flush=True)
    needed = {name: reached(*peer, score, 0.99 * wanted) for name, peer in peers.items()}
    best = dict.fromkeys(peers, float("inf"))
    for _ in range(options.rounds):
        for name, (epoch, _) in peers.items():
            best[name] = min(best[name], timed(epoch))
    for name, (epochs, found) in needed.items():
        print(f"{name:22} {best[name]:11.3f} {epochs:7} {epochs * best[name]:18.2f} {found:7.4f}")


def drawn() -> tuple[Any, Any]:
    """Features, and labels that follow from them by a noisy linear rule, some rarer than others; none without any."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ITEMS + TEST, WIDTH)).astype(np.float32)
    scores = x @ rng.normal(size=(WIDTH, LABELS)) / np.sqrt(WIDTH) + 0.3 * rng.normal(size=(len(x), LABELS))
    truth = scores > np.linspace(0.8, 1.6, LABELS)
    truth[np.arange(len(x)), scores.argmax(axis=1)] = True
    return x, truth.astype(float)


def timed(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def reached(epoch: Epoch, scores: Scores, score: Callable[[Any], float], wanted: float) -> tuple[int, float]:
    """After how many epochs the test mAP is there (or the last that is tried), and what it is then."""
    count, found = 0, 0.0
    while count < MOST and found < wanted:
        epoch()
        count, found = count + 1, score(scores())
    return count, found


def per_label(x: Any, z: Any, score: Callable[[Any], float]) -> tuple[float, float]:
    made: list[LogisticRegression] = []
    seconds = timed(lambda: made.extend(LogisticRegression(C=0.01, max_iter=300).fit(x[:ITEMS], y == 1) for y in z.T))
    return seconds, score(np.stack([one.predict_proba(x[ITEMS:])[:, 1] for one in made], axis=1))


def plain(x: Tensor, z: Any) -> tuple[Epoch, Scores]:
    """What one would write by hand, and well: standardised once, rows by index_select, no number asked for."""
    network, y = nn.Linear(WIDTH, LABELS), torch.from_numpy((z == 1).astype(np.float32))
    optimizer = torch.optim.AdamW(network.parameters(), lr=RATE, fused=True)

    def epoch() -> None:
        for index in torch.randperm(ITEMS).split(BATCH):
            loss = F.binary_cross_entropy_with_logits(network(x.index_select(0, index)), y.index_select(0, index))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()

    return epoch, lambda: torch.sigmoid(network(x[ITEMS:])).detach().numpy()


def own(x: Any, known: Labels) -> tuple[Epoch, Scores]:
    pool, test = Pool(as_items(x[:ITEMS]), known, BATCH), as_items(x[ITEMS:])
    recipe = make_config("assume-negative", "linear", lr=RATE, schedule="constant", head_settings={"solve": False})
    made = build_method(recipe, pool.items, LABELS, known)
    clock = Clock(0, epochs=0, steps=pool.steps)

    def epoch() -> None:
        clock.epochs += 1
        training.train(made, pool, clock)

    return epoch, lambda: prediction.predict(made, test)


def skorch(x: Tensor, z: Any) -> dict[str, tuple[Epoch, Scores]]:
    try:
        from skorch import NeuralNet
    except ImportError as error:
        print(f"skorch is left out: {error}")
        return {}
    network = NeuralNet(
        nn.Linear(WIDTH, LABELS),
        nn.BCEWithLogitsLoss,
        optimizer=torch.optim.AdamW,
        lr=RATE,
        batch_size=BATCH,
        iterator_train__shuffle=True,
        train_split=None,
        verbose=0,
    ).initialize()
    given, y = x[:ITEMS], torch.from_numpy((z == 1).astype(np.float32))
    return {
        "skorch": (lambda: network.partial_fit(given, y), lambda: torch.sigmoid(network.forward(x[ITEMS:])).numpy())
    }


def authors(folder: Path, x: Tensor, z: Any) -> dict[str, tuple[Epoch, Scores]]:
    """Their `run_train_phase`, on features. torchvision is imported for pictures alone, so that a name will do."""
    for name in ("torchvision", "torchvision.models", "torchvision.transforms"):
        sys.modules.setdefault(name, types.ModuleType(name))
    sys.modules["torchvision.models"].resnet50 = None  # type: ignore[attr-defined]
    sys.modules["torchvision"].transforms = sys.modules["torchvision.transforms"]  # type: ignore[attr-defined]
    sys.path.insert(0, str(folder))
    import models
    import train

    y = torch.from_numpy((z == 1).astype(np.float32))
    items = [{"image": x[i], "label_vec_obs": y[i], "idx": i} for i in range(ITEMS)]
    loader = torch.utils.data.DataLoader(items, batch_size=BATCH, shuffle=True, drop_last=True)  # type: ignore[arg-type]
    how = {"arch": "linear", "feat_dim": WIDTH, "num_classes": LABELS, "loss": "an", "train_set_variant": "observed"}
    # Estimates are given, since to draw them takes a name that NumPy no longer has; `an` has no use for them.
    model = models.MultilabelModel(how, None, None, z, np.full(z.shape, 0.5, np.float32))
    optimizer = torch.optim.AdamW(model.f.parameters(), lr=RATE)
    at_hand = {"device": torch.device("cpu"), "dataloaders": {"train": loader}, "optimizer": optimizer}
    unheard = types.SimpleNamespace(update_phase_data=lambda batch: None)
    return {
        "Cole et al., linear": (
            lambda: train.run_train_phase(model, how, at_hand, unheard, 0, "train"),
            lambda: torch.sigmoid(model.f(x[ITEMS:])).detach().numpy(),
        )
    }


if __name__ == "__main__":
    main()
