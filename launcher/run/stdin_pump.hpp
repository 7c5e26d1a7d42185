// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/job/job_driver.hpp"
#include "launcher/output/inherited.hpp"

namespace horo::launcher {

/// Copies a descriptor to the standard input of rank 0. The next block is read only after rank 0
/// has taken the one before. Thread: the loop's.
class StdinPump {
 public:
  /// `loop` and `driver` outlive the pump. `fd` stays open, and its flags are not changed.
  StdinPump(Loop& loop, JobDriver& driver, int fd) : loop_(loop), driver_(driver), fd_(fd) {}

  void start();

 private:
  void wait();
  void read_block();

  Loop& loop_;
  JobDriver& driver_;
  const int fd_;
  InheritedWatch watch_;
};

}  // namespace horo::launcher
