"""Label values that cannot be read without guessing, and what each usually means."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from partly.data.table_layout import ID, with_id_column
from partly.data.tables import open_table
from partly.doctor.context import Finding
from partly.labels.spellings import WORDS

READABLE = {"0", "1", "0.0", "1.0", "", "nan", "None"}
MAX_VALUES = 20  # different values in a finding
MEANINGS = {
    "-1": "no where 0 is unknown (Labels.from_ternary), 'uncertain' in CheXpert, unknown elsewhere",
    "-100": "torch's 'ignore': unknown",
    "2": "'difficult' or 'unsure' in some data sets",
    "99": "often unknown",
    "999": "often unknown",
}


def count_table_values(path: Path) -> Counter[str]:
    """Count the cell values of a wide table, except words such as 'yes', which need no explanation."""
    table = with_id_column(open_table(path))
    counts: Counter[str] = Counter()
    for batch in table.batches([name for name in table.header if name != ID]):
        for column in batch.columns:
            counts.update(cell for cell in map(str, column.to_pylist()) if cell.lower() not in WORDS)
    return counts


def count_array_values(values: Any) -> Counter[str]:
    """Count the values of an array."""
    distinct, counts = np.unique(np.asarray(values, dtype=object).astype(str), return_counts=True)
    return Counter(dict(zip(distinct.tolist(), counts.tolist(), strict=True)))


def find_unusual_values(counts: Counter[str]) -> Finding | None:
    """Return a finding about values other than 1, 0 and blank; None where there are none."""
    unusual = Counter({value: count for value, count in counts.items() if value not in READABLE})
    if not unusual:
        return None
    descriptions = []
    for value, count in unusual.most_common(MAX_VALUES):
        meaning = MEANINGS.get(value.removesuffix(".0"), "")
        descriptions.append(f"{value} in {count} entries" + (f" ({meaning})" if meaning else ""))
    text = f"Some values are neither 1 (yes), 0 (no) nor blank (unknown): {'; '.join(descriptions)}."
    remedy = (
        "Replace them with 1, 0 or blank; in Python choose the constructor of partly.Labels that gives their meaning."
    )
    return Finding("problem", text, remedy, numbers={"values": dict(unusual.most_common(MAX_VALUES))})
