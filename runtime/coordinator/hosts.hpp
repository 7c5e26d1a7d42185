// SPDX-License-Identifier: Apache-2.0
// The job's other hosts, for the process sets that have members there: what runs next is agreed on
// through the tree of leaders (tree.md), bytes move through a backend (backends.md).
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/knobs/choices.hpp"
#include "base/result.hpp"
#include "runtime/backends/backend.hpp"
#include "runtime/backends/communicator.hpp"
#include "runtime/bootstrap/meeting.hpp"
#include "runtime/coordinator/board.hpp"
#include "runtime/coordinator/tree/board_log.hpp"
#include "runtime/coordinator/tree/node.hpp"

namespace horo::runtime {

struct HostsOptions {
  int tree_radix = 16;
  Duration heartbeat_timeout = std::chrono::seconds(5);
  Duration start_timeout = std::chrono::seconds(30);
  CpuOperations operations = CpuOperations::automatic;
  std::string gloo_interface;
  Duration gloo_timeout = std::chrono::seconds(30);
  bool mpi_threads = true;
  bool deterministic = false;  ///< The same bits on every run, whatever is fused.
  bool hierarchical = true;    ///< All-reduce by hosts, where several ranks are on one.
  std::string modules;         ///< Where backends are; empty: beside libhoro.
};

/// What moves the bytes of a set that spans hosts.
struct SpanningBackend {
  std::vector<std::unique_ptr<Board>> rings;  ///< Of its steps inside the host; outlive it.
  std::unique_ptr<Backend> backend;
};

/// Thread: the holder of the progress token, but for what says otherwise.
class Hosts {
 public:
  /// Once all ranks of this host are there, the first of them connects to the other hosts' first
  /// ones. `memory` outlives this. Blocks: until they have come. Fails: as tree::start_node;
  /// invalid_argument (HORO_CACHE_CAPACITY is too small for so many ranks).
  static Result<std::unique_ptr<Hosts>> meet(const bootstrap::Meeting& meeting, HostMemory& memory,
                                             const HostsOptions& options);
  /// As leave().
  ~Hosts();
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;

  /// Whether these ranks are on several hosts.
  bool span(std::span<const Rank> ranks) const;

  /// This rank is the host's first and speaks for it.
  bool leads() const { return node_ != nullptr; }

  const std::string& own_name() const;

  // -- By who leads -----------------------------------------------------------------------------

  /// From now on the set's log comes from all its hosts; `board` outlives the set, null: no member
  /// is here.
  void lead(SetId set, std::span<const Rank> ranks, Board* board);
  void forget(SetId set);

  /// Something may be new on a board of this host. Thread: any.
  void look();

  /// The same, within `wake.delay`, together with what becomes new until then. Thread: any.
  void look_soon();

  /// Who knows why tensors do not complete on this host; before the first set, outlives this.
  void examine_by(tree::Examiner& examiner) { state_.ask(examiner); }

  /// Asks all hosts; the answer goes to the root's examiner. Thread: any.
  void ask(tree::Question question) { node_->ask(std::move(question)); }

  /// Says goodbye to the other hosts; boards are not touched any more. Idempotent.
  void leave();

  // -- By every member --------------------------------------------------------------------------

  /// Connects this rank with the set's other members; `number` is another for every set that ever
  /// was, `region` and the one after it are free on this host. Blocks: until all members call it.
  /// Fails: as the backend; unsupported or unavailable (HORO_CPU_OPERATIONS asks for what cannot be
  /// used, or nothing can; with reasons).
  Result<SpanningBackend> connect(std::uint64_t number, std::span<const Rank> ranks,
                                  const Members& here, std::size_t region);

 private:
  Hosts(const bootstrap::Meeting& meeting, HostMemory& memory, HostsOptions options);
  Status start_tree(const bootstrap::Meeting& meeting);
  int host_of(Rank rank) const;
  Result<std::unique_ptr<Backend>> make(std::string_view module, const Communicator& communicator);

  HostMemory& memory_;
  HostsOptions options_;
  const Rank me_;
  const int host_;
  const Epoch epoch_;
  const std::vector<bootstrap::Host> hosts_;
  const std::shared_ptr<bootstrap::Store> store_;
  std::vector<int> host_of_;  ///< By rank.
  tree::BoardState state_;
  std::map<SetId, std::unique_ptr<tree::BoardLog>> logs_;
  std::unique_ptr<tree::Node> node_;  ///< The leader's.
};

}  // namespace horo::runtime
