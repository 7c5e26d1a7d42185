// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/link/agent_stream.hpp"

#include <utility>

#include "launcher/protocol/descriptor_stream.hpp"
#include "launcher/protocol/protocol.hpp"

namespace horo::launcher {

using protocol::Message;

bool AgentStream::open(OpenedStream opened) {
  if (stage_ != Stage::opening) return false;
  stage_ = Stage::greeting;
  opened_ = std::move(opened);
  auto messages = open_messages();
  if (!messages) {
    handlers_.on_fault(std::move(messages).error());
    return false;
  }
  messages_ = std::move(*messages);
  send(protocol::Hello::ours());
  return true;
}

Result<std::unique_ptr<protocol::MessageStream>> AgentStream::open_messages() {
  const auto self = weak_from_this();
  protocol::MessageStream::Handlers handlers{.on_message =
                                                 [self](const Message& message) {
                                                   if (const auto stream = self.lock())
                                                     stream->receive(message);
                                                 },
                                             .on_end =
                                                 [self](const Status& status) {
                                                   if (const auto stream = self.lock())
                                                     stream->end(status);
                                                 },
                                             .on_room = {},
                                             .skip_until_hello = is_remote(),
                                             .on_stray =
                                                 [self](std::string_view bytes) {
                                                   if (const auto stream = self.lock())
                                                     stream->stray_.add(bytes);
                                                 },
                                             .on_frame = {}};
  if (opened_.open_messages) return opened_.open_messages(std::move(handlers));
  const int fd = opened_.descriptor;
  HORO_TRY(auto stream, protocol::DescriptorStream::open(loop_, fd, fd, std::move(handlers)));
  return std::unique_ptr<protocol::MessageStream>(std::move(stream));
}

void AgentStream::send(const Message& message) {
  if (messages_ == nullptr) return;
  if (auto sent = messages_->send(message); !sent) handlers_.on_fault(std::move(sent).error());
}

void AgentStream::receive(const Message& message) {
  if (stage_ == Stage::greeting) {
    if (auto greeted = take_hello(message); !greeted)
      return handlers_.on_fault(std::move(greeted).error());
    return handlers_.on_greeted();
  }
  if (heartbeat_) heartbeat_->heard();
  handlers_.on_message(message);
}

Status AgentStream::take_hello(const Message& message) {
  const auto* hello = std::get_if<protocol::Hello>(&message);
  if (hello == nullptr) return fail(Errc::protocol, "it did not begin with a hello");
  HORO_TRY_STATUS(protocol::check_hello(*hello, "horo-agent"));
  stage_ = Stage::talking;
  stray_ = {};
  give_login_back();
  if (opened_.place == AgentPlace::other_host && silence_ > Duration::zero()) watch_silence();
  return {};
}

void AgentStream::watch_silence() {
  const auto self = weak_from_this();
  heartbeat_.emplace(
      loop_, silence_, 1,
      [self] {
        if (const auto stream = self.lock()) stream->send(protocol::Heartbeat{});
      },
      [self] {
        if (const auto stream = self.lock()) stream->handlers_.on_silence();
      });
}

/// Guard and agent both hold the stream: its end means that both are gone, and the ranks too.
void AgentStream::end(const Status& status) {
  if (!status) return handlers_.on_fault(status.error());
  stage_ = Stage::closed;
  handlers_.on_end();
}

void AgentStream::close() {
  stage_ = Stage::closed;
  heartbeat_.reset();
  messages_.reset();
  give_login_back();
}

}  // namespace horo::launcher
