// SPDX-License-Identifier: Apache-2.0
#include "bench/collectives.hpp"

#include <algorithm>

namespace horo::bench {
namespace {

constexpr std::pair<const char*, CollectiveKind> kKinds[] = {
    {"allgather", CollectiveKind::allgather},         {"alltoall", CollectiveKind::alltoall},
    {"reducescatter", CollectiveKind::reducescatter}, {"broadcast", CollectiveKind::broadcast},
    {"allreduce", CollectiveKind::allreduce},         {"adasum", CollectiveKind::adasum}};

Result<Collective> collective_of(const Workload& workload, int ranks) {
  for (const auto& [name, kind] : kKinds) {
    if (workload.name != name) continue;
    const auto elements = workload.counts.front();
    if (elements % static_cast<std::size_t>(ranks) != 0) {
      return fail(Errc::invalid_argument, "{} elements cannot be divided among {} ranks", elements,
                  ranks);
    }
    return Collective{.kind = kind, .name = name, .elements = elements};
  }
  return fail(Errc::invalid_argument, "'{}' is not a collective", workload.name);
}

/// Whole numbers that differ by rank and position.
float pattern(int rank, std::size_t element) {
  return static_cast<float>(static_cast<std::size_t>(rank + 1) * (element % 13));
}

float wanted(const Collective& c, int rank, int ranks, std::size_t i) {
  const auto n = static_cast<std::size_t>(ranks);
  const auto me = static_cast<std::size_t>(rank);
  const std::size_t slice = c.elements / n;
  const int all = ranks * (ranks + 1) / 2;
  switch (c.kind) {
    case CollectiveKind::allgather:
      return pattern(static_cast<int>(i / slice), i % slice);
    case CollectiveKind::alltoall:
      return pattern(static_cast<int>(i / slice), me * slice + i % slice);
    case CollectiveKind::reducescatter:
      return pattern(all - 1, me * slice + i);
    case CollectiveKind::broadcast:
      return pattern(0, i);
    case CollectiveKind::allreduce:
    case CollectiveKind::adasum:
      break;
  }
  return pattern(all - 1, i);
}

Status verify(CollectiveContender& contender, const Collective& c) {
  const auto input = contender.input();
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = pattern(contender.rank(), i);
  HORO_TRY_STATUS(contender.step());
  if (c.kind == CollectiveKind::adasum) return {};  // The tests compare it with its definition.
  const auto output = contender.output();
  if (output.size() != c.output(contender.ranks()))
    return fail(Errc::protocol, "{}: {} elements came out", c.name, output.size());
  for (std::size_t i = 0; i < output.size(); ++i) {
    const float want = wanted(c, contender.rank(), contender.ranks(), i);
    if (output[i] != want) {
      return fail(Errc::protocol, "{}: element {} is {} on rank {} instead of {}", c.name, i,
                  output[i], contender.rank(), want);
    }
  }
  return {};
}

}  // namespace

std::size_t Collective::input(int ranks) const {
  return kind == CollectiveKind::allgather ? elements / static_cast<std::size_t>(ranks) : elements;
}

std::size_t Collective::output(int ranks) const {
  return kind == CollectiveKind::reducescatter ? elements / static_cast<std::size_t>(ranks)
                                               : elements;
}

Status run_collectives(CollectiveContender& contender, const Options& options) {
  HORO_TRY(const auto workloads, read_workloads(options.cases));
  for (const Workload& workload : workloads) {
    HORO_TRY(const auto collective, collective_of(workload, contender.ranks()));
    HORO_TRY_STATUS(contender.prepare(collective));
    HORO_TRY_STATUS(verify(contender, collective));
    std::ranges::fill(contender.input(), 0.0F);  // Sums of zeros stay small in however many steps.
    HORO_TRY(const auto measurement,
             measure([&] { return contender.step(); },
                     [&](double number) { return contender.agree(number); },
                     [] { return std::optional<std::uint64_t>{}; }, options.seconds));
    if (contender.rank() == 0) HORO_TRY_STATUS(write_line(options.out, row(workload, measurement)));
  }
  return {};
}

}  // namespace horo::bench
