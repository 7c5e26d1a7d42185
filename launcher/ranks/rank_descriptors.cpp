// SPDX-License-Identifier: Apache-2.0
#include "launcher/ranks/rank_descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "base/unique_fd.hpp"

namespace horo::launcher {

namespace {

UniqueFd open_nothing() {
  return UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC));
}

}  // namespace

void hold_rank_descriptors() {
  const auto nothing = open_nothing();
  if (!nothing) return;  // Without /dev/null, starting a rank fails with an error.
  for (const int number : {kBoardDescriptor, kTimelineDescriptor}) {
    // An inherited descriptor keeps the number too. Beyond the limit nothing else can get it.
    if (fcntl(number, F_GETFD) < 0) dup3(nothing.value(), number, O_CLOEXEC);
  }
}

void clear_rank_descriptors() {
  const auto nothing = open_nothing();
  // In one step, so that no thread gets the number in between.
  for (const int number : {kBoardDescriptor, kTimelineDescriptor})
    if (!nothing || dup3(nothing.value(), number, O_CLOEXEC) < 0) close(number);
}

}  // namespace horo::launcher
