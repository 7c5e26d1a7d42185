// SPDX-License-Identifier: Apache-2.0
// What the page draws: operations and waits, as many as a browser bears.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "apps/timeline_view/model.hpp"

namespace horo::apps {

/// Keeps all up to a limit; then every second of them and from there on every second, and so on:
/// what is left out is counted. Passes everything on to `next`. Thread: owner.
class Lanes final : public Sink {
 public:
  static constexpr std::size_t kMostOperations = 500'000;
  static constexpr std::size_t kMostWaits = 1'000'000;
  /// Names of tensors in all different buckets; those of later ones are left out.
  static constexpr std::size_t kMostMembers = 1'000'000;

  /// `rank`: whose waits are drawn, and the operations it took part in; -1: all.
  explicit Lanes(Sink& next, int rank = -1) : next_(next), rank_(rank) {}

  bool wants_members() const override { return true; }

  void operation(const Operation& operation) override;
  void waited(int rank, Interval when) override;

  void stepped(Interval when) override { next_.stepped(when); }

  void clock(std::string_view host, std::int64_t moved_ns, std::int64_t error_ns) override {
    next_.clock(host, moved_ns, error_ns);
  }

  void starts(std::int64_t ns) override { next_.starts(ns); }

  void communicated(int rank, Interval when) override { next_.communicated(rank, when); }

  void computed(int rank, Interval when) override { next_.computed(rank, when); }

  void stalled(int rank, int lines, std::int64_t ns) override { next_.stalled(rank, lines, ns); }

  void mismatched(int rank, const std::string& name, std::int64_t ns) override {
    next_.mismatched(rank, name, ns);
  }

  void lost(int rank, int culprit, std::int64_t ns) override { next_.lost(rank, culprit, ns); }

  void unfinished(const Unfinished& what) override { next_.unfinished(what); }

  void dropped(int rank, std::uint64_t records) override { next_.dropped(rank, records); }

  void saw_rank(int rank, std::string_view host) override { next_.saw_rank(rank, host); }

  void warn(std::string_view line) override { next_.warn(line); }

  /// As JSON, in tenths of microseconds, without "<"; in the order of time, each time less the one
  /// before it and the first less `origin_ns`, so that numbers are short.
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
    int last = -1;
    int bucket = -1;  ///< Its tensors; -1: one, or too many to keep.
  };

  struct Wait {
    int rank = 0;
    Interval when;
  };

  std::uint32_t number_of(const std::string& text);
  void keep_bar(const Operation& operation);
  std::string operations_json(std::int64_t origin);
  std::string waits_json(std::int64_t origin);
  int bucket_of(const std::vector<std::string>& members);

  Sink& next_;
  const int rank_;
  std::vector<Bar> bars_;
  std::vector<Wait> waits_;
  std::uint64_t bar_stride_ = 1;
  std::uint64_t bars_seen_ = 0;
  std::uint64_t wait_stride_ = 1;
  std::uint64_t waits_seen_ = 0;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> texts_;
  std::map<std::vector<std::uint32_t>, int> buckets_;  ///< Tensors' names: most come again.
  std::size_t members_ = 0;                            ///< Of all of them.
};

}  // namespace horo::apps
