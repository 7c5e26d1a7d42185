// SPDX-License-Identifier: Apache-2.0
#include "launcher/ranks/leftover_processes.hpp"

#include <algorithm>
#include <csignal>
#include <iterator>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "launcher/process/descendants.hpp"

namespace horo::launcher {

namespace {

constexpr Duration kRetryInterval = std::chrono::milliseconds(50);
constexpr Duration kFamilyTime = std::chrono::seconds(5);  ///< For a family to be killed.
constexpr int kEmptyLooks = 2;  ///< One look may miss a process that forks.

bool contains(const std::vector<pid_t>& pids, pid_t pid) {
  return std::ranges::find(pids, pid) != pids.end();
}

/// The living processes that `leader` has left behind. `others` and their descendants have other
/// leaders.
std::vector<pid_t> find_family(const ProcessTree& tree, const std::vector<pid_t>& others,
                               pid_t leader, std::string_view variable) {
  std::vector<pid_t> members;
  for (const pid_t pid : tree.below(getpid(), others)) {
    if (contains(members, pid)) continue;
    if (getpgid(pid) != leader && !has_variable(pid, variable)) continue;
    members.push_back(pid);
    for (const pid_t below : tree.below(pid)) {
      if (!contains(members, below)) members.push_back(below);
    }
  }
  return members;
}

}  // namespace

LeftoverProcesses::LeftoverProcesses(Loop& loop, Pids leaders, Pids spared)
    : loop_(loop), leaders_(std::move(leaders)), spared_(std::move(spared)) {}

Status LeftoverProcesses::begin() {
  HORO_TRY(children_, loop_.on_signal(SIGCHLD, [this] { reap(); }));
  return {};
}

std::vector<pid_t> LeftoverProcesses::spared() const {
  return spared_ ? spared_() : std::vector<pid_t>();
}

void LeftoverProcesses::reap() {
  const auto leaders = leaders_();
  const auto spared_now = spared();
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    // Its owner reaps it, and the next SIGCHLD or exit comes here again.
    if (contains(leaders, info.si_pid) || contains(spared_now, info.si_pid)) return;
    waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

void LeftoverProcesses::signal_kill() {
  signal_descendants(getpid(), SIGKILL, spared());
}

void LeftoverProcesses::kill_family(pid_t leader, std::string variable) {
  families_.push_back({.leader = leader,
                       .variable = std::move(variable),
                       .last = Deadline::in(SteadyClock::instance(), kFamilyTime)});
  // In a later turn of the loop: a look takes time, and the leader's end is news.
  next_look_ = loop_.after(Duration::zero(), [this] { kill_families(); });
}

void LeftoverProcesses::kill_families() {
  reap();
  auto others = leaders_();
  std::ranges::copy(spared(), std::back_inserter(others));
  const auto tree = ProcessTree::look();
  std::erase_if(families_, [&](Family& family) {
    const auto members =
        tree ? find_family(*tree, others, family.leader, family.variable) : std::vector<pid_t>();
    for (const pid_t pid : members) ::kill(pid, SIGKILL);
    family.empty_looks = members.empty() && tree ? family.empty_looks + 1 : 0;
    return family.empty_looks == kEmptyLooks || family.last.expired(SteadyClock::instance().now());
  });
  if (!families_.empty()) next_look_ = loop_.after(kRetryInterval, [this] { kill_families(); });
}

/// With turns of the loop in between, so that heartbeats go on: an agent that is silent counts as
/// lost.
void LeftoverProcesses::kill_all(Deadline last, std::function<void(int)> done) {
  families_.clear();
  next_look_.reset();
  const int survivors = kill_once();
  if (survivors == 0 || last.expired(SteadyClock::instance().now())) {
    children_.reset();
    return done(survivors);
  }
  done_ = std::move(done);
  retry_ =
      loop_.after(kRetryInterval, [this, last] { kill_all(last, std::exchange(done_, nullptr)); });
}

/// Returns how many live on.
int LeftoverProcesses::kill_once() {
  if (leaders_().empty())
    return kill_descendants(Deadline::in(SteadyClock::instance(), kRetryInterval), spared());
  reap();
  const auto tree = ProcessTree::look();
  if (!tree) return 1;
  const auto rest = tree->below(getpid(), spared());
  for (const pid_t pid : rest) ::kill(pid, SIGKILL);
  return static_cast<int>(rest.size());
}

}  // namespace horo::launcher
