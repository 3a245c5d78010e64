"""What the methods must reach on real data, read where it lies beside the project."""

from __future__ import annotations

from pathlib import Path

import pytest

from partly import Classifier, metrics, read, scenarios

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
    data = read(VOC)
    observed = scenarios.parse(scenario)(data.labels, 0) if scenario else data.labels
    model = Classifier(method, head=head, progress=False).fit(data.items, observed)
    assert metrics.evaluate(model.predict_proba(data.test.items), data.test.labels)["mAP"] >= least
