// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/deadline.hpp"
#include "base/loop/loop.hpp"
#include "launcher/process/process_group.hpp"
#include "launcher/protocol/protocol.hpp"
#include "launcher/ranks/gpu_watch.hpp"
#include "launcher/ranks/inheritance.hpp"
#include "launcher/ranks/leftover_processes.hpp"
#include "launcher/ranks/oom_watch.hpp"
#include "launcher/ranks/rank_board.hpp"
#include "launcher/ranks/rank_commands.hpp"
#include "launcher/ranks/rank_entries.hpp"
#include "launcher/ranks/rank_inspector.hpp"
#include "launcher/ranks/rank_timeline.hpp"
#include "launcher/ranks/stdin_feed.hpp"

namespace horo::launcher {

/// The ranks of one host from their start to the last one's end. The first failure (exit code,
/// signal, or an end while attached to the board) poisons the board and ends the others:
/// those that use libhoro get `failure_grace`, the others SIGTERM at once; then SIGTERM, SIGKILL
/// after `grace`. Thread: the loop's.
///
/// In an elastic assignment the end of a rank, called worker there, concerns no other one. Workers
/// are added until close(); then the end of the last one is the end of all.
///
///   Phase: running <-> paused       SIGSTOP and SIGCONT of the launcher
///          running, paused -> ending   by an order, or because a rank failed
///          any -> finished             all ranks have ended, or the time for that has passed
class RankSet {
 public:
  /// Gets the events as messages for the launcher. After Finished nothing follows.
  using Report = std::function<void(const protocol::Message&)>;

  /// Starts the ranks one after the other from the loop. Fails: as RankBoard::make, and
  /// share_this_machine.
  static Result<std::unique_ptr<RankSet>> start(Loop& loop, AgentSpec spec,
                                                const Inheritance& inheritance, Report report);
  ~RankSet();
  RankSet(const RankSet&) = delete;
  RankSet& operator=(const RankSet&) = delete;

  /// SIGSTOP also holds the start of further ranks until SIGCONT.
  void signal(int number);
  void stop(const Poison& cause, std::string_view host);
  void kill();

  bool is_elastic() const { return spec_.elastic; }

  /// Elastic: between SIGTERM and SIGKILL.
  /// Elastic: how long the workers may stay after the agent was told to end, if no order comes.
  Duration term_wait() const { return spec_.term_grace + spec_.grace; }

  /// Starts further workers. Fails: as RankEntries::add; protocol (after close).
  Status spawn(const std::vector<WorkerIdentity>& workers);
  /// Ends a worker and its descendants, if it has not ended.
  void end_worker(Rank worker);

  void notify(const Notice& notice) { board_->notify(notice); }

  void close();

  /// True from the first order to end or close, or the first failure.
  bool ends_by_order() const { return ending() || (spec_.elastic && closed_); }

  /// True from the first order to end, or the first failure.
  bool ending() const { return phase_ == Phase::ending || phase_ == Phase::finished; }

  void feed_stdin(std::string_view bytes) { stdin_.feed(bytes); }

  void close_stdin() { stdin_.close(); }

  /// While not wanted, no rank is read.
  void want_output(bool wanted);
  /// So many bytes of a rank's output have reached the launcher's readers.
  void output_taken(Rank rank, std::size_t bytes);

  /// Answers a program that looks at the job; the answer is reported.
  void ask(const Question& question);

 private:
  enum class Phase : std::uint8_t { running, paused, ending, finished };

  using Entry = RankEntry;

  RankSet(Loop& loop, AgentSpec spec, std::unique_ptr<RankBoard> board,
          const Inheritance& inheritance, Report report);

  Status prepare(const Inheritance& inheritance);
  Status admit(const WorkerIdentity& identity);
  void schedule_start();
  void start_next();
  Result<std::unique_ptr<ProcessGroup>> spawn_group(const Entry& entry);
  void not_started(Entry& entry, const Error& error);
  void exited(Entry& entry, ExitStatus status);
  void end(const Poison& cause, std::string_view host);
  void terminate(const std::vector<Entry*>& entries);
  void kill_unresponsive();
  static void kill_rank(Entry& entry);
  void finish_if_over();
  void finish();
  void save_timeline(int survivors);
  void report_finished(int survivors, const SavedTimeline& saved);
  void take_output(Entry& entry, Stream stream, std::string_view bytes);
  void read_as_wanted(Entry& entry);
  bool is_stdin_reader(const Entry& entry) const;

  Loop& loop_;
  const AgentSpec spec_;
  const std::unique_ptr<RankBoard> board_;
  const std::shared_ptr<const RankTimeline> timeline_;  ///< Null: the system has no room for it.
  const Report report_;
  std::optional<RankInspector> inspector_;  ///< Since the first question.
  std::optional<RankCommands> commands_;
  LeftoverProcesses leftovers_;
  StdinFeed stdin_;
  RankEntries entries_;
  Phase phase_ = Phase::running;
  std::size_t first_read_ = 0;  ///< The entry that is read first when output is wanted again.
  bool closed_;                 ///< No further rank is added.
  bool output_wanted_ = true;
  bool user_signalled_ = false;  ///< A signal whose meaning is the user's was passed on.
  bool saves_timeline_ = false;  ///< The ranks were ended before their last one ended.
  OomWatch oom_;
  GpuWatch gpus_;
  Subscription starter_;
  Subscription ack_timer_;
  Subscription grace_timer_;
  Subscription finish_timer_;
  std::optional<TimelineSaving> saving_;  ///< While the timeline is being written to the disk.
};

}  // namespace horo::launcher
