"""A graph over the labels of VOC from WordNet, for `imcl` (table 3 of Huynh and Elhamifar 2020): a file of edges.

    python -m evidence.wordnet [WORDNET] [--out evidence/experiments/voc2012-wordnet.csv]

WORDNET is the folder of WordNet 3.0's files (Debian: wordnet-base), which are read here: nltk wants a file that is not
in that package. Of each label the first meaning as a noun is taken; an edge is as strong as the way between two
meanings over what both are kinds of is short: 1 / (1 + steps).
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

HERE = Path(__file__).resolve().parent
WORDS = {  # label -> how WordNet writes it
    **{name: name for name in ("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow")},
    **{name: name for name in ("dog", "horse", "motorbike", "person", "sheep", "sofa", "train")},
    **{"diningtable": "dining_table", "pottedplant": "pot_plant", "tvmonitor": "television_monitor"},
}
KINDS_OF = ("@", "@i")  # pointers to what a meaning is a kind or an instance of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wordnet", type=Path, nargs="?", default=Path("/usr/share/wordnet"))
    parser.add_argument("--out", type=Path, default=HERE / "experiments" / "voc2012-wordnet.csv")
    options = parser.parse_args()
    senses, above = first_senses(options.wordnet / "index.noun"), hypernyms(options.wordnet / "data.noun")
    steps = {label: upwards(senses[word], above) for label, word in sorted(WORDS.items())}
    with options.out.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["label", "related", "weight"])
        for label, own in steps.items():
            for related, other in steps.items():
                if label != related:
                    way = min(own[common] + other[common] for common in own.keys() & other.keys())
                    rows.writerow([label, related, f"{1 / (1 + way):.4f}"])


def first_senses(path: Path) -> dict[str, str]:
    """Word -> its first meaning: 'word n senses pointers kinds... senses tagged meaning...', after the licence."""
    found = {}
    for line in path.read_text("utf-8").splitlines():
        if not line.startswith(" "):
            word, _, _, pointers, *rest = line.split()
            found[word] = rest[int(pointers) + 2]
    return found


def hypernyms(path: Path) -> dict[str, list[str]]:
    """Meaning -> what it is a kind of: 'meaning file n words word id... pointers (kind meaning n places)...'."""
    found = {}
    for line in path.read_text("utf-8").splitlines():
        if not line.startswith(" "):
            fields = line.partition(" | ")[0].split()
            rest = fields[4 + 2 * int(fields[3], 16) + 1 :]
            found[fields[0]] = [to for kind, to in zip(rest[::4], rest[1::4], strict=False) if kind in KINDS_OF]
    return found


def upwards(meaning: str, above: dict[str, list[str]]) -> dict[str, int]:
    """A meaning and all that it is a kind of -> steps to there."""
    reached, near = {meaning: 0}, [meaning]
    for one in near:
        for kind in above[one]:
            if kind not in reached:
                reached[kind] = reached[one] + 1
                near.append(kind)
    return reached


if __name__ == "__main__":
    main()
