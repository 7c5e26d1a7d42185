# SPDX-License-Identifier: Apache-2.0
"""monitored_barrier(): a barrier whose failure names the ranks that did not come, and breaks nothing."""

from __future__ import annotations

from horo.torch.distributed import _calls


def monitored_barrier(group, timeout_s, wait_all_ranks):
    """Fails: RuntimeError in gloo's words, on rank 0 with the missing ranks."""
    operation = _calls.barrier(group, "n")
    missing = operation.wait_or_name(timeout_s)
    if missing is None:
        return
    if timeout_s == 0:
        missing = []  # nobody had time to come
    milliseconds = int(timeout_s * 1000)
    if group.rank() == 0 and not missing:
        raise RuntimeError(
            f"horo: Rank 0 timed out in monitoredBarrier after {milliseconds} ms, before all others had passed"
        )
    if group.rank() == 0:
        named = missing if wait_all_ranks else missing[:1]
        words = f"Rank{'s' if wait_all_ranks else ''} {', '.join(map(str, named))}"
        raise RuntimeError(f"horo: {words} failed to pass monitoredBarrier in {milliseconds} ms")
    raise RuntimeError(
        f"horo: Rank {group.rank()} successfully reached monitoredBarrier, but received errors while waiting "
        f"for send/recv from rank 0. Ranks {', '.join(map(str, missing))} did not come in {milliseconds} ms"
    )
