// SPDX-License-Identifier: Apache-2.0
#include "runtime/session/set_changes.hpp"

#include <algorithm>
#include <span>

#include <fmt/ranges.h>

namespace horo::runtime {

namespace {

constexpr const char* kTensor = "horo.process_sets";

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

/// Compares what the ranks have asked for.
Status all_equal(const Operation& gathered) {
  if (gathered.status() != Errc::ok) return Failure(gathered.error());
  const auto* at = static_cast<const std::int32_t*>(gathered.result);
  const std::span first{at, static_cast<std::size_t>(gathered.rows[0])};
  for (std::size_t r = 0; r < gathered.rows.size(); ++r) {
    const std::span theirs{at, static_cast<std::size_t>(gathered.rows[r])};
    at += theirs.size();
    if (std::equal(first.begin(), first.end(), theirs.begin(), theirs.end())) continue;
    return fail(Errc::mismatch,
                "all ranks must change process sets alike and in the same order: rank 0 asked {}, "
                "rank {} {}",
                in_words(first), r, in_words(theirs));
  }
  return {};
}

}  // namespace

Status SetChanges::agree(std::vector<std::int32_t> words) {
  Signature signature;
  signature.kind = Kind::allgather;
  signature.dtype = DType::i32;
  const auto count = static_cast<std::int64_t>(words.size());
  HORO_TRY_STATUS(set_shape(signature, {&count, 1}));
  HORO_TRY(const auto id, submitter_.declare(kWorld, kTensor, signature, {}));
  HORO_TRY(Operation* const operation,
           submitter_.submit({.set = kWorld, .tensor = id, .given = {.in = words.data()}}));
  driver_.wait({&operation, 1}, Deadline::never(), Until::done);
  auto status = all_equal(*operation);
  operations_.put(*operation);
  return status;
}

Status SetChanges::check_new(const std::vector<Rank>& ranks) const {
  if (ranks.empty()) return fail(Errc::invalid_argument, "a process set without ranks");
  if (ranks.front().value() < 0 || ranks.back().value() >= job_size_) {
    return fail(Errc::invalid_argument, "process set of ranks {}: ranks are 0 to {}",
                fmt::join(ranks, ", "), job_size_ - 1);
  }
  if (std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end()) {
    return fail(Errc::invalid_argument, "process set of ranks {}: a rank is named twice",
                fmt::join(ranks, ", "));
  }
  if (const auto* same = sets_.table().find(ranks); same != nullptr) {
    return fail(Errc::duplicate, "the ranks {} are process set {} already", fmt::join(ranks, ", "),
                same->id);
  }
  return {};
}

Result<ProcessSets::NewSet> SetChanges::begin(std::vector<Rank> ranks) {
  const ProgressDriver::Taken token(driver_);
  return sets_.begin(std::move(ranks));
}

Result<SetId> SetChanges::make(std::vector<Rank> ranks) {
  HORO_TRY(auto made, begin(std::move(ranks)));
  // Connecting may take long: the other sets go on meanwhile, and the loss of a rank ends their
  // operations.
  auto connected = sets_.connect(made);
  const ProgressDriver::Taken token(driver_);
  return sets_.finish(std::move(made), std::move(connected));
}

Result<SetId> SetChanges::add(std::vector<Rank> ranks) {
  const MutexLock lock(one_at_a_time_);
  std::sort(ranks.begin(), ranks.end());
  std::vector<std::int32_t> words{kAdd};
  for (const auto rank : ranks) words.push_back(rank.value());
  HORO_TRY_STATUS(agree(std::move(words)));
  // From here on every rank decides alike.
  HORO_TRY_STATUS(check_new(ranks));
  auto id = make(std::move(ranks));
  // Ranks allocate memory and connect there. Where one cannot, the others have no use for the set.
  const auto all = agree({kAdded, id ? 1 : 0});
  if (!all) host_.forget_failed_regions();
  if (all || !id) return id;
  const ProgressDriver::Taken token(driver_);
  sets_.remove(*id);
  return fail(all.error().code, "process set {} is not made: {}", *id,
              all.error().code == Errc::mismatch
                  ? "another rank could not make it; the error on that rank says why"
                  : all.error().message);
}

Status SetChanges::remove(SetId id) {
  const MutexLock lock(one_at_a_time_);
  const std::vector<std::int32_t> words{kRemove, static_cast<std::int32_t>(id.value())};
  HORO_TRY_STATUS(agree(words));
  if (id == kWorld)
    return fail(Errc::invalid_argument, "process set 0 holds all ranks and cannot be removed");
  auto* const set = sets_.find(id);
  if (set == nullptr) return fail(Errc::not_found, "there is no process set {}", id);
  if (set->member()) {
    ProgressDriver::Taken token(driver_);
    auto& engine = *set->engine;
    token.progress_until(
        [&engine] { return !engine.health() || (engine.withdraw() && !engine.active()); });
  }
  // A peer may still need this rank for what is agreed: all leave together.
  HORO_TRY_STATUS(agree(words));
  const ProgressDriver::Taken token(driver_);
  sets_.remove(id);
  return {};
}

}  // namespace horo::runtime
