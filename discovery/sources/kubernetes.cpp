// SPDX-License-Identifier: Apache-2.0
#include "discovery/sources/kubernetes.hpp"

#include <algorithm>
#include <array>
#include <unistd.h>

#include "discovery/sources/hostfile.hpp"
#include "discovery/text_file.hpp"

namespace horo::discovery {

KubernetesSource::KubernetesSource(std::string hostfile, NoHosts no_hosts)
    : hostfile_(std::move(hostfile)), no_hosts_(no_hosts) {}

bool KubernetesSource::is_here(const Lookup& environment, const std::string& hostfile) {
  // The operator's variables for Open MPI, Intel MPI and MPICH.
  constexpr std::array kVariables{"OMPI_MCA_orte_default_hostfile", "I_MPI_HYDRA_HOST_FILE",
                                  "HYDRA_HOST_FILE"};
  const bool named = std::any_of(kVariables.begin(), kVariables.end(), [&](const char* variable) {
    const char* value = environment(variable);
    return value != nullptr && value == hostfile;
  });
  if (named) return true;
  return environment("KUBERNETES_SERVICE_HOST") != nullptr && access(hostfile.c_str(), F_OK) == 0;
}

Result<Listing> KubernetesSource::list(WaitLimit) {
  const auto text = read_text_file(hostfile_);
  auto hosts = text ? parse_hostfile(*text, 1, no_hosts_) : Result<HostSet>(Failure(text.error()));
  if (!hosts) {
    return fail(Errc::unavailable,
                "{}: '{}': {}; give the hosts with -H or --hostfile, or wait for the workers",
                name(), hostfile_, hosts.error().message);
  }
  return Listing{.hosts = std::move(*hosts), .from = hostfile_};
}

}  // namespace horo::discovery
