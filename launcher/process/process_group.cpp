// SPDX-License-Identifier: Apache-2.0
#include "launcher/process/process_group.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define BOOST_PROCESS_V2_HEADER_ONLY 1
#include <boost/process/v2/process.hpp>

#include "base/loop/asio.hpp"
#include "base/unique_fd.hpp"
#include "launcher/process/spawn.hpp"

namespace horo::launcher {

namespace asio = boost::asio;
using Process = boost::process::v2::basic_process<asio::io_context::executor_type>;

bool ExitStatus::signalled() const {
  return WIFSIGNALED(status_);
}

int ExitStatus::code() const {
  return WEXITSTATUS(status_);
}

int ExitStatus::signal() const {
  return signalled() ? WTERMSIG(status_) : 0;
}

bool ExitStatus::core_dumped() const {
  return signalled() && WCOREDUMP(status_);
}

namespace {

constexpr std::size_t kChunk = 65536;

/// Shared by all groups: the loop has one thread, and handlers do not keep the view.
std::array<char, kChunk>& chunk() {
  static thread_local std::array<char, kChunk> buffer;
  return buffer;
}

struct PipeEnds {
  UniqueFd reader;
  UniqueFd writer;
};

Result<PipeEnds> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    const int error = errno;
    if (error == EMFILE)
      return fail(Errc::unavailable, "too few descriptors for a rank's output; raise ulimit -n");
    return fail_errno(error, "creating a pipe");
  }
  return PipeEnds{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// For this process's end only: programs expect blocking descriptors.
void set_non_blocking(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/// Gives a running child to Boost.Process, which waits for it by pidfd and reaps it.
Result<Process> adopt(Loop& loop, pid_t pid) {
  UniqueFd handle(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!handle) {
    const int error = errno;
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return fail_errno(error, "opening a child's process descriptor");
  }
  try {
    Process process(asio_context(loop).get_executor(), pid, handle.value());
    handle.release();
    return process;
  } catch (const boost::system::system_error& error) {
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    return fail_errno(error.code().value(), "waiting for a child");
  }
}

/// One output of a child: this process's end of the pipe.
struct Source {
  Stream stream;
  UniqueFd fd;
  Descriptor watch;
};

}  // namespace

class ProcessGroup::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Loop& loop, Process process)
      : loop_(loop), process_(std::move(process)), pid_(process_.id()) {}

  Status take_output(Stream stream, UniqueFd fd) {
    set_non_blocking(fd.value());
    HORO_TRY(auto watch, loop_.watch(fd.value()));
    auto& source = sources_[stream == Stream::out ? 0 : 1];
    source.emplace(Source{stream, std::move(fd), std::move(watch)});
    listen(*source);
    return {};
  }

  Status take_input(UniqueFd fd) {
    set_non_blocking(fd.value());
    HORO_TRY(input_watch_, loop_.watch(fd.value()));
    input_ = std::move(fd);
    return {};
  }

  /// The handler owns this object, because Boost's wait operation refers to `process_`.
  void wait() {
    process_.async_wait(
        [self = shared_from_this()](const boost::system::error_code& error, int /*code*/) {
          if (!error) self->exited();
        });
  }

  void abandon() {
    on_output_ = nullptr;
    on_exit_ = nullptr;
    taken_ = nullptr;
    kill_timer_.reset();
    for (auto& source : sources_) source.reset();
    close_input_now();
    signal(SIGKILL);
  }

  int pid() const { return pid_; }

  bool running() const { return running_; }

  void on_output(std::function<void(Stream, std::string_view)> handler) {
    on_output_ = std::make_shared<decltype(handler)>(std::move(handler));
  }

  void on_exit(std::function<void(ExitStatus)> handler) { on_exit_ = std::move(handler); }

  void read_at_most(std::size_t bytes) { most_ = std::min(bytes, kChunk); }

  void set_paused(bool paused) {
    if (paused_ == paused) return;
    paused_ = paused;
    for (auto& source : sources_) {
      if (source) listen(*source);
    }
  }

  void write_input(std::string_view bytes, Task taken) {
    pending_.append(bytes);
    taken_ = std::move(taken);
    loop_.post([self = shared_from_this()] { self->flush_input(); });
  }

  void close_input() {
    input_ends_ = true;
    loop_.post([self = shared_from_this()] { self->flush_input(); });
  }

  void signal(int number) {
    if (running_) kill(-pid_, number);
  }

  void stop(Duration grace) {
    if (stopping_ || !running_) return;
    stopping_ = true;
    signal(SIGTERM);
    signal(SIGCONT);
    kill_timer_ = loop_.after(grace, [this] { signal(SIGKILL); });
  }

 private:
  void listen(Source& source) {
    if (paused_) return source.watch.on_readable({});
    const auto index = source.stream == Stream::out ? 0U : 1U;
    source.watch.on_readable([self = weak_from_this(), index] {
      if (const auto group = self.lock()) group->read_some(index, group->most_);
    });
  }

