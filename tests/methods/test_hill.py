"""hill: what is unknown is pulled to no over a hill, a known no plainly, a yes as if its logit were 1 lower."""

from __future__ import annotations

from losses.cases import no, sigmoid, yes
from methods.by_hand import check_defaults


def test_defaults() -> None:
    check_defaults(
        "hill",
        lambda x: (1 - sigmoid(x - 1)) ** 2 * yes(x - 1),
        no,
        lambda x: (1.5 - sigmoid(x)) * sigmoid(x) ** 2,
    )
