// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/dial_in/rank_zero_input.hpp"

#include <utility>

namespace horo::launcher {

void RankZeroInput::feed(DialledRank& zero, std::string_view bytes) {
  if (!zero.is_connected()) {
    kept_ = kept_.value_or("").append(bytes);
    return;
  }
  do {
    const auto part = bytes.substr(0, protocol::kMaxChunk);
    zero.send(protocol::FeedStdin{part});
    bytes.remove_prefix(part.size());
  } while (!bytes.empty());
}

void RankZeroInput::close(DialledRank& zero) {
  closed_ = true;
  zero.send(protocol::CloseStdin{});
}

void RankZeroInput::connected(DialledRank& zero) {
  if (kept_) feed(zero, *std::exchange(kept_, std::nullopt));
  if (closed_) zero.send(protocol::CloseStdin{});
}

}  // namespace horo::launcher
