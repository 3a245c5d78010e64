"""method="auto": a rule that looks at what is known, and says what it chose and why."""

from __future__ import annotations

from partly.labels import Labels


def choose(labels: Labels) -> tuple[str, str]:
    """(method, reason). The rule, in this order:

    1. Nothing is unknown: `bce`.
    2. Some entries are known to be no: `partial-bce`.
    3. Only yes is known: `assume-negative`, since without any no the loss on known entries is least when everything
       is called yes.
    """
    s = labels.summary()
    if not s["unknown"]:
        return "bce", "every entry is known"
    if s["no"]:
        return (
            "partial-bce",
            f"{s['yes']} entries are known to be yes and {s['no']} to be no; unknown ones are left out",
        )
    what = "one yes per item" if (labels.known_per_item() == 1).all() else "only yes"
    return "assume-negative", f"{what} is known and no entry is known to be no; unknown ones are taken for no"