  /// Reads once, at most `most` bytes, so that every ready child gets its turn.
  bool read_some(std::size_t index, std::size_t most) {
    auto& source = sources_.at(index);
    if (!source) return false;
    const auto got = read(source->fd.value(), chunk().data(), std::min(most, kChunk));
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got <= 0) {
      source.reset();
      return false;
    }
    // The handler may destroy the group, and so itself.
    if (const auto handler = on_output_)
      (*handler)(source->stream, {chunk().data(), static_cast<std::size_t>(got)});
    return true;
  }

  /// Reads what the pipe holds at this moment, and no more: a descendant may never stop writing.
  void drain(std::size_t index) {
    if (!sources_.at(index)) return;
    int held = 0;
    if (ioctl(sources_.at(index)->fd.value(), FIONREAD, &held) != 0) held = 0;
    auto left = static_cast<std::size_t>(held);
    while (left > 0 && read_some(index, left)) left -= std::min(left, kChunk);
    sources_.at(index).reset();
  }

  void exited() {
    running_ = false;
    const ExitStatus status(process_.native_exit_code());
    // Otherwise its destructor would look for a pid that may belong to another child by then.
    static_cast<void>(process_.detach());
    kill_timer_.reset();
    for (std::size_t index = 0; index < sources_.size(); ++index) drain(index);
    drop_input();
    if (const auto handler = std::exchange(on_exit_, nullptr)) handler(status);
  }

  void flush_input() {
    while (input_ && !pending_.empty()) {
      const auto put = write(input_.value(), pending_.data(), pending_.size());
      if (put < 0 && errno == EAGAIN) {
        input_watch_.on_writable([self = weak_from_this()] {
          if (const auto group = self.lock()) group->flush_input();
        });
        return;
      }
      if (put < 0 && errno != EINTR) return drop_input();
      if (put > 0) pending_.erase(0, static_cast<std::size_t>(put));
    }
    if (input_) input_watch_.on_writable({});
    pending_.clear();
    if (input_ends_) close_input_now();
    if (const auto taken = std::exchange(taken_, nullptr)) taken();
  }

  void drop_input() {
    close_input_now();
    flush_input();
  }

  void close_input_now() {
    input_watch_.reset();
    input_.reset();
  }

  Loop& loop_;
  Process process_;
  const pid_t pid_;
  bool running_ = true;
  bool paused_ = false;
  std::size_t most_ = kChunk;
  bool stopping_ = false;
  std::array<std::optional<Source>, 2> sources_;
  UniqueFd input_;
  Descriptor input_watch_;
  std::string pending_;
  bool input_ends_ = false;
  Task taken_;
  Subscription kill_timer_;
  std::shared_ptr<std::function<void(Stream, std::string_view)>> on_output_;
  std::function<void(ExitStatus)> on_exit_;
};

Result<std::unique_ptr<ProcessGroup>> ProcessGroup::spawn(Loop& loop, const Command& command) {
  auto descriptors = command.descriptors;
  const auto listed = [&](int number) {
    return std::any_of(descriptors.begin(), descriptors.end(),
                       [&](const Inherited& d) { return d.to == number; });
  };
  PipeEnds in;
  PipeEnds out;
  PipeEnds err;
  UniqueFd null;
  if (!listed(STDIN_FILENO)) {
    if (command.input == Input::pipe) {
      HORO_TRY(in, make_pipe());
      descriptors.push_back({in.reader.value(), STDIN_FILENO});
    } else {
      null = UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC));
      if (!null) return fail_errno(errno, "opening /dev/null");
      descriptors.push_back({null.value(), STDIN_FILENO});
    }
  }
  if (!listed(STDOUT_FILENO)) {
    HORO_TRY(out, make_pipe());
    descriptors.push_back({out.writer.value(), STDOUT_FILENO});
  }
  if (!listed(STDERR_FILENO)) {
    HORO_TRY(err, make_pipe());
    descriptors.push_back({err.writer.value(), STDERR_FILENO});
  }
  HORO_TRY(const pid_t pid, spawn_process(command, descriptors));
  HORO_TRY(auto process, adopt(loop, pid));
  auto impl = std::make_shared<Impl>(loop, std::move(process));
  std::unique_ptr<ProcessGroup> group(new ProcessGroup(impl));
  if (in.writer) HORO_TRY_STATUS(impl->take_input(std::move(in.writer)));
  if (out.reader) HORO_TRY_STATUS(impl->take_output(Stream::out, std::move(out.reader)));
  if (err.reader) HORO_TRY_STATUS(impl->take_output(Stream::err, std::move(err.reader)));
  impl->wait();
  return group;
}

ProcessGroup::ProcessGroup(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

ProcessGroup::~ProcessGroup() {
  impl_->abandon();
}

int ProcessGroup::pid() const {
  return impl_->pid();
}

bool ProcessGroup::running() const {
  return impl_->running();
}

void ProcessGroup::on_output(std::function<void(Stream, std::string_view)> handler) {
  impl_->on_output(std::move(handler));
}

void ProcessGroup::on_exit(std::function<void(ExitStatus)> handler) {
  impl_->on_exit(std::move(handler));
}

void ProcessGroup::read_at_most(std::size_t bytes) {
  impl_->read_at_most(bytes);
}

void ProcessGroup::pause_output() {
  impl_->set_paused(true);
}

void ProcessGroup::resume_output() {
  impl_->set_paused(false);
}

void ProcessGroup::write_input(std::string_view bytes, Task taken) {
  impl_->write_input(bytes, std::move(taken));
}

void ProcessGroup::close_input() {
  impl_->close_input();
}

void ProcessGroup::signal(int number) {
  impl_->signal(number);
}

void ProcessGroup::stop(Duration grace) {
  impl_->stop(grace);
}

}  // namespace horo::launcher
