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
#include <utility>
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
  /// What was taken since the last call: events joined by ",\n", with none at either end.
  std::string events();

 private:
  using TensorKey = std::pair<std::uint16_t, std::uint32_t>;

  struct Tensor {
    int row = 0;
    std::string name;
    std::string operation;
    std::string result;  ///< The arguments of the operation's end.
    bool only_negotiates = false;
  };

  struct Entry {
    std::uint64_t number = 0;
    std::uint16_t set = 0;
    Mover mover = Mover::none;
    std::string operation;
    std::vector<std::uint32_t> ids;
    std::uint32_t lacking = 0;  ///< Members whose records are to come.
    bool running = false;
    std::int64_t ran_us = 0;  ///< Running since.
    std::int64_t in_us = 0;   ///< Copying, at its beginning and at its end.
    std::int64_t out_us = 0;
  };

  struct RankState {
    std::map<int, std::int64_t> last_us;   ///< By row.
    std::deque<Entry> entries;             ///< Begun and not ended.
    std::map<TensorKey, bool> negotiates;  ///< Submitted and in no entry.
  };

  void put(RankState& state, int rank, int row, const std::string& fields) {
    put_at(state, rank, row, fields, now_us_);
  }

  void put_at(RankState& state, int rank, int row, const std::string& fields, std::int64_t us);
  Tensor& tensor(int rank, std::uint16_t set, std::uint32_t id, std::uint64_t ticks);
  void begin_negotiation(RankState& state, int rank, const Record& record);
  void end_in_error(RankState& state, int rank, const Record& record);
  void begin(RankState& state, int rank, const Record& record);
  void add_members(RankState& state, int rank, const Record& record);
  void open_entry(RankState& state, int rank, Entry& entry);
  void run(Entry& entry) const;
  void put_activities(RankState& state, int rank, int row, const Entry& entry);
  void add_copies(RankState& state, const Record& record, double ns_per_tick);
  void end(RankState& state, int rank, const Record& record);

  const ChromeOptions options_;
  const LookUp look_up_;
  std::string text_;
  int rows_ = 0;
  std::int64_t now_us_ = 0;
  std::map<TensorKey, Tensor> tensors_;
  std::map<int, RankState> ranks_;
};

}  // namespace horo::timeline
