// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/time_slice.hpp"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace horo::runtime {

namespace {

constexpr __u64 kShortTurn = 100'000;  // ns; the shortest that Linux allows.

thread_local bool taken = false;
thread_local __u64 own_turn = 0;  // 0: nothing to restore.

void set_turn(sched_attr attributes, __u64 ns) {
  attributes.sched_runtime = ns;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace

void take_short_turns() {
  if (taken) return;
  taken = true;
  sched_attr attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.sched_policy != SCHED_NORMAL || attributes.sched_runtime <= kShortTurn) return;
  own_turn = attributes.sched_runtime;
  set_turn(attributes, kShortTurn);
}

void give_turns_back() {
  if (!taken) return;
  taken = false;
  sched_attr attributes{};
  if (own_turn == 0 || syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0)
    return;
  // The user may have changed them meanwhile.
  if (attributes.sched_runtime == kShortTurn) set_turn(attributes, own_turn);
  own_turn = 0;
}

}  // namespace horo::runtime
