// SPDX-License-Identifier: Apache-2.0
#include "discovery/sources/lsf.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "discovery/host_list.hpp"
#include "discovery/sources/csm.hpp"
#include "discovery/sources/hostfile.hpp"
#include "discovery/text_file.hpp"

namespace horo::discovery {

namespace {

/// One form of the allocation.
struct Variable {
  const char* name;
  bool is_path;
  Result<HostSet> (*parse)(std::string_view);
};

constexpr std::array kVariables{
    Variable{"LSB_DJOB_HOSTFILE", true, [](std::string_view text) { return parse_hostfile(text); }},
    Variable{"LSB_DJOB_RANKFILE", true, [](std::string_view text) { return parse_hostfile(text); }},
    Variable{"LSB_MCPU_HOSTS", false, parse_host_pairs},
    Variable{"LSB_HOSTS", false, parse_host_words}};

Result<HostSet> read(const Variable& variable, const char* value) {
  if (!variable.is_path) return variable.parse(value);
  HORO_TRY(const auto text, read_text_file(value));
  return variable.parse(text);
}

/// On machines with CSM, the job's script runs on a separate launch node, which LSF lists first
/// with one slot.
HostSet without_launch_node(const HostSet& hosts) {
  const auto& all = hosts.hosts();
  if (all.size() < 2 || all.front().slots != 1) return hosts;
  return HostSet({all.begin() + 1, all.end()});
}

}  // namespace

Result<HostSet> parse_host_pairs(std::string_view text) {
  const auto parts = words(text, " \t\r\n");
  if (parts.empty() || parts.size() % 2 != 0)
    return fail(Errc::invalid_argument, "it must be pairs of a host and its slots");
  HostSet hosts;
  for (std::size_t i = 0; i < parts.size(); i += 2) {
    HORO_TRY(const int slots,
             parse_slots(parts[i + 1], fmt::format("{} {}", parts[i], parts[i + 1]), 1));
    HORO_TRY_STATUS(add_entry(hosts, parts[i], slots));
  }
  return hosts;
}

Result<HostSet> parse_host_words(std::string_view text) {
  HostSet hosts;
  for (const auto word : words(text, " \t\r\n")) HORO_TRY_STATUS(add_entry(hosts, word, 1));
  if (hosts.empty()) return fail(Errc::invalid_argument, "it names no host");
  return hosts;
}

LsfSource::LsfSource(Lookup environment, std::string csm_folder, Use use)
    : environment_(std::move(environment)), csm_folder_(std::move(csm_folder)), use_(use) {
  const char* id = environment_("LSB_JOBID");
  name_ = fmt::format("LSF job {}", id == nullptr ? "?" : id);
}

bool LsfSource::is_here(const Lookup& environment) {
  return environment("LSB_JOBID") != nullptr;
}

bool LsfSource::can_follow(const Lookup& environment) {
  return environment("CSM_ALLOCATION_ID") == nullptr &&
         std::ranges::any_of(kVariables, [&](const Variable& variable) {
           return variable.is_path && environment(variable.name) != nullptr;
         });
}

Result<Listing> LsfSource::from_csm(const char* allocation, WaitLimit limit) const {
  HORO_TRY(const auto found, ask_csm(csm_folder_, allocation, limit));
  HostSet hosts;
  for (const auto& node : found.nodes) {
    HostSet named;
    HORO_TRY_STATUS(add_entry(named, node, found.gpus));
    for (const auto& host : named.hosts())
      hosts.add({.name = host.name, .slots = found.gpus, .gpus = found.gpus});
  }
  return Listing{
      .hosts = std::move(hosts),
      .from = fmt::format("nodes of CSM allocation {}, slots from their GPUs", allocation)};
}

Result<Listing> LsfSource::from_variables(std::string tried) const {
  const bool launch_node = environment_("CSM_ALLOCATION_ID") != nullptr;
  for (const auto& variable : kVariables) {
    const char* value = environment_(variable.name);
    std::string problem = "is not set";
    if (value != nullptr) {
      auto hosts = read(variable, value);
      if (hosts) {
        return Listing{.hosts = launch_node ? without_launch_node(*hosts) : std::move(*hosts),
                       .from = fmt::format("slots from {}", variable.name)};
      }
      problem = variable.is_path ? fmt::format("'{}': {}", value, hosts.error().message)
                                 : hosts.error().message;
    }
    tried += fmt::format("{}{}: {}", tried.empty() ? "" : "; ", variable.name, problem);
    if (use_ == Use::follow && variable.is_path && value != nullptr) break;
  }
  return fail(Errc::unavailable,
              "{}: its hosts cannot be read ({}); give them with -H or --hostfile", name_, tried);
}

bool LsfSource::may_have(const std::string& host) const {
  const auto listing = from_variables({});
  if (!listing) return true;
  const auto stem = [](const std::string& name) { return name.substr(0, name.find('.')); };
  const auto& hosts = listing->hosts.hosts();
  return std::any_of(hosts.begin(), hosts.end(),
                     [&](const Host& one) { return stem(one.name) == stem(host); });
}

Result<Listing> LsfSource::list(WaitLimit limit) {
  const char* allocation = environment_("CSM_ALLOCATION_ID");
  if (allocation == nullptr) return from_variables({});
  auto listing = from_csm(allocation, limit);
  if (listing) return listing;
  return from_variables(fmt::format("CSM allocation {}: {}", allocation, listing.error().message));
}

}  // namespace horo::discovery
