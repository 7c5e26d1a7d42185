// SPDX-License-Identifier: Apache-2.0
#include "launcher/run/signal_listener.hpp"

#include <csignal>

namespace horo::launcher {

namespace {

constexpr Duration kEcho = std::chrono::milliseconds(300);

bool is_ignored(int number) {
  struct sigaction action {};

  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

bool is_for_ranks(int number) {
  return number == SIGUSR1 || number == SIGUSR2;
}

}  // namespace

/// With a handler, a write to a screen that is gone fails with EPIPE. An ignored SIGPIPE would do
/// the same, but the ranks would inherit it.
void survive_broken_pipes() {
  struct sigaction action {};

  action.sa_handler = [](int) {};
  sigaction(SIGPIPE, &action, nullptr);
}

int number_of(NoticeSignal notice) {
  switch (notice) {
    case NoticeSignal::usr1:
      return SIGUSR1;
    case NoticeSignal::usr2:
      return SIGUSR2;
    case NoticeSignal::term:
      return SIGTERM;
    case NoticeSignal::off:
      break;
  }
  return 0;
}

bool ends_programs(int number) {
  return number != SIGUSR1 && number != SIGUSR2 && number != SIGPIPE;
}

void stop_this_process() {
  struct sigaction standard {};

  struct sigaction before {};

  standard.sa_handler = SIG_DFL;
  sigaction(SIGTSTP, &standard, &before);
  raise(SIGTSTP);
  sigaction(SIGTSTP, &before, nullptr);
}

Result<std::unique_ptr<SignalListener>> SignalListener::make(Loop& loop, Handlers handlers) {
  std::unique_ptr<SignalListener> listener(new SignalListener(std::move(handlers)));
  auto* const raw = listener.get();
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    if (number == SIGHUP && is_ignored(SIGHUP)) continue;
    HORO_TRY(auto subscription, loop.on_signal(number, [raw, number] { raw->receive(number); }));
    raw->signals_.push_back(std::move(subscription));
  }
  if (!is_ignored(SIGTSTP)) {
    HORO_TRY(auto subscription, loop.on_signal(SIGTSTP, [raw] { raw->handlers_.on_suspend(); }));
    raw->signals_.push_back(std::move(subscription));
  }
  return listener;
}

void SignalListener::receive(int number) {
  if (!is_for_ranks(number) && is_echo(number)) return;
  handlers_.on_signal(number);
}

/// A terminal or shell signals a whole process group, and a wrapper in it (timeout, a batch script)
/// passes the signal on. The user has not asked twice.
bool SignalListener::is_echo(int number) {
  const auto now = SteadyClock::instance().now();
  if (number == last_number_ && now - last_time_ < kEcho) return true;
  last_number_ = number;
  last_time_ = now;
  return false;
}

}  // namespace horo::launcher
