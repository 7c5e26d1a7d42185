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
#include "base/unique_fd.hpp"
#include "launcher/process/control_group.hpp"
#include "launcher/process/descendants.hpp"
#include "launcher/process/process_group.hpp"
#include "launcher/process/spawn.hpp"

namespace horo::launcher {

namespace {

using namespace std::chrono_literals;

constexpr Duration kKillTime = 5s;  ///< For the kernel to end processes after SIGKILL.

}  // namespace

Result<std::string> agent_path() {
  if (const char* given = std::getenv("HORO_AGENT_PATH"); given != nullptr && *given != '\0')
    return std::string(given);
  std::array<char, PATH_MAX> self{};
  const auto size = readlink("/proc/self/exe", self.data(), self.size() - 1);
  if (size < 0) return fail_errno(errno, "finding this program's own folder");
  const std::string path(self.data(), static_cast<std::size_t>(size));
  return path.substr(0, path.rfind('/')) + "/horo-agent";
}

namespace {

/// A socket pair to a child. Guard and agent both hold the child's end.
class LocalCarrier final : public Carrier {
 public:
  LocalCarrier(Loop& loop, std::string path, const AgentSpec& spec)
      : loop_(loop), path_(std::move(path)), host_(spec.host) {}

  Status open(Handlers handlers) override {
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      return fail_errno(errno, "creating the agent's socket");
    }
    socket_ = UniqueFd(ends[0]);
    const UniqueFd theirs(ends[1]);
    HORO_TRY(guard_, ProcessGroup::spawn(loop_, {.arguments = {path_},
                                                 .environment = own_environment(),
                                                 .descriptors = {{theirs.value(), STDIN_FILENO},
                                                                 {theirs.value(), STDOUT_FILENO},
                                                                 {STDERR_FILENO, STDERR_FILENO}},
                                                 .parent_death_signal = SIGTERM,
                                                 .descriptor_limit = first_descriptor_limit()}));
    guard_->on_exit([this, gone = std::move(handlers.on_gone)](ExitStatus status) {
      guard_status_ = status;
      gone({Errc::unavailable,
            fmt::format("the agent on host '{}' was lost: {}", host_, describe_end())});
    });
    handlers.on_open({.descriptor = socket_.value(), .end_leftovers = end_leftovers});
    return {};
  }

  void hang_up() override { socket_.reset(); }

  void give_up() override {
    gave_up_ = true;
    signal_descendants(guard_->pid(), SIGKILL);
    guard_->signal(SIGKILL);
  }

  CarrierStatus status() const override { return {.process = guard_ ? guard_->pid() : 0}; }

 private:
  /// When guard and agent are killed at once, their processes become this process's children.
  static void end_leftovers(const std::string& control_group, const std::string& job_id) {
    if (!control_group.empty())
      end_control_group(control_group, Deadline::in(SteadyClock::instance(), kKillTime));
    if (!job_id.empty()) {
      kill_descendants_with("HORO_JOB_ID=" + job_id,
                            Deadline::in(SteadyClock::instance(), kKillTime));
    }
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
  const std::string path_;
  const std::string host_;
  UniqueFd socket_;
  std::unique_ptr<ProcessGroup> guard_;
  std::optional<ExitStatus> guard_status_;
  bool gave_up_ = false;
};

class LocalStarter final : public Starter {
 public:
  LocalStarter(Loop& loop, Duration end_timeout) : loop_(loop), end_timeout_(end_timeout) {}

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
    return open_agent(loop_, spec, std::make_unique<LocalCarrier>(loop_, path, spec),
                      {.agent = end_timeout_}, events);
  }

 private:
  Loop& loop_;
  const Duration end_timeout_;
};

}  // namespace

std::unique_ptr<Starter> make_local_starter(Loop& loop, Duration end_timeout) {
  return std::make_unique<LocalStarter>(loop, end_timeout);
}

}  // namespace horo::launcher
