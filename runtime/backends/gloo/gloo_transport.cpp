// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/gloo/gloo_transport.hpp"

#include <exception>

#include <gloo/transport/unbound_buffer.h>

namespace horo::runtime {

namespace {

/// Gloo adds it to the current time, so the largest number would overflow.
constexpr auto kNever = std::chrono::hours(24 * 365);

std::chrono::milliseconds gloo_timeout(Duration timeout) {
  return timeout == Duration::zero() ? std::chrono::milliseconds(kNever)
                                     : std::chrono::ceil<std::chrono::milliseconds>(timeout);
}

}  // namespace

class GlooTransport::PostedMessage final : public PendingMessage {
 public:
  enum class Way { out, in };

  PostedMessage(GlooTransport& wire, Way way, const TransportMessage& message)
      : transport_(wire),
        way_(way),
        peer_(message.peer),
        buffer_(wire.context_->createUnboundBuffer(message.at, message.bytes)) {
    const MutexLock lock(wire.posting_);
    if (way == Way::out) {
      buffer_->send(message.peer, message.tag, 0, message.bytes);
    } else {
      buffer_->recv(message.peer, message.tag, 0, message.bytes);
    }
  }

  Status wait() override {
    const auto begun = transport_.begin_wait(*this);
    if (begun == Begun::interrupted) return fail(Errc::cancelled, "the backend stops");
    auto status =
        begun == Begun::peer_is_closed ? wait_for_last_bytes() : wait_for_gloo(transport_.timeout_);
    const bool closed = transport_.end_wait(*this);
    if (!status && status.error().code == Errc::cancelled && closed) return wait_for_last_bytes();
    return status;
  }

  int peer() const { return peer_; }

  void abort_wait() {
    if (way_ == Way::out) {
      buffer_->abortWaitSend();
    } else {
      buffer_->abortWaitRecv();
    }
  }

 private:
  /// The connection has ended: the message is complete by now, or will never be.
  Status wait_for_last_bytes() {
    auto status = wait_for_gloo(std::chrono::milliseconds(1));  // 0 would be no limit.
    if (status || status.error().code != Errc::peer_lost) return status;
    return transport_.lost(peer_, "its connection has ended in the middle of a message");
  }

  Status wait_for_gloo(std::chrono::milliseconds timeout) {
    try {
      const bool done = way_ == Way::out ? buffer_->waitSend(timeout) : buffer_->waitRecv(timeout);
      if (done) return {};
      return fail(Errc::cancelled, "the backend stops");
    } catch (const std::exception& error) {
      return transport_.lost(peer_, error.what());
    }
  }

  GlooTransport& transport_;
  const Way way_;
  const int peer_;
  const std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
};

GlooTransport::GlooTransport(std::shared_ptr<gloo::Context> context, std::vector<int> members,
                             Duration timeout)
    : context_(std::move(context)),
      members_(std::move(members)),
      timeout_(gloo_timeout(timeout)),
      closed_peers_(context_, posting_, [this](int peer) { peer_closed(peer); }) {}

Failure GlooTransport::lost(int peer, const char* why) const {
  return fail(Errc::peer_lost, "rank {} does not answer over Gloo: {}",
              members_[static_cast<std::size_t>(peer)], why);
}

Result<std::unique_ptr<PendingMessage>> GlooTransport::send(const TransportMessage& message) {
  try {
    return std::unique_ptr<PendingMessage>(
        std::make_unique<PostedMessage>(*this, PostedMessage::Way::out, message));
  } catch (const std::exception& error) {
    return lost(message.peer, error.what());
  }
}

Result<std::unique_ptr<PendingMessage>> GlooTransport::receive(const TransportMessage& message) {
  try {
    return std::unique_ptr<PendingMessage>(
        std::make_unique<PostedMessage>(*this, PostedMessage::Way::in, message));
  } catch (const std::exception& error) {
    return lost(message.peer, error.what());
  }
}

GlooTransport::Begun GlooTransport::begin_wait(PostedMessage& message) {
  const MutexLock lock(mutex_);
  if (interrupted_) return Begun::interrupted;
  if (closed_.contains(message.peer())) return Begun::peer_is_closed;
  waiting_.insert(&message);
  return Begun::waits;
}

/// Whether the message's peer has closed its connection, and the backend does not stop.
bool GlooTransport::end_wait(PostedMessage& message) {
  const MutexLock lock(mutex_);
  waiting_.erase(&message);
  return !interrupted_ && closed_.contains(message.peer());
}

void GlooTransport::peer_closed(int peer) {
  const MutexLock lock(mutex_);
  closed_.insert(peer);
  for (auto* message : waiting_) {
    if (message->peer() == peer) message->abort_wait();
  }
}

void GlooTransport::interrupt() {
  const MutexLock lock(mutex_);
  interrupted_ = true;
  for (auto* message : waiting_) message->abort_wait();
}

void GlooTransport::hang_up() {
  try {
    context_->closeConnections();
  } catch (const std::exception&) {
    // Closed by the peer already.
  }
}

}  // namespace horo::runtime
