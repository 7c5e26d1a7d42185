// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <vector>

#include "base/deadline.hpp"
#include "base/loop/loop.hpp"
#include "launcher/agent/lookout.hpp"
#include "launcher/agent/oom_watch.hpp"
#include "launcher/agent/protocol.hpp"
#include "launcher/agent/rank_board.hpp"
#include "launcher/agent/rank_timeline.hpp"
#include "launcher/binding/binding.hpp"
#include "launcher/process/process_group.hpp"

namespace horo::launcher {

/// What ranks have of their agent's own process.
struct Inheritance {
  rlimit descriptor_limit{};     ///< The limit before it was raised for the agent.
  std::vector<int> descriptors;  ///< Under the same numbers.
  Environment environment;       ///< Beneath everything that the launcher says.
  /// Children of the agent that are no ranks, nor anything's that a rank has left; empty: none are.
  std::function<std::vector<int>()> others;
};

/// The ranks of one host from their start to the last one's end. The first failure (exit code,
/// signal, or an end while attached to the board) poisons the board and ends the others:
/// those that use libhoro get `failure_grace`, the others SIGTERM at once; then SIGTERM, SIGKILL
/// after `grace`. Thread: the loop's.
class RankSet {
 public:
  /// What happened, as messages for the launcher. After Finished nothing follows.
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

  /// By order, or because one has failed.
  bool ending() const { return ending_; }

  void feed_stdin(std::string_view bytes);
  void close_stdin();

  /// While not wanted, ranks are not read from.
  void want_output(bool wanted);
  /// Of a rank of which a whole window is on its way nothing is read.
  void output_taken(Rank rank, std::size_t bytes);

  /// Of a person who looks at the job; the answer is reported.
  void ask(const Question& question);

 private:
  struct Entry {
    WorkerIdentity identity;
    LocalRank slot{0};                    ///< On the agent's board.
    std::unique_ptr<ProcessGroup> group;  ///< Null before it was started.
    TimePoint started{};
    bool alive = false;
    bool killed = false;         ///< By us.
    std::size_t on_its_way = 0;  ///< Of its output, in bytes.
    bool held = false;           ///< A window of it is.
  };

  RankSet(Loop& loop, AgentSpec spec, std::unique_ptr<RankBoard> board, Report report);

  Status share_host();

  void prepare(const Inheritance& inheritance);
  void schedule_start();
  void start_next();
  Result<std::unique_ptr<ProcessGroup>> spawn(const Entry& entry);
  void exited(Entry& entry, ExitStatus status);
  void end(const Poison& cause, std::string_view host);
  void terminate(const std::vector<Entry*>& entries);
  void kill_silent();
  void kill_rank(Entry& entry);
  void reap_orphans();
  std::vector<int> other_children() const;
  void finish_if_over();
  void finish();
  void end_rest(Deadline last);
  int kill_rest();
  void save(int survivors);
  void conclude(int survivors, const SavedTimeline& saved);
  void pass_on(Entry& entry, Stream stream, std::string_view bytes);
  void listen(Entry& entry);
  Entry* stdin_reader();
  std::vector<Entry*> living();

  Loop& loop_;
  const AgentSpec spec_;
  const std::unique_ptr<RankBoard> board_;
  const std::shared_ptr<const RankTimeline> timeline_;  ///< Null: none can be had.
  const Report report_;
  std::optional<Lookout> lookout_;  ///< Once somebody has asked.
  Command command_;        ///< Of every rank, but for its own environment and hardware threads.
  Environment inherited_;  ///< Beneath spec_.environment.
  std::function<std::vector<int>()> others_;
  HostParts parts_;
  Environment common_;  ///< What this host adds to every rank's environment.
  std::vector<Entry> entries_;
  std::size_t next_ = 0;  ///< To be started.
  std::size_t turn_ = 0;  ///< Of the ranks, who is read from first when output is wanted again.
  bool output_wanted_ = true;
  bool stopped_ = false;    ///< By the launcher's SIGSTOP.
  bool signalled_ = false;  ///< By a signal whose meaning is the user's.
  bool ending_ = false;
  bool finished_ = false;
  bool early_ = false;       ///< It was ending before its last rank had ended.
  std::string early_stdin_;  ///< Came before its reader was started.
  bool early_close_ = false;
  OomWatch oom_;
  Subscription starter_;
  Subscription children_;
  Subscription ack_timer_;
  Subscription grace_timer_;
  Subscription last_resort_;
  Subscription rest_;                     ///< While processes are left that cannot be killed.
  std::optional<TimelineSaving> saving_;  ///< While the disk has our last moments to take.
};

}  // namespace horo::launcher
