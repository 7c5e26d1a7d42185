// SPDX-License-Identifier: Apache-2.0
#include "bench/harness.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string_view>
#include <sys/resource.h>
#include <thread>

#include <fmt/format.h>

namespace horo::bench {
namespace {

constexpr int kWarmUpSteps = 2;
constexpr int kLeastSteps = 3;
constexpr int kMostSteps = 20000;

double now() {
  const auto since_start = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since_start).count();
}

/// Whole numbers that float32 represents exactly, and that differ by rank, tensor and element.
float pattern(int rank, std::size_t tensor, std::size_t element) {
  return static_cast<float>(static_cast<std::size_t>(rank + 1) * ((element + 7 * tensor) % 13));
}

void fill(Contender& contender, std::size_t tensors, float value) {
  for (std::size_t i = 0; i < tensors; ++i) {
    std::ranges::fill(contender.tensor(i), value);
  }
}

Status verify(Contender& contender, const Workload& workload) {
  for (std::size_t i = 0; i < workload.counts.size(); ++i) {
    const auto values = contender.tensor(i);
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = pattern(contender.rank(), i, k);
  }
  HORO_TRY_STATUS(contender.step());
  const int all = contender.ranks() * (contender.ranks() + 1) / 2;
  for (std::size_t i = 0; i < workload.counts.size(); ++i) {
    const auto values = contender.tensor(i);
    for (std::size_t k = 0; k < values.size(); ++k) {
      const float want = pattern(all - 1, i, k);
      if (values[k] != want) {
        return fail(Errc::protocol,
                    "case {}: element {} of tensor {} is {} on rank {}, the sum is {}",
                    workload.name, k, i, values[k], contender.rank(), want);
      }
    }
  }
  return {};
}

/// Gives rank 0's number to every rank. The tensors are all zero before and after.
Result<double> agree(Contender& contender, double number) {
  float& cell = contender.tensor(0).front();
  cell = contender.rank() == 0 ? static_cast<float>(number) : 0.0F;
  HORO_TRY_STATUS(contender.step());
  const double agreed = cell;
  cell = 0.0F;
  return agreed;
}

long context_switches() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nvcsw + usage.ru_nivcsw;
}

Status stay_idle(Contender& contender, const Options& options) {
  HORO_TRY_STATUS(contender.prepare({.name = "idle", .counts = {1}}));
  fill(contender, 1, 0.0F);
  HORO_TRY_STATUS(contender.step());
  HORO_TRY_STATUS(write_line(options.out, "ready"));
  std::this_thread::sleep_for(std::chrono::duration<double>(options.idle));
  return {};
}

template <typename Number>
bool parse_number(std::string_view text, Number& number) {
  const auto* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && stop == end;
}

}  // namespace

