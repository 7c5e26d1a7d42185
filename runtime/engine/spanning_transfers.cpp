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
  return gathering_ == nullptr || backend_.completed() >= gathering_->ticket;
}

bool SpanningTransfers::is_alltoall(const Entry& entry) const {
  if (entry.kind != EntryKind::work) return false;
  const TensorId first{static_cast<std::uint32_t>(entry.ids.front())};
  return claims_.has_submitted(first) && claims_.signature(first).kind == Kind::alltoall;
}

Result<bool> SpanningTransfers::prepare(const Entry& entry) {
  if (gathering_ != nullptr || !is_alltoall(entry)) return true;
  HORO_TRY_STATUS(gather_splits(entry));
  return false;
}

Status SpanningTransfers::gather_splits(const Entry& entry) {
  const auto size = static_cast<std::size_t>(agreement_.size());
  auto gathering = std::make_unique<Gathering>();
  for (const auto raw : entry.ids) {
    const TensorId id{static_cast<std::uint32_t>(raw)};
    const auto* const operation = claims_.operation_of(id);
    if (operation == nullptr || operation->splits.size() != size) {
      return fail(Errc::protocol, "an alltoall on the board, tensor {}, has no splits", id);
    }
    gathering->mine.insert(gathering->mine.end(), operation->splits.begin(),
                           operation->splits.end());
  }
  const auto count = gathering->mine.size();
  gathering->all.resize(count * size);
  Bucket bucket;
  bucket.like.kind = Kind::allgather;
  bucket.like.dtype = DType::i64;
  bucket.parts.push_back({.in = gathering->mine.data(),
                          .out = gathering->all.data(),
                          .elements = count,
                          .row_elements = count});
  bucket.rows.assign(size, 1);
  HORO_TRY_STATUS(backend_.start(std::move(bucket)));
  gathering->ticket = backend_.started();
  gathering_ = std::move(gathering);
  return {};
}

Status SpanningTransfers::add_splits(const Entry& entry, std::size_t at,
                                     std::vector<std::uint64_t>& rows) {
  const auto n = static_cast<std::size_t>(agreement_.size());
  for (std::size_t sender = 0; sender < n; ++sender) {
    const auto* const sent = gathering_->all.data() + (sender * entry.ids.size() + at) * n;
    rows.insert(rows.end(), sent, sent + n);
  }
  return {};
}

Result<Ticket> SpanningTransfers::start(Bucket bucket) {
  gathering_.reset();
  if (bucket.like.op == ReduceOp::adasum) {
    adasum_ = std::make_unique<SpanningAdasum>(std::move(bucket), agreement_.size(),
                                               agreement_.position());
    return kSeveralBuckets;
  }
  HORO_TRY_STATUS(backend_.start(std::move(bucket)));
  return backend_.started();
}

void SpanningTransfers::abort() {
  gathering_.reset();
  adasum_.reset();
}

}  // namespace horo::runtime
