// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/driver/membership_store.hpp"

#include <utility>

#include "base/elastic/generation_keys.hpp"
#include "base/log.hpp"

namespace horo::launcher {

using elastic::MembershipAnswer;
using elastic::MembershipKind;

namespace {

/// Keys of this many generations stay, for ranks that are slow to notice the end of theirs.
constexpr std::uint64_t kKeptGenerations = 16;

}  // namespace

MembershipAnswer answer_of(const FormedGeneration& generation, const GenerationMember& member) {
  const auto& place = member.place;
  return {.kind = MembershipKind::member,
          .generation = generation.generation,
          .rank = place.rank.value(),
          .size = static_cast<std::int32_t>(generation.members.size()),
          .local_rank = place.local_rank.value(),
          .local_size = place.local_size,
          .cross_rank = place.cross_rank,
          .cross_size = place.cross_size,
          .host_index = static_cast<std::int32_t>(place.host),
          .survivors = generation.survivors,
          .notice = generation.notice,
          .reason = {}};
}

Result<std::unique_ptr<MembershipStore>> MembershipStore::open(Loop& loop, const kv::Secret& secret,
                                                               Handlers handlers) {
  std::unique_ptr<MembershipStore> store(new MembershipStore(std::move(handlers)));
  HORO_TRY(store->server_, kv::Server::start(loop, secret, {}));
  // The server belongs to the store, so the handler does not outlive it.
  store->server_->intercept(std::string(elastic::kCallPrefix),
                            [store = store.get()](std::string_view key, std::string_view value) {
                              store->take_call(key, value);
                            });
  store->server_->intercept(std::string(elastic::kResumedPrefix),
                            [store = store.get()](std::string_view key, std::string_view value) {
                              store->take_resumed(key, value);
                            });
  return store;
}

void MembershipStore::take_call(std::string_view key, std::string_view value) const {
  const auto call = elastic::decode_call(value);
  if (!call || key != elastic::call_key(call->worker)) {
    log::warn("elastic", "a rank has set '{}' to something that is no call for membership", key);
    return;
  }
  handlers_.on_call(*call);
}

void MembershipStore::take_resumed(std::string_view key, std::string_view value) const {
  const auto resumed = elastic::decode_resumed(value);
  if (!resumed || key != elastic::resumed_key(resumed->worker)) {
    log::warn("elastic", "a rank has set '{}' to something that does not tell how training goes on",
              key);
    return;
  }
  handlers_.on_resumed(*resumed);
}

Result<std::string> MembershipStore::address_at(const std::string& address) {
  if (address.empty()) return server_->address();
  HORO_TRY(const auto place, server_->listen_also({address, 0}));
  return kv::to_string(place);
}

void MembershipStore::put(int worker, std::uint32_t attempt, const MembershipAnswer& answer) {
  forget(worker);
  auto key = elastic::answer_key(static_cast<std::uint32_t>(worker), attempt);
  if (auto stored = server_->set(key, encode(answer)); !stored)
    log::error("elastic", "worker {} gets no answer: {}", worker, stored.error().message);
  answers_[worker] = std::move(key);
}

void MembershipStore::answer(const FormedGeneration& generation) {
  for (const auto& member : generation.left) {
    if (member.failed) forget(member.worker);
  }
  for (const auto& member : generation.members)
    put(member.worker, member.attempt, answer_of(generation, member));
}

void MembershipStore::turn_away(const TurnedAway& worker, MembershipKind kind) {
  MembershipAnswer answer;
  answer.kind = kind;
  answer.reason = worker.reason;
  put(worker.worker, worker.attempt, answer);
}

void MembershipStore::end_meeting(std::uint64_t generation) {
  if (auto stored = server_->set(elastic::over_key(generation), {}); !stored)
    log::error("elastic", "{}", stored.error().message);
  if (generation > kKeptGenerations)
    server_->erase(elastic::over_key(generation - kKeptGenerations));
  // Ranks of this generation may still erase what they have set. Those that died cannot.
  server_->erase_if([generation](std::string_view key) {
    const auto its = elastic::generation_of_key(key);
    return its && *its < generation;
  });
}

void MembershipStore::forget(int worker) {
  const auto found = answers_.find(worker);
  if (found == answers_.end()) return;
  server_->erase(found->second);
  answers_.erase(found);
}

}  // namespace horo::launcher
