// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/device/host_sum.hpp"

#include <cstring>
#include <new>
#include <utility>

#include "runtime/bucket/run_alone.hpp"

namespace horo::runtime {

std::uint64_t HostSum::share_of_owner(std::size_t owner) const {
  return share_of(slice_.elements, static_cast<int>(place_.owners.size()), static_cast<int>(owner))
      .count;
}

/// Where this rank sends shares the peers get them; both ways the counts are those of the shares.
Bucket HostSum::exchange(const std::byte* in, std::byte* out) const {
  const auto hosts = place_.hierarchy.hosts;
  const auto most = share_of(slice_.of, place_.hierarchy.owners, 0).count;
  Bucket bucket{.like = {.kind = Kind::alltoall, .dtype = slice_.like.dtype},
                .path = DataPath::staged,
                .parts = {Part{.in = in, .out = out, .elements = 0, .row_elements = 1}},
                .peers = std::vector<PeerRows>(static_cast<std::size_t>(slice_.set_size)),
                .longest = share_of(most, hosts, 0).count,
                .small_message = slice_.small_message};
  return bucket;
}

Status HostSum::send(Bucket bucket, Backend& host) {
  for (const auto& rows : bucket.peers) bucket.parts[0].elements += rows.sent;
  HORO_TRY_STATUS(host.start(std::move(bucket)));
  ticket_ = host.started();
  return {};
}

Status HostSum::start(const HostSlice& slice, Backend& host) {
  slice_ = slice;
  const auto owners = place_.owners.size();
  const auto mine = owners == 0 ? 0 : share_of_owner(place_.own);
  const auto bytes = mine * owners * size_of(slice_.like.dtype);
  try {
    if (shares_.size() < bytes) shares_.resize(bytes);
    if (results_.size() < bytes) results_.resize(bytes);
  } catch (const std::bad_alloc&) {
    return fail(Errc::out_of_memory, "{} bytes for a sum between hosts cannot be allocated",
                2 * bytes);
  }
  auto bucket = exchange(slice_.memory, shares_.data());
  for (std::size_t o = 0; o < owners; ++o) {
    bucket.peers[static_cast<std::size_t>(place_.owners[o])] = {.sent = share_of_owner(o),
                                                                .received = mine};
  }
  return send(std::move(bucket), host);
}

void HostSum::add_up() {
  const auto owners = place_.owners.size();
  const auto mine = owners == 0 ? 0 : share_of_owner(place_.own);
  if (mine == 0) return;
  const auto& like = slice_.like;
  const bool average = like.op == ReduceOp::average;
  const auto bytes = mine * size_of(like.dtype);
  std::vector<const void*> inputs;
  for (std::size_t o = 0; o < owners; ++o) inputs.push_back(shares_.data() + o * bytes);
  auto sum = like;
  if (average) sum.op = ReduceOp::sum;
  sum.prescale = 1;
  sum.postscale = like.prescale * like.postscale / (average ? slice_.set_size : 1);
  combine_parts(sum, inputs, mine, results_.data());
  for (std::size_t o = 1; o < owners; ++o)
    std::memcpy(results_.data() + o * bytes, results_.data(), bytes);
}

Status HostSum::share(Backend& host) {
  add_up();
  const auto owners = place_.owners.size();
  const auto mine = owners == 0 ? 0 : share_of_owner(place_.own);
  auto bucket = exchange(results_.data(), slice_.memory);
  for (std::size_t o = 0; o < owners; ++o) {
    bucket.peers[static_cast<std::size_t>(place_.owners[o])] = {.sent = mine,
                                                                .received = share_of_owner(o)};
  }
  return send(std::move(bucket), host);
}

}  // namespace horo::runtime
