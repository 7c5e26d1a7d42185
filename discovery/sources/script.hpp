// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "discovery/source.hpp"

namespace horo::discovery {

/// A command line, which the shell runs, or the path of a program, which may have blanks. It prints
/// hosts in the form of a host file: `name:4` or `name`, one per line.
class ScriptSource final : public HostSource {
 public:
  explicit ScriptSource(std::string path, int default_slots = 1,
                        NoHosts no_hosts = NoHosts::refused);

  std::string_view name() const override { return name_; }

  /// Blocks: until the script has ended; it is killed at `limit`. Fails: not_found,
  /// permission_denied, timed_out, cancelled, unavailable (it failed), invalid_argument with the
  /// line's number.
  Result<Listing> list(WaitLimit limit) override;

 private:
  std::string path_;
  std::string name_;
  int default_slots_;
  NoHosts no_hosts_;
};

}  // namespace horo::discovery
