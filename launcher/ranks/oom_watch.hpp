// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace horo::launcher {

/// Tells whether the kernel's out-of-memory killer has killed processes in this process's control
/// group, which its ranks share. Where no counter can be read, the answer is no. Thread: owner.
class OomWatch {
 public:
  OomWatch();

  /// True once for each process that was killed for memory since construction.
  bool take_kill();

 private:
  std::uint64_t read_counter() const;

  std::string path_;  ///< memory.events (cgroup v2) or memory.oom_control (v1); empty: none.
  std::uint64_t seen_ = 0;
};

}  // namespace horo::launcher
