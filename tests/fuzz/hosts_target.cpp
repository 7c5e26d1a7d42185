// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include <map>

#include "discovery/sources/hostfile.hpp"
#include "discovery/sources/lsf.hpp"
#include "discovery/sources/slurm.hpp"
#include "discovery/sources/static.hpp"

namespace horo::fuzz {

namespace {

using discovery::HostSet;

std::string check(const Result<HostSet>& hosts) {
  if (!hosts) {
    if (hosts.error().code != Errc::invalid_argument) return "the error is not invalid_argument";
    return hosts.error().message.empty() ? "an error without a message" : "";
  }
  if (hosts->empty()) return "a list without hosts was accepted";
  if (hosts->size() > discovery::kMaxHosts) return "the list has more hosts than a job may have";
  for (const auto& host : hosts->hosts()) {
    if (host.name.empty()) return "a host without a name";
    if (host.slots < 0) return "a host with less than no slots";
    // The name becomes an argument of programs that take options.
    if (host.name.front() == '-') return "the name of a host reads like an option";
  }
  return "";
}

std::string run_hostfile(std::string_view bytes) {
  return check(discovery::parse_hostfile(bytes));
}

std::string run_list(std::string_view bytes) {
  discovery::StaticSource source{std::string(bytes)};
  const auto listing = source.list(Deadline::never());
  if (!listing) return check(Failure(listing.error()));
  return check(listing->hosts);
}

/// Reads a Slurm job whose variables are the lines of `bytes`.
std::string run_slurm(std::string_view bytes) {
  std::map<std::string, std::string> variables;
  while (!bytes.empty()) {
    const auto line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
    const auto equals = std::min(line.find('='), line.size());
    variables.emplace(line.substr(0, equals), line.substr(std::min(equals + 1, line.size())));
  }
  discovery::SlurmSource source(
      [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      4);
  const auto listing = source.list(Deadline::never());
  if (listing) return check(listing->hosts);
  if (listing.error().code != Errc::unavailable) return "the error is not unavailable";
  return listing.error().message.starts_with("Slurm job ") ? "" : "the error does not name the job";
}

std::string run_pairs(std::string_view bytes) {
  return check(discovery::parse_host_pairs(bytes));
}

std::string run_words(std::string_view bytes) {
  return check(discovery::parse_host_words(bytes));
}

std::string run_csm(std::string_view bytes) {
  for (const auto& value : discovery::csm_values(bytes, "compute_nodes")) {
    if (value.empty()) return "an empty value";
  }
  return "";
}

const std::vector<std::string> kWords{":", ",", "[",       "]",         "slots=", "\n",
                                      "#", " ", "1000000", "a:1000000", "-"};

const std::vector<std::string> kSlurmJobs{
    "SLURM_JOB_ID=4\nSLURM_JOB_NODELIST=tux[1-2,5],gpu07\nSLURM_TASKS_PER_NODE=2(x3),1\n",
    "SLURM_JOB_NODELIST=a[1-2]\nSLURM_GPUS_PER_NODE=a100:3,v100:1\n"
    "SLURM_JOB_CPUS_PER_NODE=64(x2)\n",
    "SLURM_HET_SIZE=2\nSLURM_JOB_NODELIST_HET_GROUP_0=h1\n"
    "SLURM_JOB_NODELIST_HET_GROUP_1=h[2-3]\nSLURM_TASKS_PER_NODE_HET_GROUP_0=2\n"
    "SLURM_TASKS_PER_NODE_HET_GROUP_1=2,1\n"};

}  // namespace

std::vector<Target> hosts_targets() {
  return {
      {.name = "hostfile",
       .run = run_hostfile,
       .seeds = {"node1 slots=4\nnode2:2 # comment\n\nnode3\n",
                 "[fe80::1%eth0]:2\r\n10.0.0.1 slots=1\n"},
       .words = kWords,
       .rounds = 30000},
      {.name = "host-list",
       .run = run_list,
       .seeds = {"a:2, b:4,c", "[::1]:2,10.0.0.1:3", "node[01-16,20]:4,r[0-1]n[1-3]"},
       .words = kWords,
       .rounds = 30000},
      {.name = "slurm",
       .run = run_slurm,
       .seeds = kSlurmJobs,
       .words = {"(x", ")", "[", "]", "-", ",", "=", "\n", "(x100000)", "[1-100000]", "999999999"},
       .rounds = 10000},
      {.name = "lsf-pairs",
       .run = run_pairs,
       .seeds = {"hostA 2 hostB 4 ", "batch1 1 h50n05 42"},
       .words = kWords,
       .rounds = 20000},
      {.name = "lsf-words",
       .run = run_words,
       .seeds = {"hostA hostA hostB"},
       .words = kWords,
       .rounds = 20000},
      {.name = "csm",
       .run = run_csm,
       .seeds = {"---\nallocation_id: 5\ncompute_nodes:\n - h50n06\n - h50n05\nstate: running\n"},
       .words = {"compute_nodes:", "- ", "[", "]", ",", "\n", "'"},
       .rounds = 20000},
  };
}

}  // namespace horo::fuzz
