// SPDX-License-Identifier: Apache-2.0
// Movements: all-gather, broadcast, reduce-scatter, all-to-all, barrier.
#include "runtime/backends/flat/schedule.hpp"

#include <numeric>

#include "runtime/backends/flat/areas.hpp"

namespace horo::runtime {

namespace {

std::vector<std::uint64_t> offsets_of(std::span<const std::uint64_t> sizes, std::uint64_t unit) {
  std::vector<std::uint64_t> offsets;
  std::uint64_t sum = 0;
  for (const auto size : sizes) {
    offsets.push_back(sum);
    sum += size * unit;
  }
  offsets.push_back(sum);
  return offsets;
}

int around(const Mesh& mesh, int distance) {
  return ((mesh.position + distance) % mesh.size + mesh.size) % mesh.size;
}

std::size_t index(int position) {
  return static_cast<std::size_t>(position);
}

/// Send directly to every rank: few bytes, or no other rank shares this rank's network link.
bool straight(const Mesh& mesh, std::uint64_t bytes) {
  return mesh.size == 2 || !mesh.shares_hosts || bytes <= kSmallMessage;
}

Schedule ring_allgather(const Mesh& mesh, std::span<const std::uint64_t> bytes,
                        const std::vector<std::uint64_t>& at) {
  Schedule plan;
  for (int step = 0; step < mesh.size - 1; ++step) {
    const auto out = index(around(mesh, -step));
    const auto in = index(around(mesh, -step - 1));
    Round round;
    round.sends.push_back({around(mesh, 1), at[out], bytes[out]});
    round.receives.push_back({around(mesh, -1), at[in], bytes[in]});
    plan.rounds.push_back(std::move(round));
  }
  return plan;
}

Schedule ring_reducescatter(const Mesh& mesh, std::span<const std::uint64_t> elements,
                            std::uint64_t element, const std::vector<std::uint64_t>& at) {
  Schedule plan;
  plan.scale_inputs = true;
  Areas areas(at.back());
  for (int step = 0; step < mesh.size - 1; ++step) {
    const auto out = index(around(mesh, -step - 1));
    const auto in = index(around(mesh, -step - 2));
    const auto area = areas.take(elements[in] * element);
    Round round;
    round.sends.push_back({around(mesh, 1), at[out], elements[out] * element});
    round.receives.push_back({around(mesh, -1), area, elements[in] * element});
    round.combines.push_back({.target = at[in],
                              .sources = {area, at[in]},
                              .elements = elements[in],
                              .stage = step == mesh.size - 2 ? Stage::last : Stage::partial});
    plan.rounds.push_back(std::move(round));
  }
  plan.memory = areas.end();
  return plan;
}

}  // namespace

std::uint64_t Schedule::sent() const {
  std::uint64_t sum = 0;
  for (const auto& round : rounds) {
    for (const auto& send : round.sends) sum += send.bytes;
  }
  return sum;
}

Schedule make_allgather(const Mesh& mesh, std::span<const std::uint64_t> bytes) {
  const auto at = offsets_of(bytes, 1);
  Schedule plan;
  if (straight(mesh, at.back())) {
    Round round;
    const auto me = index(mesh.position);
    for (int d = 1; d < mesh.size; ++d) {
      const auto from = index(around(mesh, -d));
      round.sends.push_back({around(mesh, d), at[me], bytes[me]});
      round.receives.push_back({around(mesh, -d), at[from], bytes[from]});
    }
    plan.rounds.push_back(std::move(round));
  } else {
    plan = ring_allgather(mesh, bytes, at);
  }
  plan.memory = at.back();
  finish(plan);
  return plan;
}

Schedule make_broadcast(const Mesh& mesh, int root, std::uint64_t bytes) {
  Schedule plan;
  plan.memory = bytes;
  // Counted from the root.
  const int me = around(mesh, -root);
  const auto rank_of = [&](int counted) { return (counted + root) % mesh.size; };
  Round get;
  Round give;
  if (bytes >
      kSmallMessage) {  // A chain: every wire carries each byte once, segment behind segment.
    if (me > 0) get.receives.push_back({rank_of(me - 1), 0, bytes});
    if (me + 1 < mesh.size) give.sends.push_back({rank_of(me + 1), 0, bytes});
  } else {  // A binomial tree: the fewest messages in a row.
    int reach = 1;
    while (reach < mesh.size && (me & reach) == 0) reach *= 2;
    if (me > 0) get.receives.push_back({rank_of(me - reach), 0, bytes});
    for (int step = reach / 2; step >= 1; step /= 2) {
      if (me + step < mesh.size) give.sends.push_back({rank_of(me + step), 0, bytes});
    }
  }
  plan.rounds = {std::move(get), std::move(give)};
  finish(plan);
  return plan;
}

Schedule make_reducescatter(const Mesh& mesh, std::span<const std::uint64_t> elements,
                            std::uint64_t element, Partial partial) {
  const auto at = offsets_of(elements, element);
  const auto me = index(mesh.position);
  Schedule plan;
  if (mesh.size > 1 && !straight(mesh, at.back()) && !needs_rank_order(mesh, partial)) {
    plan = ring_reducescatter(mesh, elements, element, at);
  } else {
    Areas areas(at.back());
    Round round;
    Combine combine{.target = at[me], .elements = elements[me]};
    combine.sources.assign(index(mesh.size), at[me]);
    for (int d = 1; d < mesh.size; ++d) {
      const auto to = index(around(mesh, d));
      const auto area = areas.take(elements[me] * element);
      round.sends.push_back({around(mesh, d), at[to], elements[to] * element});
      round.receives.push_back({around(mesh, -d), area, elements[me] * element});
      combine.sources[index(around(mesh, -d))] = area;
    }
    round.combines.push_back(std::move(combine));
    plan.rounds.push_back(std::move(round));
    plan.memory = areas.end();
  }
  plan.result = at[me];
  finish(plan);
  return plan;
}

Schedule make_alltoall(const Mesh& mesh, std::span<const std::uint64_t> to,
                       std::span<const std::uint64_t> from) {
  const auto out = offsets_of(to, 1);
  const auto in = offsets_of(from, 1);
  Areas areas(out.back());
  Schedule plan;
  plan.result = areas.take(in.back());
  Round round;
  for (int d = 1; d < mesh.size; ++d) {
    const auto there = index(around(mesh, d));
    const auto here = index(around(mesh, -d));
    round.sends.push_back({around(mesh, d), out[there], to[there]});
    round.receives.push_back({around(mesh, -d), plan.result + in[here], from[here]});
  }
  plan.rounds.push_back(std::move(round));
  plan.memory = areas.end();
  finish(plan);
  return plan;
}

Schedule make_barrier(const Mesh& mesh) {
  Schedule plan;
  Areas areas(1);
  for (int distance = 1; distance < mesh.size; distance *= 2) {
    Round round;
    round.sends.push_back({around(mesh, distance), 0, 1});
    round.receives.push_back({around(mesh, -distance), areas.take(1), 1});
    plan.rounds.push_back(std::move(round));
  }
  plan.memory = areas.end();
  finish(plan);
  return plan;
}

}  // namespace horo::runtime
