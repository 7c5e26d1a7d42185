// SPDX-License-Identifier: Apache-2.0
#include "apps/timeline_view/elsewhere.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <poll.h>
#include <set>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "apps/common/shell.hpp"
#include "base/deadline.hpp"
#include "base/unique_fd.hpp"
#include "timeline/json_reader.hpp"

namespace horo::apps {

namespace {

constexpr std::size_t kMostLine = std::size_t{16} << 20U;
constexpr std::size_t kMostMissing = 64;  ///< Of a row: there may be thousands of rows.
constexpr std::array kStates{LiveState::starts, LiveState::computes, LiveState::waits,
                             LiveState::moves,  LiveState::stopped,  LiveState::ended};

template <typename T>
void take_number(std::string_view text, T& to) {
  std::from_chars(text.data(), text.data() + text.size(), to);
}

bool read_row(timeline::JsonReader& json, LiveRow& row) {
  return json.object([&](std::string_view key) {
    if (key == "missing") {
      return json.array([&] {
        std::string_view rank;
        if (!json.scalar(rank)) return false;
        take_number(rank, row.missing.emplace_back(0));
        return true;
      });
    }
    const std::string name(key);
    if (json.peek() == '{' || json.peek() == '[') return json.skip();
    std::string_view text;
    if (!json.scalar(text)) return false;
    if (name == "rank") take_number(text, row.rank);
    if (name == "host") row.host = text;
    if (name == "pid") take_number(text, row.pid);
    if (name == "tensor") row.tensor = text;
    if (name == "tensors") take_number(text, row.tensors);
    if (name == "for_ns") take_number(text, row.for_ns);
    if (name == "lag_ns") take_number(text, row.lag_ns);
    if (name == "operations_per_s") take_number(text, row.operations_per_s);
    if (name == "bytes_per_s") take_number(text, row.bytes_per_s);
    if (name == "waiting") take_number(text, row.waiting);
    if (name == "stalls") take_number(text, row.stalls);
    if (name == "lost_records") take_number(text, row.lost);
    if (name == "state") {
      const auto* const state = std::find_if(kStates.begin(), kStates.end(), [&](LiveState known) {
        return timeline::name(known) == text;
      });
      if (state != kStates.end()) row.state = *state;
    }
    return true;
  });
}

/// Has nothing under way: it is this rank's turn.
bool is_idle(const LiveRow& row) {
  return row.state == LiveState::computes || row.state == LiveState::starts ||
         row.state == LiveState::stopped;
}

}  // namespace

Result<LiveView> parse_live(std::string_view line) {
  const timeline::ByteSource source = [&line](char* to, std::size_t room) -> Result<std::size_t> {
    const auto count = line.copy(to, room);
    line.remove_prefix(count);
    return count;
  };
  timeline::JsonReader json(source);
  LiveView view;
  const bool whole = json.object([&](std::string_view key) {
    if (key == "ranks") return json.array([&] { return read_row(json, view.rows.emplace_back()); });
    const std::string name(key);
    if (json.peek() == '{' || json.peek() == '[') return json.skip();
    std::string_view text;
    if (!json.scalar(text)) return false;
    if (name == "job") view.job = text;
    if (name == "size") take_number(text, view.size);
    if (name == "time_ns") take_number(text, view.now_ns);
    return true;
  });
  if (!whole) return fail(Errc::protocol, "no view of a job: {}", json.problem());
  return view;
}

void join_views(LiveView& to, const LiveView& other) {
  to.size = std::max(to.size, other.size);
  std::set<int> known;
  for (const auto& row : to.rows) known.insert(row.rank);
  for (const auto& row : other.rows) {
    if (known.insert(row.rank).second) to.rows.push_back(row);
  }
  std::sort(to.rows.begin(), to.rows.end(),
            [](const LiveRow& a, const LiveRow& b) { return a.rank < b.rank; });
}

void find_missing(LiveView& view, Seen seen) {
  for (auto& row : view.rows) {
    if (row.state != LiveState::waits || !row.missing.empty()) continue;
    for (auto& other : view.rows) {
      if ((seen == Seen::by_host && other.host == row.host) || !is_idle(other)) continue;
      if (row.missing.size() < kMostMissing) row.missing.push_back(other.rank);
      other.lag_ns = std::max(other.lag_ns, row.for_ns);
    }
  }
}

Result<std::vector<std::string>> split_hosts(std::string_view text) {
  std::vector<std::string> hosts;
  while (!text.empty()) {
    const auto end = std::min(text.find(','), text.size());
    const std::string host(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (host.empty() || host.front() == '-')
      return fail(Errc::invalid_argument, "option '--hosts': '{}' is no host", host);
    hosts.push_back(host);
  }
  if (hosts.empty()) return fail(Errc::invalid_argument, "option '--hosts': no host is named");
  return hosts;
}

class Elsewhere::Impl {
 public:
  struct Host {
    std::string name;
    pid_t process = 0;
    UniqueFd output;
    std::string text;  ///< Behind its last whole line.
    std::optional<LiveView> view;
    std::string last_words;
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

Status Elsewhere::Impl::start(const std::string& name, const std::string& command) {
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

void Elsewhere::Impl::read(Host& host) {
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
    if (auto view = parse_live(line)) {
      host.view = std::move(*view);
    } else if (!line.empty()) {
      host.last_words = line;
    }
  }
}

Elsewhere::Elsewhere(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Elsewhere::~Elsewhere() = default;

Result<std::unique_ptr<Elsewhere>> Elsewhere::start(const std::vector<std::string>& hosts,
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
  return std::unique_ptr<Elsewhere>(new Elsewhere(std::move(impl)));
}

void Elsewhere::add_to(LiveView& view) {
  for (auto& host : impl_->hosts) {
    Impl::read(host);
    if (host.view) join_views(view, *host.view);
    if (host.output) continue;
    // Its last view is old by now.
    if (host.view && host.last_words.empty()) continue;
    const auto& words = host.last_words.empty() ? host.text : host.last_words;
    view.problems.push_back(fmt::format("no view of {}: {}", host.name, words));
  }
  find_missing(view);
}

void Elsewhere::await(Duration most) {
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
