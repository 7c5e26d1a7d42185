// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "launcher/protocol/protocol.hpp"

namespace horo::apps {

/// Writes one agent's snapshot, which arrives in pieces, as a file for each of its ranks.
/// Thread: owner. `folder` and `from` outlive it.
class SnapshotFiles {
 public:
  SnapshotFiles(const std::string& folder, const launcher::protocol::Roster::Agent& from)
      : folder_(folder), from_(from) {}

  /// Takes the next bytes of the snapshot. Blocks: for the disk. Fails: protocol (a rank that is
  /// not the agent's), io.
  Status take(std::string_view bytes);

  /// How many files are complete.
  int ranks() const { return ranks_; }

 private:
  Status open_file();

  const std::string& folder_;
  const launcher::protocol::Roster::Agent& from_;
  std::string head_;        ///< The rank's number and the file's size, as far as they have arrived.
  std::uint64_t left_ = 0;  ///< Bytes that the open file still lacks.
  std::string path_;
  std::ofstream file_;
  int ranks_ = 0;
};

}  // namespace horo::apps
