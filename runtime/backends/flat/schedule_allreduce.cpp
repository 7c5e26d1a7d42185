// SPDX-License-Identifier: Apache-2.0
// Reductions: how the elements meet. Offsets are bytes, blocks are cut by elements.
#include <bit>

#include "runtime/backends/flat/areas.hpp"
#include "runtime/tensor/signature.hpp"

namespace horo::runtime {

namespace {

constexpr int kFew = 8;

struct Shape {
  const Mesh& mesh;
  std::uint64_t elements;
  std::uint64_t element;

  std::uint64_t bytes() const { return elements * element; }

  int at(int distance) const {
    return ((mesh.position + distance) % mesh.size + mesh.size) % mesh.size;
  }
};

Schedule exchange(const Shape& s) {
  Schedule plan;
  Areas areas(s.bytes());
  Round round;
  Combine combine{.elements = s.elements};
  combine.sources.resize(static_cast<std::size_t>(s.mesh.size));
  for (int d = 1; d < s.mesh.size; ++d) {
    round.sends.push_back({s.at(d), 0, s.bytes()});
    const auto area = areas.take(s.bytes());
    round.receives.push_back({s.at(-d), area, s.bytes()});
    combine.sources[static_cast<std::size_t>(s.at(-d))] = area;
  }
  plan.result = combine.target = areas.take(s.bytes());
  round.combines.push_back(std::move(combine));
  plan.rounds.push_back(std::move(round));
  plan.memory = areas.end();
  return plan;
}

Schedule direct(const Shape& s) {
  Schedule plan;
  Areas areas(s.bytes());
  Round scatter;
  Round gather;
  const auto mine = share_of(s.elements, s.mesh.size, s.mesh.position);
  Combine combine{.target = mine.first * s.element, .elements = mine.count};
  combine.sources.assign(static_cast<std::size_t>(s.mesh.size), combine.target);
  for (int d = 1; d < s.mesh.size; ++d) {
    const auto theirs = share_of(s.elements, s.mesh.size, s.at(d));
    scatter.sends.push_back({s.at(d), theirs.first * s.element, theirs.count * s.element});
    const auto area = areas.take(mine.count * s.element);
    scatter.receives.push_back({s.at(-d), area, mine.count * s.element});
    combine.sources[static_cast<std::size_t>(s.at(-d))] = area;
    gather.sends.push_back({s.at(d), combine.target, mine.count * s.element});
    const auto from = share_of(s.elements, s.mesh.size, s.at(-d));
    gather.receives.push_back({s.at(-d), from.first * s.element, from.count * s.element});
  }
  scatter.combines.push_back(std::move(combine));
  plan.rounds = {std::move(scatter), std::move(gather)};
  plan.memory = areas.end();
  return plan;
}

Schedule ring(const Shape& s) {
  Schedule plan;
  Areas areas(s.bytes());
  plan.scale_inputs = true;
  const int n = s.mesh.size;
  for (int step = 0; step < n - 1; ++step) {
    const auto out = share_of(s.elements, n, s.at(-step));
    const auto in = share_of(s.elements, n, s.at(-step - 1));
    const auto area = areas.take(in.count * s.element);
    Round round;
    round.sends.push_back({s.at(1), out.first * s.element, out.count * s.element});
    round.receives.push_back({s.at(-1), area, in.count * s.element});
    round.combines.push_back({.target = in.first * s.element,
                              .sources = {area, in.first * s.element},
                              .elements = in.count,
                              .stage = step == n - 2 ? Stage::last : Stage::partial});
    plan.rounds.push_back(std::move(round));
  }
  for (int step = 0; step < n - 1; ++step) {
    const auto out = share_of(s.elements, n, s.at(1 - step));
    const auto in = share_of(s.elements, n, s.at(-step));
    Round round;
    round.sends.push_back({s.at(1), out.first * s.element, out.count * s.element});
    round.receives.push_back({s.at(-1), in.first * s.element, in.count * s.element});
    plan.rounds.push_back(std::move(round));
  }
  plan.memory = areas.end();
  return plan;
}

/// Ranks from `core` on, which is a power of two, give their input to one below and get the result.
struct Fold {
  int core;
  int extra;  ///< Rank that gives its input to this one, which is below `core`; -1: none.
  bool outside;

