"""A folder of pictures: their ids are their file names, from the folder. Folders in it are gone through, links to
folders are not, and hidden files are left alone.
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

PICTURES = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".ppm", ".pgm")


def recognizes(path: Path) -> bool:
    """Any folder that holds no features: one without pictures is refused when it is read."""
    return path.is_dir() and not feature_folder.recognizes(path)


def read(path: Path, semantics: object = None) -> Dataset:
    names = sorted(_names(path))
    if not names:
        raise DataError(f"{path}: no pictures are in this folder. There may be: {', '.join(PICTURES)}.")
    odd = [name for name in names if not _is_unicode(name)]
    if odd:
        raise DataError(
            f"{path}: file names that are not valid UTF-8: {len(odd)}"
            + listing(map(repr, odd), len(odd))
            + "\nRename them: they are the ids of the items."
        )
    places = [ImageLocation(str(path.absolute() / name)) for name in names]
    return Dataset(ImageFiles(ImageSource(places, names, str(path))), empty_labels(names))


def _names(path: Path) -> list[str]:
    found = []
    for folder, below, files in os.walk(path, onerror=_refuse):
        below[:] = [name for name in below if not name.startswith(".")]
        inside = Path(folder).relative_to(path)
        shown = (name for name in files if not name.startswith(".") and name.lower().endswith(PICTURES))
        found += [(inside / name).as_posix() for name in shown]
    return found


def _refuse(error: OSError) -> None:
    raise DataError(f"{error.filename}: cannot be read ({error.strerror}).") from error


def _is_unicode(name: str) -> bool:
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False


FORMAT = DatasetFormat("items", recognizes, read)
