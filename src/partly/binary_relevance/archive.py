"""Fitted scikit-learn estimators as bytes, without pickle: skops, made so that the same estimator has the same bytes.

A skops file is a zip archive: what an object is made of as JSON, and its arrays. What is not on the list of trusted
types is refused when it is opened. skops names the parts by where they lay in memory and stamps them with the time, so
that no two files are the same; here they are numbered, and carry no time.
"""

# skops looks through all of scikit-learn when it is imported, so that is left to who needs it.

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable
from typing import Any

from partly.binary_relevance.safety import INTERNAL, check_archive, disarm
from partly.errors import CheckpointError

LARGE = 1 << 16  # bytes from which on an archive is compressed: forests are mostly JSON and shrink to a fraction
EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip archive knows


def pack(thing: Any) -> bytes:
    """The thing as a skops archive; the same bytes for the same thing, in any process."""
    import skops.io

    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(thing))) as made:
        parts = {name: made.read(name) for name in made.namelist()}
    names: dict[str, str] = {}
    schema = _numbered(json.loads(parts.pop("schema.json")), {}, names, parts)
    size = sum(map(len, parts.values()))
    text = json.dumps(schema, separators=(",", ":")).encode()
    kind = zipfile.ZIP_DEFLATED if size + len(text) >= LARGE else zipfile.ZIP_STORED
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        for old, new in names.items():
            archive.writestr(zipfile.ZipInfo(new, EPOCH), parts[old], kind)
        archive.writestr(zipfile.ZipInfo("schema.json", EPOCH), text, kind)
    return buffer.getvalue()


class UntrustedTypes(CheckpointError):
    """Raised when an archive holds types that nobody has said to trust."""


def unpack(content: bytes, where: str, trusted: Iterable[str] = (), way_out: str = "") -> Any:
    """What `pack` made bytes of, without caches. `where` and `way_out` (with {} for the types) are for the
    error where it holds types that nobody trusts."""
    import skops.io

    trusted = list(trusted)
    strange = untrusted(content, trusted, where)
    if strange:
        raise UntrustedTypes(
            f"{where}: holds types that are not trusted: {', '.join(strange)}. Such types can run code when they are "
            f"loaded, so nothing was.{way_out.format(strange)}"
        )
    try:
        made = skops.io.loads(content, trusted=[*INTERNAL, *trusted])
    except Exception as error:  # whatever a damaged archive makes of itself
        raise CheckpointError(f"{where}: not an estimator that was saved ({error}). Restore it from a copy.") from error
    disarm(made, where)
    return made


def untrusted(content: bytes, trusted: Iterable[str] = (), where: str = "the estimator") -> list[str]:
    """Types in an archive that are neither on our list and that of skops, nor named in `trusted`."""
    import skops.io

    allowed = {*INTERNAL, *trusted}
    strange = check_archive(content, where, trusted)
    try:
        more = [name for name in skops.io.get_untrusted_types(data=content) if name not in allowed]
    except Exception as error:
        raise CheckpointError(f"{where}: not an estimator that was saved ({error}). Restore it from a copy.") from error
    return sorted({*strange, *more})


def _numbered(part: Any, ids: dict[int, int], names: dict[str, str], there: dict[str, bytes]) -> Any:
    """The schema with its parts numbered in the order in which they come. Equal ids stay equal: they say what is one
    object."""
    if isinstance(part, list):
        return [_numbered(one, ids, names, there) for one in part]
    if not isinstance(part, dict):
        return part
    new: dict[str, Any] = {}
    for key, value in part.items():
        if key == "__id__":
            new[key] = ids.setdefault(value, len(ids))
        elif key == "file" and isinstance(value, str) and value in there:
            new[key] = names.setdefault(value, f"{len(names)}.{value.rpartition('.')[2]}")
        else:
            new[key] = _numbered(value, ids, names, there)
    return new
