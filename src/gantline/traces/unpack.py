"""The bytes of a file, whatever it was wrapped in.

Traces are passed around as ``.gz``, ``.bz2``, ``.xz``, as a zip or as a tar file holding one table. The wrapping is
recognised by its first bytes, never by the name, and a file that was cut short says so.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

from gantline.core.errors import NotFoundError, TraceError, UsageError

_WRAPPINGS: tuple[tuple[bytes, str, Callable[[io.BytesIO], io.BufferedIOBase]], ...] = (
    (b"\x1f\x8b", "gzip", lambda file: gzip.GzipFile(fileobj=file)),
    (b"BZh", "bzip2", bz2.BZ2File),
    (b"\xfd7zXZ\x00", "xz", lzma.LZMAFile),
)
_TIMES, _ANYWAY = 200, 64 * 2**20
"""A table shrinks by a factor of ten, seldom of fifty; what grows to more than this is a bomb."""
_CHUNK = 2**22
_DAMAGE = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, tarfile.TarError, zipfile.BadZipFile)


def unpack(path: Path) -> bytes:
    """All bytes of ``path``, decompressed and taken out of an archive that holds one file."""
    data = _fetch(path)
    for magic, name, opened in _WRAPPINGS:
        if data.startswith(magic):
            try:
                with opened(io.BytesIO(data)) as file:
                    data = _bounded(path, file, len(data))
            except _DAMAGE as error:
                raise _damaged(path, name, error) from error
            break
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        raise TraceError("is compressed with zstd", file=str(path), fix=f"unpack it first: zstd -d {path.name}")
    if data.startswith(b"PK\x03\x04"):
        return _only_member(path, "zip", data, _zip_member)
    if data[257:262] == b"ustar":
        return _only_member(path, "tar", data, _tar_member)
    return data


def decode(data: bytes, source: str) -> str:
    """The text of ``data``, which must be UTF-8 (with or without a byte order mark)."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TraceError("is UTF-16, not UTF-8", file=source, line=1, fix="iconv -f UTF-16 -t UTF-8 IN > OUT")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TraceError(
            f"is not UTF-8 (byte 0x{data[error.start]:02x})",
            file=source,
            line=line,
            fix="convert it, for instance with: iconv -f WINDOWS-1252 -t UTF-8 IN > OUT",
        ) from error


def refuse_other_encodings(data: bytes, source: str) -> None:
    """Refuse what :func:`decode` refuses; nothing is copied where all characters are ASCII."""
    if not data.isascii():
        decode(data, source)


def read_text(path: Path) -> str:
    """The text of a file that may be compressed; an empty one is refused."""
    text = decode(unpack(path), str(path))
    if not text.strip():
        raise TraceError("is empty", file=str(path), fix="was the download or the export complete?")
    return text


def _fetch(path: Path) -> bytes:
    try:
        if path.is_char_device():  # some never end
            raise UsageError("is a device, not a file", where=str(path))
        return path.read_bytes()
    except FileNotFoundError as error:
        raise NotFoundError("no such file", where=str(path)) from error
    except IsADirectoryError as error:
        raise UsageError("is a folder, not a file", where=str(path)) from error
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(path)) from error


def most_unpacked(packed: int) -> int:
    """The most bytes that so many may honestly stand for."""
    return _TIMES * packed + _ANYWAY


def _bounded(path: Path, file: io.BufferedIOBase | IO[bytes], packed: int) -> bytes:
    """Everything in an opened file, as long as that is in proportion to what it was packed into."""
    most, parts, size = most_unpacked(packed), [], 0
    while part := file.read(_CHUNK):
        size += len(part)
        if size > most:
            text = f"unpacks to more than {size // 2**20:,} MB from {packed / 2**20:.1f}"
            raise UsageError(text, where=str(path), fix="unpack it yourself if you trust it")
        parts.append(part)
    return b"".join(parts)


def _damaged(path: Path, kind: str, error: Exception) -> TraceError:
    return TraceError(f"is a damaged or truncated {kind} file: {error}", file=str(path), fix="fetch the file again")


def _only_member(path: Path, kind: str, data: bytes, open_only: Callable[[Path, bytes], tuple[list[str], bytes]]) -> bytes:
    try:
        names, content = open_only(path, data)
    except _DAMAGE as error:
        raise _damaged(path, kind, error) from error
    if len(names) != 1:
        held = ", ".join(sorted(names)[:5]) or "nothing"
        raise TraceError(f"is a {kind} archive holding {held}", file=str(path), fix="unpack it and name one file")
    return content


def _zip_member(path: Path, data: bytes) -> tuple[list[str], bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        if len(names) != 1:
            return names, b""
        with archive.open(names[0]) as file:
            return names, _bounded(path, file, len(data))


def _tar_member(path: Path, data: bytes) -> tuple[list[str], bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        file = archive.extractfile(members[0]) if len(members) == 1 else None
        return [member.name for member in members], _bounded(path, file, len(data)) if file else b""
