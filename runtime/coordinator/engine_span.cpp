// SPDX-License-Identifier: Apache-2.0
// What is different for a rank in a set with members on other hosts: who its members are, and the
// splits of an alltoall, which no board has.
#include <algorithm>

#include "runtime/coordinator/engine.hpp"

namespace horo::runtime {

int Engine::size() const {
  return ranks_.empty() ? board_.local_size() : static_cast<int>(ranks_.size());
}

int Engine::position() const {
  return ranks_.empty() ? board_.me() : position_of(board_.global_rank(board_.me()));
}

int Engine::position_of(Rank rank) const {
  if (ranks_.empty()) return board_.member_of(rank);
  const auto at = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
  return at != ranks_.end() && *at == rank ? static_cast<int>(at - ranks_.begin()) : -1;
}

Result<bool> Engine::may_begin() {
  if (adasum_ != nullptr) {
    HORO_TRY(const bool done, adasum_->advance(*backend_));
    if (!done) return false;
    started_.back().backend_ticket = 0;
    adasum_.reset();
  }
  return gathering_ == nullptr || backend_->completed() >= gathering_->ticket;
}

bool Engine::gathers(const Entry& entry) {
  if (!board_.spans() || gathering_ != nullptr || entry.kind != EntryKind::work) return false;
  const TensorId first{static_cast<std::uint32_t>(entry.ids.front())};
  return offered(first) && signature(first).kind == Kind::alltoall;
}

Status Engine::gather_splits(const Entry& entry) {
  auto gathering = std::make_unique<Gathering>();
  for (const auto raw : entry.ids) {
    const TensorId id{static_cast<std::uint32_t>(raw)};
    const auto number = offered(id) ? tensor(id).operation.load(std::memory_order_relaxed) : 0;
    if (number == 0 ||
        operations_.at(number - 1).splits.size() != static_cast<std::size_t>(size())) {
      return fail(Errc::protocol, "log entry {} of the board has an alltoall without splits",
                  begun_);
    }
    const auto& splits = operations_.at(number - 1).splits;
    gathering->mine.insert(gathering->mine.end(), splits.begin(), splits.end());
  }
  const auto count = gathering->mine.size();
  gathering->all.resize(count * static_cast<std::size_t>(size()));
  Bucket bucket;
  bucket.like.kind = Kind::allgather;
  bucket.like.dtype = DType::i64;
  bucket.parts.push_back({.in = gathering->mine.data(),
                          .out = gathering->all.data(),
                          .elements = count,
                          .row_elements = count});
  bucket.rows.assign(static_cast<std::size_t>(size()), 1);
  HORO_TRY_STATUS(backend_->start(std::move(bucket)));
  gathering->ticket = backend_->started();
  gathering_ = std::move(gathering);
  return {};
}

void Engine::add_splits(const Entry& entry, std::size_t position, Bucket& bucket) const {
  const auto n = static_cast<std::size_t>(size());
  for (std::size_t sender = 0; sender < n; ++sender) {
    const auto* rows = gathering_->all.data() + (sender * entry.ids.size() + position) * n;
    bucket.rows.insert(bucket.rows.end(), rows, rows + n);
  }
}

}  // namespace horo::runtime
