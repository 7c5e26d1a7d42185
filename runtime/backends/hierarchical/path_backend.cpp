// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/hierarchical/path_backend.hpp"

#include <utility>

namespace horo::runtime {

PathBackend::PathBackend(BackendTable table, std::unique_ptr<Backend> whole,
                         std::unique_ptr<Backend> by_hosts)
    : table_(std::move(table)), backends_{std::move(whole), std::move(by_hosts)} {}

BackendCaps PathBackend::caps() const {
  BackendCaps caps{.name = table_.backend(), .overlaps = true};
  for (const auto& backend : backends_) caps.polls = caps.polls || backend->caps().polls;
  return caps;
}

Status PathBackend::start(Bucket bucket) {
  const auto choice = table_.choose(bucket);
  if (choice.path == BucketPath::refused)
    return fail(Errc::unsupported, "{}", timeline::text(choice.reason));
  auto* const backend = backends_[static_cast<std::size_t>(choice.path)].get();
  HORO_TRY_STATUS(backend->start(std::move(bucket)));
  active_.start({.backend = backend, .ticket = backend->started()});
  retire();
  return {};
}

void PathBackend::retire() {
  active_.retire([](const Active& bucket) { return bucket.backend->completed() >= bucket.ticket; });
}

bool PathBackend::progress() {
  bool moved = false;
  if (!active_.empty()) {
    for (const auto& backend : backends_) moved = backend->progress() || moved;
    retire();
  }
  // start() may have retired buckets: that is progress too, and only this call reports it.
  return active_.take_news() || moved;
}

CopyTimes PathBackend::copied() const {
  CopyTimes sum;
  for (const auto& backend : backends_) sum += backend->copied();
  return sum;
}

Status PathBackend::health() const {
  for (const auto& backend : backends_) HORO_TRY_STATUS(backend->health());
  return {};
}

void PathBackend::abort() {
  for (const auto& backend : backends_) backend->abort();
  active_.clear();
}

}  // namespace horo::runtime
