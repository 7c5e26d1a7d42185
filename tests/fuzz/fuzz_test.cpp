// SPDX-License-Identifier: Apache-2.0
// Feeds mutated input to every parser. HORO_FUZZ_SEED repeats a run, HORO_FUZZ_FACTOR makes it
// longer.
#include "mutate.hpp"

#include <cstdlib>
#include <random>
#include <string>

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace {

std::uint64_t number_from(const char* variable, std::uint64_t fallback) {
  const char* text = std::getenv(variable);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

std::string hex(const std::string& bytes) {
  std::string out;
  for (const char byte : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return out;
}

void fuzz(const horo::fuzz::Target& target) {
  const auto seed = number_from("HORO_FUZZ_SEED", 1);
  const auto rounds =
      static_cast<std::uint64_t>(target.rounds) * number_from("HORO_FUZZ_FACTOR", 1);
  INFO(target.name << ", HORO_FUZZ_SEED=" << seed);
  for (const auto& good : target.seeds) {
    INFO("unchanged " << hex(good));
    CHECK(target.run(good).empty());
  }
  std::mt19937_64 random(seed);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    const auto bytes = horo::fuzz::mutated(target, random);
    // Catch2 prints this if a signal ends the test.
    INFO("round " << i << ", bytes " << hex(bytes));
    const auto broken = target.run(bytes);
    if (!broken.empty()) FAIL(broken);
  }
  WARN(target.name << ": " << rounds << " mutations, HORO_FUZZ_SEED=" << seed);
}

}  // namespace

TEST_CASE("the key-value parsers keep their promises for mutated input") {
  for (const auto& target : horo::fuzz::kv_targets()) fuzz(target);
}

TEST_CASE("the agent protocol keeps its promises for mutated input") {
  for (const auto& target : horo::fuzz::agent_targets()) fuzz(target);
}

TEST_CASE("the parsers of host lists keep their promises for mutated input") {
  for (const auto& target : horo::fuzz::hosts_targets()) fuzz(target);
}

TEST_CASE("the timeline and trace readers keep their promises for mutated input") {
  for (const auto& target : horo::fuzz::timeline_targets()) fuzz(target);
}

TEST_CASE("the reader of a rank's environment keeps its promises for mutated input") {
  for (const auto& target : horo::fuzz::environment_targets()) fuzz(target);
}

TEST_CASE("the reader of config files keeps its promises for mutated input") {
  for (const auto& target : horo::fuzz::config_targets()) fuzz(target);
}

TEST_CASE("the readers of logs and searches of autotuners keep their promises for mutated input") {
  for (const auto& target : horo::fuzz::tune_targets()) fuzz(target);
}

TEST_CASE("the readers of frames between hosts keep their promises for mutated input") {
  for (const auto& target : horo::fuzz::tree_targets()) fuzz(target);
}

TEST_CASE("what reads bytes at a rank's port keeps its promises for mutated input") {
  for (const auto& target : horo::fuzz::tcp_targets()) fuzz(target);
}

TEST_CASE("the bootstrap parsers keep their promises for mutated input") {
  for (const auto& target : horo::fuzz::bootstrap_targets()) fuzz(target);
}
