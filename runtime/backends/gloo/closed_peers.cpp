// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/gloo/closed_peers.hpp"

#include <chrono>
#include <exception>
#include <pthread.h>
#include <utility>

#include "base/signals_blocked.hpp"

namespace horo::runtime {

namespace {

/// Gloo adds it to the current time, so the largest number would overflow.
constexpr std::chrono::milliseconds kVeryLong = std::chrono::hours(24 * 365);

}  // namespace

ClosedPeers::ClosedPeers(std::shared_ptr<gloo::Context> context, Mutex& posting,
                         std::function<void(int)> closed)
    : context_(std::move(context)),
      posting_(posting),
      closed_(std::move(closed)),
      open_(static_cast<std::size_t>(context_->size), true) {
  open_[static_cast<std::size_t>(context_->rank)] = false;
  if (context_->size > 1) thread_ = start_quiet_thread([this] { run(); });
}

ClosedPeers::~ClosedPeers() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    if (message_ != nullptr) message_->abortWaitRecv();
  }
  if (thread_.joinable()) thread_.join();
}

void ClosedPeers::run() {
  pthread_setname_np(pthread_self(), "horo-gloo-peers");
  while (post() && sleep()) {
  }
}

bool ClosedPeers::post() {
  std::shared_ptr<Message> message;
  try {
    message = context_->createUnboundBuffer(&byte_, 1);
  } catch (const std::exception&) {
    return false;  // Without memory the watch ends; time-outs still end what waits.
  }
  bool any = false;
  for (std::size_t peer = 0; peer < open_.size(); ++peer) {
    if (!open_[peer]) continue;
    try {
      const MutexLock lock(posting_);
      message->recv(static_cast<int>(peer), kTag, 0, 1);
      any = true;
    } catch (const std::exception&) {
      open_[peer] = false;
      closed_(static_cast<int>(peer));
    }
  }
  const MutexLock lock(mutex_);
  message_ = std::move(message);
  return any && !ending_;
}

/// False: this ends.
bool ClosedPeers::sleep() {
  std::shared_ptr<Message> message;
  {
    const MutexLock lock(mutex_);
    message = message_;
  }
  try {
    return message->waitRecv(nullptr, kVeryLong);
  } catch (const std::exception&) {
    return true;  // Some connection has ended: post() finds which.
  }
}

}  // namespace horo::runtime
