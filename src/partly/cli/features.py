"""`partly features`: compute the features of images or texts once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from partly.cli.app import command
from partly.cli.dataclass_options import Omit
from partly.cli.options import Address, Data, DataOptions, Device, Json, On, model_option, output_option
from partly.cli.printing import print_json, say
from partly.errors import DataError, SettingError
from partly.registry import parse_settings

LABEL_OPTIONS = ("labels", "hierarchy", *DataOptions().label_format())


@command("Models")
def features(
    data: Data,
    out: Annotated[Path, output_option("Folder for the features; the same command resumes.")],
    backbone: Annotated[str | None, model_option("Feature extractor.  [default: a pretrained one]")] = None,
    backbone_setting: Annotated[
        list[str] | None, model_option("Setting of the backbone: name=value. Repeatable.")
    ] = None,
    *,
    reading: Annotated[DataOptions, Omit(*LABEL_OPTIONS)],
    device: Device = "auto",
    on: On = "here",
    address: Address = None,
    as_json: Json = False,
) -> None:
    """Compute features of images or texts, for reuse.

    Every other command accepts the folder as DATA.
    """
    from partly import data as files
    from partly.distributed.devices import device_of
    from partly.engine import make_features
    from partly.executors import get_executor

    if on != "here" and device not in ("auto", "cpu"):
        raise SettingError(f"device = {device!r}: with --on {on}, features are computed on CPUs. Leave out --device.")
    results = get_executor(on, address)
    # Labels in the data are not used, so their open questions need no answer.
    opened = files.read(data, skip_bad=reading.skip_bad, size=reading.size, absent="unknown", uncertain="unknown")
    if opened.test is not None:
        raise DataError(f"{data}: is a data set with a test part. Give items only.")
    count, width = make_features(
        opened.items,
        opened.labels.ids,
        out,
        backbone,
        parse_settings(backbone_setting or []),
        device_of(device) if on == "here" else "cpu",
        results=None if on == "here" else results,
        say=say,
    )
    say(f"{count} items x {width} features: {out}")
    print_json({"items": count, "features": width, "out": out}, as_json)
