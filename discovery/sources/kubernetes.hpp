// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "discovery/source.hpp"

namespace horo::discovery {

inline constexpr const char* kMpiJobHostfile = "/etc/mpi/hostfile";

/// The workers of the Kubernetes MPIJob that this launcher pod belongs to, from the host file that
/// the MPI operator mounts.
class KubernetesSource final : public HostSource {
 public:
  explicit KubernetesSource(std::string hostfile = kMpiJobHostfile,
                            NoHosts no_hosts = NoHosts::refused);

  /// Whether this is such a pod: a variable of the operator names the file, or the file exists in a
  /// Kubernetes pod.
  static bool is_here(const Lookup& environment, const std::string& hostfile = kMpiJobHostfile);

  std::string_view name() const override { return "Kubernetes MPIJob"; }

  /// Blocks: for the file. Fails: unavailable, naming the file and the line.
  Result<Listing> list(WaitLimit limit) override;

 private:
  std::string hostfile_;
  NoHosts no_hosts_;
};

}  // namespace horo::discovery
