// SPDX-License-Identifier: Apache-2.0
#include "tests/spanning/runs.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include "runtime/simulator/delays.hpp"
#include "tests/spanning/watchdog.hpp"
#include "tests/support/run_tests.hpp"

namespace horo::spanning {

namespace {

std::optional<std::uint64_t> seed_of_run;  // Changed only between runs.

std::uint64_t drawn_seed() {
  const char* const text = std::getenv("HORO_SIM_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device{}();
}

/// The options of this program; the others are Catch2's.
struct Request {
  std::uint64_t runs = 0;  ///< 0: one, which does everything.
  std::uint64_t first_seed = 1;
  std::vector<char*> rest;
};

std::optional<Request> parse(int argc, char** argv) {
  Request request;
  for (int i = 0; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool runs = word == "--runs";
    if (!runs && word != "--first-seed") {
      request.rest.push_back(argv[i]);
      continue;
    }
    const std::string_view text = ++i < argc ? argv[i] : "";
    auto& number = runs ? request.runs : request.first_seed;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  }
  return request;
}

int run_many(Request& request) {
  // A comma in the name of a test separates two names: runs without a test would all pass.
  std::string words[] = {"--reporter", "compact", "--warn", "NoTests"};
  for (auto& word : words) request.rest.push_back(word.data());
  Watchdog watchdog;
  std::uint64_t failed = 0;
  std::uint64_t interrupted = 0;
  for (std::uint64_t run = 0; run < request.runs;) {
    const auto seed = request.first_seed + run;
    seed_of_run = seed;
    test::set_delay_seed(seed);
    watchdog.begin(seed);
    const bool passed =
        test::run_tests(static_cast<int>(request.rest.size()), request.rest.data()) == 0;
    // Time limits say nothing about a run that was stopped on its way: it runs again.
    if (watchdog.end() && !passed) {
      ++interrupted;
      continue;
    }
    ++run;
    if (!passed) {
      ++failed;
      std::printf("FAILED: --runs 1 --first-seed %llu\n", static_cast<unsigned long long>(seed));
    }
    std::fflush(stdout);
  }
  std::printf(
      "%llu runs from seed %llu: %llu failed, %llu repeated because the process was stopped\n",
      static_cast<unsigned long long>(request.runs),
      static_cast<unsigned long long>(request.first_seed), static_cast<unsigned long long>(failed),
      static_cast<unsigned long long>(interrupted));
  return failed == 0 ? 0 : 1;
}

}  // namespace

bool is_one_of_many() {
  return seed_of_run.has_value();
}

std::uint64_t run_seed() {
  return seed_of_run ? *seed_of_run : drawn_seed();
}

Duration patience() {
  return is_one_of_many() ? std::chrono::minutes(10) : std::chrono::seconds(30);
}

int run(int argc, char** argv) {
  auto request = parse(argc, argv);
  if (!request) {
    std::fputs("--runs and --first-seed need a whole number\n", stderr);
    return 2;
  }
  if (request->runs != 0) return run_many(*request);
  return test::run_tests(argc, argv);
}

}  // namespace horo::spanning

int main(int argc, char** argv) {
  return horo::spanning::run(argc, argv);
}
