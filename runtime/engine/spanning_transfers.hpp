// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "runtime/backends/adasum/spanning_adasum.hpp"
#include "runtime/engine/agreement/agreement.hpp"
#include "runtime/engine/operations/recording.hpp"
#include "runtime/engine/remainders.hpp"
#include "runtime/engine/splits_exchange.hpp"
#include "runtime/engine/transfers.hpp"

namespace horo::runtime {

/// Members are on several hosts. Before an alltoall the members exchange their splits, which only
/// the senders know; an Adasum is a row of simpler buckets.
class SpanningTransfers final : public Transfers {
 public:
  /// `why` may be empty.
  SpanningTransfers(Claims& claims, const Agreement& agreement, Backend& backend, WhyPath why)
      : claims_(claims), agreement_(agreement), backend_(backend), why_(std::move(why)) {}

  Result<bool> may_begin() override;
  Result<bool> prepare(const Entry& entry) override;
  Status add_splits(const Entry& entry, std::size_t at, std::vector<PeerRows>& peers) override;
  Result<std::uint64_t> longest_of(const Entry& entry) override;
  Result<Ticket> start(Bucket bucket) override;

  timeline::PathReason path_reason(const Bucket& bucket) const override {
    return why_ ? why_(bucket) : timeline::PathReason::none;
  }

  bool several_done() const override { return adasum_ == nullptr; }

  bool preparing() const override { return exchange_ != nullptr; }

  void abort() override;

 private:
  bool is_alltoall(const Entry& entry) const;
  Status exchange_splits(const Entry& entry);
  Status attach_remainders(Bucket& bucket);

  Claims& claims_;
  const Agreement& agreement_;
  Backend& backend_;
  const WhyPath why_;
  Remainders remainders_;
  std::unique_ptr<SplitsExchange> exchange_;  ///< For the entry that begins next.
  std::unique_ptr<SpanningAdasum> adasum_;    ///< For the entry that began last.
};

}  // namespace horo::runtime
