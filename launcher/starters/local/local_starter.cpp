// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/local/local_starter.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "base/exit_code.hpp"
#include "launcher/agent/channel.hpp"
#include "launcher/process/control_group.hpp"
#include "launcher/process/descendants.hpp"
#include "launcher/process/process_group.hpp"
#include "launcher/process/spawn.hpp"
#include "launcher/process/unique_fd.hpp"

namespace horo::launcher {

namespace {

using namespace std::chrono_literals;
using protocol::Channel;
using protocol::Message;

constexpr Duration kPatience = 5s;  ///< For the kernel to end processes that have got SIGKILL.

Result<std::string> agent_path() {
  if (const char* given = std::getenv("HORO_AGENT_PATH"); given != nullptr && *given != '\0')
    return std::string(given);
  std::array<char, PATH_MAX> self{};
  const auto size = readlink("/proc/self/exe", self.data(), self.size() - 1);
  if (size < 0) return fail_errno(errno, "finding this program's own folder");
  const std::string path(self.data(), static_cast<std::size_t>(size));
  return path.substr(0, path.rfind('/')) + "/horo-agent";
}

Environment own_environment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

/// What every descendant of the job's ranks has in its environment; empty when the job has no id.
std::string job_variable(const AgentSpec& spec) {
  const auto& id = spec.ranks.front().job_id;
  return id.empty() ? std::string() : "HORO_JOB_ID=" + id;
}

/// The launcher's end of one agent. Its handlers own it: an event may destroy the agent.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Loop& loop, const AgentSpec& spec, Duration patience, AgentEvents& events)
      : loop_(loop),
        host_(spec.host),
        job_variable_(job_variable(spec)),
        grace_(spec.failure_grace + spec.grace),
        patience_(patience),
        events_(&events) {}

  Status begin(const std::string& path, const AgentSpec& spec) {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      return fail_errno(errno, "creating the agent's socket");
    }
    socket_ = UniqueFd(ends[0]);
    const UniqueFd theirs(ends[1]);
    HORO_TRY(guard_, ProcessGroup::spawn(loop_, {.arguments = {path},
                                                 .environment = own_environment(),
                                                 .descriptors = {{theirs.value(), STDIN_FILENO},
                                                                 {theirs.value(), STDOUT_FILENO},
                                                                 {STDERR_FILENO, STDERR_FILENO}},
                                                 .parent_death_signal = SIGTERM,
                                                 .descriptor_limit = first_descriptor_limit()}));
    const auto self = weak_from_this();
    guard_->on_exit([self](ExitStatus status) {
      if (const auto connection = self.lock()) connection->guard_ended(status);
    });
    HORO_TRY(channel_, Channel::open(loop_, socket_.value(), socket_.value(),
                                     {.on_message =
                                          [self](const Message& message) {
                                            if (const auto connection = self.lock())
                                              connection->receive(message);
                                          },
                                      .on_end =
                                          [self](const Status& status) {
                                            if (const auto connection = self.lock())
                                              connection->channel_ended(status);
                                          },
                                      .on_room = {}}));
    HORO_TRY_STATUS(channel_->send(protocol::Hello::ours()));
    return channel_->send(protocol::Start{spec});
  }

  void stop(const Poison& cause, std::string_view host) {
    send(protocol::Stop{cause, std::string(host)});
    if (!told_to_end_) expect_end(grace_ + patience_);
  }

  void kill() {
    send(protocol::Kill{});
    if (!told_to_kill_) expect_end(patience_);
    told_to_kill_ = true;
  }

  /// End of the agent's input: it kills its ranks and ends.
  void close() {
    events_ = nullptr;
    silence_.reset();
    channel_.reset();
    socket_.reset();
  }

  void send(const Message& message) {
    if (channel_ == nullptr) return;
    if (auto sent = channel_->send(message); !sent) distrust(std::move(sent).error());
  }

 private:
  void expect_end(Duration within) {
    told_to_end_ = true;
    silence_ = loop_.after(within, [self = weak_from_this()] {
      if (const auto connection = self.lock()) connection->give_up();
    });
  }

  /// An agent that is stopped, or hangs. The ends of guard and channel follow; its last word may be
  /// on its way all the same.
  void give_up() {
    gave_up_ = true;
    signal_descendants(guard_->pid(), SIGKILL);
    guard_->signal(SIGKILL);
  }

  void receive(const Message& message) {
    if (!greeted_) {
      const auto* hello = std::get_if<protocol::Hello>(&message);
      if (hello == nullptr) return distrust({Errc::protocol, "it did not begin with a hello"});
      if (auto same = protocol::check_hello(*hello, "horo-agent"); !same)
        return distrust(std::move(same).error());
      greeted_ = true;
      return;
    }
    if (finished_ || failed_) return;
    if (const auto* output = std::get_if<protocol::Output>(&message)) {
      events_->on_output(output->rank, output->stream, output->bytes);
    } else if (const auto* covered = std::get_if<protocol::Covered>(&message)) {
      control_group_ = covered->cover.group;
      events_->on_cover(covered->cover);
    } else if (const auto* started = std::get_if<protocol::Started>(&message)) {
      events_->on_started(started->rank, started->pid);
    } else if (const auto* exited = std::get_if<protocol::Exited>(&message)) {
      events_->on_exit(exited->exit);
    } else if (const auto* failed_spawn = std::get_if<protocol::SpawnFailed>(&message)) {
      events_->on_spawn_failed(failed_spawn->rank, failed_spawn->error);
    } else if (std::holds_alternative<protocol::StdinRoom>(message)) {
      events_->on_stdin_room();
    } else if (const auto* finished = std::get_if<protocol::Finished>(&message)) {
      finished_ = finished->survivors;
    } else if (const auto* failed = std::get_if<protocol::Failed>(&message)) {
      failed_ = failed->error;
    } else {
      distrust({Errc::protocol, "it sent what only a launcher says"});
    }
  }

