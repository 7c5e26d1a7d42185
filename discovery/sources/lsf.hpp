// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "discovery/source.hpp"
#include "discovery/sources/csm.hpp"

namespace horo::discovery {

/// The allocation of the LSF job that this process runs in. If Cluster System Management made the
/// allocation (CSM_ALLOCATION_ID), CSM is asked; then slots are the nodes' GPUs, and the launch
/// node is left out. Otherwise the first readable one of LSB_DJOB_HOSTFILE, LSB_DJOB_RANKFILE,
/// LSB_MCPU_HOSTS and LSB_HOSTS is used.
///
/// LSF rewrites the two files of a job that is resized (`bsub -ar`, `bresize`), and the variables
/// keep the hosts of the job's beginning. So a job that follows its allocation uses the first file
/// that a variable names, and nothing else in its place.
class LsfSource final : public HostSource {
 public:
  enum class Use : std::uint8_t { once, follow };

  /// `csm_folder` contains csm_allocation_query and csm_node_attributes_query.
  explicit LsfSource(Lookup environment, std::string csm_folder = kCsmFolder, Use use = Use::once);

  static bool is_here(const Lookup& environment);

  /// Whether a variable names a file with the job's hosts, and CSM has not made the allocation.
  static bool can_follow(const Lookup& environment);

  std::string_view name() const override { return name_; }

  /// False if the variables name the job's hosts and `host`, with or without its domain, is not one
  /// of them. Blocks: for files.
  bool may_have(const std::string& host) const;

  /// Blocks: for files, and for CSM until `limit`. Fails: unavailable, naming everything that
  /// was tried.
  Result<Listing> list(WaitLimit limit) override;

 private:
  Result<Listing> from_csm(const char* allocation, WaitLimit limit) const;
  Result<Listing> from_variables(std::string tried) const;

  Lookup environment_;
  std::string csm_folder_;
  Use use_;
  std::string name_;
};

/// "hostA 2 hostB 4", the form of LSB_MCPU_HOSTS. Fails: invalid_argument.
Result<HostSet> parse_host_pairs(std::string_view text);

/// One word per slot, the form of LSB_HOSTS. Fails: invalid_argument.
Result<HostSet> parse_host_words(std::string_view text);

}  // namespace horo::discovery
