// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/leader/leader_links.hpp"

#include <algorithm>
#include <chrono>

namespace horo::runtime::tree {

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

constexpr Duration kMostHeartbeat = 1s;
constexpr Duration kCloseGrace = 50ms;

RankRanges ranks_of(const std::vector<HostRanks>& hosts, int first, int end) {
  RankRanges ranks;
  for (int h = first; h < end; ++h) {
    for (const auto rank : hosts[static_cast<std::size_t>(h)].ranks) ranks.add(rank);
  }
  return ranks;
}

}  // namespace

LeaderLinks::LeaderLinks(const LeaderContext& context, Outbox& outbox)
    : context_(context),
      fingerprint_(tree::fingerprint(context.hosts, context.params.radix, context.params.settings)),
      outbox_(outbox) {
  const auto& place = context.place;
  Link parent{.host = place.parent,
              .state = context.is_root() ? LinkState::closed : LinkState::absent};
  if (!context.is_root()) parent.ranks = ranks_of(context.hosts, place.parent, place.parent + 1);
  links_.push_back(std::move(parent));
  for (const auto& child : place.children) {
    links_.push_back(
        {.host = child.first, .ranks = ranks_of(context.hosts, child.first, child.end)});
  }
}

Duration LeaderLinks::heartbeat() const {
  return std::min(kMostHeartbeat, context_.params.heartbeat_timeout / 4);
}

const HostRanks& LeaderLinks::host(std::size_t link) const {
  return context_.hosts[static_cast<std::size_t>(links_[link].host)];
}

// -- Connecting ---------------------------------------------------------------------------------

std::string LeaderLinks::hello() const {
  return encode(context_.params.epoch,
                LeaderHello{.host = static_cast<std::uint32_t>(context_.place.node),
                            .fingerprint = fingerprint_});
}

Result<std::size_t> LeaderLinks::greet(BytesView payload, TimePoint now) {
  HORO_TRY(const auto envelope, decode(payload));
  const auto* hello = std::get_if<LeaderHello>(&envelope.frame);
  if (hello == nullptr)
    return fail(Errc::protocol, "the first frame of a connection is not a hello");
  if (envelope.epoch != context_.params.epoch) {
    return fail(Errc::cancelled, "host {} is in epoch {}, this host in epoch {}", hello->host,
                envelope.epoch, context_.params.epoch);
  }
  if (hello->fingerprint != fingerprint_) {
    return fail(Errc::protocol,
                "host {} has another list of hosts and ranks, or another HORO_TREE_RADIX, "
                "HORO_CPU_OPERATIONS, HORO_HIERARCHICAL_ALLREDUCE or HORO_DETERMINISTIC, or "
                "another number of interfaces in HOROVOD_GLOO_IFACE",
                hello->host);
  }
  const auto link = std::find_if(links_.begin(), links_.end(), [hello](const Link& l) {
    return l.host == static_cast<int>(hello->host) && l.state == LinkState::absent;
  });
  if (link == links_.end())
    return fail(Errc::protocol, "host {} is not a neighbour, or is already connected", hello->host);
  link->state = LinkState::open;
  link->sent = link->heard = now;
  const auto number = static_cast<std::size_t>(link - links_.begin());
  for (auto& waiting : std::exchange(link->backlog, {})) send_raw(number, std::move(waiting), now);
  return number;
}

bool LeaderLinks::connected() const {
  return std::none_of(links_.begin(), links_.end(),
                      [](const Link& link) { return link.state == LinkState::absent; });
}

std::string LeaderLinks::absent() const {
  std::string text;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].state != LinkState::absent || text.size() > 200) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", host(i).name);
  }
  return text;
}

// -- Frames -------------------------------------------------------------------------------------

void LeaderLinks::send(std::size_t link, const Frame& frame, TimePoint now) {
  send_raw(link, encode(context_.params.epoch, frame), now);
}

void LeaderLinks::send_raw(std::size_t link, std::string payload, TimePoint now) {
  auto& to = links_[link];
  if (to.state == LinkState::absent) return to.backlog.push_back(std::move(payload));
  if (to.state != LinkState::open) return;
  to.sent = now;
  ++counters_.frames_sent;
  counters_.bytes_sent += payload.size();
  outbox_.send(link, std::move(payload));
}

void LeaderLinks::on_payload(std::size_t link, std::size_t bytes, TimePoint now) {
  ++counters_.frames_received;
  counters_.bytes_received += bytes;
  links_[link].heard = now;
}

// -- Time and ends ------------------------------------------------------------------------------

void LeaderLinks::on_ended(std::size_t link, TimePoint now) {
  auto& ended = links_[link];
  if (ended.state != LinkState::open) return;
  ended.state = LinkState::ending;
  ended.ended = now;
}

std::optional<LeaderLinks::LostLink> LeaderLinks::check(std::size_t link, TimePoint now) {
  auto& checked = links_[link];
  if (checked.state == LinkState::ending && now >= checked.ended + kCloseGrace) {
    close(link);
    return LostLink{.link = link, .cause = LossCause::vanished};
  }
  if (checked.state != LinkState::open) return std::nullopt;
  const auto silence = now - checked.heard;
  if (silence >= context_.params.heartbeat_timeout) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(silence).count();
    close(link);
    return LostLink{
        .link = link, .cause = LossCause::host_lost, .detail = static_cast<std::uint32_t>(ms)};
  }
  if (now >= checked.sent + heartbeat()) send(link, Heartbeat{}, now);
  return std::nullopt;
}

TimePoint LeaderLinks::next_time() const {
  auto next = TimePoint::max();
  for (const auto& link : links_) {
    if (link.state == LinkState::ending) next = std::min(next, link.ended + kCloseGrace);
    if (link.state != LinkState::open) continue;
    next =
        std::min({next, link.sent + heartbeat(), link.heard + context_.params.heartbeat_timeout});
  }
  return next;
}

}  // namespace horo::runtime::tree
