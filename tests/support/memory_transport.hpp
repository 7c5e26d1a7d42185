// SPDX-License-Identifier: Apache-2.0
// A wire between threads of one process, which can fail on purpose.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "runtime/backends/flat/transport.hpp"

namespace horo::test {

/// The messages in flight between all ranks. A send is complete when the message has been received.
class Ether {
 public:
  using Key = std::tuple<int, int, std::uint64_t>;  ///< From, to, tag.

  struct Box {
    std::vector<std::byte> bytes;
    bool full = false;
  };

  std::mutex mutex;
  std::condition_variable changed;
  std::map<Key, Box> boxes;
  std::vector<bool> closed;
  std::atomic<std::uint64_t> messages{0};
};

class MemoryTransport final : public runtime::Transport {
 public:
  /// Posting message number `fails_at` fails; a negative number means none.
  MemoryTransport(std::shared_ptr<Ether> ether, int me, std::int64_t fails_at = -1)
      : ether_(std::move(ether)), me_(me), fails_at_(fails_at) {}

  Result<std::unique_ptr<runtime::PendingMessage>> send(
      const runtime::TransportMessage& message) override {
    if (posted_++ == fails_at_) return lost(message.peer);
    const std::lock_guard lock(ether_->mutex);
    ether_->messages += 1;
    auto& box = ether_->boxes[{me_, message.peer, message.tag}];
    HORO_CHECK(!box.full);
    box.bytes.assign(message.at, message.at + message.bytes);
    box.full = true;
    ether_->changed.notify_all();
    return std::unique_ptr<runtime::PendingMessage>(std::make_unique<Sent>());
  }

  Result<std::unique_ptr<runtime::PendingMessage>> receive(
      const runtime::TransportMessage& message) override {
    if (posted_++ == fails_at_) return lost(message.peer);
    return std::unique_ptr<runtime::PendingMessage>(std::make_unique<Awaited>(*this, message));
  }

  void interrupt() override {
    const std::lock_guard lock(ether_->mutex);
    interrupted_ = true;
    ether_->changed.notify_all();
  }

  void hang_up() override {
    const std::lock_guard lock(ether_->mutex);
    ether_->closed[static_cast<std::size_t>(me_)] = true;
    ether_->changed.notify_all();
  }

 private:
  class Sent final : public runtime::PendingMessage {
   public:
    Status wait() override { return {}; }
  };

  class Awaited final : public runtime::PendingMessage {
   public:
    Awaited(MemoryTransport& wire, const runtime::TransportMessage& message)
        : transport_(wire), message_(message) {}

    Status wait() override {
      auto& ether = *transport_.ether_;
      std::unique_lock lock(ether.mutex);
      auto& box = ether.boxes[{message_.peer, transport_.me_, message_.tag}];
      const auto peer = static_cast<std::size_t>(message_.peer);
      ether.changed.wait(lock,
                         [&] { return box.full || transport_.interrupted_ || ether.closed[peer]; });
      if (transport_.interrupted_) return fail(Errc::cancelled, "interrupted");
      if (!box.full) return lost(message_.peer);
      HORO_CHECK(box.bytes.size() == message_.bytes);
      std::memcpy(message_.at, box.bytes.data(), message_.bytes);
      ether.boxes.erase({message_.peer, transport_.me_, message_.tag});
      return {};
    }

   private:
    MemoryTransport& transport_;
    const runtime::TransportMessage message_;
  };

  static Failure lost(int peer) { return fail(Errc::peer_lost, "rank {} is gone", peer); }

  const std::shared_ptr<Ether> ether_;
  const int me_;
  const std::int64_t fails_at_;
  std::atomic<std::int64_t> posted_{0};
  bool interrupted_ = false;
};

}  // namespace horo::test
