// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "discovery/source.hpp"

namespace horo::discovery {

/// The list on the command line: `-H a:2,node[01-16]:4`. Blanks around entries are ignored.
class StaticSource final : public HostSource {
 public:
  explicit StaticSource(std::string text, int default_slots = 1)
      : text_(std::move(text)), default_slots_(default_slots) {}

  std::string_view name() const override { return "-H"; }

  /// Blocks: no. Fails: invalid_argument, with the column.
  Result<Listing> list(WaitLimit limit) override;

 private:
  std::string text_;
  int default_slots_;
};

}  // namespace horo::discovery
