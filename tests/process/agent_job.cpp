// SPDX-License-Identifier: Apache-2.0
#include "agent_job.hpp"

#include <atomic>
#include <cstdlib>
#include <dirent.h>
#include <fstream>
#include <memory>
#include <poll.h>
#include <sstream>

#include "base/deadline.hpp"

namespace horo::test {

launcher::AgentSpec spec_for(int ranks, std::vector<std::string> command) {
  launcher::AgentSpec spec;
  spec.host = "testhost";
  spec.command = std::move(command);
  spec.environment = {{"PATH", "/usr/bin:/bin"}};
  spec.failure_grace = 10s;
  spec.grace = 10s;
  for (int i = 0; i < ranks; ++i) {
    WorkerIdentity identity;
    identity.rank = Rank{i};
    identity.size = ranks;
    identity.local_rank = LocalRank{i};
    identity.local_size = ranks;
    spec.ranks.push_back(identity);
  }
  return spec;
}

launcher::AgentSpec elastic_spec_for(int workers, int slots, std::vector<std::string> command) {
  auto spec = spec_for(workers, std::move(command));
  spec.elastic = true;
  spec.slots = static_cast<std::uint32_t>(slots);
  return spec;
}

Status Job::start(launcher::AgentSpec spec) {
  static std::atomic<int> count{0};
  setenv("HORO_AGENT_PATH", HORO_TEST_AGENT, 1);
  marker_ = fmt::format("HORO_TEST_MARKER=job-{}-{}", getpid(), count.fetch_add(1));
  mark(spec);
  HORO_TRY(agent_, starter_->start(spec, *this));
  return {};
}

void Job::mark(launcher::AgentSpec& spec) const {
  const auto value = marker_.substr(marker_.find('=') + 1);
  spec.environment.emplace_back("HORO_TEST_MARKER", value);
  for (auto& rank : spec.ranks) rank.job_id = value;
}

bool Job::assign(launcher::AgentSpec spec) {
  mark(spec);
  return agent_->assign(spec);
}

void Job::spawn(const std::vector<int>& workers) {
  std::vector<WorkerIdentity> identities;
  for (const int worker : workers) {
    WorkerIdentity identity;
    identity.rank = Rank{worker};
    identity.worker = worker;
    identity.job_id = marker_.substr(marker_.find('=') + 1);
    identities.push_back(identity);
  }
  agent_->spawn(std::move(identities));
}

bool Job::run_until(std::function<bool()> done) {
  done_ = std::move(done);
  if (over() || done_()) return true;
  bool in_time = true;
  const auto limit = loop_.after(kLimit, [&] {
    in_time = false;
    loop_.stop();
  });
  loop_.run();
  return in_time;
}

void Job::check() {
  if (over() || (done_ && done_())) loop_.stop();
}

void Job::on_started(Rank rank, int pid) {
  pids[rank] = pid;
  check();
}

void Job::on_spawn_failed(Rank rank, const Error& error) {
  spawn_failures[rank] = error;
  check();
}

void Job::on_output(Rank rank, launcher::Stream stream, std::string_view text) {
  if (stream == launcher::Stream::out) bytes[rank] += text.size();
  if (keep_output) (stream == launcher::Stream::out ? out : err)[rank] += text;
  if (take_output && agent_ != nullptr) agent_->output_taken(rank, text.size());
  check();
}

void Job::on_exit(const launcher::RankExit& exit) {
  exits[exit.rank] = exit;
  exit_order.push_back(exit.rank);
  check();
}

void Job::on_called(const std::vector<elastic::MembershipCall>& more) {
  calls.insert(calls.end(), more.begin(), more.end());
  ++call_messages;
  check();
}

void Job::on_stdin_room() {
  ++rooms;
  check();
}

void Job::on_answer(std::size_t, const launcher::Answer&) {
  ++answers;
  check();
}

void Job::on_end_asked(int) {
  ++ends_asked;
  check();
}

void Job::on_waiting(int) {
  ++waits;
  check();
}

void Job::on_finished(int count) {
  survivors = count;
  check();
}

void Job::on_lost(const Error& error) {
  lost = error;
  check();
}

namespace {

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Stat {
  char state = 'X';
  int parent = 0;
};

Stat stat_of(int pid) {
  const auto text = slurp(fmt::format("/proc/{}/stat", pid));
  const auto name_end = text.rfind(") ");
  Stat stat;
  if (name_end == std::string::npos) return stat;
  std::istringstream rest(text.substr(name_end + 2));
  rest >> stat.state >> stat.parent;
  return stat;
}

}  // namespace

int parent_of(int pid) {
  return stat_of(pid).parent;
}

char state_of(int pid) {
  return stat_of(pid).state;
}

bool alive(int pid) {
  const auto state = state_of(pid);
  return state != 'Z' && state != 'X';
}

std::vector<int> living_with(const std::string& marker) {
  std::vector<int> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  while (const dirent* entry = readdir(proc.get())) {
    const int pid = std::atoi(entry->d_name);
    if (pid <= 0) continue;
    // Each entry ends with a NUL byte.
    const auto environment = slurp(fmt::format("/proc/{}/environ", pid));
    const auto at = environment.find(marker);
    if (at == std::string::npos || environment[at + marker.size()] != '\0') continue;
    if (alive(pid)) pids.push_back(pid);
  }
  return pids;
}

std::vector<int> children_of(int pid) {
  std::vector<int> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  while (const dirent* entry = readdir(proc.get())) {
    const int child = std::atoi(entry->d_name);
    if (child > 0 && parent_of(child) == pid) pids.push_back(child);
  }
  return pids;
}

bool eventually(const std::function<bool()>& condition) {
  const auto deadline = Deadline::in(SteadyClock::instance(), kLimit);
  while (!condition()) {
    if (deadline.expired(SteadyClock::instance().now())) return false;
    poll(nullptr, 0,
         2);  // There is no event for the end of other processes, so this polls every 2 ms.
  }
  return true;
}

bool gone(const std::string& marker) {
  return eventually([&] { return living_with(marker).empty(); });
}

std::unique_ptr<Loop> make_loop() {
  auto loop = Loop::make();
  HORO_CHECK(loop.has_value());
  return std::move(*loop);
}

std::string actor() {
  return HORO_TEST_ACTOR;
}

}  // namespace horo::test
