"""`partly teach`: scores without any label, from the names of labels or from a language model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from partly.cli._label_names import read_described_names
from partly.cli._language_model import LanguageModelOptions, ask, refuse_encoder_options
from partly.cli.app import command
from partly.cli.dataclass_options import Omit
from partly.cli.options import Data, DataOptions, Device, Json, data_option, model_option, output_option
from partly.cli.printing import print_json, say
from partly.errors import SettingError

LABEL_OPTIONS = ("labels", "absent", "uncertain", "missing", "label_columns", "tag_separator")


@command("Models")
def teach(
    data: Data,
    names: Annotated[
        Path,
        data_option(
            "Text file with one label name per line, or TOML with phrasings or a guideline per label.",
            "--names",
            "--labels",
        ),
    ],
    out: Annotated[Path | None, output_option("File for the scores: .csv or .parquet, one row per item.")] = None,
    descriptions: Annotated[
        Path | None, data_option("TOML file with descriptions or further phrasings of labels.")
    ] = None,
    encoder: Annotated[str, model_option("Encoder: auto, or hf:NAME for a model of Hugging Face.")] = "auto",
    prompt: Annotated[
        list[str] | None, model_option("Sentence with {} for the name, such as 'a photo of a {}.'. Repeatable.")
    ] = None,
    *,
    reading: Annotated[DataOptions, Omit(*LABEL_OPTIONS)],
    language_model: LanguageModelOptions,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    """Score items without labels: by label names or a language model.

    Scores by names are standardized per label and per item: 0 is the mean, 1 a standard deviation. Codes such as c17
    have no score. A language model (--url and --model) gives probabilities. Rank items by the scores, or pass the file
    to `partly train --teacher`.
    """
    import numpy as np

    from partly import data as files
    from partly.data.hierarchy_table import read_hierarchy
    from partly.distributed.devices import device_of
    from partly.teachers.contract import vocabulary
    from partly.teachers.label_names import LabelNames
    from partly.teachers.standardization import measure
    from partly.teachers.wording import check_names, codes, describe_codes, read_descriptions

    opened = files.read(data, skip_bad=reading.skip_bad, size=reading.size, absent="unknown", uncertain="unknown")
    part = opened.test or opened
    if language_model.url is not None or language_model.model is not None:
        refuse_encoder_options(descriptions=descriptions, encoder=encoder, prompt=prompt)
        ask(language_model, part, names, out, as_json)
        return
    if out is None:
        raise SettingError("Give --out, the file for the scores.")
    label_names, phrasings = read_described_names(names)
    hierarchy = None if reading.hierarchy is None else read_hierarchy(reading.hierarchy, label_names)
    described = phrasings if descriptions is None else phrasings | read_descriptions(descriptions)
    teacher = LabelNames(described, encoder, prompts=prompt, hierarchy=hierarchy, device=device_of(device))
    check_names(label_names, described)
    silent = codes(label_names, described)
    if silent:
        say(f"Warning: {describe_codes(silent, len(label_names))}")
    labels = vocabulary(label_names, part.labels.ids)
    standardization = measure(teacher.score_blocks(part.items, labels))
    blocks = (
        np.where(np.isfinite(block), standardization.per_item(block), np.nan)
        for block in teacher.score_blocks(part.items, labels)
    )
    files.write_scores(out, blocks, part.labels.ids, label_names)
    say(f"{len(part.items)} items scored for {len(label_names)} labels: {out}")
    print_json({"items": len(part.items), "labels": len(label_names), "out": out}, as_json)
