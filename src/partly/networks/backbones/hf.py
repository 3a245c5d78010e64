"""Vision or text models of Hugging Face, by name or folder: `hf:NAME_OR_FOLDER`.

Vision models make maps; the tokens of a transformer are put back in their positions. Pixels are normalized as in the
model's preprocessor_config.json, or by `mean` and `std` for values from 0 to 1. Text models average their tokens. No
code that comes with a model is executed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from partly.distributed.progress import step
from partly.errors import SettingError
from partly.networks.backbones.contract import Backbone, split_stages
from partly.networks.backbones.text_model import TextModel
from partly.registry import About

ABOUT = About(weights="weights of Hugging Face: {name}")
LENGTH = 256  # maximum tokens per text, if the model allows as many
Numbers = tuple[float, ...]


class VisionModel(Backbone):
    """Images [B, C, H, W] -> maps [B, channels, h, w]."""

    def __init__(self, model: nn.Module, mean: Sequence[float], scale: Sequence[float], size: int | None) -> None:
        super().__init__(mean, scale)
        config: Any = model.config
        self.model, self.size = model, size
        sizes = getattr(config, "hidden_sizes", None)
        self.channels = int(sizes[-1] if sizes else config.hidden_size)
        self.patch = getattr(config, "patch_size", None)

    def maps(self, x: Tensor) -> Tensor:
        side = x.shape[3] // self.patch if isinstance(self.patch, int) else None
        return tokens_to_maps(self.model(pixel_values=x).last_hidden_state, side)

    def stages(self) -> list[nn.Module]:
        return split_stages(self.model)


def tokens_to_maps(made: Tensor, side: int | None = None) -> Tensor:
    """Return tokens [B, T, C] of a square image as maps [B, C, side, side], without leading class or register tokens.
    Maps are returned unchanged."""
    if made.ndim == 4:
        return made
    side = int(made.shape[1] ** 0.5) if side is None else side
    maps: Tensor = made[:, -side * side :].transpose(1, 2).unflatten(2, (side, side))
    return maps


def backbone(
    shape: tuple[int, ...],
    name: str,
    *,
    length: int | None = None,
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
    pretrained: bool = True,
) -> Backbone:
    """Build it for images [C, H, W] or texts [T]. length: maximum tokens per text."""
    if len(shape) == 1:
        return text(name, length, False, pretrained)
    model = load(name, pretrained)
    if getattr(model, "main_input_name", "") != "pixel_values":
        raise SettingError(f"backbone = 'hf:{name}': this model takes no pictures, and the items are {list(shape)}.")
    config: Any = model.config
    side = getattr(config, "image_size", None)
    pixels, own = normalization(name, mean, std)
    return VisionModel(model, *pixels, side if isinstance(side, int) else own)


def text(name: str, length: int | None, unit: bool, pretrained: bool) -> TextModel:
    """Return a text model with its tokenizer."""
    model = load(name, pretrained)
    if getattr(model, "main_input_name", "") != "input_ids":
        raise SettingError(f"backbone = 'hf:{name}': this model takes no texts.")
    config: Any = model.config
    most = int(getattr(config, "max_position_embeddings", LENGTH))
    return TextModel(model, tokenizer(name), min(LENGTH, most) if length is None else length, unit)


def tokenizer(name: str) -> Any:
    """Return the tokenizer that comes with a model."""
    return _from_pretrained("AutoTokenizer", name)


def load(name: str, pretrained: bool) -> nn.Module:
    """Load the model without its classifier, in float32; with random weights unless `pretrained`."""
    if pretrained:
        import torch

        model: nn.Module = _from_pretrained("AutoModel", name, dtype=torch.float32)
    else:
        model = _transformers().AutoModel.from_config(_from_pretrained("AutoConfig", name))
    return model


def normalization(
    name: str, mean: Numbers | None = None, std: Numbers | None = None
) -> tuple[tuple[list[float], list[float]], int | None]:
    """Return mean and scale for pixels from 0 to 255, and the image size if the configuration has it."""
    said: dict[str, Any] = {"rescale_factor": 1 / 255}
    if mean is None or std is None:
        said |= _from_pretrained("ImageProcessingMixin", name, "get_image_processor_dict")[0]
    unit = said["rescale_factor"] if said.get("do_rescale", True) else 1.0
    mean, std = mean or said.get("image_mean"), std or said.get("image_std")
    if not said.get("do_normalize", True):
        mean, std = (0.0,) * 3, (1.0,) * 3
    if mean is None or std is None:
        raise SettingError(
            f"backbone = 'hf:{name}': preprocessor_config.json does not say how pixels are normalized. "
            "Give the settings mean and std, of values from 0 to 1."
        )
    crop = said.get("crop_size") or said.get("size") or {}
    side = crop if isinstance(crop, int) else crop.get("height", crop.get("shortest_edge"))
    return ([value / unit for value in mean], [value / unit for value in std]), side


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as error:
        raise SettingError(
            f"Models of Hugging Face need transformers ({error}). pip install transformers, or 'partly[text]'."
        ) from None
    return transformers


@contextmanager
def _without_bars(library: Any) -> Iterator[None]:
    """Disable the library's progress bars within this context."""
    was_enabled = library.utils.logging.is_progress_bar_enabled()
    library.utils.logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            library.utils.logging.enable_progress_bar()


def _from_pretrained(kind: str, name: str, call: str = "from_pretrained", **how: Any) -> Any:
    """Load an object of transformers by name or from a folder."""
    library = _transformers()
    source = library.image_processing_utils if kind == "ImageProcessingMixin" else library
    try:
        with step("Loading the pretrained network"), _without_bars(library):
            return getattr(getattr(source, kind), call)(name, **how)
    except (OSError, ValueError) as error:
        is_path = name.startswith((".", "/", "~")) and not Path(name).is_dir()
        reason = "there is no such folder" if is_path else str(error).strip().splitlines()[0]
        raise SettingError(
            f"backbone = 'hf:{name}': it cannot be read ({reason}). Give a folder that save_pretrained wrote, or a "
            "name on the Hugging Face hub that can be reached from here."
        ) from None
