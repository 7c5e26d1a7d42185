// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "discovery/source.hpp"

namespace horo::discovery {

/// A file with one host per line: `name`, `name:4` (MPICH) or `name slots=4` (Open MPI); names may
/// have ranges. `#` begins a comment; empty lines are ignored.
class HostfileSource final : public HostSource {
 public:
  explicit HostfileSource(std::string path, int default_slots = 1,
                          NoHosts no_hosts = NoHosts::refused);

  std::string_view name() const override { return name_; }

  /// Blocks: for the file. Fails: not_found, io, invalid_argument with the line's number.
  Result<Listing> list(WaitLimit limit) override;

 private:
  std::string path_;
  std::string name_;
  int default_slots_;
  NoHosts no_hosts_;
};

/// The same from a text; errors do not name a file. Fails: invalid_argument.
Result<HostSet> parse_hostfile(std::string_view text, int default_slots = 1,
                               NoHosts no_hosts = NoHosts::refused);

}  // namespace horo::discovery