std::size_t Workload::bytes() const {
  return sizeof(float) * std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

Result<Measurement> measure(const std::function<Status()>& step,
                            const std::function<Result<double>(double)>& agree,
                            const std::function<std::optional<std::uint64_t>()>& entries,
                            double budget) {
  for (int i = 0; i < kWarmUpSteps; ++i) HORO_TRY_STATUS(step());
  double begin = now();
  HORO_TRY_STATUS(step());
  HORO_TRY(const double once, agree(now() - begin));
  const double wanted = budget / std::max(once, 1e-7);
  const int steps = static_cast<int>(std::clamp(wanted, double{kLeastSteps}, double{kMostSteps}));

  Measurement result;
  result.seconds.reserve(static_cast<std::size_t>(steps));
  const auto before = entries();
  const long switches = context_switches();
  for (int i = 0; i < steps; ++i) {
    begin = now();
    HORO_TRY_STATUS(step());
    result.seconds.push_back(now() - begin);
  }
  result.switches_per_step = static_cast<double>(context_switches() - switches) / steps;
  if (before) result.entries_per_step = static_cast<double>(*entries() - *before) / steps;
  std::ranges::sort(result.seconds);
  return result;
}

std::string row(const Workload& workload, const Measurement& measurement) {
  const auto& seconds = measurement.seconds;
  const auto at = [&](double share) {
    return seconds[static_cast<std::size_t>(share * static_cast<double>(seconds.size() - 1))] * 1e6;
  };
  const auto entries = measurement.entries_per_step;
  return fmt::format(
      R"({{"case": "{}", "bytes": {}, "reps": {}, "median_us": {:.2f}, "min_us": {:.2f}, "p95_us": {:.2f}, )"
      R"("entries_per_step": {}, "switches_per_step": {:.2f}}})",
      workload.name, workload.bytes(), seconds.size(), at(0.5), at(0), at(0.95),
      entries ? fmt::format("{:.2f}", *entries) : "null", measurement.switches_per_step);
}

Status write_line(const std::string& path, const std::string& line) {
  std::FILE* file = path.empty() ? stdout : std::fopen(path.c_str(), "a");
  if (file == nullptr) return fail_errno(errno, fmt::format("opening '{}'", path));
  fmt::print(file, "{}\n", line);
  const int bad = path.empty() ? std::fflush(file) : std::fclose(file);
  if (bad != 0) return fail_errno(errno, fmt::format("writing '{}'", path));
  return {};
}

Result<Options> parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view key = argv[i];
    if (i + 1 == argc) return fail(Errc::invalid_argument, "{} needs a value", key);
    const std::string_view value = argv[i + 1];
    bool good = true;
    if (key == "--cases") {
      options.cases = value;
    } else if (key == "--out") {
      options.out = value;
    } else if (key == "--seconds") {
      good = parse_number(value, options.seconds) && options.seconds > 0;
    } else if (key == "--ranks") {
      good = parse_number(value, options.ranks) && options.ranks > 0;
    } else if (key == "--memory") {
      options.memory = value;
      good = value == "own" || value == "shared";
    } else if (key == "--turns") {
      good = parse_number(value, options.turns) && options.turns > 0;
    } else if (key == "--trace") {
      options.trace = value;
    } else if (key == "--idle") {
      good = parse_number(value, options.idle) && options.idle > 0;
    } else {
      return fail(Errc::invalid_argument,
                  "unknown option {}; known: --cases --out --seconds --ranks --memory --turns "
                  "--trace --idle",
                  key);
    }
    if (!good) return fail(Errc::invalid_argument, "{} '{}' is not valid", key, value);
  }
  return options;
}

Result<std::vector<Workload>> read_workloads(const std::string& path) {
  std::ifstream file(path);
  if (!file) return fail(Errc::not_found, "cannot read the cases in '{}'", path);
  std::vector<Workload> workloads;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    Workload workload;
    words >> workload.name;
    bool good = true;
    for (std::string word; good && words >> word;) {
      good = parse_number(word, workload.counts.emplace_back()) && workload.counts.back() > 0;
    }
    if (!good || workload.counts.empty()) {
      return fail(Errc::invalid_argument,
                  "'{}' line {}: the line must have a name and element counts from 1 up", path,
                  workloads.size() + 1);
    }
    workloads.push_back(std::move(workload));
  }
  return workloads;
}

Status run_cases(Contender& contender, const Options& options) {
  if (options.idle > 0) return stay_idle(contender, options);
  HORO_TRY(const auto workloads, read_workloads(options.cases));
  for (const Workload& workload : workloads) {
    HORO_TRY_STATUS(contender.prepare(workload));
    HORO_TRY_STATUS(verify(contender, workload));
    // Sums of zeros stay small in however many steps.
    fill(contender, workload.counts.size(), 0.0F);
    HORO_TRY(const auto measurement,
             measure([&] { return contender.step(); },
                     [&](double number) { return agree(contender, number); },
                     [&] { return contender.entries(); }, options.seconds));
    if (contender.rank() == 0) HORO_TRY_STATUS(write_line(options.out, row(workload, measurement)));
  }
  return {};
}

int exit_code_of(const Status& status, const char* program) {
  if (status) return 0;
  fmt::print(stderr, "{}: {}\n", program, status.error().message);
  return 1;
}

}  // namespace horo::bench
