// SPDX-License-Identifier: Apache-2.0
// Many give a card to one, who answers each when it has all. Through the store, so that the one
// needs no address; a card has a number of its own, so that attempts which were given up disturb
// nobody.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "runtime/bootstrap/meeting.hpp"

namespace horo::runtime::bootstrap {

/// A connection to a store that may not be there yet. Blocks. Fails: as kv::Client::connect.
Result<kv::Client> connect_in_time(const Store& store, const Deadline& deadline);

/// Gives `card` and waits for its answer. Blocks. Fails: timed_out; whatever the organiser refuses
/// with.
Result<std::string> attend(kv::Client& client, std::string_view topic, std::string_view card,
                           const Deadline& deadline);

/// The one. Thread: owner.
class Organiser {
 public:
  explicit Organiser(std::string topic) : topic_(std::move(topic)) {}

  struct Card {
    std::int64_t number = 0;
    std::string text;
  };

  /// The next card. Blocks. Fails: timed_out.
  Result<Card> next(kv::Client& client, const Deadline& deadline);

  Status answer(kv::Client& client, const Card& card, std::string_view text,
                const Deadline& deadline);

  /// Tells all of `cards` why nothing becomes of it. Blocks: a second at most, until they have read
  /// it.
  void refuse(kv::Client& client, const std::vector<Card>& cards, const Error& error);

 private:
  const std::string topic_;
  std::int64_t taken_ = 0;
};

}  // namespace horo::runtime::bootstrap
