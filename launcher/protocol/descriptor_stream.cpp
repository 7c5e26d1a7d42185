// SPDX-License-Identifier: Apache-2.0
#include "launcher/protocol/descriptor_stream.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace horo::launcher::protocol {

namespace {

constexpr std::size_t kFull = 4 * kMaxChunk;
constexpr std::size_t kChunk = 65536;

std::array<char, kChunk>& chunk() {
  static thread_local std::array<char, kChunk> buffer;
  return buffer;
}

void set_non_blocking(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

}  // namespace

class DescriptorStream::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Loop& loop, int in, int out, Handlers handlers, std::shared_ptr<SealedBytes> seals)
      : loop_(loop), in_(in), out_(out), handlers_(std::move(handlers)), seals_(std::move(seals)) {}

  Status begin() {
    set_non_blocking(in_);
    set_non_blocking(out_);
    HORO_TRY(in_watch_, loop_.watch(in_));
    if (out_ != in_) {
      HORO_TRY(out_watch_, loop_.watch(out_));
    }
    want_input(true);
    return {};
  }

  void want_input(bool wanted) {
    if (closed_ || handlers_.on_end == nullptr) return;
    if (!wanted) return in_watch_.on_readable({});
    in_watch_.on_readable([self = weak_from_this()] {
      if (const auto stream = self.lock()) stream->read_some();
    });
  }

  void close() {
    closed_ = true;
    in_watch_.reset();
    out_watch_.reset();
    drained_ = nullptr;
  }

  Status send(const Message& message) {
    if (closed_ || broken_) return {};
    if (seals_ == nullptr) {
      HORO_TRY_STATUS(encode(message, outbox_));
    } else {
      std::string bytes;
      HORO_TRY_STATUS(encode(message, bytes));
      seals_->wrap(bytes, outbox_);
    }
    schedule();
    return {};
  }

  void send_frame(std::string_view frame) {
    if (closed_ || broken_) return;
    if (seals_ == nullptr) {
      append_frame(frame, outbox_);
    } else {
      std::string bytes;
      append_frame(frame, bytes);
      seals_->wrap(bytes, outbox_);
    }
    schedule();
  }

  bool has_room() const { return waiting() < kFull; }

  void on_drained(Task task) {
    drained_ = std::move(task);
    schedule();
  }

 private:
  std::size_t waiting() const { return outbox_.size() - written_; }

  Descriptor& writer() { return out_ == in_ ? in_watch_ : out_watch_; }

  /// Writes once for all that this turn of the loop queues.
  void schedule() {
    if (scheduled_) return;
    scheduled_ = true;
    loop_.post([self = weak_from_this()] {
      const auto stream = self.lock();
      if (!stream || stream->closed_) return;
      stream->scheduled_ = false;
      stream->flush();
    });
  }

  void flush() {
    const bool was_full = !has_room();
    while (waiting() > 0 && !broken_) {
      const auto put = write(out_, outbox_.data() + written_, waiting());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0 && errno == EAGAIN) break;
      if (put < 0) {
        broken_ = true;  // The owner learns it from the end of the input.
      } else {
        written_ += static_cast<std::size_t>(put);
      }
    }
    if (broken_) written_ = outbox_.size();
    if (waiting() == 0 || written_ >= kFull) outbox_.erase(0, std::exchange(written_, 0));
    wait_for_room(waiting() > 0);
    if (was_full && has_room() && handlers_.on_room) handlers_.on_room();
    if (closed_ || waiting() > 0) return;
    if (const auto task = std::exchange(drained_, nullptr)) task();
  }

  void wait_for_room(bool wanted) {
    if (waits_for_room_ == wanted) return;
    waits_for_room_ = wanted;
    if (!wanted) return writer().on_writable({});
    writer().on_writable([self = weak_from_this()] {
      const auto stream = self.lock();
      if (stream && !stream->closed_) stream->flush();
    });
  }

  void read_some() {
    if (closed_) return;
    const auto got = read(in_, chunk().data(), chunk().size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return end({});
    std::string_view bytes(chunk().data(), static_cast<std::size_t>(got));
    if (seals_ != nullptr) return take_sealed(bytes);
    if (handlers_.skip_until_hello) {
      if (!hello_finder_.pass(bytes)) {
        if (handlers_.on_stray) handlers_.on_stray(bytes);
        return;
      }
      handlers_.skip_until_hello = false;
      bytes = hello_finder_.rest();
    }
    take(bytes);
  }

  void take_sealed(std::string_view received) {
    const auto bytes = seals_->unwrap(received);
    if (!bytes) return end(Failure(bytes.error()));
    take(*bytes);
  }

  void take(std::string_view bytes) {
    reader_.feed(bytes);
    while (!closed_ && handle_next()) {
    }
  }

  /// Returns false when no whole frame is left.
  bool handle_next() {
    if (handlers_.on_frame) {
      auto frame = reader_.next_frame();
      if (!frame) return refuse(std::move(frame).error());
      if (*frame) handlers_.on_frame(**frame);
      return frame->has_value();
    }
    auto message = reader_.next();
    if (!message) return refuse(std::move(message).error());
    if (*message) handlers_.on_message(**message);
    return message->has_value();
  }

  bool refuse(Error error) {
    end(Failure(std::move(error)));
    return false;
  }

  void end(const Status& status) {
    in_watch_.on_readable({});
    if (const auto handler = std::exchange(handlers_.on_end, nullptr)) handler(status);
  }

  Loop& loop_;
  const int in_;
  const int out_;
  Handlers handlers_;
  const std::shared_ptr<SealedBytes> seals_;  ///< Null: bytes are sent as they are.
  Descriptor in_watch_;
  Descriptor out_watch_;
  HelloFinder hello_finder_;
  FrameSplitter reader_;
  std::string outbox_;
  std::size_t written_ = 0;
  bool scheduled_ = false;
  bool waits_for_room_ = false;
  bool broken_ = false;
  bool closed_ = false;
  Task drained_;
};

Result<std::unique_ptr<DescriptorStream>> DescriptorStream::open(
    Loop& loop, int in, int out, Handlers handlers, std::shared_ptr<SealedBytes> seals) {
  auto impl = std::make_shared<Impl>(loop, in, out, std::move(handlers), std::move(seals));
  HORO_TRY_STATUS(impl->begin());
  return std::unique_ptr<DescriptorStream>(new DescriptorStream(std::move(impl)));
}

DescriptorStream::DescriptorStream(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

DescriptorStream::~DescriptorStream() {
  impl_->close();
}

Status DescriptorStream::send(const Message& message) {
  return impl_->send(message);
}

void DescriptorStream::send_frame(std::string_view frame) {
  impl_->send_frame(frame);
}

void DescriptorStream::want_input(bool wanted) {
  impl_->want_input(wanted);
}

bool DescriptorStream::has_room() const {
  return impl_->has_room();
}

void DescriptorStream::on_drained(Task task) {
  impl_->on_drained(std::move(task));
}

}  // namespace horo::launcher::protocol
