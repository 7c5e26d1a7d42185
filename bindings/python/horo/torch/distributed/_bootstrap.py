# SPDX-License-Identifier: Apache-2.0
"""Makes the ranks of a torch.distributed group ranks of a Horo job.

Under `horo run` they are that already. Otherwise torch's own store, which every launcher and every
init_method gives to a backend, carries the facts that ranks need: which of them share a host, and for
several hosts rank 0's address and a secret.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket

from torch.distributed import PrefixStore

from horo import _job, _life
from horo.errors import StartError

# The variables by which launchers tell a process its place. They are hidden while a group joins that
# has its numbers from torch: those of a program that spawns its own ranks describe another job.
_PLACES = (
    "HORO_RANK HORO_SIZE HORO_LOCAL_RANK HORO_LOCAL_SIZE HORO_CROSS_RANK HORO_CROSS_SIZE HORO_BOARD_FD "
    "HORO_BOARD_NONCE HORO_AGENT_PID HORO_JOB_ID HORO_RENDEZVOUS HORO_SECRET HORO_SECRET_FILE "
    "HORO_SECRET_FD HORO_CONTROLLER HORO_ELASTIC HORO_JOINS RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE "
    "GROUP_RANK OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE PMI_FD SLURM_PROCID "
    "SLURM_STEP_NUM_TASKS MASTER_ADDR MASTER_PORT TORCHELASTIC_RUN_ID"
).split()


def own_part(store, rank):
    """The part of the store for this default group. A program may make the default group again with the
    same store, as under torchrun, and what the earlier one has written is still there. All ranks make
    their n-th group together."""
    number = store.add(f"horo/made/{rank}", 1)
    return PrefixStore(f"horo/{number}", store)


def join(store, rank, size, timeout_s):
    """Joins, unless this process is a member of that job already, and returns the address of rank
    0's host, or None for a job on one host. Blocks until all ranks have joined. Fails: StartError,
    ValueError (this process is another rank already)."""
    if _job.is_initialized():
        _require_place(_job.rank(), _job.size(), rank, size)
    elif (os.environ.get("HORO_RANK"), os.environ.get("HORO_SIZE")) == (str(rank), str(size)):
        _life.init()
    else:
        _join_by_store(store, rank, size, timeout_s)
    return _address_of_rank_0(store, rank) if _job.local_size() < size else None


def _require_place(our_rank, our_size, rank, size):
    if (our_rank, our_size) != (rank, size):
        raise ValueError(
            f"horo.init() has made this process rank {our_rank} of {our_size}, and torch.distributed asks "
            f"for rank {rank} of {size}; both must be the same job"
        )


def _host_key():
    """The same in all processes that can share memory."""
    named = os.environ.get("HORO_HOST_KEY")
    if named:
        return named.encode()
    with open("/proc/sys/kernel/random/boot_id", "rb") as file:
        boot = file.read().strip()
    return b"%s/%d/%d" % (boot, os.stat("/proc/self/ns/net").st_ino, os.getuid())


def _collect(store, size):
    """Rank 0: the host of each rank, as numbers by the order of their first ranks."""
    seen: dict[bytes, int] = {}
    keys = [bytes(store.get(f"horo/host/{rank}")) for rank in range(size)]
    return [seen.setdefault(key, len(seen)) for key in keys]


def _join_by_store(store, rank, size, timeout_s):
    store.set(f"horo/host/{rank}", _host_key())
    if rank == 0:
        hosts = _collect(store, size)
        words = [secrets.token_hex(16), secrets.token_hex(32), _free_address(store)]
        store.set("horo/job", " ".join(words + [",".join(map(str, hosts))]))
    job, secret, address, listed = bytes(store.get("horo/job")).decode().split(" ")
    hosts = listed.split(",")
    mine = [other for other in range(size) if hosts[other] == hosts[rank]]
    place = {
        "HORO_RANK": rank,
        "HORO_SIZE": size,
        "HORO_LOCAL_RANK": mine.index(rank),
        "HORO_LOCAL_SIZE": len(mine),
        "HORO_JOB_ID": job,
        "HORO_START_TIMEOUT": f"{max(1, int(timeout_s))}s",
    }
    if len(mine) < size:
        place.update(HORO_RENDEZVOUS=address, HORO_SECRET=secret)
    with _environment(place):
        _life.init()


@contextlib.contextmanager
def _environment(place):
    """The variables of `place`, and none of _PLACES beside them."""
    kept = {name: os.environ.pop(name) for name in (*_PLACES, *place) if name in os.environ}
    os.environ.update({name: str(value) for name, value in place.items()})
    try:
        yield
    finally:
        for name in place:
            os.environ.pop(name, None)
        os.environ.update(kept)


def base_store(store):
    """The store below all prefixes."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    return store


def _address_of_rank_0(store, rank):
    """An address of this process's host that the other hosts reach; called by rank 0."""
    return _own_address(store) if rank == 0 else ""


def _own_address(store):
    """The address of the interface towards the store's host, or towards the rest of the world when
    the store is here or has no address."""
    host = getattr(base_store(store), "host", None) or os.environ.get("MASTER_ADDR") or "localhost"
    for target in (host, socket.gethostname(), "192.0.2.1"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((target, 9))  # sends nothing
                found = probe.getsockname()[0]
            except OSError:
                continue
        if not found.startswith("127."):
            return found
    raise StartError(
        f"no address of this host leads to the other hosts (tried those towards {host}); set MASTER_ADDR "
        "to an address of rank 0's host that they reach"
    )


def _free_address(store):
    """Rank 0's host and a free port; "-" when there is no such address."""
    try:
        host = _own_address(store)
    except StartError:
        return "-"
    with socket.socket() as probe:
        probe.bind((host, 0))
        return f"{host}:{probe.getsockname()[1]}"
