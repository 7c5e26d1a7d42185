// SPDX-License-Identifier: Apache-2.0
#include "elastic_job.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <future>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "base/version.hpp"

namespace elastic_test {

using namespace std::chrono_literals;
using horo::elastic::MembershipAnswer;
using horo::elastic::MembershipCall;

namespace {

constexpr auto kPatience = 20s;
constexpr std::uint64_t kNonce = 77;

horo::Deadline soon() {
  return horo::Deadline::in(horo::SteadyClock::instance(), kPatience);
}

}  // namespace

Store::Store()
    : secret_(*horo::kv::make_secret()),
      loop_(*horo::Loop::make()),
      server_(*horo::kv::Server::start(*loop_, secret_, {})),
      address_(server_->address()),
      thread_([this] {
        loop_->run();
        server_.reset();
      }) {}

void Store::stop() {
  if (!thread_.joinable()) return;
  loop_->stop();
  thread_.join();
}

void Store::be_busy(horo::Duration time) {
  loop_->post([time] { std::this_thread::sleep_for(time); });
}

std::vector<std::string> Store::keys() {
  std::promise<std::vector<std::string>> all;
  loop_->post([&] {
    std::vector<std::string> found;
    server_->erase_if([&found](std::string_view key) {
      found.emplace_back(key);
      return false;
    });
    all.set_value(std::move(found));
  });
  return all.get_future().get();
}

Worker::Worker(int its_number, const horo::Environment& environment) : number(its_number) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  REQUIRE(pipe2(in.data(), O_CLOEXEC) == 0);
  REQUIRE(pipe2(out.data(), O_CLOEXEC) == 0);
  std::vector<std::string> texts;
  for (const auto& [name, value] : environment) texts.push_back(fmt::format("{}={}", name, value));
  std::vector<char*> variables;
  for (auto& text : texts) variables.push_back(text.data());
  variables.push_back(nullptr);
  std::string program = ELASTIC_WORKER;
  std::array<char*, 2> words{program.data(), nullptr};
  pid_ = fork();
  if (pid_ == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    execve(program.c_str(), words.data(), variables.data());
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  in_ = in[1];
  out_ = out[0];
}

Worker::~Worker() {
  if (pid_ > 0) {
    kill(SIGKILL);
    wait();
  }
  close(in_);
  close(out_);
}

void Worker::tell(const std::string& line) const {
  const auto text = line + "\n";
  // A worker that has ended already shows in what it says.
  [[maybe_unused]] const auto n = write(in_, text.data(), text.size());
}

std::string Worker::hear() {
  const auto until = Clock::now() + kPatience;
  for (;;) {
    if (const auto end = heard_.find('\n'); end != std::string::npos) {
      auto line = heard_.substr(0, end);
      heard_.erase(0, end + 1);
      return line;
    }
    pollfd ready{.fd = out_, .events = POLLIN, .revents = 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left <= 0ms || poll(&ready, 1, static_cast<int>(left.count())) <= 0) return "(nothing)";
    std::array<char, 4096> block{};
    const auto got = read(out_, block.data(), block.size());
    if (got <= 0) return "(nothing)";
    heard_.append(block.data(), static_cast<std::size_t>(got));
  }
}

std::string Worker::ask(const std::string& line) {
  tell(line);
  return hear();
}

void Worker::kill(int signal) const {
  ::kill(pid_, signal);
}

int Worker::wait() {
  int status = 0;
  waitpid(std::exchange(pid_, -1), &status, 0);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

Job::Job(int slots, horo::Environment extra) : extra_(std::move(extra)) {
  signal(SIGPIPE, SIG_IGN);
  fd_ = *horo::make_board({.local_size = slots, .nonce = kNonce, .secret = store.secret()});
  fcntl(fd_, F_SETFD, 0);  // The workers inherit it.
  board_ = *horo::map_board_header(fd_);
  client_ = std::make_unique<horo::kv::Client>(
      *horo::kv::Client::connect(store.address(), store.secret(), soon()));
}

Job::~Job() {
  workers_.clear();
  horo::unmap_board_header(board_);
  close(fd_);
}

Worker& Job::start() {
  const auto number = static_cast<int>(workers_.size());
  auto environment = horo::worker_environment({.size = 1,
                                               .hostname = "thishost",
                                               .job_id = fmt::format("elastic-{}", getpid()),
                                               .rendezvous = store.address(),
                                               .launcher_version = horo::version_code(),
                                               .board_fd = fd_,
                                               .agent_pid = getpid(),
                                               .board_nonce = kNonce,
                                               .elastic = true,
                                               .worker = number,
                                               .board_slot = number,
                                               .membership = store.address()});
  environment.emplace_back("HORO_START_TIMEOUT", "20");
  environment.emplace_back("PATH", "/usr/bin:/bin");
  for (const auto& one : extra_) {
    std::erase_if(environment, [&](const auto& known) { return known.first == one.first; });
    environment.push_back(one);
  }
  return *workers_.emplace_back(std::make_unique<Worker>(number, environment));
}

std::optional<MembershipCall> Job::take_call(int worker) {
  const auto key = horo::elastic::call_key(static_cast<std::uint32_t>(worker));
  const auto bytes = client_->find(key, soon());
  REQUIRE(bytes);
  if (!*bytes) return std::nullopt;
  REQUIRE(client_->erase(std::array{key}, soon()));
  const auto call = horo::elastic::decode_call(**bytes);
  REQUIRE(call);
  CHECK(call->worker == static_cast<std::uint32_t>(worker));
  return *call;
}

MembershipCall Job::await_call(int worker) {
  const auto key = horo::elastic::call_key(static_cast<std::uint32_t>(worker));
  INFO("worker " << worker << " has not called");
  REQUIRE(client_->get(key, soon()));
  return *take_call(worker);
}

void Job::set(const std::string& key, const std::string& value) {
  REQUIRE(client_->set(key, value, soon()));
}

void Job::answer(const MembershipCall& call, const MembershipAnswer& answer) {
  set(horo::elastic::answer_key(call.worker, call.attempt), encode(answer));
}

MembershipAnswer Job::answer_for(const std::vector<Member>& members, int worker,
                                 int survivors) const {
  MembershipAnswer answer{.generation = generation_,
                          .size = static_cast<int>(members.size()),
                          .local_size = 0,
                          .survivors = static_cast<std::uint32_t>(survivors)};
  const auto me = std::ranges::find(members, worker, &Member::worker);
  answer.rank = static_cast<int>(me - members.begin());
  answer.host_index = me->host;
  std::map<int, int> sizes;
  for (const auto& member : members) {
    if (member.worker == worker) answer.local_rank = sizes[member.host];
    ++sizes[member.host];
  }
  answer.local_size = sizes[me->host];
  answer.cross_size = 0;
  for (const auto& [host, size] : sizes) {
    if (host == me->host) answer.cross_rank = answer.cross_size;
    if (size > answer.local_rank) ++answer.cross_size;
  }
  return answer;
}

void Job::form(const std::vector<Member>& members, int survivors, std::uint64_t notice) {
  std::vector<MembershipCall> calls;
  for (const auto& member : members) calls.push_back(await_call(member.worker));
  begin();
  for (const auto& call : calls) {
    auto one = answer_for(members, static_cast<int>(call.worker), survivors);
    one.notice = notice;
    answer(call, one);
  }
}

void Job::begin_with(const std::vector<int>& hosts) {
  std::vector<Member> members;
  for (const int host : hosts) {
    auto& worker = start();
    worker.tell("init");
    members.push_back({.worker = worker.number, .host = host});
  }
  form(members, 0);
  for (const auto& member : members) {
    REQUIRE((*this)[member.worker].hear() ==
            fmt::format("in 1 {} {} 0", member.worker, hosts.size()));
  }
}

void Job::all(const std::vector<int>& workers, const std::string& line, const std::string& answer) {
  for (const int worker : workers) (*this)[worker].tell(line);
  for (const int worker : workers) {
    INFO("worker " << worker << " after '" << line << "'");
    REQUIRE((*this)[worker].hear().substr(0, answer.size()) == answer);
  }
}

horo::RankState Job::state_of(int slot) const {
  return board_->slot(horo::LocalRank{slot}).state.load();
}

}  // namespace elastic_test
