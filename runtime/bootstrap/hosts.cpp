// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/hosts.hpp"

#include <algorithm>
#include <unordered_map>

#include "base/board_header.hpp"
#include "runtime/bootstrap/interfaces.hpp"
#include "runtime/bootstrap/wire.hpp"

namespace horo::runtime::bootstrap {

namespace {

constexpr std::uint32_t kMostRank = 1U << 30U;

/// Ranks mostly follow each other: runs of a first rank and a length.
void put_ranks(Writer& out, const std::vector<Rank>& ranks) {
  std::vector<std::pair<int, int>> runs;
  for (const auto rank : ranks) {
    if (runs.empty() || runs.back().first + runs.back().second != rank.value())
      runs.emplace_back(rank.value(), 0);
    ++runs.back().second;
  }
  out.u32(static_cast<std::uint32_t>(runs.size()));
  for (const auto& [first, length] : runs)
    out.u32(static_cast<std::uint32_t>(first)).u32(static_cast<std::uint32_t>(length));
}

/// A host has at most kMaxLocalRanks, whatever the lengths claim.
bool get_ranks(Reader& in, std::vector<Rank>& ranks) {
  constexpr auto kMost = static_cast<std::size_t>(kMaxLocalRanks);
  const auto runs = in.count(8);
  for (std::uint32_t i = 0; i < runs; ++i) {
    const auto first = in.u32();
    const auto length = in.u32();
    if (first > kMostRank || length > kMost || ranks.size() + length > kMost) return false;
    for (std::uint32_t j = 0; j < length; ++j) ranks.emplace_back(static_cast<int>(first + j));
  }
  return in.ok() && !ranks.empty();
}

void put_host(Writer& out, const Host& host) {
  out.text(host.name).text(host.address).u32(static_cast<std::uint32_t>(host.addresses.size()));
  for (const auto& address : host.addresses) out.text(address);
  put_ranks(out, host.ranks);
}

bool get_host(Reader& in, Host& host) {
  host.name = in.text();
  host.address = in.text();
  host.addresses.resize(in.count(4));
  for (auto& address : host.addresses) address = in.text();
  return get_ranks(in, host.ranks);
}

Failure malformed() {
  return fail(Errc::protocol, "what the ranks say of their hosts makes no sense");
}

std::string list_missing(const std::vector<bool>& have) {
  std::string text;
  for (std::size_t rank = 0; rank < have.size(); ++rank) {
    if (have[rank]) continue;
    if (text.size() > 200) return text + ", ...";
    text += fmt::format("{}{}", text.empty() ? "" : ", ", rank);
  }
  return text;
}

/// Passes `result` on, with the ranks that are still missing when it is late.
template <typename T>
Failure late(Result<T> result, const std::vector<bool>& have) {
  if (result.error().code != Errc::timed_out) return Failure(std::move(result).error());
  return fail(
      Errc::timed_out,
      "rank {} did not come to rank 0's store in time; raise HORO_START_TIMEOUT if it is only "
      "slow",
      list_missing(have));
}

}  // namespace

std::string encode(const HostCard& card) {
  Writer out;
  put_host(out, card.host);
  out.text(card.server_host);
  return std::move(out).take();
}

Result<HostCard> decode_card(std::string_view bytes) {
  Reader in(bytes);
  HostCard card;
  const bool good = get_host(in, card.host);
  card.server_host = in.text();
  if (!good || !in.complete()) return malformed();
  return card;
}

std::string encode(const HostTable& table) {
  Writer out;
  out.u64(table.epoch).u32(static_cast<std::uint32_t>(table.hosts.size()));
  for (const auto& host : table.hosts) put_host(out, host);
  return std::move(out).take();
}

Result<HostTable> decode_table(std::string_view bytes, int size) {
  Reader in(bytes);
  HostTable table{.epoch = in.u64(), .hosts = {}};
  table.hosts.resize(in.count(16));
  std::vector<bool> have(static_cast<std::size_t>(size));
  std::size_t ranks = 0;
  for (auto& host : table.hosts) {
    if (!get_host(in, host)) return malformed();
    for (const auto rank : host.ranks) {
      if (rank.value() >= size || have[rank.index()]) return malformed();
      have[rank.index()] = true;
      ++ranks;
    }
  }
  if (!in.complete() || ranks != have.size()) return malformed();
  return table;
}

HostTable make_table(std::vector<HostCard> cards, std::uint64_t epoch) {
  std::sort(cards.begin(), cards.end(), [](const HostCard& a, const HostCard& b) {
    const auto lowest = [](const HostCard& card) {
      return *std::min_element(card.host.ranks.begin(), card.host.ranks.end());
    };
    return lowest(a) < lowest(b);
  });
  auto& first = cards.front().host;
  const auto found = std::find_if(cards.begin(), cards.end(), [](const HostCard& card) {
    return !card.server_host.empty() && !is_loopback(card.server_host);
  });
  if (is_loopback(first.address) && found != cards.end()) first.address = found->server_host;
  HostTable table{.epoch = epoch, .hosts = {}};
  for (auto& card : cards) table.hosts.push_back(std::move(card.host));
  return table;
}

std::string encode(const PlaceCard& card) {
  Writer out;
  out.u32(static_cast<std::uint32_t>(card.rank)).text(card.host_key);
  return std::move(out).take();
}

Result<PlaceCard> decode_place_card(std::string_view bytes) {
  Reader in(bytes);
  PlaceCard card{.rank = static_cast<std::int32_t>(in.u32()), .host_key = in.text()};
  if (!in.complete() || card.rank < 0) return malformed();
  return card;
}

std::string encode(const LocalPlaceWord& word) {
  Writer out;
  out.u32(static_cast<std::uint32_t>(word.local_rank))
      .u32(static_cast<std::uint32_t>(word.local_size));
  return std::move(out).take();
}

Result<LocalPlaceWord> decode_place(std::string_view bytes) {
  Reader in(bytes);
  LocalPlaceWord word{.local_rank = static_cast<std::int32_t>(in.u32()),
                      .local_size = static_cast<std::int32_t>(in.u32())};
  if (!in.complete() || word.local_rank < 0 || word.local_rank >= word.local_size)
    return malformed();
  return word;
}

std::vector<LocalPlaceWord> place_on_hosts(const std::vector<std::string>& host_keys) {
  std::unordered_map<std::string_view, int> counts;
  std::vector<LocalPlaceWord> places;
  for (const auto& key : host_keys)
    places.push_back({.local_rank = counts[key]++, .local_size = 1});
  for (std::size_t rank = 0; rank < places.size(); ++rank)
    places[rank].local_size = counts[host_keys[rank]];
  return places;
}

Result<LocalPlaceWord> organise_places(Organiser& organiser, kv::Client& client, int size,
                                       const std::string& host_key, const Deadline& deadline) {
  std::vector<std::string> keys(static_cast<std::size_t>(size));
  std::vector<Organiser::Card> latest(keys.size());
  std::vector<Organiser::Card> all;
  std::vector<bool> have(keys.size());
  keys[0] = host_key;
  have[0] = true;
  for (auto missing = keys.size() - 1; missing > 0;) {
    auto card = organiser.next(client, deadline);
    if (!card) {
      auto failure = late(std::move(card), have);
      const auto error = std::move(failure).take();
      organiser.refuse(client, all, error);
      return Failure(error);
    }
    HORO_TRY(auto place, decode_place_card(card->text));
    const auto rank = static_cast<std::size_t>(place.rank);
    if (rank == 0 || rank >= keys.size()) {
      organiser.refuse(client, {*card},
                       {Errc::mismatch,
                        fmt::format("rank {} does not belong to a job of {} ranks", rank, size)});
      continue;
    }
    if (!have[rank]) --missing;
    have[rank] = true;
    keys[rank] = std::move(place.host_key);
    latest[rank] = *card;  // Who has given up and comes again has a newer one.
    all.push_back(std::move(*card));
  }
  const auto places = place_on_hosts(keys);
  for (std::size_t rank = 1; rank < keys.size(); ++rank)
    HORO_TRY_STATUS(organiser.answer(client, latest[rank], encode(places[rank]), deadline));
  return places[0];
}

Result<HostTable> organise_hosts(Organiser& organiser, kv::Client& client, int size, HostCard own,
                                 std::uint64_t epoch, const Deadline& deadline) {
  std::unordered_map<int, std::pair<HostCard, Organiser::Card>> hosts;  // By first rank.
  std::vector<Organiser::Card> all;
  const auto covered = [&] {
    std::vector<bool> have(static_cast<std::size_t>(size));
    const auto add = [&have](const Host& host) {
      for (const auto rank : host.ranks) {
        if (rank.index() < have.size()) have[rank.index()] = true;
      }
    };
    add(own.host);
    for (const auto& [first, entry] : hosts) add(entry.first.host);
    return have;
  };
  auto present = own.host.ranks.size();
  while (present < static_cast<std::size_t>(size)) {
    auto card = organiser.next(client, deadline);
    if (!card) {
      auto failure = late(std::move(card), covered());
      const auto error = std::move(failure).take();
      organiser.refuse(client, all, error);
      return Failure(error);
    }
    HORO_TRY(auto host, decode_card(card->text));
    const auto first = host.host.ranks.front().value();
    const auto before = hosts.find(first);
    if (before != hosts.end()) present -= before->second.first.host.ranks.size();
    present += host.host.ranks.size();
    all.push_back(*card);
    hosts.insert_or_assign(first, std::pair(std::move(host), std::move(*card)));
  }
  std::vector<HostCard> cards{std::move(own)};
  for (const auto& [first, entry] : hosts) cards.push_back(entry.first);
  const auto table = make_table(std::move(cards), epoch);
  const auto bytes = encode(table);
  if (auto sound = decode_table(bytes, size); !sound) {
    const Error error{Errc::mismatch,
                      "the hosts of the job claim ranks twice; are two jobs at one store?"};
    organiser.refuse(client, all, error);
    return Failure(error);
  }
  for (const auto& [first, entry] : hosts)
    HORO_TRY_STATUS(organiser.answer(client, entry.second, bytes, deadline));
  return table;
}

}  // namespace horo::runtime::bootstrap
