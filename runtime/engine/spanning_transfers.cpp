// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/spanning_transfers.hpp"

#include <utility>

namespace horo::runtime {

Result<bool> SpanningTransfers::may_begin() {
  if (adasum_ != nullptr) {
    HORO_TRY(const bool done, adasum_->advance(backend_));
    if (!done) return false;
    adasum_.reset();
  }
  return exchange_ == nullptr || backend_.completed() >= exchange_->ticket;
}

bool SpanningTransfers::is_alltoall(const Entry& entry) const {
  if (entry.kind != EntryKind::work) return false;
  const TensorId first{static_cast<std::uint32_t>(entry.ids.front())};
  return claims_.has_submitted(first) && claims_.signature(first).kind == Kind::alltoall;
}

Result<bool> SpanningTransfers::prepare(const Entry& entry) {
  if (exchange_ != nullptr || !is_alltoall(entry)) return true;
  HORO_TRY_STATUS(exchange_splits(entry));
  return false;
}

Status SpanningTransfers::exchange_splits(const Entry& entry) {
  const auto size = static_cast<std::size_t>(agreement_.size());
  auto exchange = std::make_unique<SplitsExchange>(entry.ids.size(), size);
  for (std::size_t at = 0; at < entry.ids.size(); ++at) {
    const TensorId id{static_cast<std::uint32_t>(entry.ids[at])};
    const auto* const operation = claims_.operation_of(id);
    if (operation == nullptr || operation->splits.size() != size) {
      return fail(Errc::protocol, "an alltoall on the board, tensor {}, has no splits", id);
    }
    exchange->add(at, operation->splits, claims_.signature(id).row_elements);
  }
  HORO_TRY_STATUS(backend_.start(exchange->bucket(agreement_.position())));
  exchange->ticket = backend_.started();
  exchange_ = std::move(exchange);
  return {};
}

Status SpanningTransfers::add_splits(const Entry& /*entry*/, std::size_t at,
                                     std::vector<PeerRows>& peers) {
  exchange_->read(at, peers);
  return {};
}

Result<std::uint64_t> SpanningTransfers::longest_of(const Entry& entry) {
  std::vector<std::uint64_t> row_elements;
  for (const auto raw : entry.ids)
    row_elements.push_back(
        claims_.signature(TensorId{static_cast<std::uint32_t>(raw)}).row_elements);
  return exchange_->longest(row_elements);
}

Status SpanningTransfers::attach_remainders(Bucket& bucket) {
  for (auto& part : bucket.parts) {
    // A rank that has joined brings neutral values, which leave nothing.
    if (!claims_.has_submitted(part.id)) continue;
    const auto& s = claims_.signature(part.id);
    if (s.feedback == 0 || s.elements == 0) {
      remainders_.forget(part.id);
      continue;
    }
    const auto incarnation = claims_.tensor(part.id).incarnation.load(std::memory_order_relaxed);
    HORO_TRY(part.remainder, remainders_.of(part.id, incarnation, s));
    part.result_remainder = part.remainder + s.elements;
  }
  return {};
}

Result<Ticket> SpanningTransfers::start(Bucket bucket) {
  exchange_.reset();
  // In device memory the backend makes the row of buckets, when the inputs are in host memory.
  if (bucket.like.op == ReduceOp::adasum && bucket.like.memory == MemoryKind::host) {
    adasum_ = std::make_unique<SpanningAdasum>(std::move(bucket), agreement_.size(),
                                               agreement_.position());
    return kSeveralBuckets;
  }
  HORO_TRY_STATUS(attach_remainders(bucket));
  HORO_TRY_STATUS(backend_.start(std::move(bucket)));
  return backend_.started();
}

void SpanningTransfers::abort() {
  exchange_.reset();
  adasum_.reset();
}

}  // namespace horo::runtime
