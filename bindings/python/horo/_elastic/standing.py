# SPDX-License-Identifier: Apache-2.0
"""How far each rank's state is, and the rank from which the others take it.

The optimizer's step changes parameters only after all reductions of the step have ended well. When
a rank is lost in a step, each of the others therefore stands before this step or behind it. Those
before it take the state of one behind it. If all stand before it, they repeat it together.
"""

from __future__ import annotations

import dataclasses
import struct

DIGEST = 16
_ROW = struct.Struct(f"<??q{DIGEST}s{DIGEST}s{DIGEST}s")
NO_DIGEST = bytes(DIGEST)


@dataclasses.dataclass(frozen=True)
class Standing:
    """One rank's state. `whole`: the rank has made it together with others, or has received all of
    it. `torn`: an exception has ended a step that was changing parameters. `steps`: those that its
    optimizers have finished, or its commits. `digest`: of its parameters, NO_DIGEST if unknown.
    `host`: a digest of its host's name. `layout`: of the names and shapes of what it can give,
    NO_DIGEST if it gives nothing."""

    whole: bool
    torn: bool
    steps: int
    digest: bytes
    host: bytes = NO_DIGEST
    layout: bytes = NO_DIGEST

    def pack(self) -> bytes:
        return _ROW.pack(*dataclasses.astuple(self))

    @classmethod
    def unpack(cls, row: bytes) -> Standing:
        return cls(*_ROW.unpack(row))


@dataclasses.dataclass(frozen=True)
class Route:
    """The rank `giver` gives what the optimizers know to `takers`."""

    giver: int
    takers: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Choice:
    """`source`: the rank whose state `receivers` take. `diverged`: the receivers that are as far as
    the source and still differ from it. `torn`: even the source's last step was interrupted.
    `routes`: by which ranks the large part of the state moves; each receiver is in one."""

    source: int
    receivers: frozenset[int]
    diverged: tuple[int, ...] = ()
    torn: bool = False
    routes: tuple[Route, ...] = ()


def choose_source(standings: list[Standing], survivors: int) -> Choice:
    """`standings`: of all ranks. `survivors`: the number of ranks that were there before; they are
    the lowest. The lowest survivor of those that are furthest is the source. A rank that has just
    come is a source only if no survivor has a whole state."""
    ranks = range(len(standings))
    kept = [rank for rank in ranks if standings[rank].whole]
    kept = [rank for rank in kept if rank < survivors] or kept
    sound = [rank for rank in kept if not standings[rank].torn]
    if not kept:  # the state is nobody's work yet: all start as the first rank
        intact = [rank for rank in ranks if not standings[rank].torn]
        if not intact:
            raise ValueError(
                "the ranks that had the state were lost while they gave it to new ranks, which have only "
                "a part of it; start the job again, and save its state with save_to()"
            )
        return _choice(standings, intact[0], frozenset(ranks) - {intact[0]})
    furthest = max(standings[rank].steps for rank in sound or kept)
    equal = [rank for rank in sound or kept if standings[rank].steps == furthest]
    source = equal[0]
    digest = standings[source].digest
    same = {rank for rank in equal if _same(standings[rank].digest, digest)} if sound else set()
    known = digest != NO_DIGEST
    diverged = tuple(rank for rank in equal if known and sound and rank not in same)
    receivers = frozenset(ranks) - same - {source}
    return _choice(standings, source, receivers, diverged, not sound)


def _choice(standings, source, receivers, diverged=(), torn=False):
    routes = routes_to(receivers, source, standings)
    return Choice(source, receivers, diverged, torn, routes)


def routes_to(
    receivers: frozenset[int], source: int, standings: list[Standing]
) -> tuple[Route, ...]:
    """Receivers take the state from a rank of their own host that has it, through shared memory.
    Those of hosts without such a rank take it from the source."""
    givers = {standings[source].host: source}
    for rank, standing in enumerate(standings):
        if rank not in receivers and standing.layout == standings[source].layout != NO_DIGEST:
            givers.setdefault(standing.host, rank)
    takers: dict[int, list[int]] = {}
    for rank in sorted(receivers):
        takers.setdefault(givers.get(standings[rank].host, source), []).append(rank)
    return tuple(Route(giver, tuple(ranks)) for giver, ranks in sorted(takers.items()))


def _same(one: bytes, other: bytes) -> bool:
    """Whether two ranks' parameters are equal. Unknown ones may differ."""
    return one == other and one != NO_DIGEST
