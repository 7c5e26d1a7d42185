# SPDX-License-Identifier: Apache-2.0
"""Files with the state of a training: their format, and how they are written, read and listed.

    head        96 bytes: the fields of Head
    lengths     of the parts, 8 bytes each
    parts       one after the other: a pickled object, then memory to which it refers
    checksum    BLAKE2b with 32 bytes, over everything before it

Numbers are little endian. A file is written under another name and renamed when it is on the disk,
so a process that dies leaves no torn file behind; a disk or a copy may. A file that is too short is
torn, and one whose checksum differs is corrupt. Nothing is unpickled before the checksum is right.
The checksum finds damage, and protects against no program that may write to the directory.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import fcntl
import hashlib
import os
import re
import socket
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MAGIC = b"HOROSAVE"
FORMAT = 1
CHECKSUM = 32
_HEAD = struct.Struct("<8sIIQqQIIQd32s")
_LENGTH = struct.Struct("<Q")
_CHUNK = 4 << 20
_NAME = re.compile(r"horo-(\d{12,})\.state")
_PART = re.compile(r"\.horo-.*\.part")
MOST_LISTED = 32


class Unusable(Exception):
    """Why a file cannot be used."""


class Damaged(Unusable):
    """The file is torn or corrupt."""


class Newer(Exception):
    """A later version of Horo has written the file."""


@dataclasses.dataclass(frozen=True)
class Head:
    """`number`: how often the training had passed a boundary, in all jobs. `steps`: those that the
    furthest of its distributed optimizers had done; -1 without one. `generation` and `ranks`: of the
    job at that time. `saved_at`: seconds since 1970. `length`: bytes between the head and the
    checksum."""

    number: int
    steps: int
    generation: int
    ranks: int
    saved_at: float
    version: str
    parts: int = 0
    length: int = 0

    def pack(self) -> bytes:
        return _HEAD.pack(
            *(MAGIC, FORMAT, _HEAD.size, self.number, self.steps, self.generation, self.ranks),
            *(self.parts, self.length, self.saved_at, self.version.encode()[:32]),
        )

    @classmethod
    def unpack(cls, data: bytes) -> Head:
        """Fails: Damaged, Newer."""
        if len(data) < _HEAD.size:
            raise Damaged(f"it is torn: it has {len(data)} bytes")
        fields = _HEAD.unpack(data)
        magic, form, _, number, steps, generation, ranks, parts, length, at, version = fields
        if magic != MAGIC:
            raise Damaged("it is corrupt: it does not begin as the files of save_to()")
        told = version.rstrip(b"\0").decode(errors="replace")
        if form != FORMAT:
            raise Newer(f"Horo {told} has written it in format {form}; this Horo knows {FORMAT}")
        return cls(number, steps, generation, ranks, at, told, parts, length)

    def name(self) -> str:
        """The name of its file."""
        return f"horo-{self.number:012}.state"

    def describe(self) -> str:
        """ "step 120", for people."""
        return f"commit {self.number}" if self.steps < 0 else f"step {self.steps}"


# -- Writing ---------------------------------------------------------------------------------------


def write(folder: str, head: Head, parts: Sequence[bytes | bytearray]) -> Head:
    """Writes a file and waits until it is on the disk. Another file with this number is replaced.
    Fails: OSError; the folder's other files are as before."""
    lengths = b"".join(_LENGTH.pack(len(part)) for part in parts)
    length = len(lengths) + sum(map(len, parts))
    head = dataclasses.replace(head, parts=len(parts), length=length)
    os.makedirs(folder, exist_ok=True)
    host = socket.gethostname().replace("/", "_")
    under_way = os.path.join(folder, f".horo-{host}-{os.getpid()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(under_way, flags, 0o666)
    try:
        with contextlib.suppress(OSError):  # the lock shows others that the writer lives
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        code = hashlib.blake2b(digest_size=CHECKSUM)
        for chunk in _chunks([head.pack(), lengths, *parts]):
            code.update(chunk)
            write_all(fd, chunk)
        write_all(fd, memoryview(code.digest()))
        os.fsync(fd)
        os.replace(under_way, os.path.join(folder, head.name()))
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(under_way)
        raise
    finally:
        os.close(fd)
    _flush_folder(folder)
    return head


def _chunks(parts: Iterable[bytes | bytearray]) -> Iterator[memoryview]:
    for part in parts:
        whole = memoryview(part)
        for start in range(0, len(whole), _CHUNK):
            yield whole[start : start + _CHUNK]


def write_all(fd: int, data: memoryview) -> None:
    """Fails: OSError."""
    while len(data):
        data = data[os.write(fd, data) :]


def _flush_folder(folder):
    """Makes the file's new name last. Some file systems cannot, and need not."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(fd)


# -- Reading ---------------------------------------------------------------------------------------


def read(path: str) -> tuple[Head, list[bytearray]]:
    """The head and the parts of a file whose checksum is right. Fails: Unusable, Newer."""
    with _reading(path) as file:
        head, code = _begin(file)
        table = _read_part(file, _LENGTH.size * head.parts, code)
        lengths = [length for (length,) in _LENGTH.iter_unpack(table)]
        if sum(lengths) + len(table) != head.length:
            raise Damaged("it is corrupt: the lengths of its parts are wrong")
        parts = [_read_part(file, length, code) for length in lengths]
        _require_checksum(file, code)
        return head, parts


def verify(path: str) -> None:
    """Reads a file without keeping it. Fails: Unusable, Newer."""
    with _reading(path) as file:
        head, code = _begin(file)
        _read_chunks(file, head.length, memoryview(bytearray(_CHUNK)), code)
        _require_checksum(file, code)


@contextlib.contextmanager
def _reading(path):
    """The open file. Fails: Unusable, also within."""
    try:
        with open(path, "rb", buffering=0) as file:
            yield file
    except OSError as error:
        raise Unusable(f"it cannot be read: {error.strerror or error}") from error


def _begin(file):
    """The head, and the checksum that goes on behind it. Fails: Damaged, Newer."""
    begin = file.read(_HEAD.size)
    try:
        head = Head.unpack(begin)
    except Newer:
        _require_end(file, begin)
        raise
    length, wanted = os.fstat(file.fileno()).st_size, _HEAD.size + head.length + CHECKSUM
    if length < wanted:
        raise Damaged(f"it is torn: it has {length} of {wanted} bytes")
    if length > wanted or _LENGTH.size * head.parts > head.length:
        raise Damaged(f"it is corrupt: it has {length} bytes instead of {wanted}")
    return head, hashlib.blake2b(begin, digest_size=CHECKSUM)


def _require_end(file, begin):
    """A file of another format ends with its checksum, too. Fails: Damaged."""
    left = os.fstat(file.fileno()).st_size - len(begin) - CHECKSUM
    code, chunk = hashlib.blake2b(begin, digest_size=CHECKSUM), memoryview(bytearray(_CHUNK))
    _read_chunks(file, left, chunk, code)
    _require_checksum(file, code)


def _read_chunks(file, left, chunk, code):
    """Reads `left` bytes into the same memory again and again."""
    while left > 0:
        found = file.readinto(chunk[: min(left, len(chunk))])
        if not found:
            raise Damaged("it is torn")
        code.update(chunk[:found])
        left -= found


def _read_part(file, length, code):
    data = bytearray(length)
    left = memoryview(data)
    while len(left):
        found = file.readinto(left[:_CHUNK])
        if not found:
            raise Damaged("it is torn")
        code.update(left[:found])
        left = left[found:]
    return data


def _require_checksum(file, code):
    if file.read(CHECKSUM) != code.digest():
        raise Damaged("it is corrupt: its checksum is wrong")


# -- The folder ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Listed:
    """A file that is complete as far as its length tells. `checksum` is that in the file."""

    path: str
    head: Head
    checksum: bytes


def newest(folder: str) -> tuple[list[Listed], list[tuple[str, str]]]:
    """The files with the highest numbers, and (path, reason) of files that cannot be used. Fails:
    OSError (the folder cannot be read; one that does not exist is empty), Newer."""
    listed, bad = [], []
    for name in _names(folder)[:MOST_LISTED]:
        path = os.path.join(folder, name)
        try:
            with _reading(path) as file:
                head, _ = _begin(file)
                checksum = os.pread(file.fileno(), CHECKSUM, _HEAD.size + head.length)
                listed.append(Listed(path, head, checksum))
        except Unusable as unusable:
            bad.append((path, str(unusable)))
        except Newer as newer:
            raise Newer(f"{path} cannot be used: {newer}") from newer
    return listed, bad


def _names(folder):
    """The highest number comes first."""
    try:
        found = [match for match in map(_NAME.fullmatch, os.listdir(folder)) if match]
    except FileNotFoundError:
        return []
    return [match.group() for match in sorted(found, key=lambda one: -int(one.group(1)))]


def remove_old(folder: str, keep: int, written: str, good: dict[str, object]) -> None:
    """Leaves the file `written`, and the newest good ones before it, `keep` in all. Files with
    higher numbers stay: the training has gone back behind them, and will write them anew. `good`
    remembers which files were verified. Fails: OSError."""
    names = _names(folder)
    good[written] = _identity(os.path.join(folder, written))
    kept = 0
    for name in names[names.index(written) :] if written in names else []:
        path = os.path.join(folder, name)
        if kept < keep:
            try:
                _require_good(path, name, good)
            except Damaged:
                pass
            except (Unusable, Newer):
                continue  # it is left as it is
            else:
                kept += 1
                continue
        with contextlib.suppress(FileNotFoundError):  # another rank may have removed it
            os.unlink(path)
        good.pop(name, None)


def _require_good(path, name, good):
    """Fails: Unusable, Newer."""
    identity = _identity(path)
    if identity is None or good.get(name) != identity:
        verify(path)
        good[name] = identity


def _identity(path):
    """Tells a file from another one that has replaced it. None: there is no file."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def remove_torn(folder: str) -> None:
    """Removes what writers that were killed have left. Fails: OSError."""
    for name in filter(_PART.fullmatch, os.listdir(folder)):
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError):  # its writer lives, or is on another host and unknown
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(path)
            finally:
                os.close(fd)
