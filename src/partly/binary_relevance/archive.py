"""Serialization of scikit-learn estimators without pickle, by skops, with reproducible bytes.

A skops file is a zip archive with a JSON schema and arrays. Types that are not trusted are refused. skops names parts
by memory address and adds timestamps; here parts are numbered and have no time.
"""

# skops imports all of scikit-learn, so it is imported lazily.

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable
from typing import Any

from partly.binary_relevance.safety import INTERNAL_TYPES, check_archive, disarm
from partly.errors import CheckpointError

COMPRESSION_BYTES = 1 << 16  # bytes above which an archive is compressed; forests are mostly JSON
ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time in a zip archive


def pack(obj: Any) -> bytes:
    """Return an object as a skops archive: equal objects give equal bytes, in any process."""
    import skops.io

    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(obj))) as original:
        files = {name: original.read(name) for name in original.namelist()}
    names: dict[str, str] = {}
    schema = _number_parts(json.loads(files.pop("schema.json")), {}, names, files)
    size = sum(map(len, files.values()))
    text = json.dumps(schema, separators=(",", ":")).encode()
    kind = zipfile.ZIP_DEFLATED if size + len(text) >= COMPRESSION_BYTES else zipfile.ZIP_STORED
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        for old, new in names.items():
            archive.writestr(zipfile.ZipInfo(new, ZIP_EPOCH), files[old], kind)
        archive.writestr(zipfile.ZipInfo("schema.json", ZIP_EPOCH), text, kind)
    return buffer.getvalue()


class UntrustedTypes(CheckpointError):
    """Raised when an archive holds types that are not trusted."""


def unpack(content: bytes, where: str, trusted: Iterable[str] = (), way_out: str = "") -> Any:
    """Load the result of `pack`, without caches. `where` and `way_out` (with {} for the types) are for
    error messages."""
    import skops.io

    trusted = list(trusted)
    untrusted = find_untrusted_types(content, trusted, where)
    if untrusted:
        raise UntrustedTypes(
            f"{where}: holds types that are not trusted: {', '.join(untrusted)}. Such types can run code when they are "
            f"loaded, so nothing was.{way_out.format(untrusted)}"
        )
    try:
        estimator = skops.io.loads(content, trusted=[*INTERNAL_TYPES, *trusted])
    except Exception as error:  # damaged archives raise anything
        raise CheckpointError(f"{where}: not an estimator that was saved ({error}). Restore it from a copy.") from error
    disarm(estimator, where)
    return estimator


def find_untrusted_types(content: bytes, trusted: Iterable[str] = (), where: str = "the estimator") -> list[str]:
    """Return the types in an archive that neither our list, nor skops, nor `trusted` allows."""
    import skops.io

    allowed = {*INTERNAL_TYPES, *trusted}
    untrusted = check_archive(content, where, trusted)
    try:
        more = [name for name in skops.io.get_untrusted_types(data=content) if name not in allowed]
    except Exception as error:
        raise CheckpointError(f"{where}: not an estimator that was saved ({error}). Restore it from a copy.") from error
    return sorted({*untrusted, *more})


def _number_parts(part: Any, ids: dict[int, int], names: dict[str, str], files: dict[str, bytes]) -> Any:
    """Return the schema with parts numbered in order. Equal ids stay equal, since they mark shared objects."""
    if isinstance(part, list):
        return [_number_parts(element, ids, names, files) for element in part]
    if not isinstance(part, dict):
        return part
    new: dict[str, Any] = {}
    for key, value in part.items():
        if key == "__id__":
            new[key] = ids.setdefault(value, len(ids))
        elif key == "file" and isinstance(value, str) and value in files:
            new[key] = names.setdefault(value, f"{len(names)}.{value.rpartition('.')[2]}")
        else:
            new[key] = _number_parts(value, ids, names, files)
    return new
