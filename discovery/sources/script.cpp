// SPDX-License-Identifier: Apache-2.0
#include "discovery/sources/script.hpp"

#include "discovery/program.hpp"
#include "discovery/sources/hostfile.hpp"

namespace horo::discovery {

ScriptSource::ScriptSource(std::string path, int default_slots)
    : path_(std::move(path)),
      name_(fmt::format("discovery script '{}'", path_)),
      default_slots_(default_slots) {}

Result<Listing> ScriptSource::list(Deadline deadline) {
  auto text = output_of({path_}, deadline);
  if (!text) return Failure(std::move(text).error().context(name_));
  auto hosts = parse_hostfile(*text, default_slots_);
  if (!hosts)
    return Failure(std::move(hosts).error().context(fmt::format("what {} prints", name_)));
  return Listing{.hosts = std::move(*hosts), .from = {}};
}

}  // namespace horo::discovery
