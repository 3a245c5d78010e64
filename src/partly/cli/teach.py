"""`partly teach`: zero-shot scores from the names of labels, without any label."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from partly.cli.app import command
from partly.cli.dataclass_options import Omit
from partly.cli.options import Data, DataOptions, Device, Json, data_option, model_option, output_option
from partly.cli.printing import print_json, say
from partly.errors import DataError

LABEL_OPTIONS = ("labels", "absent", "uncertain", "missing", "label_columns", "tag_separator")


@command("Models")
def teach(
    data: Data,
    names: Annotated[Path, data_option("Text file with one label name per line.")],
    out: Annotated[Path, output_option("File for the scores: .csv or .parquet, one row per item.")],
    descriptions: Annotated[
        Path | None, data_option("TOML file with descriptions or further phrasings of labels.")
    ] = None,
    encoder: Annotated[str, model_option("Encoder: auto, or hf:NAME for a model of Hugging Face.")] = "auto",
    prompt: Annotated[
        list[str] | None, model_option("Sentence with {} for the name, such as 'a photo of a {}.'. Repeatable.")
    ] = None,
    *,
    reading: Annotated[DataOptions, Omit(*LABEL_OPTIONS)],
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Score items by the names of labels, without any label.

    Scores are standardized per label and per item: 0 is the mean, 1 a standard deviation. Rank items by them, or pass
    the file to `partly train --teacher`.
    """
    from partly import data as files
    from partly.data.hierarchy_table import read_hierarchy
    from partly.distributed.devices import device_of
    from partly.teachers.contract import vocabulary
    from partly.teachers.label_names import LabelNames
    from partly.teachers.standardization import measure
    from partly.teachers.wording import codes

    words = read_names(names)
    opened = files.read(data, skip_bad=reading.skip_bad, size=reading.size, absent="unknown", uncertain="unknown")
    part = opened.test or opened
    hierarchy = None if reading.hierarchy is None else read_hierarchy(reading.hierarchy)
    teacher = LabelNames(descriptions, encoder, prompts=prompt, hierarchy=hierarchy, device=device_of(device))
    silent = codes(words, teacher.descriptions)
    if silent:
        say(f"Warning: {len(silent)} of {len(words)} names are codes and get no score: {', '.join(silent[:5])}")
    labels = vocabulary(words, part.labels.ids)
    found = measure(teacher.score_blocks(part.items, labels))
    blocks = (found.per_item(block) for block in teacher.score_blocks(part.items, labels))
    files.write_scores(out, blocks, part.labels.ids, words)
    say(f"{len(part.items)} items scored for {len(words)} labels: {out}")
    print_json({"items": len(part.items), "labels": len(words), "out": out}, as_json)


def read_names(path: Path) -> list[str]:
    """Read label names, one per line."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}). Write one label name per line.") from None
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        raise DataError(f"{path}: holds no names. Write one label name per line.")
    return names
