// SPDX-License-Identifier: Apache-2.0
// Converts records to the events of Chrome's trace viewer: a row per tensor, with Horovod's names
// for phases and activities. Makes text only; trace.hpp writes files.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "timeline/chrome/chrome_rows.hpp"
#include "timeline/record/record.hpp"

namespace horo::timeline {

struct ChromeOptions {
  std::int64_t start_wall_ns = 0;  ///< Time 0 of the trace.
  bool mark_cycles = false;
  bool show_ranks = false;  ///< Show each rank as a thread of the tensor's row.
};

/// Takes the records of each rank in order of time. Thread: owner.
///
/// A row shows the operations of the rank that owns it. Its negotiation begins when the first rank
/// submits the tensor, whichever that is, and has a tick for each rank that is known to submit.
class ChromeWriter {
 public:
  using LookUp =
      std::function<std::optional<NameSlot>(int rank, std::uint16_t set, std::uint32_t id)>;

  ChromeWriter(const ChromeOptions& options, LookUp look_up);

  /// Takes one record. `wall_ns`: its time; `ns_per_tick`: the length of a tick in its durations.
  void take(int rank, const Record& record, std::int64_t wall_ns, double ns_per_tick = 1);

  /// Takes a record of another rank of `owner`'s host, which has no rows of its own: shows when it
  /// submits, in the owner's rows.
  void take_from_peer(int owner, int rank, const Record& record, std::int64_t wall_ns);

  /// The first events of a file, which name time 0. The names of tensors are repeated after it.
  std::string head();

  /// The events since the last clear(), separated by ",\n".
  std::string_view events() const { return text_; }

  void clear() { text_.clear(); }

 private:
  using Submission = ShownSubmission;
  using Lane = ChromeLane;
  using Tensor = ChromeRow;
  using Entry = ShownEntry;
  using RankState = ShownRank;

  RankState& state_of(int rank);
  Tensor& tensor(const RankState& state, std::uint16_t set, std::uint32_t id, std::uint64_t ticks);
  void name(Tensor& tensor, std::uint16_t set, std::uint32_t id, std::uint64_t ticks,
            const std::optional<NameSlot>& slot) const;
  const DeclaredFacts* declared(std::uint16_t set, std::uint32_t id) const;
  void announce(Tensor& tensor);

  void put(const RankState& state, Tensor& tensor, std::string_view event) {
    put_at(state, tensor, event, now_us_);
  }

  void put_at(const RankState& state, Tensor& tensor, std::string_view event, std::int64_t us);

  static Lane& lane(const RankState& state, Tensor& tensor) {
    if (tensor.lanes.size() <= state.index) tensor.lanes.resize(state.index + 1);
    return tensor.lanes[state.index];
  }

  void submit(RankState& state, const Record& record);
  /// A rank other than the row's owner has submitted, as the records of `by` say.
  void arrive(const RankState& owner, const RankState& by, const Record& record, int rank);
  void tick(const RankState& owner, Tensor& what, const Submission& by);
  void show_early(const RankState& owner, Tensor& what);
  void end_negotiation(const RankState& state, Tensor& what);
  void end_in_error(const RankState& state, const Record& record);
  void begin(RankState& state, const Record& record);
  void add_members(RankState& state, const Record& record);
  void open_entry(RankState& state, Entry& entry);
  void put_all(const RankState& state, const Entry& entry, std::string_view event);
  void run(Entry& entry) const;
  void end(RankState& state, const Record& record);
  void finish(const RankState& state, const Entry& entry);
  template <typename Which>
  void finish_all(RankState& state, Which which);
  void end_running(const RankState& state, const Entry& entry);
  void end_queue(const RankState& state, const Entry& entry, bool and_operation);
  void declare(const RankState& state, const Record& record);

  void append(std::string_view event) {
    if (!text_.empty()) text_ += ",\n";
    text_ += event;
  }

  Tensor& device_row(const RankState& state, int device);
  void show_device(const RankState& state, const Record& record, std::int64_t wall_ns);

  const ChromeOptions options_;
  const LookUp look_up_;
  std::string text_;
  int rows_ = 0;
  std::int64_t now_us_ = 0;
  Tensor job_;  ///< Row 0, for events that belong to no tensor.
  std::unordered_map<std::uint64_t, Tensor> tensors_;
  std::unordered_map<std::uint64_t, DeclaredFacts>
      declared_;                                   ///< The last one of each tensor number.
  std::map<std::pair<int, int>, Tensor> devices_;  ///< Rows of devices, by rank and device.
  std::map<int, RankState> ranks_;
  RankState* recent_ = nullptr;  ///< The rank of the last record.
};

}  // namespace horo::timeline
