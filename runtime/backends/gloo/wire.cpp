// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/gloo/wire.hpp"

#include <exception>

#include <gloo/transport/unbound_buffer.h>

namespace horo::runtime {

namespace {

/// Gloo adds it to the present time: the largest number would overflow.
constexpr auto kNever = std::chrono::hours(24 * 365);

std::chrono::milliseconds gloo_timeout(Duration timeout) {
  return timeout == Duration::zero() ? std::chrono::milliseconds(kNever)
                                     : std::chrono::ceil<std::chrono::milliseconds>(timeout);
}

}  // namespace

class GlooWire::Under final : public Pending {
 public:
  enum class Way { out, in };

  Under(GlooWire& wire, Way way, const Message& message)
      : wire_(wire),
        way_(way),
        peer_(message.peer),
        buffer_(wire.context_->createUnboundBuffer(message.at, message.bytes)) {
    const std::lock_guard lock(wire.posting_);
    if (way == Way::out) {
      buffer_->send(message.peer, message.tag, 0, message.bytes);
    } else {
      buffer_->recv(message.peer, message.tag, 0, message.bytes);
    }
  }

  Status wait() override {
    if (!wire_.begin_wait(*this)) return fail(Errc::cancelled, "the backend stops");
    auto status = wait_for_gloo();
    wire_.end_wait(*this);
    return status;
  }

  void abort_wait() {
    if (way_ == Way::out) {
      buffer_->abortWaitSend();
    } else {
      buffer_->abortWaitRecv();
    }
  }

 private:
  Status wait_for_gloo() {
    try {
      const bool done =
          way_ == Way::out ? buffer_->waitSend(wire_.timeout_) : buffer_->waitRecv(wire_.timeout_);
      if (done) return {};
      return fail(Errc::cancelled, "the backend stops");
    } catch (const std::exception& error) {
      return wire_.lost(peer_, error.what());
    }
  }

  GlooWire& wire_;
  const Way way_;
  const int peer_;
  const std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
};

GlooWire::GlooWire(std::shared_ptr<gloo::Context> context, std::vector<int> members,
                   Duration timeout)
    : context_(std::move(context)), members_(std::move(members)), timeout_(gloo_timeout(timeout)) {}

Failure GlooWire::lost(int peer, const char* why) const {
  return fail(Errc::peer_lost, "rank {} does not answer over Gloo: {}",
              members_[static_cast<std::size_t>(peer)], why);
}

Result<std::unique_ptr<Pending>> GlooWire::send(const Message& message) {
  try {
    return std::unique_ptr<Pending>(std::make_unique<Under>(*this, Under::Way::out, message));
  } catch (const std::exception& error) {
    return lost(message.peer, error.what());
  }
}

Result<std::unique_ptr<Pending>> GlooWire::receive(const Message& message) {
  try {
    return std::unique_ptr<Pending>(std::make_unique<Under>(*this, Under::Way::in, message));
  } catch (const std::exception& error) {
    return lost(message.peer, error.what());
  }
}

bool GlooWire::begin_wait(Under& message) {
  const std::lock_guard lock(mutex_);
  if (interrupted_) return false;
  waiting_.insert(&message);
  return true;
}

void GlooWire::end_wait(Under& message) {
  const std::lock_guard lock(mutex_);
  waiting_.erase(&message);
}

void GlooWire::interrupt() {
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  for (auto* message : waiting_) message->abort_wait();
}

void GlooWire::hang_up() {
  try {
    context_->closeConnections();
  } catch (const std::exception&) {
    // Closed by the peer already.
  }
}

}  // namespace horo::runtime
