// SPDX-License-Identifier: Apache-2.0
// Moves each bucket of a set along the path that the set's table says.
#pragma once

#include <array>
#include <memory>

#include "runtime/backends/hierarchical/backend_table.hpp"
#include "runtime/backends/hierarchical/bucket_queue.hpp"
#include "runtime/bucket/backend.hpp"

namespace horo::runtime {

/// Owns the order of buckets on several paths: they complete in the order in which they were
/// started. Sets with one path use that path's backend itself. Thread: the holder of the progress
/// token.
class PathBackend final : public Backend {
 public:
  PathBackend(BackendTable table, std::unique_ptr<Backend> whole,
              std::unique_ptr<Backend> by_hosts);

  BackendCaps caps() const override;
  /// Fails: as the path's backend; unsupported (the table refuses the bucket).
  Status start(Bucket bucket) override;
  bool progress() override;

  std::uint64_t completed() const override { return active_.completed(); }

  std::uint64_t started() const override { return active_.started(); }

  CopyTimes copied() const override;
  Status health() const override;
  void abort() override;

 private:
  struct Active {
    Backend* backend = nullptr;
    std::uint64_t ticket = 0;  ///< Done when the backend has completed so many.
  };

  void retire();

  const BackendTable table_;
  const std::array<std::unique_ptr<Backend>, 2> backends_;  ///< By BucketPath.
  BucketQueue<Active> active_;
};

}  // namespace horo::runtime
