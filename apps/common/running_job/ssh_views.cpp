// SPDX-License-Identifier: Apache-2.0
#include "apps/common/running_job/ssh_views.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "apps/common/shell.hpp"
#include "base/deadline.hpp"
#include "base/unique_fd.hpp"
#include "timeline/view/merge_views.hpp"

namespace horo::apps {

namespace {

constexpr std::size_t kMostLine = std::size_t{16} << 20U;

}  // namespace

class SshViews::Impl {
 public:
  struct Host {
    std::string name;
    pid_t process = 0;
    UniqueFd output;
    std::string text;  ///< Output behind the last complete line.
    std::optional<timeline::LiveView> view;
    std::string last_message;  ///< The last line that was not a view.
  };

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  ~Impl() {
    for (auto& host : hosts) kill(-host.process, SIGTERM);
    for (auto& host : hosts) {
      int status = 0;
      while (waitpid(host.process, &status, 0) < 0 && errno == EINTR) continue;
    }
  }

  Status start(const std::string& name, const std::string& command);
  static void read(Host& host);

  std::vector<Host> hosts;
};

Status SshViews::Impl::start(const std::string& name, const std::string& command) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(errno, "a pipe for ssh");
  UniqueFd output(ends[0]);
  const UniqueFd input(ends[1]);
  fcntl(output.value(), F_SETFL, O_NONBLOCK);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, input.value(), 1);
  posix_spawn_file_actions_adddup2(&files, input.value(), 2);
  posix_spawnattr_t how;
  posix_spawnattr_init(&how);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&how, &none);
  posix_spawnattr_setpgroup(&how, 0);
  posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  const std::array<const char*, 9> words{
      "ssh", "-o",         "BatchMode=yes", "-o",   "ConnectTimeout=10",
      "--",  name.c_str(), command.c_str(), nullptr};
  pid_t process = 0;
  const int error =
      posix_spawnp(&process, "ssh", &files, &how, const_cast<char* const*>(words.data()), environ);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&how);
  if (error != 0) return fail_errno(error, "ssh");
  hosts.push_back({.name = name, .process = process, .output = std::move(output)});
  return {};
}

void SshViews::Impl::read(Host& host) {
  std::array<char, 65536> bytes{};
  while (host.output) {
    const auto got = ::read(host.output.value(), bytes.data(), bytes.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
    if (got <= 0 || host.text.size() > kMostLine) {
      host.output = UniqueFd();
      break;
    }
    host.text.append(bytes.data(), static_cast<std::size_t>(got));
  }
  for (std::size_t end = 0; (end = host.text.find('\n')) != std::string::npos;) {
    const auto line = host.text.substr(0, end);
    host.text.erase(0, end + 1);
    if (auto view = timeline::parse_live(line)) {
      host.view = std::move(*view);
    } else if (!line.empty()) {
      host.last_message = line;
    }
  }
}

SshViews::SshViews(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

SshViews::~SshViews() = default;

Result<std::unique_ptr<SshViews>> SshViews::start(const std::vector<std::string>& hosts,
                                                  const std::string& job, Duration interval,
                                                  bool once) {
  std::error_code error;
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "horo";
  if (error) return fail_errno(error.value(), "/proc/self/exe");
  const auto command = fmt::format(
      "exec {} top --json {} {}", shell_quoted(program.string()),
      once ? std::string("--once")
           : fmt::format("--interval {:.3f}", std::chrono::duration<double>(interval).count()),
      shell_quoted(job));
  auto impl = std::make_unique<Impl>();
  for (const auto& host : hosts) HORO_TRY_STATUS(impl->start(host, command));
  return std::unique_ptr<SshViews>(new SshViews(std::move(impl)));
}

void SshViews::add_to(timeline::LiveView& view) {
  for (auto& host : impl_->hosts) {
    Impl::read(host);
    if (host.view) timeline::join_views(view, *host.view);
    if (host.output) continue;
    // The host's `horo top` has ended without an error: its last view is simply old.
    if (host.view && host.last_message.empty()) continue;
    const auto& words = host.last_message.empty() ? host.text : host.last_message;
    view.problems.push_back(fmt::format("no view of {}: {}", host.name, words));
  }
  timeline::find_missing(view);
}

void SshViews::await(Duration most) {
  const auto& clock = SteadyClock::instance();
  const auto until = clock.now() + most;
  for (;;) {
    std::vector<pollfd> all;
    for (auto& host : impl_->hosts) {
      Impl::read(host);
      if (!host.view && host.output)
        all.push_back({.fd = host.output.value(), .events = POLLIN, .revents = 0});
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock.now()).count();
    if (all.empty() || left <= 0) return;
    poll(all.data(), all.size(), static_cast<int>(left));
  }
}

}  // namespace horo::apps
