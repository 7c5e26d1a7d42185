// SPDX-License-Identifier: Apache-2.0
#include "discovery/sources/slurm_queue.hpp"

#include <optional>
#include <unistd.h>
#include <utility>

#include "discovery/host_list.hpp"
#include "discovery/program.hpp"

namespace horo::discovery {

namespace {

std::optional<std::string> find_squeue(const Lookup& environment) {
  const char* path = environment("PATH");
  if (path == nullptr) return {};
  std::string_view rest = path;
  while (true) {
    const auto colon = rest.find(':');
    auto program = fmt::format("{}/squeue", rest.substr(0, colon));
    if (access(program.c_str(), X_OK) == 0) return program;
    if (colon == std::string_view::npos) return {};
    rest.remove_prefix(colon + 1);
  }
}

std::string job_id(const Lookup& environment) {
  const char* id = environment("SLURM_JOB_ID");
  return id == nullptr ? "" : id;
}

/// "h[1-2],n7" and the end of the line. A job that has no node any more has an empty line.
Result<std::vector<std::string>> parse_nodes(std::string_view answer) {
  std::vector<std::string> nodes;
  const auto line = answer.substr(0, answer.find_first_of(" \r\n"));
  if (line.empty()) return nodes;
  for (const auto& entry : split_list(line)) {
    HORO_TRY(auto names, expand_names(entry.text));
    if (nodes.size() + names.size() > kMaxHosts)
      return fail(Errc::unavailable, "it names more than {} nodes", kMaxHosts);
    nodes.insert(nodes.end(), names.begin(), names.end());
  }
  return nodes;
}

}  // namespace

bool can_ask_slurm(const Lookup& environment) {
  return !job_id(environment).empty() && environment("SLURM_HET_SIZE") == nullptr &&
         environment("SLURM_PACK_SIZE") == nullptr && find_squeue(environment).has_value();
}

Result<std::vector<std::string>> slurm_nodes_now(const Lookup& environment, WaitLimit limit) {
  const auto squeue = find_squeue(environment);
  if (!squeue) return fail(Errc::not_found, "squeue is not in PATH; {}", kNameTheHosts);
  const auto id = job_id(environment);
  HORO_TRY(const auto answer,
           output_of({*squeue, "--noheader", "--jobs=" + id, "--format=%N"}, limit));
  auto nodes = parse_nodes(answer);
  if (!nodes) {
    return fail(Errc::unavailable, "squeue's list of the nodes of job {}: {}", id,
                nodes.error().message);
  }
  return nodes;
}

SlurmQueueSource::SlurmQueueSource(Lookup environment, int ranks_per_host)
    : environment_(environment), began_(std::move(environment), ranks_per_host) {}

Result<Listing> SlurmQueueSource::list(WaitLimit limit) {
  HORO_TRY(const auto began, began_.list(limit));
  auto now = slurm_nodes_now(environment_, limit);
  if (!now) return Failure(std::move(now).error().context(began_.name()));
  Listing listing{.hosts = {}, .from = began.from + ", nodes asked again by squeue"};
  for (const auto& name : *now) {
    const auto* known = began.hosts.find(name);
    auto host = known != nullptr ? *known : began.hosts.hosts().front();
    host.name = name;
    listing.hosts.add(host);
  }
  return listing;
}

}  // namespace horo::discovery
