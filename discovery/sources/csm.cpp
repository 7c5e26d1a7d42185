// SPDX-License-Identifier: Apache-2.0
#include "discovery/sources/csm.hpp"

#include <algorithm>
#include <charconv>

#include "discovery/host_list.hpp"
#include "discovery/program.hpp"
#include "discovery/text_file.hpp"

namespace horo::discovery {

namespace {

/// Returns 0 if there is no such number.
int number_of(std::string_view text, std::string_view key) {
  const auto values = csm_values(text, key);
  int value = 0;
  if (values.empty()) return 0;
  const auto& first = values.front();
  const auto [rest, error] = std::from_chars(first.data(), first.data() + first.size(), value);
  return error == std::errc{} && value > 0 && value <= kMaxSlots ? value : 0;
}

}  // namespace

std::vector<std::string> csm_values(std::string_view text, std::string_view key) {
  std::vector<std::string> values;
  bool inside = false;
  for (const auto line : words(text, "\r\n")) {
    const auto first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos) continue;
    const auto content = line.substr(first);
    if (inside && !content.starts_with("- ")) break;
    const bool begins = content.starts_with(key) && content.substr(key.size()).starts_with(':');
    if (!inside && !begins) continue;
    inside = true;
    const auto part = content.substr(begins ? key.size() + 1 : 2);
    for (const auto word : words(part, " \t,[]\"'")) values.emplace_back(word);
  }
  return values;
}

Result<CsmNodes> ask_csm(const std::string& folder, const std::string& allocation,
                         WaitLimit limit) {
  HORO_TRY(const auto answer,
           output_of({folder + "/csm_allocation_query", "-a", allocation}, limit));
  CsmNodes found{.nodes = csm_values(answer, "compute_nodes")};
  if (found.nodes.empty()) return fail(Errc::unavailable, "its answer has no compute_nodes");
  std::sort(found.nodes.begin(), found.nodes.end());
  const auto& node = found.nodes.front();
  HORO_TRY(const auto attributes,
           output_of({folder + "/csm_node_attributes_query", "-n", node}, limit));
  const auto gpus = csm_values(attributes, "discovered_gpus");
  if (gpus.empty()) return fail(Errc::unavailable, "node '{}' has no discovered_gpus", node);
  HORO_TRY(found.gpus, parse_slots(gpus.front(), "discovered_gpus", 1));
  // CSM keeps this many cores of each socket for the system.
  const int isolated =
      number_of(answer, "isolated_cores") * number_of(attributes, "discovered_sockets");
  found.cores = std::max(number_of(attributes, "discovered_cores") - isolated, 0);
  return found;
}

}  // namespace horo::discovery
