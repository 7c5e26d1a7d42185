// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launcher/starters/dial_in/dialled_rank.hpp"

namespace horo::launcher {

/// Sends standard input to rank 0, and keeps what arrives before its agent has dialled in.
/// Thread: the loop's.
class RankZeroInput {
 public:
  void feed(DialledRank& zero, std::string_view bytes);
  void close(DialledRank& zero);
  /// Sends what has been kept.
  void connected(DialledRank& zero);

 private:
  std::optional<std::string> kept_;
  bool closed_ = false;
};

}  // namespace horo::launcher
