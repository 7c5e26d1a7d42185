// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include <map>

#include "base/worker_env.hpp"

namespace horo::fuzz {

namespace {

/// Reads lines of NAME=value as a rank's environment.
std::string run_environment(std::string_view bytes) {
  std::map<std::string, std::string, std::less<>> variables;
  while (!bytes.empty()) {
    const auto line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(bytes.size(), line.size() + 1));
    const auto equals = line.find('=');
    if (equals == std::string_view::npos) continue;
    variables[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  const auto identity = read_worker_identity([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
  if (!identity) return identity.error().code == Errc::invalid_argument ? "" : "another error";
  if (!identity->has_value()) return "";
  const auto& w = **identity;
  if (w.rank.value() < 0 || w.rank.value() >= w.size) return "the rank is outside its job";
  if (w.local_rank.value() < 0 || w.local_rank.value() >= w.local_size)
    return "the local rank is outside its host";
  if (w.board_fd < -1) return "a descriptor below none";
  if (w.master_port > 65535) return "a port over 65535";
  return "";
}

std::string lines() {
  WorkerIdentity identity;
  identity.rank = Rank{1};
  identity.size = 4;
  identity.local_rank = LocalRank{1};
  identity.local_size = 2;
  identity.hostname = "node1";
  identity.rendezvous = "127.0.0.1:4711";
  identity.master_address = "node1";
  identity.master_port = 29500;
  identity.worker_addresses = {"node1:1", "node1:2", "node2:1", "node2:2"};
  std::string text;
  for (const auto& [name, value] : worker_environment(identity)) {
    // Only these variables are read back; the others are for other frameworks.
    if (name.starts_with("HORO_")) text += fmt::format("{}={}\n", name, value);
  }
  return text;
}

}  // namespace

std::vector<Target> environment_targets() {
  return {{.name = "environment",
           .run = run_environment,
           .seeds = {lines()},
           .words = {"HORO_RANK=", "HORO_SIZE=", "=", "\n", "-1", "65536", "99999999999999999999"},
           .rounds = 20000}};
}

}  // namespace horo::fuzz
