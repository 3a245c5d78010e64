"""A folder of images, with subfolders; the ids are the paths within the folder.

Hidden files and links to folders are ignored.
"""

from __future__ import annotations

import os
from pathlib import Path

from partly.data.dataset import Dataset, empty_labels
from partly.data.formats import feature_folder
from partly.data.protocols import DatasetFormat
from partly.errors import DataError, listing
from partly.images.worker import ImageLocation
from partly.items import ImageFiles, ImageSource

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".ppm", ".pgm")


def recognizes(path: Path) -> bool:
    """Return whether this is a folder without features; one without images is refused when it is read."""
    return path.is_dir() and not feature_folder.recognizes(path)


def read(path: Path, semantics: object = None) -> Dataset:
    names = sorted(_names(path))
    if not names:
        raise DataError(f"{path}: there are no images in this folder. Available: {', '.join(IMAGE_SUFFIXES)}.")
    bad = [name for name in names if not _is_unicode(name)]
    if bad:
        raise DataError(
            f"{path}: file names that are not valid UTF-8: {len(bad)}"
            + listing(map(repr, bad), len(bad))
            + "\nRename them: they are the ids of the items."
        )
    places = [ImageLocation(str(path.absolute() / name)) for name in names]
    return Dataset(ImageFiles(ImageSource(places, names, str(path))), empty_labels(names))


def _names(path: Path) -> list[str]:
    names = []
    for folder, subfolders, files in os.walk(path, onerror=_refuse):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        inside = Path(folder).relative_to(path)
        images = (name for name in files if not name.startswith(".") and name.lower().endswith(IMAGE_SUFFIXES))
        names += [(inside / name).as_posix() for name in images]
    return names


def _refuse(error: OSError) -> None:
    raise DataError(f"{error.filename}: cannot be read ({error.strerror}).") from error


def _is_unicode(name: str) -> bool:
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


FORMAT = DatasetFormat("items", recognizes, read)
