// SPDX-License-Identifier: Apache-2.0
// A rank's environment, written by the agent and read by libhoro. One table has our variables and
// those of other frameworks (torch.distributed, JAX, TensorFlow, Horovod).
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/strong.hpp"

namespace horo {

/// "host:port" of every rank, for TF_CONFIG; may be empty. Copies share one list, because many
/// ranks get the same long list. Immutable. Thread: any.
class WorkerAddresses {
 public:
  WorkerAddresses() = default;

  WorkerAddresses(std::vector<std::string> list)  // NOLINT(google-explicit-constructor): a list
      : list_(list.empty() ? nullptr : std::make_shared<const List>(std::move(list))) {}

  WorkerAddresses(std::initializer_list<std::string> list) : WorkerAddresses(List(list)) {}

  bool empty() const { return list_ == nullptr; }

  std::size_t size() const { return empty() ? 0 : list_->size(); }

  std::vector<std::string> list() const { return empty() ? List() : *list_; }

  /// `"a:1", "b:2"`.
  std::string quoted() const;

  friend bool operator==(const WorkerAddresses& a, const WorkerAddresses& b) {
    return a.list() == b.list();
  }

 private:
  using List = std::vector<std::string>;

  std::shared_ptr<const List> list_;
};

/// The identity of a rank, and where it finds the others.
struct WorkerIdentity {
  Rank rank{0};
  int size = 1;
  LocalRank local_rank{0};
  int local_size = 1;
  int cross_rank = 0;  ///< Index of this host among the hosts that have this local rank.
  int cross_size = 1;
  int host_index = 0;    ///< Index of this host among the hosts of the job.
  std::string hostname;  ///< As the user wrote it.
  std::string job_id;
  std::string rendezvous;      ///< host:port of the key-value server; empty if there is none.
  std::string master_address;  ///< Address at which rank 0 may listen for torch and JAX.
  int master_port = 0;
  WorkerAddresses worker_addresses;
  std::uint32_t launcher_version = 0;  ///< version_code() of the launcher.

  int board_fd = -1;  ///< Inherited descriptor of this host's board; -1 if there is none.
  int agent_pid = 0;  ///< The agent keeps the board open too, as /proc/<pid>/fd/<fd>.
  std::uint64_t board_nonce = 0;
  int timeline_fd = -1;    ///< Inherited descriptor of this host's timeline; -1 if there is none.
  int timeline_index = 0;  ///< Index of this rank's region in the timeline.

  /// A worker of an elastic job: the rank and its neighbours above are only planned. The launcher
  /// gives the real ones for each generation.
  bool elastic = false;
  int worker = -1;      ///< Elastic: the number of this process in the job. It never changes.
  int board_slot = -1;  ///< Elastic: its slot on the agent's board. Otherwise: its local rank.
  /// Elastic: the job trains without this worker, or will begin to. The worker may prepare itself
  /// before it asks for its place.
  bool joins = false;
  /// Elastic: host:port of the agent's server, where the worker asks for its place in each
  /// generation.
  std::string membership;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

/// All variables of `identity`: ours, and those that other frameworks read. Pure.
Environment worker_environment(const WorkerIdentity& identity);

/// "host:port"; an IPv6 address is put in brackets.
std::string with_port(std::string_view host, int port);

/// True for a variable that describes a rank (HORO_RANK, RANK, TF_CONFIG, ...). A launcher never
/// forwards such variables from its own environment, because a launcher inside a rank starts a new
/// job.
bool describes_rank(std::string_view variable);

/// Reads an identity through `lookup`, which works like getenv. Without HORO_RANK the result is
/// nullopt: the process was not started as a rank. Fails: invalid_argument, naming variable and
/// value; an elastic worker that lacks its number or slot.
Result<std::optional<WorkerIdentity>> read_worker_identity(
    const std::function<const char*(const char*)>& lookup);

}  // namespace horo
