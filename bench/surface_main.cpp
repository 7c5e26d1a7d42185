// SPDX-License-Identifier: Apache-2.0
// One rank of a recording: how fast steps are for each fusion threshold, cycle time and, if any are
// given, small message. The tensors of a step appear evenly during a time in which the rank sleeps,
// as if an accelerator computed. bench/record_surface starts the ranks. Rank 0 prints lines
// "threshold,cycle_us,bytes per second", with small messages "threshold,cycle_us,small,...".
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <horo/horo.h>

#include "autotune/chance/draws.hpp"
#include "autotune/steady_part.hpp"
#include "base/result.hpp"
#include "bench/parse_numbers.hpp"

namespace {

using namespace horo;
using Clock = std::chrono::steady_clock;

struct Cell {
  std::uint64_t threshold = 0;
  std::uint64_t cycle_us = 0;
  std::optional<std::uint64_t> small;  ///< Nothing: as the environment has it.
};

struct Options {
  std::vector<std::uint64_t> counts;      ///< Elements of each tensor.
  std::vector<std::uint64_t> thresholds;  ///< In bytes.
  std::vector<std::uint64_t> cycles;      ///< In microseconds.
  std::vector<std::uint64_t> smalls;      ///< In bytes. Empty: not a part of the grid.
  std::uint64_t over_us = 30000;          ///< The tensors of a step appear during this time.
  std::uint64_t warm_up = 1;  ///< Steps before the measured ones: the first agrees on names.
  std::uint64_t steps = 5;
  std::uint64_t repeats = 3;
};

Status check(horo_status status, const char* call) {
  if (status == HORO_OK) return {};
  return fail(static_cast<Errc>(status), "{}: {}: {}", call, horo_status_name(status),
              horo_last_error());
}

/// The tensors of the model, declared in the present session.
struct Model {
  std::vector<std::vector<float>> values;
  std::vector<horo_tensor> handles;
  std::vector<horo_op> operations;
};

Result<Model> declare(const Options& options) {
  Model model;
  for (const auto count : options.counts) {
    model.values.emplace_back(count, 1.0F);
    const std::string name = fmt::format("surface.{}", model.values.size());
    const auto extent = static_cast<std::int64_t>(count);
    horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
    desc.name = name.c_str();
    desc.ndim = 1;
    desc.shape = &extent;
    HORO_TRY_STATUS(check(horo_declare(&desc, &model.handles.emplace_back()), "horo_declare"));
  }
  model.operations.assign(model.handles.size(), 0);
  return model;
}

Status step(Model& model, std::uint64_t over_us) {
  const auto begin = Clock::now();
  const auto count = model.handles.size();
  for (std::size_t i = 0; i < count; ++i) {
    std::this_thread::sleep_until(begin + std::chrono::microseconds(over_us * i / count));
    float* values = model.values[i].data();
    HORO_TRY_STATUS(
        check(horo_submit(model.handles[i], values, values, &model.operations[i]), "horo_submit"));
  }
  return check(horo_wait_all(model.operations.data(), count, -1), "horo_wait_all");
}

/// The steps of a cell, without slower ones at the beginning, as jobs measure.
struct Steady {
  double mean = 0;   ///< Seconds of a step.
  double error = 0;  ///< The standard error of `mean`.
  std::size_t steps = 0;
};

Steady steady_of(std::span<const double> times) {
  const auto kept = times.subspan(autotune::steady_begin(times));
  const auto count = static_cast<double>(kept.size());
  const double mean = std::accumulate(kept.begin(), kept.end(), 0.0) / count;
  double squares = 0;
  for (const double time : kept) squares += (time - mean) * (time - mean);
  return {.mean = mean,
          .error = std::sqrt(squares / (count * std::max(1.0, count - 1))),
          .steps = kept.size()};
}

/// A cell is measured in parts of `steps`. As in jobs, parts follow until the standard error is
/// small, but not without end.
constexpr double kGoodError = 0.01;
constexpr std::uint64_t kMostParts = 8;

/// Whether rank 0 wants another part. All ranks get the same answer.
Result<bool> goes_on(bool wanted) {
  float votes = horo_rank() == 0 && wanted ? 1 : 0;
  const std::int64_t extent = 1;
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  desc.name = "surface.goes_on";
  desc.ndim = 1;
  desc.shape = &extent;
  horo_tensor tensor = 0;
  horo_op operation = 0;
  HORO_TRY_STATUS(check(horo_declare(&desc, &tensor), "horo_declare"));
  HORO_TRY_STATUS(check(horo_submit(tensor, &votes, &votes, &operation), "horo_submit"));
  HORO_TRY_STATUS(check(horo_wait_all(&operation, 1, -1), "horo_wait_all"));
  return votes > 0;
}

Result<Steady> measure(Model& model, const Options& options) {
  std::vector<double> times;
  for (std::uint64_t part = 1;; ++part) {
    for (std::uint64_t i = 0; i < options.steps; ++i) {
      const auto begin = Clock::now();
      HORO_TRY_STATUS(step(model, options.over_us));
      times.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    const auto steady = steady_of(times);
    const bool rough = steady.error > kGoodError * steady.mean || steady.steps < options.steps;
    HORO_TRY(const bool more, goes_on(part < kMostParts && rough));
    if (!more) return steady;
  }
}

/// Measures a cell in a session of its own, and prints its line.
Status time_cell(const Options& options, const Cell& cell) {
  setenv("HORO_FUSION_THRESHOLD", fmt::format("{}", cell.threshold).c_str(), 1);
  setenv("HORO_CYCLE_TIME", fmt::format("{}us", cell.cycle_us).c_str(), 1);
  if (cell.small) setenv("HORO_SMALL_MESSAGE", fmt::format("{}", *cell.small).c_str(), 1);
  HORO_TRY_STATUS(check(horo_init(), "horo_init"));
  HORO_TRY(auto model, declare(options));
  for (std::uint64_t i = 0; i < options.warm_up; ++i) HORO_TRY_STATUS(step(model, options.over_us));
  HORO_TRY(const auto steady, measure(model, options));
  const bool prints = horo_rank() == 0;
  HORO_TRY_STATUS(check(horo_shutdown(), "horo_shutdown"));
  double bytes = 0;
  for (const auto count : options.counts) bytes += 4 * static_cast<double>(count);
  if (prints) {
    const auto small = cell.small ? fmt::format("{},", *cell.small) : std::string();
    fmt::print("{},{},{}{:.6g}\n", cell.threshold, cell.cycle_us, small, bytes / steady.mean);
  }
  std::fflush(stdout);
  return {};
}

std::vector<Cell> grid_of(const Options& options) {
  std::vector<Cell> cells;
  for (const auto threshold : options.thresholds) {
    for (const auto cycle : options.cycles) {
      if (options.smalls.empty()) cells.push_back({threshold, cycle, std::nullopt});
      for (const auto small : options.smalls) cells.push_back({threshold, cycle, small});
    }
  }
  return cells;
}

/// Each repeat visits all cells in another order, so that a drift of the machine hits all alike.
Status record(const Options& options) {
  auto cells = grid_of(options);
  autotune::RandomDraws draws(1);
  for (std::uint64_t repeat = 0; repeat < options.repeats; ++repeat) {
    for (std::size_t i = cells.size(); i > 1; --i) std::swap(cells[i - 1], cells[draws.below(i)]);
    for (const auto& cell : cells) {
      HORO_TRY_STATUS(time_cell(options, cell));
    }
  }
  return {};
}

bool parse(int argc, char** argv, Options& options) {
  std::vector<std::uint64_t> over{options.over_us}, steps{options.steps}, repeats{options.repeats},
      warm_up{options.warm_up};
  const std::map<std::string, std::vector<std::uint64_t>*> lists = {
      {"--counts", &options.counts}, {"--thresholds", &options.thresholds},
      {"--cycles", &options.cycles}, {"--small-messages", &options.smalls},
      {"--over-us", &over},          {"--steps", &steps},
      {"--repeats", &repeats},       {"--warm-up", &warm_up}};
  for (int i = 1; i < argc; i += 2) {
    const auto found = lists.find(argv[i]);
    if (found == lists.end() || i + 1 == argc) return false;
    *found->second = bench::parse_numbers(argv[i + 1]);
    if (found->second->empty()) return false;
  }
  options.over_us = over[0];
  options.steps = steps[0];
  options.repeats = repeats[0];
  options.warm_up = warm_up[0];
  return !options.counts.empty() && !options.thresholds.empty() && !options.cycles.empty();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fputs(
        "usage: bench_surface --counts N,... --thresholds BYTES,... --cycles US,... "
        "[--small-messages BYTES,...] [--over-us N] [--warm-up N] [--steps N] [--repeats N]\n",
        stderr);
    return 2;
  }
  const auto done = record(options);
  if (done) return 0;
  fmt::print(stderr, "bench_surface: {}\n", done.error().message);
  return 1;
}
