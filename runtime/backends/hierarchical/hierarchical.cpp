// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/hierarchical/hierarchical.hpp"

namespace horo::runtime {

HierarchicalBackend::HierarchicalBackend(HierarchicalParts parts, const Hierarchy& hierarchy,
                                         std::uint64_t stretch_bytes)
    : parts_(std::move(parts)), hierarchy_(hierarchy), stretch_bytes_(stretch_bytes) {
  for (std::size_t i = 0; i < kDepth; ++i) idle_.push_back(std::make_unique<Stretch>());
}

BackendCaps HierarchicalBackend::caps() const {
  return {.name = "hierarchical",
          .overlaps = true,
          .polls = parts_.across && parts_.across->caps().polls};
}

CopyTimes HierarchicalBackend::copied() const {
  CopyTimes sum;
  for (const auto* part : {parts_.scatter.get(), parts_.across.get(), parts_.gather.get()}) {
    if (part != nullptr) sum += part->copied();
  }
  return sum;
}

Status HierarchicalBackend::start(Bucket bucket) {
  Active active{.bucket = std::move(bucket)};
  active.bucket.path = DataPath::staged;
  active.stretches = cut_bucket(active.bucket, stretch_bytes_);
  active_.start(std::move(active));
  begin_stretches();
  retire();
  return {};
}

Result<bool> HierarchicalBackend::begin_stretch(Active& active) {
  if (active.begun == active.stretches.size() || idle_.empty()) return false;
  auto stretch = std::move(idle_.back());
  idle_.pop_back();
  const auto& cuts = active.stretches[active.begun++];
  stretch->bucket = &active;
  const auto element = size_of(active.bucket.like.dtype);
  HORO_TRY_STATUS(stretch->slice.provide(slice_elements(cuts, hierarchy_) * element));
  stretch->leg = make_leg(active.bucket, cuts, hierarchy_, stretch->slice.data());
  HORO_TRY_STATUS(parts_.scatter->start(std::move(stretch->leg.scatter)));
  scattering_.push_back(std::move(stretch));
  return true;
}

bool HierarchicalBackend::begin_stretches() {
  bool any = false;
  for (auto& active : active_) {
    for (;;) {
      const auto begun = begin_stretch(active);
      if (!begun) fail_with(begun.error());
      if (!begun || !*begun) break;
      any = true;
    }
    if (active.begun != active.stretches.size()) break;
  }
  return any;
}

bool HierarchicalBackend::advance() {
  bool any = false;
  const auto step = [&](Status status) {
    any = true;
    if (!status) fail_with(std::move(status).error());
  };
  for (; !scattering_.empty() && parts_.scatter->completed() > scattered_; ++scattered_) {
    auto& across = scattering_.front()->leg.across;
    step(across.parts.empty() ? Status{} : parts_.across->start(std::move(across)));
    crossing_.push_back(std::move(scattering_.front()));
    scattering_.pop_front();
  }
  while (!crossing_.empty()) {
    // Whether this rank owns a part of the stretch: `parts` may be empty because it was moved from.
    const bool moves = crossing_.front()->leg.across.like.elements != 0;
    if (moves && parts_.across->completed() == crossed_) break;
    crossed_ += moves ? 1 : 0;
    step(parts_.gather->start(std::move(crossing_.front()->leg.gather)));
    gathering_.push_back(std::move(crossing_.front()));
    crossing_.pop_front();
  }
  for (; !gathering_.empty() && parts_.gather->completed() > gathered_; ++gathered_) {
    ++gathering_.front()->bucket->done;
    idle_.push_back(std::move(gathering_.front()));
    gathering_.pop_front();
    any = true;
  }
  return any;
}

void HierarchicalBackend::retire() {
  active_.retire([](const Active& bucket) { return bucket.done == bucket.stretches.size(); });
}

bool HierarchicalBackend::move_stretches() {
  bool moved = parts_.scatter->progress();
  if (parts_.across) moved = parts_.across->progress() || moved;
  moved = parts_.gather->progress() || moved;
  moved = advance() || moved;
  retire();
  return begin_stretches() || moved;
}

bool HierarchicalBackend::progress() {
  if (!health_) return false;
  const bool moved = !active_.empty() && move_stretches();
  // start() may have retired buckets: that is progress too, and only this call reports it.
  return active_.take_news() || moved;
}

Status HierarchicalBackend::health() const {
  if (!health_) return health_;
  if (parts_.across) HORO_TRY_STATUS(parts_.across->health());
  HORO_TRY_STATUS(parts_.scatter->health());
  return parts_.gather->health();
}

void HierarchicalBackend::fail_with(Error error) {
  if (health_) health_ = Failure(std::move(error));
}

void HierarchicalBackend::abort() {
  parts_.scatter->abort();
  if (parts_.across) parts_.across->abort();
  parts_.gather->abort();
  active_.clear();
  scattering_.clear();
  crossing_.clear();
  gathering_.clear();
  if (health_) health_ = fail(Errc::cancelled, "the backend was stopped");
}

}  // namespace horo::runtime
