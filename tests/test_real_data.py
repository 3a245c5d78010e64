"""What the methods must reach on real data, read where it lies beside the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from partly import Classifier, data, metrics, scenarios

VOC = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "voc2012.npz"
pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not VOC.exists(), reason="the real data sets do not lie beside the project (../shared/data)"),
]


@pytest.mark.parametrize(
    ("scenario", "method", "head", "least"),
    [
        (None, "bce", "linear", 0.845),
        ("uniform:0.1", "bce", "mlp", 0.80),
        ("single-positive", "assume-negative", "linear", 0.80),
    ],
)
def test_voc_2012(scenario: str | None, method: str, head: str, least: float) -> None:
    split = data.read_split(VOC)
    observed = scenarios.parse(scenario)(split.train, 0) if scenario else split.train
    model = Classifier(method, head=head, progress=False).fit(split.train_x, observed)
    assert metrics.evaluate(model.predict_proba(split.test_x), split.test)["mAP"] >= least
