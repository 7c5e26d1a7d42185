// SPDX-License-Identifier: Apache-2.0
#include "discovery/sources/pbs.hpp"

#include "discovery/sources/hostfile.hpp"
#include "discovery/text_file.hpp"

namespace horo::discovery {

PbsSource::PbsSource(Lookup environment) : environment_(std::move(environment)) {
  const char* id = environment_("PBS_JOBID");
  name_ = fmt::format("PBS job {}", id == nullptr ? "?" : id);
}

bool PbsSource::is_here(const Lookup& environment) {
  return environment("PBS_JOBID") != nullptr;
}

Result<Listing> PbsSource::list(WaitLimit) {
  const char* path = environment_("PBS_NODEFILE");
  if (path == nullptr)
    return fail(Errc::unavailable, "{}: PBS_NODEFILE is not set; {}", name_, kNameTheHosts);
  const auto text = read_text_file(path);
  auto hosts = text ? parse_hostfile(*text) : Result<HostSet>(Failure(text.error()));
  if (!hosts) {
    return fail(Errc::unavailable, "{}: PBS_NODEFILE '{}': {}; {}", name_, path,
                hosts.error().message, kNameTheHosts);
  }
  return Listing{.hosts = std::move(*hosts), .from = "one slot for each line of PBS_NODEFILE"};
}

}  // namespace horo::discovery
