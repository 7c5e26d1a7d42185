// SPDX-License-Identifier: Apache-2.0
#include "runtime/time_slice.hpp"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace horo::runtime {

namespace {

constexpr __u64 kShortTurn = 100'000;  // ns; the least that Linux gives.

}  // namespace

void ask_for_short_turns() {
  thread_local bool asked = false;
  if (asked) return;
  asked = true;
  sched_attr attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.sched_policy != SCHED_NORMAL || attributes.sched_runtime <= kShortTurn) return;
  attributes.sched_runtime = kShortTurn;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace horo::runtime
