// SPDX-License-Identifier: Apache-2.0
#include "base/kv/server/listener_set.hpp"

#include <utility>

#include "base/log.hpp"

namespace horo::kv {

namespace {

constexpr int kAcceptsPerTurn = 64;  // Then the connected clients are served.
constexpr Duration kDescriptorRetry = std::chrono::milliseconds(100);

}  // namespace

Status ListenerSet::add(const Address& address) {
  HORO_TRY(Listener listener, Listener::open(address));
  HORO_TRY(Descriptor descriptor, loop_.watch(listener.descriptor()));
  listeners_.push_back({.listener = std::move(listener), .descriptor = std::move(descriptor)});
  if (accepting_) accept_at(listeners_.back());
  return {};
}

Result<Address> ListenerSet::find_or_add(const Address& address) {
  for (const auto& entry : listeners_) {
    const auto& there = entry.listener.address();
    const bool same_port = address.port == 0 || address.port == there.port;
    if (there.host == address.host && same_port) return there;
  }
  HORO_TRY_STATUS(add(address));
  return listeners_.back().listener.address();
}

std::vector<Address> ListenerSet::addresses() const {
  std::vector<Address> out;
  for (const auto& entry : listeners_) out.push_back(entry.listener.address());
  return out;
}

void ListenerSet::accept_from(Watched& entry) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (!hooks_.has_room()) {
      pause();
      hooks_.on_full();
      return;
    }
    auto fd = entry.listener.accept();
    if (!fd) {
      if (!std::exchange(is_short_, true))
        log::warn("rendezvous", "{}; trying again until it works", fd.error().message);
      pause();
      retry_ = loop_.after(kDescriptorRetry, [this] { resume(); });
      return;
    }
    is_short_ = false;
    if (*fd < 0) return;
    hooks_.on_connection(*fd);
  }
}

void ListenerSet::accept_at(Watched& entry) {
  entry.descriptor.on_readable([this, &entry] { accept_from(entry); });
}

void ListenerSet::pause() {
  for (auto& entry : listeners_) entry.descriptor.on_readable(nullptr);
  accepting_ = false;
}

void ListenerSet::resume() {
  retry_.reset();
  if (accepting_ || !hooks_.has_room()) return;
  accepting_ = true;
  for (auto& entry : listeners_) accept_at(entry);
}

}  // namespace horo::kv