  explicit Fold(const Mesh& mesh)
      : core(static_cast<int>(std::bit_floor(static_cast<unsigned>(mesh.size)))),
        extra(mesh.position + core < mesh.size ? mesh.position + core : -1),
        outside(mesh.position >= core) {}
};

/// The schedule of a rank outside the core.
Schedule outside(const Shape& s, const Fold& fold) {
  Schedule plan;
  plan.scale_inputs = true;
  plan.memory = s.bytes();
  const int partner = s.mesh.position - fold.core;
  Round give;
  give.sends.push_back({partner, 0, s.bytes()});
  Round get;
  get.receives.push_back({partner, 0, s.bytes()});
  plan.rounds = {std::move(give), std::move(get)};
  return plan;
}

Round take_in(const Shape& s, const Fold& fold, Areas& areas) {
  Round round;
  const auto area = areas.take(s.bytes());
  round.receives.push_back({fold.extra, area, s.bytes()});
  round.combines.push_back({.target = 0,
                            .sources = {0, area},
                            .elements = s.elements,
                            .stage = fold.core == 1 ? Stage::last : Stage::partial});
  return round;
}

/// The result at `data` for the rank whose input take_in() has added.
Round give_back(const Shape& s, const Fold& fold, std::uint64_t data) {
  Round round;
  round.sends.push_back({fold.extra, data, s.bytes()});
  return round;
}

Schedule doubling(const Shape& s) {
  const Fold fold(s.mesh);
  if (fold.outside) return outside(s, fold);
  Schedule plan;
  Areas areas(s.bytes());
  plan.scale_inputs = true;
  if (fold.extra >= 0) plan.rounds.push_back(take_in(s, fold, areas));
  std::uint64_t data = 0;
  for (int distance = 1; distance < fold.core; distance *= 2) {
    const int partner = s.mesh.position ^ distance;
    const auto theirs = areas.take(s.bytes());
    const auto sum = areas.take(s.bytes());
    Round round;
    round.sends.push_back({partner, data, s.bytes()});
    round.receives.push_back({partner, theirs, s.bytes()});
    round.combines.push_back({.target = sum,
                              .sources = partner < s.mesh.position ? std::vector{theirs, data}
                                                                   : std::vector{data, theirs},
                              .elements = s.elements,
                              .stage = distance * 2 == fold.core ? Stage::last : Stage::partial});
    plan.rounds.push_back(std::move(round));
    data = sum;
  }
  plan.result = data;
  if (fold.extra >= 0) plan.rounds.push_back(give_back(s, fold, data));
  plan.memory = areas.end();
  return plan;
}

Schedule halving_doubling(const Shape& s) {
  const Fold fold(s.mesh);
  if (fold.outside) return outside(s, fold);
  Schedule plan;
  Areas areas(s.bytes());
  plan.scale_inputs = true;
  if (fold.extra >= 0) plan.rounds.push_back(take_in(s, fold, areas));
  std::vector<Round> back;
  Share left{0, s.elements};
  for (int distance = fold.core / 2; distance >= 1; distance /= 2) {
    const int partner = s.mesh.position ^ distance;
    const bool lower = s.mesh.position < partner;
    const Share first{left.first, left.count / 2};
    const Share second{left.first + first.count, left.count - first.count};
    const auto keep = lower ? first : second;
    const auto give = lower ? second : first;
    const auto area = areas.take(keep.count * s.element);
    const auto kept = keep.first * s.element;
    Round round;
    round.sends.push_back({partner, give.first * s.element, give.count * s.element});
    round.receives.push_back({partner, area, keep.count * s.element});
    round.combines.push_back({.target = kept,
                              .sources = lower ? std::vector{kept, area} : std::vector{area, kept},
                              .elements = keep.count,
                              .stage = distance == 1 ? Stage::last : Stage::partial});
    plan.rounds.push_back(std::move(round));
    Round gather;
    gather.sends.push_back({partner, kept, keep.count * s.element});
    gather.receives.push_back({partner, give.first * s.element, give.count * s.element});
    back.push_back(std::move(gather));
    left = keep;
  }
  for (auto round = back.rbegin(); round != back.rend(); ++round)
    plan.rounds.push_back(std::move(*round));
  if (fold.extra >= 0) plan.rounds.push_back(give_back(s, fold, 0));
  plan.memory = areas.end();
  return plan;
}

Schedule alone(const Shape& s) {
  Schedule plan;
  Round round;
  round.combines.push_back({.target = 0, .sources = {0}, .elements = s.elements});
  plan.rounds.push_back(std::move(round));
  plan.memory = s.bytes();
  return plan;
}

}  // namespace

std::string_view name(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::exchange:
      return "exchange";
    case Algorithm::direct:
      return "direct";
    case Algorithm::ring:
      return "ring";
    case Algorithm::doubling:
      return "doubling";
    case Algorithm::halving_doubling:
      return "halving_doubling";
  }
  return "unknown";
}

Algorithm choose_allreduce(const Mesh& mesh, std::uint64_t bytes, Partial partial,
                           std::uint64_t small_message) {
  const auto ranks = static_cast<std::uint64_t>(mesh.size);
  if (mesh.size <= kFew && bytes * ranks <= small_message) return Algorithm::exchange;
  if (needs_rank_order(mesh, partial)) return Algorithm::direct;
  if (bytes <= small_message && mesh.size > kFew) return Algorithm::doubling;
  // Rank order costs nothing then: as many bytes as a ring, in two rounds.
  if (mesh.size <= 2 || (mesh.size <= kFew && bytes <= ranks * small_message))
    return Algorithm::direct;
  if (!mesh.shares_hosts && mesh.size <= 2 * kFew) return Algorithm::direct;
  return bytes < ranks * small_message / 2 ? Algorithm::halving_doubling : Algorithm::ring;
}

Schedule make_allreduce(const Mesh& mesh, Algorithm algorithm, std::uint64_t elements,
                        std::uint64_t element) {
  const Shape shape{mesh, elements, element};
  if (mesh.size == 1) return alone(shape);
  Schedule plan;
  switch (algorithm) {
    case Algorithm::exchange:
      plan = exchange(shape);
      break;
    case Algorithm::direct:
      plan = direct(shape);
      break;
    case Algorithm::ring:
      plan = ring(shape);
      break;
    case Algorithm::doubling:
      plan = doubling(shape);
      break;
    case Algorithm::halving_doubling:
      plan = halving_doubling(shape);
      break;
  }
  finish(plan);
  return plan;
}

}  // namespace horo::runtime
