// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/job/job.hpp"
#include "launcher/output/inherited.hpp"

namespace horo::apps {

/// Carries a descriptor's bytes to rank 0, one block at a time as rank 0 takes them.
/// Thread: the loop's.
class StdinPump {
 public:
  /// Both outlive the pump; `fd` stays open and keeps its flags.
  StdinPump(Loop& loop, launcher::Job& job, int fd) : loop_(loop), job_(job), fd_(fd) {}

  void start();

 private:
  void wait();
  void read_block();

  Loop& loop_;
  launcher::Job& job_;
  const int fd_;
  launcher::InheritedWatch watch_;
};

}  // namespace horo::apps
