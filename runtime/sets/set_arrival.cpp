// SPDX-License-Identifier: Apache-2.0
#include "runtime/sets/set_arrival.hpp"

namespace horo::runtime {

namespace {

/// The set does not wait longer for a store that has gone.
constexpr Duration kToErase = std::chrono::seconds(2);

/// All ranks have connected: nobody reads the keys of the set's members any more. Failures do not
/// matter here: the store goes with rank 0, which may have left.
void erase_keys(ArrivalStore& store, const ConnectedRank& rank, const std::string& all_there) {
  const auto deadline = Deadline::in(SteadyClock::instance(), kToErase);
  if (!rank.keys.empty()) static_cast<void>(store.erase(rank.keys, deadline));
  const auto read = store.add(all_there + "/count", 1, deadline);
  if (!read || *read != std::int64_t{2} * rank.ranks) return;
  const std::vector<std::string> common = {all_there, all_there + "/count"};
  static_cast<void>(store.erase(common, deadline));
}

}  // namespace

Status await_all(ArrivalStore& store, const ConnectedRank& rank) {
  const auto deadline = Deadline::in(SteadyClock::instance(), rank.start_timeout);
  const auto all_there = fmt::format("{}/connected", rank.name);
  HORO_TRY(const auto there, store.add(all_there + "/count", 1, deadline));
  if (there == rank.ranks) {
    HORO_TRY_STATUS(store.set(all_there, "", deadline));
    erase_keys(store, rank, all_there);
    return {};
  }
  const auto word = store.get(all_there, deadline);
  if (word) erase_keys(store, rank, all_there);
  // The store goes with rank 0, which has read the word before. Other failures show in the next
  // operation.
  if (word || word.error().code != Errc::timed_out) return {};
  return fail(
      Errc::timed_out,
      "not all {} ranks connected in time; {} of them had connected when this rank had; raise "
      "HORO_START_TIMEOUT if the others are only slow",
      rank.ranks, there);
}

}  // namespace horo::runtime