  /// From here on nothing it says counts; it ends its ranks at the end of its input.
  void distrust(Error reason) {
    failed_ = std::move(reason);
    channel_.reset();
    socket_.reset();
    channel_over_ = true;
    settle();
  }

  void guard_ended(ExitStatus status) {
    guard_status_ = status;
    settle();
  }

  /// Both halves of the pair hold the socket: its end means that both are gone, and the ranks too.
  void channel_ended(const Status& status) {
    channel_over_ = true;
    if (!status) return distrust(status.error());
    settle();
  }

  void settle() {
    if (!guard_status_ || !channel_over_ || events_ == nullptr) return;
    auto& events = *std::exchange(events_, nullptr);
    silence_.reset();
    if (finished_) return events.on_finished(*finished_);
    // Whatever both halves of a pair that were killed at once have left behind is ours now.
    if (!control_group_.empty()) {
      end_control_group(control_group_, Deadline::in(SteadyClock::instance(), kPatience));
    }
    if (!job_variable_.empty()) {
      kill_descendants_with(job_variable_, Deadline::in(SteadyClock::instance(), kPatience));
    }
    if (failed_)
      return events.on_lost(std::move(*failed_).context(fmt::format("agent on host '{}'", host_)));
    events.on_lost({Errc::unavailable,
                    fmt::format("the agent on host '{}' was lost: {}", host_, describe_end())});
  }

  std::string describe_end() const {
    if (gave_up_) return "it did not end its ranks when told to, and was killed";
    if (guard_status_->signalled())
      return fmt::format("its guard was killed by signal {}", guard_status_->signal());
    const int code = guard_status_->code();
    return code > exit_code::kSignalBase
               ? fmt::format("it was killed by signal {}", code - exit_code::kSignalBase)
               : fmt::format("it ended with exit code {} and gave no reason", code);
  }

  Loop& loop_;
  const std::string host_;
  const std::string job_variable_;
  const Duration grace_;
  const Duration patience_;
  AgentEvents* events_;
  std::string control_group_;  ///< Of the agent and all that it started; empty: none.
  UniqueFd socket_;
  std::unique_ptr<ProcessGroup> guard_;
  std::unique_ptr<Channel> channel_;
  Subscription silence_;
  bool greeted_ = false;
  bool told_to_end_ = false;
  bool told_to_kill_ = false;
  bool gave_up_ = false;
  bool channel_over_ = false;
  std::optional<int> finished_;
  std::optional<Error> failed_;
  std::optional<ExitStatus> guard_status_;
};

class LocalAgent final : public Agent {
 public:
  explicit LocalAgent(std::shared_ptr<Connection> connection)
      : connection_(std::move(connection)) {}

  ~LocalAgent() override { connection_->close(); }

  void signal(int number) override { connection_->send(protocol::Signal{number}); }

  void stop(const Poison& cause, std::string_view host) override { connection_->stop(cause, host); }

  void kill() override { connection_->kill(); }

  void feed_stdin(std::string_view bytes) override {
    do {
      const auto part = bytes.substr(0, protocol::kMaxChunk);
      connection_->send(protocol::FeedStdin{part});
      bytes.remove_prefix(part.size());
    } while (!bytes.empty());
  }

  void close_stdin() override { connection_->send(protocol::CloseStdin{}); }

  void pause_output() override { connection_->send(protocol::PauseOutput{}); }

  void resume_output() override { connection_->send(protocol::ResumeOutput{}); }

 private:
  std::shared_ptr<Connection> connection_;
};

class LocalStarter final : public Starter {
 public:
  LocalStarter(Loop& loop, Duration patience) : loop_(loop), patience_(patience) {}

  std::string_view name() const override { return "local"; }

  Status probe() const override {
    HORO_TRY(const auto path, agent_path());
    if (access(path.c_str(), X_OK) != 0) {
      return fail(
          Errc::not_found,
          "there is no program '{}'; install horo-agent beside horo, or set HORO_AGENT_PATH", path);
    }
    return {};
  }

  Result<std::unique_ptr<Agent>> start(const AgentSpec& spec, AgentEvents& events) override {
    HORO_TRY_STATUS(probe());
    HORO_TRY_STATUS(become_subreaper());
    HORO_TRY(const auto path, agent_path());
    auto connection = std::make_shared<Connection>(loop_, spec, patience_, events);
    HORO_TRY_STATUS(connection->begin(path, spec).context("starting horo-agent"));
    return std::unique_ptr<Agent>(std::make_unique<LocalAgent>(std::move(connection)));
  }

 private:
  Loop& loop_;
  const Duration patience_;
};

}  // namespace

std::unique_ptr<Starter> make_local_starter(Loop& loop, Duration patience) {
  return std::make_unique<LocalStarter>(loop, patience);
}

}  // namespace horo::launcher
