// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/hierarchical/choose.hpp"

#include <algorithm>

#include "runtime/backends/hierarchical/gloo_reach.hpp"

namespace horo::runtime {

namespace {

constexpr const char* kShm = "shm";
constexpr const char* kTcp = "tcp";
constexpr const char* kGloo = "gloo";

int hosts_of(const BackendRequest& request) {
  auto hosts = request.host_of;
  std::sort(hosts.begin(), hosts.end());
  return static_cast<int>(std::unique(hosts.begin(), hosts.end()) - hosts.begin());
}

/// Why the module cannot be used; empty: it can.
std::string why_not(const BackendRequest& request, const std::string& name) {
  if (request.encrypts && name != kTcp)
    return fmt::format("{} cannot encrypt, and HORO_ENCRYPT (--encrypt) is on; only tcp can", name);
  for (const auto& candidate : request.candidates) {
    if (candidate.name == name) return candidate.why_not;
  }
  return fmt::format("backend '{}' is not in this build", name);
}

std::string why_not_gloo(const BackendRequest& request) {
  auto reason = why_not(request, kGloo);
  if (!reason.empty()) return reason;
  return why_not_gloo(GlooSet{.ranks = static_cast<int>(request.host_of.size()),
                              .hosts = hosts_of(request),
                              .free_descriptors = request.free_descriptors});
}

std::string no_mpi() {
  return "this process belongs to no MPI; start the job with mpirun, or import mpi4py first";
}

/// The backends that may be chosen, the best first, each with the reason against it.
std::vector<BackendCandidate> ranking(const BackendRequest& request) {
  const BackendCandidate shm{kShm, hosts_of(request) == 1 ? "" : "the ranks are on several hosts"};
  const BackendCandidate tcp{kTcp, why_not(request, kTcp)};
  const BackendCandidate gloo{kGloo, why_not_gloo(request)};
  const BackendCandidate mpi = request.mpi.empty()
                                   ? BackendCandidate{"mpi", no_mpi()}
                                   : BackendCandidate{request.mpi, why_not(request, request.mpi)};
  switch (request.wanted) {
    case CpuOperations::automatic:
      return {shm, mpi, tcp, gloo};
    case CpuOperations::shm:
      return {shm};
    case CpuOperations::tcp:
      return {tcp};
    case CpuOperations::gloo:
      return {gloo};
    case CpuOperations::mpi:
      return {mpi};
  }
  return {};
}

}  // namespace

std::string mpi_of(const MpiEvidence& evidence) {
  if (evidence.openmpi_loaded != evidence.mpich_loaded)
    return evidence.openmpi_loaded ? "openmpi" : "mpich";
  if (evidence.openmpi_launched != evidence.mpich_launched)
    return evidence.openmpi_launched ? "openmpi" : "mpich";
  return {};
}

Result<BackendChoice> choose_backend(const BackendRequest& request) {
  BackendChoice choice;
  std::string reasons;
  for (auto& candidate : ranking(request)) {
    if (candidate.why_not.empty() && choice.name.empty()) {
      choice.name = candidate.name;
      continue;
    }
    if (candidate.why_not.empty()) candidate.why_not = fmt::format("{} comes first", choice.name);
    reasons += fmt::format("; {}: {}", candidate.name, candidate.why_not);
    choice.rejected.push_back(std::move(candidate));
  }
  if (!choice.name.empty()) return choice;
  if (request.wanted == CpuOperations::automatic)
    return fail(Errc::unavailable, "no backend can move tensors between these ranks{}", reasons);
  return fail(Errc::unsupported, "HORO_CPU_OPERATIONS asks for a backend that cannot be used{}",
              reasons);
}

}  // namespace horo::runtime
