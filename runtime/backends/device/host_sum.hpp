// SPDX-License-Identifier: Apache-2.0
// The sum of one slice over the hosts, by the set's backend for host memory: the ranks that own the
// slice give each other its shares (alltoall), each adds up its own share, and they give each other
// the results (alltoall). Ranks without a slice take part with nothing. Each byte crosses the
// network as often as in a ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/backends/device/by_hosts_place.hpp"
#include "runtime/bucket/backend.hpp"

namespace horo::runtime {

/// A slice of a stretch, and the kind of its sum.
struct HostSlice {
  Signature like;  ///< The whole operation has it; its scaling is applied here.
  int set_size = 1;
  std::byte* memory = nullptr;      ///< The input, and then the result. Null: no slice.
  std::uint64_t elements = 0;       ///< In the slice.
  std::uint64_t of = 0;             ///< In the stretch.
  std::uint64_t small_message = 0;  ///< As in Bucket.
};

/// Thread: the holder of the progress token.
class HostSum {
 public:
  /// `place` outlives this.
  explicit HostSum(const ByHostsPlace& place) : place_(place) {}

  /// The first exchange. `slice.memory` is used until the second one has ended. Fails:
  /// out_of_memory; as Backend::start.
  Status start(const HostSlice& slice, Backend& host);

  /// The first exchange has ended.
  bool has_shares(const Backend& host) const { return ticket_ <= host.completed(); }

  /// The second exchange, behind the first. Fails: as start().
  Status share(Backend& host);

  /// Both have ended, after share().
  bool done(const Backend& host) const { return ticket_ <= host.completed(); }

 private:
  /// Elements of the slice that the owner of that index adds up.
  std::uint64_t share_of_owner(std::size_t owner) const;
  Bucket exchange(const std::byte* in, std::byte* out) const;
  Status send(Bucket bucket, Backend& host);
  void add_up();

  const ByHostsPlace& place_;
  HostSlice slice_;
  std::uint64_t ticket_ = 0;
  std::vector<std::byte> shares_;   ///< This rank's share of all owners' slices.
  std::vector<std::byte> results_;  ///< The sum, once for each owner.
};

}  // namespace horo::runtime
