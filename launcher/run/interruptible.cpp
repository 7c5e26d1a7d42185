// SPDX-License-Identifier: Apache-2.0
#include "launcher/run/interruptible.hpp"

#include <csignal>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>

#include "base/loop/loop.hpp"
#include "base/unique_fd.hpp"
#include "launcher/run/signal_listener.hpp"

namespace horo::launcher {

namespace {

/// For programs to be killed and `work` to return. A file or a name service may block longer.
constexpr Duration kToReturn = std::chrono::seconds(2);

void die_by(int number) {
  std::signal(number, SIG_DFL);  // NOLINT(bugprone-signal-handler): it installs no handler
  raise(number);
}

}  // namespace

std::optional<int> run_interruptibly(const std::function<void(int cancel)>& work) {
  const UniqueFd cancel(eventfd(0, EFD_CLOEXEC));
  // Programs that `work` runs would inherit an ignored SIGPIPE.
  auto loop = Loop::make(Loop::BrokenPipes::untouched);
  const auto uninterruptible = [&work] {
    work(-1);
    return std::nullopt;
  };
  if (!cancel || !loop) return uninterruptible();
  std::optional<int> signal;
  Subscription timer;
  const auto receive = [&](int number) {
    if (signal) return;  // Programs are being killed, and would be left if this ended at once.
    signal = number;
    eventfd_write(cancel.value(), 1);
    timer = (*loop)->after(kToReturn, [number] { die_by(number); });
  };
  auto signals =
      SignalListener::make(**loop, {.on_signal = receive, .on_suspend = stop_this_process});
  if (!signals) return uninterruptible();
  std::thread worker;
  try {
    // Its signal mask stays that of the program, because the programs that it runs inherit it.
    worker = std::thread([&] {
      work(cancel.value());
      (*loop)->post([&loop] { (*loop)->stop(); });
    });
  } catch (const std::system_error&) {
    signals->reset();
    return uninterruptible();
  }
  (*loop)->run();
  worker.join();
  return signal;
}

}  // namespace horo::launcher
