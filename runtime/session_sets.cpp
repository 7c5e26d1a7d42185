// SPDX-License-Identifier: Apache-2.0
// Process sets: adding and removing them, agreed by all ranks of the job.
#include <algorithm>
#include <cstring>

#include <fmt/ranges.h>

#include "runtime/session.hpp"

namespace horo::runtime {

namespace {

constexpr std::int32_t kAdd = 1;
constexpr std::int32_t kRemove = 2;
constexpr std::int32_t kAdded = 3;

std::string in_words(std::span<const std::int32_t> words) {
  if (words.empty()) return "nothing";
  const auto rest = words.subspan(1);
  if (words.front() == kAdded) return rest.front() != 0 ? "for nothing more" : "to give up";
  return words.front() == kAdd ? fmt::format("to add ranks {}", fmt::join(rest, ", "))
                               : fmt::format("to remove set {}", fmt::join(rest, ", "));
}

}  // namespace

Result<ProcessSet*> Session::own_set(SetId id) {
  auto* const set = sets_.find(id);
  if (set == nullptr) return fail(Errc::not_found, "there is no process set {}", id);
  if (!set->member()) {
    return fail(Errc::invalid_argument, "rank {} is not in process set {} (ranks {})",
                meeting_.identity.rank, id, fmt::join(set->ranks, ", "));
  }
  return set;
}

Status Session::agree(std::string_view what, std::vector<std::int32_t> words) {
  Signature signature;
  signature.kind = Kind::allgather;
  signature.dtype = DType::i32;
  const auto count = static_cast<std::int64_t>(words.size());
  HORO_TRY_STATUS(set_shape(signature, {&count, 1}));
  HORO_TRY(const auto id, declare(kWorld, what, signature));
  HORO_TRY(Operation* const operation, submit(kWorld, id, {.in = words.data()}));
  wait(*operation, Deadline::never());
  auto status = [&]() -> Status {
    if (operation->status() != Errc::ok)
      return fail(operation->status(), "{}", operation->message());
    const auto* at = static_cast<const std::int32_t*>(operation->result);
    const std::span first{at, static_cast<std::size_t>(operation->rows[0])};
    for (std::size_t r = 0; r < operation->rows.size(); ++r) {
      const std::span theirs{at, static_cast<std::size_t>(operation->rows[r])};
      at += theirs.size();
      if (std::equal(first.begin(), first.end(), theirs.begin(), theirs.end())) continue;
      return fail(Errc::mismatch,
                  "process sets are changed by all ranks alike and in one order: rank 0 asked {}, "
                  "rank {} {}",
                  in_words(first), r, in_words(theirs));
    }
    return {};
  }();
  operations_.put(*operation);
  return status;
}

Result<SetId> Session::add_set(std::vector<Rank> ranks) {
  const std::lock_guard lock(set_changes_);
  std::sort(ranks.begin(), ranks.end());
  std::vector<std::int32_t> words{kAdd};
  for (const auto rank : ranks) words.push_back(rank.value());
  HORO_TRY_STATUS(agree("horo.process_sets", std::move(words)));
  // From here on every rank decides alike.
  if (ranks.empty()) return fail(Errc::invalid_argument, "a process set without ranks");
  if (ranks.front().value() < 0 || ranks.back().value() >= meeting_.identity.size) {
    return fail(Errc::invalid_argument, "process set of ranks {}: ranks are 0 to {}",
                fmt::join(ranks, ", "), meeting_.identity.size - 1);
  }
  if (std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end()) {
    return fail(Errc::invalid_argument, "process set of ranks {}: a rank is named twice",
                fmt::join(ranks, ", "));
  }
  if (const auto* same = sets_.find(ranks); same != nullptr) {
    return fail(Errc::duplicate, "the ranks {} are process set {} already", fmt::join(ranks, ", "),
                same->id);
  }
  auto id = [&] {
    const TakenToken token(*this);
    return sets_.add(std::move(ranks));
  }();
  // Ranks take memory and connect there, and where one cannot the others have no use for the set.
  const auto all = agree("horo.process_sets", {kAdded, id ? 1 : 0});
  if (!all) host_->forget_failed_regions();
  if (all || !id) return id;
  const TakenToken token(*this);
  sets_.remove(*id);
  return fail(all.error().code, "process set {} is not made: {}", *id,
              all.error().code == Errc::mismatch
                  ? "another rank could not make it, its own error says why"
                  : all.error().message);
}

void Session::drain(ProcessSet& set) {
  const auto& clock = SteadyClock::instance();
  auto& engine = *set.engine;
  while (engine.health() && (!engine.withdraw() || engine.active())) {
    if (!sets_.progress())
      sleep_as_driver(kForeground, Deadline::in(clock, std::chrono::milliseconds(100)));
  }
}

Status Session::remove_set(SetId id) {
  const std::lock_guard lock(set_changes_);
  HORO_TRY_STATUS(agree("horo.process_sets", {kRemove, static_cast<std::int32_t>(id.value())}));
  if (id == kWorld) return fail(Errc::invalid_argument, "process set 0, the world, stays");
  auto* const set = sets_.find(id);
  if (set == nullptr) return fail(Errc::not_found, "there is no process set {}", id);
  if (set->member()) {
    const TakenToken token(*this);
    drain(*set);
  }
  // A peer may still need this rank for what is agreed: all leave together.
  HORO_TRY_STATUS(agree("horo.process_sets", {kRemove, static_cast<std::int32_t>(id.value())}));
  const TakenToken token(*this);
  sets_.remove(id);
  return {};
}

}  // namespace horo::runtime
