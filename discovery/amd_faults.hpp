// SPDX-License-Identifier: Apache-2.0
// Notices AMD's GPUs that fail, by the kernel's log and by the files of their devices. amdgpu names
// the PCI address in its messages: "amdgpu 0000:c1:00.0: amdgpu: GPU reset begin!".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "discovery/amd_gpus.hpp"

namespace horo::discovery {

/// The meaning of a message of amdgpu; empty: it tells of no failure. Pure.
std::string_view meaning_of(std::string_view message);

/// Thread: owner.
class AmdFaults {
 public:
  /// From now on, for the GPUs that are there, below `root`. Blocks: as amd_gpus().
  explicit AmdFaults(const std::string& root = "");

  /// Whether the kernel's log can be read. Fails: permission_denied and others (says what to do).
  const Status& log() const { return opened_; }

  /// The failures since the last call, each once:
  /// "GPU 1 (GPU-0000000000000008): the kernel's log says 'GPU reset begin!' (it is reset)".
  /// Blocks: no.
  std::vector<std::string> look();

 private:
  struct Watched {
    AmdGpu gpu;
    std::string folder;  ///< Holds the device's files; empty: they are not watched.
  };

  void read_log(std::vector<std::string>& faults);
  void take_line(std::string_view line, std::vector<std::string>& faults) const;
  void look_for_files(std::vector<std::string>& faults);

  std::vector<Watched> watched_;
  UniqueFd log_;
  Status opened_;
  std::string rest_;  ///< The beginning of a line that has not ended.
};

}  // namespace horo::discovery
