// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/hierarchical.hpp"

#include "runtime/backends/choose.hpp"

namespace horo::runtime {

HierarchicalBackend::HierarchicalBackend(HierarchicalParts parts, const Hierarchy& hierarchy,
                                         const HierarchicalOptions& options)
    : parts_(std::move(parts)), hierarchy_(hierarchy), options_(options) {
  for (std::size_t i = 0; i < kDepth; ++i) idle_.push_back(std::make_unique<Stretch>());
}

BackendCaps HierarchicalBackend::caps() const {
  const bool across_polls = parts_.across && parts_.across->caps().polls;
  return {
      .name = "hierarchical", .overlaps = true, .polls = across_polls || parts_.flat->caps().polls};
}

CopyTimes HierarchicalBackend::copied() const {
  CopyTimes sum;
  for (const auto* part :
       {parts_.scatter.get(), parts_.across.get(), parts_.gather.get(), parts_.flat.get()}) {
    if (part != nullptr) sum += part->copied();
  }
  return sum;
}

Status HierarchicalBackend::start(Bucket bucket) {
  Active active;
  std::uint64_t bytes = 0;
  for (const auto& part : bucket.parts) bytes += part.elements * size_of(bucket.like.dtype);
  if (choose_way(hierarchy_, bucket.like, bytes, options_.least).way == Way::hierarchical) {
    active.bucket = std::move(bucket);
    active.bucket.placement = Placement::staged;
    active.stretches = cut_bucket(active.bucket, options_.stretch);
  } else {
    HORO_TRY_STATUS(parts_.flat->start(std::move(bucket)));
    active.flat_ticket = parts_.flat->started();
  }
  active_.push_back(std::move(active));
  ++started_;
  begin_stretches();
  retire();
  return {};
}

Result<bool> HierarchicalBackend::begin_stretch(Active& active) {
  if (active.begun == active.stretches.size() || idle_.empty()) return false;
  auto stretch = std::move(idle_.back());
  idle_.pop_back();
  const auto& cuts = active.stretches[active.begun++];
  stretch->of = &active;
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
    // A moved-from bucket may keep its parts or not; what the rank owns does not change.
    const bool moves = crossing_.front()->leg.across.like.elements != 0;
    if (moves && parts_.across->completed() == crossed_) break;
    crossed_ += moves ? 1 : 0;
    step(parts_.gather->start(std::move(crossing_.front()->leg.gather)));
    gathering_.push_back(std::move(crossing_.front()));
    crossing_.pop_front();
  }
  for (; !gathering_.empty() && parts_.gather->completed() > gathered_; ++gathered_) {
    ++gathering_.front()->of->done;
    idle_.push_back(std::move(gathering_.front()));
    gathering_.pop_front();
    any = true;
  }
  return any;
}

bool HierarchicalBackend::retire() {
  bool any = false;
  while (!active_.empty()) {
    const auto& first = active_.front();
    const bool done = first.flat_ticket == 0 ? first.done == first.stretches.size()
                                             : parts_.flat->completed() >= first.flat_ticket;
    if (!done) break;
    active_.pop_front();
    ++completed_;
    any = true;
  }
  return any;
}

bool HierarchicalBackend::progress() {
  if (active_.empty() || !health_) return false;
  bool moved = parts_.scatter->progress();
  if (parts_.across) moved = parts_.across->progress() || moved;
  moved = parts_.gather->progress() || moved;
  moved = parts_.flat->progress() || moved;
  moved = advance() || moved;
  moved = retire() || moved;
  return begin_stretches() || moved;
}

Status HierarchicalBackend::health() const {
  if (!health_) return health_;
  if (parts_.across) HORO_TRY_STATUS(parts_.across->health());
  HORO_TRY_STATUS(parts_.scatter->health());
  HORO_TRY_STATUS(parts_.gather->health());
  return parts_.flat->health();
}

void HierarchicalBackend::fail_with(Error error) {
  if (health_) health_ = Failure(std::move(error));
}

void HierarchicalBackend::abort() {
  parts_.scatter->abort();
  if (parts_.across) parts_.across->abort();
  parts_.gather->abort();
  parts_.flat->abort();
  active_.clear();
  scattering_.clear();
  crossing_.clear();
  gathering_.clear();
  if (health_) health_ = fail(Errc::cancelled, "the backend was stopped");
}

}  // namespace horo::runtime
