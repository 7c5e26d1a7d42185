// SPDX-License-Identifier: Apache-2.0
// The operations and waits that the HTML page draws, limited to a number that a browser can handle.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "timeline/analysis/model.hpp"

namespace horo::timeline {

/// Keeps all operations up to a limit; beyond it every second one, then every fourth, and so on,
/// and counts those left out. Passes everything on to `next`. Thread: owner.
class PageData final : public OperationSink {
 public:
  static constexpr std::size_t kMostOperations = 500'000;
  static constexpr std::size_t kMostWaits = 1'000'000;
  static constexpr std::size_t kMostWorks = 1'000'000;
  /// Most names of tensors in all different buckets; later buckets have no names.
  static constexpr std::size_t kMostMembers = 1'000'000;

  /// `rank`: the rank whose waits and operations are drawn; -1: all ranks.
  explicit PageData(OperationSink& next, int rank = -1) : next_(next), rank_(rank) {}

  bool wants_members() const override { return true; }

  void operation(const ObservedOperation& operation) override;
  void waited(int rank, Interval when) override;

  void stepped(Interval when) override { next_.stepped(when); }

  void clock(std::string_view host, std::int64_t moved_ns, std::int64_t error_ns) override {
    next_.clock(host, moved_ns, error_ns);
  }

  void starts(std::int64_t ns) override { next_.starts(ns); }

  void communicated(int rank, Interval when) override { next_.communicated(rank, when); }

  void computed(int rank, Interval when) override { next_.computed(rank, when); }

  void worked(const DeviceWork& work) override;

  void no_device_times(int rank, std::string_view reason, std::int64_t ns) override {
    next_.no_device_times(rank, reason, ns);
  }

  void stalled(int rank, int lines, std::int64_t ns) override { next_.stalled(rank, lines, ns); }

  void mismatched(int rank, const std::string& name, std::int64_t ns) override {
    next_.mismatched(rank, name, ns);
  }

  void lost(int rank, int culprit, std::int64_t ns) override { next_.lost(rank, culprit, ns); }

  void tuned(const TuningSwitch& change) override { next_.tuned(change); }

  void entered(const GenerationMark& mark) override { next_.entered(mark); }

  void unfinished(const UnfinishedOperation& what) override { next_.unfinished(what); }

  void dropped(int rank, std::uint64_t records) override { next_.dropped(rank, records); }

  void saw_rank(int rank, std::string_view host) override { next_.saw_rank(rank, host); }

  void warn(std::string_view line) override { next_.warn(line); }

  /// JSON without "<", sorted by time. Times are tenths of microseconds; each is given as the
  /// difference from the time before it, the first from `origin_ns`, so that numbers are short.
  std::string json(std::int64_t origin_ns);

 private:
  struct Bar {
    std::int64_t submitted = 0;
    std::int64_t agreed = 0;
    std::int64_t begun = 0;
    std::int64_t ended = 0;
    std::uint64_t bytes = 0;
    std::uint32_t name = 0;
    std::uint32_t kind = 0;
    std::uint32_t tensors = 0;
    std::int64_t device = 0;
    int last = -1;
    int bucket = -1;  ///< Index of the list of tensors; -1: one tensor, or too many to keep.
  };

  struct Wait {
    int rank = 0;
    Interval when;
  };

  /// A phase on a rank's device.
  struct Work {
    int rank = 0;
    std::uint32_t activity = 0;
    Interval when;
  };

  std::uint32_t number_of(const std::string& text);
  void keep_bar(const ObservedOperation& operation);
  std::string operations_json(std::int64_t origin);
  std::string waits_json(std::int64_t origin);
  std::string works_json(std::int64_t origin);
  int bucket_of(const std::vector<std::string>& members);

  OperationSink& next_;
  const int rank_;
  std::vector<Bar> bars_;
  std::vector<Wait> waits_;
  std::uint64_t bar_stride_ = 1;
  std::uint64_t bars_seen_ = 0;
  std::uint64_t wait_stride_ = 1;
  std::uint64_t waits_seen_ = 0;
  std::vector<Work> works_;
  std::uint64_t work_stride_ = 1;
  std::uint64_t works_seen_ = 0;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> texts_;
  std::map<std::vector<std::uint32_t>, int> buckets_;  ///< Lists of tensors; most occur repeatedly.
  std::size_t members_ = 0;                            ///< Number of tensors in all lists.
};

}  // namespace horo::timeline
