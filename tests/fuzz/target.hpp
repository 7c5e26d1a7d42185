// SPDX-License-Identifier: Apache-2.0
// A fuzz target is a function that takes any bytes and reports whether the code under test kept its
// promises.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace horo::fuzz {

struct Target {
  const char* name;
  /// Returns an empty text if all promises were kept, otherwise the broken one. Deterministic. Ends
  /// the process only if the code under test does.
  std::string (*run)(std::string_view bytes);
  std::vector<std::string> seeds;  ///< Valid input.
  std::vector<std::string> words;  ///< Words that mutations insert.
  int rounds;  ///< Number of rounds in the test suite; all targets together take seconds.
};

std::vector<Target> agent_targets();
std::vector<Target> bootstrap_targets();
std::vector<Target> config_targets();
std::vector<Target> environment_targets();
std::vector<Target> hosts_targets();
std::vector<Target> kv_targets();
std::vector<Target> tcp_targets();
std::vector<Target> timeline_targets();
std::vector<Target> tree_targets();
std::vector<Target> tune_targets();

inline std::vector<Target> all_targets() {
  std::vector<Target> all;
  for (const auto& part :
       {kv_targets(), agent_targets(), hosts_targets(), environment_targets(), config_targets(),
        tree_targets(), tcp_targets(), bootstrap_targets(), timeline_targets(), tune_targets()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace horo::fuzz
