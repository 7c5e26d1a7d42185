// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/dial_in/rank_link.hpp"

namespace horo::launcher {

Result<std::unique_ptr<RankLink>> RankLink::open(Loop& loop, UniqueFd connection,
                                                 kv::SealPair seals, const AgentSpec& spec,
                                                 Handlers handlers) {
  std::unique_ptr<RankLink> link(new RankLink(std::move(connection), std::move(handlers)));
  const int fd = link->connection_.value();
  HORO_TRY(link->channel_,
           protocol::DescriptorStream::open(
               loop, fd, fd,
               {.on_message = [raw = link.get()](const auto& message) { raw->receive(message); },
                .on_end =
                    [raw = link.get()](const Status& status) {
                      raw->lose(status ? Error{Errc::peer_lost, "its connection ended"}
                                       : status.error());
                    },
                .on_room = {}},
               std::make_shared<protocol::SealedBytes>(std::move(seals))));
  HORO_TRY_STATUS(link->channel_->send(protocol::Hello::ours()));
  HORO_TRY_STATUS(link->channel_->send(protocol::Start{spec}));
  return link;
}

void RankLink::send(const protocol::Message& message) {
  if (channel_ == nullptr) return;
  if (auto sent = channel_->send(message); !sent) lose(std::move(sent).error());
}

void RankLink::receive(const protocol::Message& message) {
  if (greeted_) return handlers_.on_message(message);
  const auto* hello = std::get_if<protocol::Hello>(&message);
  if (hello == nullptr) return lose({Errc::protocol, "it did not begin with a hello"});
  if (auto same = protocol::check_hello(*hello, "horo-agent"); !same)
    return lose(std::move(same).error());
  greeted_ = true;
}

void RankLink::lose(Error error) {
  channel_.reset();
  handlers_.on_lost(error);
}

}  // namespace horo::launcher
