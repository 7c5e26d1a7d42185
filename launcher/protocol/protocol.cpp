// SPDX-License-Identifier: Apache-2.0
#include "launcher/protocol/protocol.hpp"

#include <utility>

#include "base/version.hpp"

namespace horo::launcher::protocol {

namespace {

constexpr std::size_t kSizeBytes = 4;

}  // namespace

Hello Hello::ours() {
  Hello hello;
  hello.version_code = horo::version_code();
  hello.version = horo::version();
  return hello;
}

Status encode(const Message& message, std::string& to) {
  const auto begin = to.size();
  ByteWriter out(std::move(to));
  out.fixed<std::uint32_t>(0).fixed(static_cast<std::uint8_t>(type_of(message)));
  write_message(out, message);
  const auto size = out.size() - begin - kSizeBytes;
  out.put_at(begin, static_cast<std::uint32_t>(size));
  to = out.take();
  if (size <= kMaxFrame) return {};
  to.resize(begin);
  return fail(Errc::resource_exhausted, "a message of {} bytes to or from an agent; at most {} fit",
              size, kMaxFrame);
}

void append_frame(std::string_view frame, std::string& to) {
  ByteWriter out(std::move(to));
  to = out.fixed(static_cast<std::uint32_t>(frame.size())).raw(frame).take();
}

Result<Message> decode(std::string_view frame) {
  if (frame.empty()) return fail(Errc::protocol, "a frame without a type");
  ByteReader in(frame);
  auto message = read_message<Message>(in.fixed<std::uint8_t>(), in);
  if (!message) return fail(Errc::protocol, "a message is invalid: {}", in.problem());
  return std::move(*message);
}

std::string describe(const Message& message) {
  return print_message(message);
}

bool HelloFinder::pass(std::string_view bytes) {
  constexpr std::string_view kHello("\1HORA", 5);  // Its type and magic, behind four bytes of size.
  constexpr std::size_t kSize = 4;
  seen_.append(bytes);
  const auto found = seen_.find(kHello, kSize);
  if (found == std::string::npos) {
    const auto kept = kSize + kHello.size() - 1;
    if (seen_.size() > kept) seen_.erase(0, seen_.size() - kept);
    return false;
  }
  seen_.erase(0, found - kSize);
  return true;
}

void FrameSplitter::feed(std::string_view bytes) {
  buffer_.erase(0, start_);
  start_ = 0;
  buffer_.append(bytes);
}

Result<std::optional<Message>> FrameSplitter::next() {
  const auto before = start_;
  HORO_TRY(const auto frame, next_frame());
  if (!frame) return std::optional<Message>{};
  auto message = decode(*frame);
  if (!message) start_ = before;  // The error repeats: no message after it is read.
  HORO_TRY(auto whole, std::move(message));
  return std::optional<Message>(std::move(whole));
}

Result<std::optional<std::string_view>> FrameSplitter::next_frame() {
  const std::string_view left = std::string_view(buffer_).substr(start_);
  if (left.size() < kHeaderBytes) return std::optional<std::string_view>{};
  const std::size_t size = ByteReader(left).fixed<std::uint32_t>();
  if (size == 0 || size > kMaxFrame)
    return fail(Errc::protocol, "a frame of {} bytes; allowed are 1 to {}", size, kMaxFrame);
  if (left.size() < 4 + size) return std::optional<std::string_view>{};
  start_ += 4 + size;
  return std::optional(left.substr(4, size));
}

Status check_hello(const Hello& theirs, std::string_view sender) {
  if (theirs.magic != kMagic)
    return fail(Errc::protocol, "{} does not speak horo's protocol", sender);
  const auto ours = Hello::ours();
  if (theirs.protocol != ours.protocol || theirs.version_code != ours.version_code) {
    return fail(
        Errc::version_mismatch,
        "{} is horo {} with protocol {}, this is horo {} with protocol {}; install the same "
        "version on both",
        sender, theirs.version, theirs.protocol, ours.version, ours.protocol);
  }
  return {};
}

}  // namespace horo::launcher::protocol
