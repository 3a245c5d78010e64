"""The snippet of docs/export.md makes of picture files what the model is shown, and the exported model agrees."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import partly
from partly.images.reading import render_image

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "export.md").read_text("utf-8")
SIZE = 24


@pytest.fixture(scope="module")
def prepared() -> Callable[[Path, int], Any]:
    """The function as the page shows it."""
    (block,) = (code for code in re.findall(r"```python\n(.*?)```", TEXT, re.S) if "def prepare(" in code)
    space: dict[str, Any] = {}
    exec(block.partition("\nsession =")[0], space)  # noqa: S102, the page is ours
    return space["prepare"]


def write_pictures(folder: Path) -> list[Path]:
    """JPEG of many sizes, some turned by EXIF, and other formats and modes."""
    rng = np.random.default_rng(0)
    waves = np.add.outer(np.arange(301), np.arange(517))[..., None] * np.array([0.11, 0.07, 0.05])
    whole = (127 + 90 * np.sin(waves) + rng.normal(0, 12, waves.shape)).clip(0, 255).astype(np.uint8)
    image, paths = Image.fromarray(whole), []
    for number, (width, height) in enumerate([(517, 301), (301, 301), (97, 200), (50, 49), (25, 24), (20, 13)]):
        exif = Image.Exif()
        exif[0x0112] = (1, 6, 8, 3, 5, 2)[number]
        image.crop((0, 0, width, height)).save(path := folder / f"{number}.jpg", exif=exif, quality=90)
        paths.append(path)
    alpha = Image.fromarray(np.dstack([whole, np.full(whole.shape[:2], 90, np.uint8)]))
    deep = Image.fromarray(whole[..., 0].astype(np.uint16) * 257)
    others = {"a.png": alpha, "p.gif": image.quantize(16), "l.png": image.convert("L"), "d.png": deep}
    for name, one in others.items():
        one.save(folder / name)
        paths.append(folder / name)
    return paths


def test_the_snippet_of_the_page_is_what_the_model_is_shown(prepared: Any, tmp_path: Path) -> None:
    for path in write_pictures(tmp_path):
        for size in (SIZE, 61, 224):
            shown = render_image(path.read_bytes(), size)
            np.testing.assert_array_equal(prepared(path, size), shown.transpose(2, 0, 1), err_msg=f"{path} at {size}")


def test_an_exported_model_says_of_files_what_the_model_does(prepared: Any, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    (tmp_path / "photos").mkdir()
    files = sorted(write_pictures(tmp_path / "photos"))
    known = "".join(f"{path.name},{n % 2},{n % 3 % 2}\n" for n, path in enumerate(files))
    (tmp_path / "labels.csv").write_text(f"item,a,b\n{known}")
    data = partly.read(tmp_path / "photos", labels=tmp_path / "labels.csv", size=SIZE)
    how = {"backbone": "small-conv", "epochs": 1, "batch_size": 4, "progress": False, "device": "cpu"}
    model = partly.Classifier("bce", head="linear", **how).fit(data.items, data.labels)
    partly.export.to_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    x = np.stack([prepared(tmp_path / "photos" / name, SIZE) for name in data.labels.ids])
    (found,) = session.run(["probabilities"], {"pictures": x})
    np.testing.assert_allclose(found, model.predict_proba(data.items), atol=1e-5)
