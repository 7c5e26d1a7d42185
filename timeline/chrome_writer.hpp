// SPDX-License-Identifier: Apache-2.0
// From records to the events of Chrome's trace viewer, with Horovod's names for phases and
// activities: a row per tensor. Text only; files are trace.hpp's.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "timeline/record.hpp"

namespace horo::timeline {

struct ChromeOptions {
  std::int64_t start_wall_ns = 0;  ///< Time 0 of the trace.
  bool mark_cycles = false;
  bool show_ranks = false;  ///< Each rank is a thread of the tensor's row.
};

/// Takes the records of each rank in the order of time. Thread: owner.
class ChromeWriter {
 public:
  using LookUp =
      std::function<std::optional<NameSlot>(int rank, std::uint16_t set, std::uint32_t id)>;

  ChromeWriter(const ChromeOptions& options, LookUp look_up);

  /// `wall_ns` of the record's ticks, which are `ns_per_tick` long.
  void take(int rank, const Record& record, std::int64_t wall_ns, double ns_per_tick = 1);

  /// The head of a file: what names time 0. Names of tensors come again in a new file.
  std::string head();

  /// The events of what was taken since the last clear(), joined by ",\n", with none at either end.
  std::string_view events() const { return text_; }

  void clear() { text_.clear(); }

 private:
  /// What one rank has written to one row.
  struct Lane {
    std::int64_t last_us = 0;
    bool negotiates = false;  ///< Submitted and in no entry.
  };

  struct Tensor {
    int row = 0;
    std::string name;
    std::string title;  ///< The name, for people.
    bool only_negotiates = false;
    bool announced = false;  ///< In this file.
    // Parts of events, as they are written.
    std::string negotiates;  ///< Begins a negotiation.
    std::string result;      ///< Ends an operation, with its arguments.
    std::string row_text;
    std::vector<Lane> lanes;  ///< By RankState::index.
  };

  /// What a declare record says.
  struct Declared {
    std::uint64_t name_hash = 0;
    std::uint64_t bytes = 0;
  };

  struct Entry {
    std::uint64_t number = 0;
    std::uint16_t set = 0;
    Mover mover = Mover::none;
    std::string_view operation;
    std::vector<std::uint32_t> ids;
    std::uint32_t lacking = 0;  ///< Members whose records are to come.
    bool running = false;
    std::int64_t ran_us = 0;  ///< Running since.
    std::int64_t in_us = 0;   ///< Copying, at its beginning and at its end.
    std::int64_t out_us = 0;
  };

  struct RankState {
    int rank = 0;
    std::size_t index = 0;      ///< In the order of their first records.
    std::string submits;        ///< The event of a submission.
    std::string end_of_event;   ///< With the thread, where ranks are shown.
    std::deque<Entry> entries;  ///< Begun and not ended.
  };

  RankState& state_of(int rank);
  Tensor& tensor(const RankState& state, std::uint16_t set, std::uint32_t id, std::uint64_t ticks);
  void name(Tensor& tensor, std::uint16_t set, std::uint32_t id, std::uint64_t ticks,
            const std::optional<NameSlot>& slot) const;
  static void describe(Tensor& tensor, const std::optional<NameSlot>& slot, const Declared* was);
  const Declared* declared(std::uint16_t set, std::uint32_t id) const;
  void announce(Tensor& tensor);

  void put(const RankState& state, Tensor& tensor, std::string_view event) {
    put_at(state, tensor, event, now_us_);
  }

  void put_at(const RankState& state, Tensor& tensor, std::string_view event, std::int64_t us);

  static bool negotiates(const RankState& state, const Tensor& tensor) {
    return tensor.lanes.size() > state.index && tensor.lanes[state.index].negotiates;
  }

  void begin_negotiation(const RankState& state, const Record& record);
  void end_negotiation(const RankState& state, Tensor& what);
  void end_in_error(const RankState& state, const Record& record);
  void begin(RankState& state, const Record& record);
  void add_members(RankState& state, const Record& record);
  void open_entry(RankState& state, Entry& entry);
  void put_all(const RankState& state, const Entry& entry, std::string_view event);
  void run(Entry& entry) const;
  static void add_copies(RankState& state, const Record& record, double ns_per_tick);
  void end(RankState& state, const Record& record);
  void finish(const RankState& state, const Entry& entry);
  template <typename Which>
  void finish_all(RankState& state, Which which);
  void end_running(const RankState& state, const Entry& entry);
  void end_queue(const RankState& state, const Entry& entry, bool and_operation);
  void declare(const RankState& state, const Record& record);

  const ChromeOptions options_;
  const LookUp look_up_;
  std::string text_;
  int rows_ = 0;
  std::int64_t now_us_ = 0;
  Tensor job_;  ///< Row 0: what belongs to no tensor.
  std::unordered_map<std::uint64_t, Tensor> tensors_;
  std::unordered_map<std::uint64_t, Declared> declared_;  ///< Last, of a number.
  std::map<int, RankState> ranks_;
  RankState* recent_ = nullptr;  ///< Of the last record.
};

}  // namespace horo::timeline
