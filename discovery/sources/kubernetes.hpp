// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "discovery/source.hpp"

namespace horo::discovery {

inline constexpr const char* kMpiJobHostfile = "/etc/mpi/hostfile";

/// The workers of the Kubernetes MPIJob whose launcher pod this is, from the host file that the MPI
/// operator mounts there.
class KubernetesSource final : public HostSource {
 public:
  explicit KubernetesSource(std::string hostfile = kMpiJobHostfile);

  /// Whether this is such a pod: the operator has named the file to some MPI, or the file is there
  /// and Kubernetes too.
  static bool is_here(const Lookup& environment, const std::string& hostfile = kMpiJobHostfile);

  std::string_view name() const override { return "Kubernetes MPIJob"; }

  /// Blocks: for the file. Fails: unavailable, naming the file and the line.
  Result<Listing> list(Deadline deadline) override;

 private:
  std::string hostfile_;
};

}  // namespace horo::discovery
