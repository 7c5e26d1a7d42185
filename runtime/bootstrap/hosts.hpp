// SPDX-License-Identifier: Apache-2.0
// How the hosts of a job, and before that the places of ranks on their hosts, become known to all.
// Pure parts and their use of an assembly; docs/design/standalone.md has the bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/bootstrap/assembly.hpp"
#include "runtime/bootstrap/meeting.hpp"

namespace horo::runtime::bootstrap {

/// What the first rank of a host says of it.
struct HostCard {
  Host host;                ///< `address`: that from which it reached the store.
  std::string server_host;  ///< The address at which it reached the store.
};

/// All hosts by the lowest of their ranks, which are a host's order; with the epoch that rank 0
/// gives.
struct HostTable {
  std::uint64_t epoch = 1;
  std::vector<Host> hosts;
};

std::string encode(const HostCard& card);
std::string encode(const HostTable& table);
Result<HostCard> decode_card(std::string_view bytes);
/// Also checks that every rank of a job of `size` is on exactly one host. Fails: protocol.
Result<HostTable> decode_table(std::string_view bytes, int size);

/// The table of `cards`, one of them of rank 0's host: where that reached the store by loopback,
/// the other hosts have found its address.
HostTable make_table(std::vector<HostCard> cards, std::uint64_t epoch);

/// What a rank that does not know its place on its host says, and what it is told.
struct PlaceCard {
  std::int32_t rank = 0;
  std::string host_key;  ///< The same on all ranks of a host.
};

struct LocalPlaceWord {
  std::int32_t local_rank = 0;
  std::int32_t local_size = 1;
};

std::string encode(const PlaceCard& card);
std::string encode(const LocalPlaceWord& word);
Result<PlaceCard> decode_place_card(std::string_view bytes);
Result<LocalPlaceWord> decode_place(std::string_view bytes);

/// Places by rank, from the host keys by rank. Pure.
std::vector<LocalPlaceWord> place_on_hosts(const std::vector<std::string>& host_keys);

/// Rank 0 of `size`, whose own key is `host_key`: answers all others. Blocks. Fails: timed_out,
/// naming who has not come; protocol.
Result<LocalPlaceWord> organise_places(Organiser& organiser, kv::Client& client, int size,
                                       const std::string& host_key, const Deadline& deadline);

/// The first rank of rank 0's host: answers those of all others. As above.
Result<HostTable> organise_hosts(Organiser& organiser, kv::Client& client, int size, HostCard own,
                                 std::uint64_t epoch, const Deadline& deadline);

}  // namespace horo::runtime::bootstrap
