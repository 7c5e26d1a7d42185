// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "runtime/engine/agreement/agreement.hpp"
#include "runtime/engine/operations/recording.hpp"
#include "runtime/engine/spanning_adasum.hpp"
#include "runtime/engine/transfers.hpp"

namespace horo::runtime {

/// Members are on several hosts. An alltoall first gathers all members' splits, which only their
/// senders know; an Adasum is a row of simpler buckets.
class SpanningTransfers final : public Transfers {
 public:
  /// `why` may be empty.
  SpanningTransfers(Claims& claims, const Agreement& agreement, Backend& backend, WhyPath why)
      : claims_(claims), agreement_(agreement), backend_(backend), why_(std::move(why)) {}

  Result<bool> may_begin() override;
  Result<bool> prepare(const Entry& entry) override;
  Status add_splits(const Entry& entry, std::size_t at, std::vector<std::uint64_t>& rows) override;
  Result<Ticket> start(Bucket bucket) override;

  timeline::PathReason path_reason(const Bucket& bucket) const override {
    return why_ ? why_(bucket) : timeline::PathReason::none;
  }

  bool several_done() const override { return adasum_ == nullptr; }

  bool preparing() const override { return gathering_ != nullptr; }

  void abort() override;

 private:
  /// The splits of the entry that begins next.
  struct Gathering {
    Ticket ticket = 0;
    std::vector<std::uint64_t> mine;  ///< Tensor by tensor, receiver by receiver.
    std::vector<std::uint64_t> all;   ///< The same, member by member.
  };

  bool is_alltoall(const Entry& entry) const;
  Status gather_splits(const Entry& entry);

  Claims& claims_;
  const Agreement& agreement_;
  Backend& backend_;
  const WhyPath why_;
  std::unique_ptr<Gathering> gathering_;
  std::unique_ptr<SpanningAdasum> adasum_;  ///< For the entry that began last.
};

}  // namespace horo::runtime
