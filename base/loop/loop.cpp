// SPDX-License-Identifier: Apache-2.0
#include "base/loop/loop.hpp"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/loop/asio.hpp"

namespace horo {

namespace asio = boost::asio;
using boost::system::error_code;

class Loop::Impl {
 public:
  asio::io_context context;
  asio::executor_work_guard<asio::io_context::executor_type> work{context.get_executor()};
};

class Subscription::State {
 public:
  virtual ~State() = default;
  virtual void cancel() = 0;
};

namespace {

class TimerState final : public Subscription::State,
                         public std::enable_shared_from_this<TimerState> {
 public:
  TimerState(asio::io_context& context, Task task) : timer_(context), task_(std::move(task)) {}

  void start(Duration delay) {
    timer_.expires_after(delay);
    timer_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error && !self->cancelled_) self->task_();
    });
  }

  void cancel() override {
    cancelled_ = true;
    timer_.cancel();
  }

 private:
  asio::steady_timer timer_;
  Task task_;
  bool cancelled_ = false;
};

class SignalState final : public Subscription::State,
                          public std::enable_shared_from_this<SignalState> {
 public:
  SignalState(asio::io_context& context, Task task) : signals_(context), task_(std::move(task)) {}

  error_code add(int number) {
    error_code error;
    signals_.add(number, error);
    return error;
  }

  void wait() {
    signals_.async_wait([self = shared_from_this()](const error_code& error, int /*number*/) {
      if (error || self->cancelled_) return;
      self->task_();
      if (!self->cancelled_) self->wait();
    });
  }

  void cancel() override {
    cancelled_ = true;
    error_code ignored;
    signals_.clear(ignored);
    signals_.cancel(ignored);
  }

 private:
  asio::signal_set signals_;
  Task task_;
  bool cancelled_ = false;
};

}  // namespace

Subscription::Subscription(std::shared_ptr<State> state) : state_(std::move(state)) {}

Subscription& Subscription::operator=(Subscription&& other) noexcept {
  if (this != &other) {
    reset();
    state_ = std::move(other.state_);
  }
  return *this;
}

Subscription::~Subscription() {
  reset();
}

void Subscription::reset() {
  if (auto state = std::move(state_)) state->cancel();
}

class Descriptor::State : public std::enable_shared_from_this<State> {
 public:
  explicit State(asio::io_context& context) : descriptor_(context) {}

  ~State() { end(); }

  State(const State&) = delete;
  State& operator=(const State&) = delete;

  error_code assign(int descriptor) {
    error_code error;
    descriptor_.assign(descriptor, error);
    return error;
  }

  void set(asio::posix::descriptor_base::wait_type type, Task task) {
    auto& side = side_of(type);
    // If the replaced task is running now, it stays alive until it returns.
    side.task = task ? std::make_shared<Task>(std::move(task)) : nullptr;
    if (side.task && !side.waiting) wait(type);
  }

  void end() {
    reader_.task.reset();
    writer_.task.reset();
    if (descriptor_.is_open()) descriptor_.release();
  }

 private:
  struct Side {
    std::shared_ptr<Task> task;
    bool waiting = false;
  };

  Side& side_of(asio::posix::descriptor_base::wait_type type) {
    return type == asio::posix::descriptor_base::wait_read ? reader_ : writer_;
  }

  void wait(asio::posix::descriptor_base::wait_type type) {
    side_of(type).waiting = true;
    descriptor_.async_wait(type, [self = shared_from_this(), type](const error_code& error) {
      auto& side = self->side_of(type);
      side.waiting = false;
      // epoll does not accept plain files; they are always ready.
      if (error && error != asio::error::operation_not_supported) return;
      if (const auto task = side.task) (*task)();
      if (side.task && !side.waiting) self->wait(type);
    });
  }

  asio::posix::stream_descriptor descriptor_;
  Side reader_;
  Side writer_;
};

Descriptor::Descriptor(std::shared_ptr<State> state) : state_(std::move(state)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    state_ = std::move(other.state_);
  }
  return *this;
}

Descriptor::~Descriptor() {
  reset();
}

void Descriptor::on_readable(Task task) {
  HORO_CHECK(state_ != nullptr);
  state_->set(asio::posix::descriptor_base::wait_read, std::move(task));
}

void Descriptor::on_writable(Task task) {
  HORO_CHECK(state_ != nullptr);
  state_->set(asio::posix::descriptor_base::wait_write, std::move(task));
}

void Descriptor::reset() {
  if (auto state = std::move(state_)) state->end();
}

Loop::Loop(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Loop::~Loop() = default;

Result<std::unique_ptr<Loop>> Loop::make(BrokenPipes pipes) {
  if (pipes == BrokenPipes::ignored)
    std::signal(SIGPIPE, SIG_IGN);  // NOLINT(bugprone-signal-handler): it installs no handler
  try {
    auto impl = std::make_unique<Impl>();
    // Asio opens its epoll, timer and event descriptors with the first user. Doing that here lets
    // make() report the failure.
    asio::steady_timer first_user(impl->context);
    return std::unique_ptr<Loop>(new Loop(std::move(impl)));
  } catch (const boost::system::system_error& error) {
    return fail_errno(error.code().value(), "starting the event loop");
  }
}

void Loop::post(Task task) {
  asio::post(impl_->context, std::move(task));
}

Subscription Loop::after(Duration delay, Task task) {
  auto state = std::make_shared<TimerState>(impl_->context, std::move(task));
  state->start(delay);
  return Subscription(std::move(state));
}

Result<Subscription> Loop::on_signal(int number, Task task) {
  try {
    auto state = std::make_shared<SignalState>(impl_->context, std::move(task));
    if (const auto error = state->add(number)) {
      return fail(error.value() == EINVAL ? Errc::invalid_argument : Errc::unavailable,
                  "waiting for signal {}: {}", number, error.message());
    }
    state->wait();
    return Subscription(std::move(state));
  } catch (const boost::system::system_error& error) {
    return fail_errno(error.code().value(), fmt::format("waiting for signal {}", number));
  }
}

Result<Descriptor> Loop::watch(int descriptor) {
  if (fcntl(descriptor, F_GETFD) < 0) {
    return fail(Errc::invalid_argument, "descriptor {} is not open", descriptor);
  }
  auto state = std::make_shared<Descriptor::State>(impl_->context);
  if (const auto error = state->assign(descriptor)) {
    return fail(Errc::unavailable, "waiting for descriptor {}: {}", descriptor, error.message());
  }
  return Descriptor(std::move(state));
}

void Loop::run() {
  impl_->context.restart();
  impl_->context.run();
}

void Loop::stop() {
  impl_->context.stop();
}

boost::asio::io_context& asio_context(Loop& loop) {
  return loop.impl().context;
}

}  // namespace horo
