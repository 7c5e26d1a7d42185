// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "discovery/source.hpp"

namespace horo::discovery {

/// The list on the command line: `-H a:2,b:4`. Blanks around entries do not count.
class StaticSource final : public HostSource {
 public:
  explicit StaticSource(std::string text) : text_(std::move(text)) {}

  std::string_view name() const override { return "-H"; }

  /// Blocks: no. Fails: invalid_argument.
  Result<HostSet> list(Deadline deadline) override;

 private:
  std::string text_;
};

}  // namespace horo::discovery
