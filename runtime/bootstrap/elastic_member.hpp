// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/board_header.hpp"
#include "base/result.hpp"
#include "runtime/bootstrap/bootstrap.hpp"
#include "runtime/bootstrap/elastic/membership_caller.hpp"
#include "runtime/bootstrap/identity/identity.hpp"
#include "runtime/bootstrap/meeting/meeting.hpp"

namespace horo::runtime::bootstrap {

/// A worker of an elastic job: asks the launcher for its place in each generation and meets the
/// other members. Owns what the worker knows between generations. Thread: one at a time.
class ElasticMember {
 public:
  ElasticMember() = default;

  ~ElasticMember() { unmap_board_header(agents_); }

  ElasticMember(const ElasticMember&) = delete;
  ElasticMember& operator=(const ElasticMember&) = delete;

  /// Meets the members of the next generation. Blocks and fails as Bootstrap::meet; removed,
  /// cancelled (the launcher has given the generation up).
  Result<Meeting> meet(Identity identity, const MeetLimits& limits);

  /// This process takes part in the generation from now on; its next call says so.
  void enter(Epoch generation) { last_ = generation.value(); }

  /// As Bootstrap::resumed.
  Status resumed(Duration stood_still, std::int64_t repeated, const Deadline& deadline);

 private:
  Status map_agents(int board);

  MembershipCaller caller_;
  std::uint32_t worker_ = 0;         ///< Since meet().
  std::shared_ptr<JobStore> store_;  ///< The launcher's; null before meet().
  std::uint64_t last_ = 0;           ///< The last generation that it has entered; 0: none.
  BoardView agents_;                 ///< Mapped for as long as the process lives, for the notices.
};

}  // namespace horo::runtime::bootstrap
