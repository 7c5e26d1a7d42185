# SPDX-License-Identifier: Apache-2.0
"""What Horo raises. All are HoroError, a RuntimeError; a wrong argument is a ValueError as well.

After PeerLostError and ShutDownError nothing more completes in this job. After MismatchError and
DuplicateNameError the job goes on.
"""


class HoroError(RuntimeError):
    """A failure that the runtime reports; `status` is its name in horo.h, such as "peer_lost"."""

    status = "error"


class NotInitializedError(HoroError, ValueError):
    """horo.init() has not been called in this process."""

    status = "not_initialized"


class MismatchError(HoroError):
    """The ranks disagree about a tensor's kind, dtype, shape, operation, scale or root."""

    status = "mismatch"


class DuplicateNameError(HoroError, ValueError):
    """A tensor of this name is in flight already."""

    status = "duplicate"


class PeerLostError(HoroError):
    """A rank ended; every operation that needs it ends with this."""

    status = "peer_lost"


class ShutDownError(HoroError):
    """This rank or a peer has left the job."""

    status = "shut_down"


class StartError(HoroError):
    """The job could not be joined."""

    status = "unavailable"


class TimeOutError(HoroError, TimeoutError):
    """A limit in time has passed; the message says which."""

    status = "timed_out"


class ForkedError(HoroError):
    """The call came from a forked child of the process that called horo.init()."""

    status = "forked"


class ResourceError(HoroError):
    """Memory, arena or table space is used up; the message names the knob."""

    status = "resource_exhausted"


class UnsupportedError(HoroError, ValueError):
    """The runtime does not do this with such a tensor, or on such a machine."""

    status = "unsupported"


class RankError(HoroError):
    """A function of horo.run() raised. `rank`, `host` and `traceback` say where; __cause__ is the
    exception itself, if it could be pickled."""

    status = "rank_failed"
    rank: int
    host: str
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
    "ResourceError",
    "ShutDownError",
    "StartError",
    "TimeOutError",
    "UnsupportedError",
]
