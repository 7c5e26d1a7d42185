# SPDX-License-Identifier: Apache-2.0
"""Horo's exceptions. All are HoroError, a RuntimeError. A wrong argument is a ValueError as well.

After PeerLostError and ShutDownError no operation completes in this job any more. After
MismatchError and DuplicateNameError the job continues.
"""


class HoroError(RuntimeError):
    """A failure that the runtime reports. Its attributes say in fields what the message says in
    words:

    - `status`: its name in horo.h, such as "peer_lost".
    - `subject`: for a MismatchError about a tensor, the property about which the ranks disagree:
      "operation", "dtype", "shape", "root_rank", "reduce_op", "prescale", "postscale", "group", or
      "joined" when a rank has joined.
    - `tensor`: the name of the tensor, for a MismatchError and a DuplicateNameError.
    - `ranks`: the lost rank of a PeerLostError, the rank that has left of a ShutDownError.
    - `host`: the host of the lost rank, where it is known.

    Fields that do not apply are empty.
    """

    status = "error"
    subject: str = ""
    tensor: str = ""
    host: str = ""
    ranks: tuple[int, ...] = ()


class NotInitializedError(HoroError, ValueError):
    """horo.init() has not been called in this process."""

    status = "not_initialized"


class MismatchError(HoroError):
    """The ranks disagree about a tensor's operation, dtype, shape, scale, root or group; `subject`
    says about which."""

    status = "mismatch"


class DuplicateNameError(HoroError, ValueError):
    """A tensor of this name is in flight already."""

    status = "duplicate"


class PeerLostError(HoroError):
    """A rank has ended. Every operation that needs it ends with this error."""

    status = "peer_lost"


class ShutDownError(HoroError):
    """This rank or a peer has left the job."""

    status = "shut_down"


class RemovedError(HoroError, SystemExit):
    """This process is no longer part of its elastic job. Unless a program catches it, the process
    exits with code 0."""

    status = "removed"


class StartError(HoroError):
    """The job could not be joined."""

    status = "unavailable"


class TimeOutError(HoroError, TimeoutError):
    """A time limit has passed; the message names it."""

    status = "timed_out"


class ForkedError(HoroError):
    """The call came from a forked child of the process that called horo.init()."""

    status = "forked"


class ResourceError(HoroError):
    """Memory, arena or table space is used up; the message names the knob that sets its size."""

    status = "resource_exhausted"


class UnsupportedError(HoroError, ValueError):
    """The runtime does not support this for such a tensor, or on such a machine."""

    status = "unsupported"


class RankError(HoroError):
    """A function of horo.run() raised an exception. `rank`, `host` and `traceback` say where.
    __cause__ is the exception itself, if it could be pickled."""

    status = "rank_failed"
    rank: int
    traceback: str


class LibraryError(HoroError, ImportError):
    """libhoro was not found or does not fit this package."""

    status = "version_mismatch"


__all__ = [
    "DuplicateNameError",
    "ForkedError",
    "HoroError",
    "LibraryError",
    "MismatchError",
    "NotInitializedError",
    "PeerLostError",
    "RankError",
    "RemovedError",
    "ResourceError",
    "ShutDownError",
    "StartError",
    "TimeOutError",
    "UnsupportedError",
]
