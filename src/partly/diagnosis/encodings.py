"""Labels whose numbers cannot be read without guessing: which there are, and what each usually means."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from partly.data.headers import ID
from partly.data.table_view import view
from partly.data.tables import open_table
from partly.diagnosis.finding import Finding
from partly.labels.spellings import WORDS

PLAIN = {"0", "1", "0.0", "1.0", "", "nan", "None"}
MOST = 20  # different values that are told
MEANINGS = {
    "-1": "no where 0 is unknown (Labels.from_ternary), 'uncertain' in CheXpert, unknown elsewhere",
    "-100": "torch's 'ignore': unknown",
    "2": "'difficult' or 'unsure' in some sets",
    "99": "often unknown",
    "999": "often unknown",
}


def of_table(path: Path) -> Counter[str]:
    """How often which cell occurs in a wide table, but for the words that are read as they are."""
    table = view(open_table(path))
    found: Counter[str] = Counter()
    for batch in table.batches([name for name in table.header if name != ID]):
        for column in batch.columns:
            found.update(cell for cell in map(str, column.to_pylist()) if cell.lower() not in WORDS)
    return found


def of_array(values: Any) -> Counter[str]:
    """How often which number occurs."""
    every, counts = np.unique(np.asarray(values, dtype=object).astype(str), return_counts=True)
    return Counter(dict(zip(every.tolist(), counts.tolist(), strict=True)))


def strange(found: Counter[str]) -> Finding | None:
    """What is neither 1, 0 nor blank; None where there is nothing of the kind."""
    odd = Counter({value: count for value, count in found.items() if value not in PLAIN})
    if not odd:
        return None
    told = []
    for value, count in odd.most_common(MOST):
        meaning = MEANINGS.get(value.removesuffix(".0"), "")
        told.append(f"{value} in {count} entries" + (f" ({meaning})" if meaning else ""))
    words = f"There are values that are neither 1 (yes), 0 (no) nor blank (nobody said): {'; '.join(told)}."
    remedy = "Write 1, 0 or blank for them; in Python choose the constructor of partly.Labels that says what they mean."
    return Finding("problem", words, remedy, numbers={"values": dict(odd.most_common(MOST))})
