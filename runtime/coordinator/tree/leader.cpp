// SPDX-License-Identifier: Apache-2.0
// Connections, time and losses; process sets are in leader_sets.cpp.
#include "runtime/coordinator/tree/leader.hpp"

#include <algorithm>
#include <chrono>

namespace horo::runtime::tree {

namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): only literals

constexpr Duration kMostHeartbeat = 1s;

/// A closed connection says that a process ended, not which and why: whoever watches that process
/// poisons our boards within this time, with the reason.
constexpr Duration kCloseGrace = 50ms;

RankRanges ranks_of(const std::vector<HostRanks>& hosts, int first, int end) {
  RankRanges ranks;
  for (int h = first; h < end; ++h) {
    for (const auto rank : hosts[static_cast<std::size_t>(h)].ranks) ranks.add(rank);
  }
  return ranks;
}

}  // namespace

Leader::Leader(const LeaderParams& params, const std::vector<HostRanks>& hosts, HostState& state,
               Outbox& outbox)
    : params_(params),
      hosts_(hosts),
      fingerprint_(tree::fingerprint(hosts, params.radix, params.settings)),
      place_(place_of(params.host, static_cast<int>(hosts.size()), params.radix)),
      state_(state),
      outbox_(outbox) {
  Link parent{.host = place_.parent, .state = is_root() ? LinkState::closed : LinkState::absent};
  if (!is_root()) parent.ranks = ranks_of(hosts, place_.parent, place_.parent + 1);
  links_.push_back(std::move(parent));
  for (const auto& child : place_.children)
    links_.push_back({.host = child.first, .ranks = ranks_of(hosts, child.first, child.end)});
}

Duration Leader::heartbeat() const {
  return std::min(kMostHeartbeat, params_.heartbeat_timeout / 4);
}

// -- Connections --------------------------------------------------------------------------------

std::string Leader::hello() const {
  return encode(params_.epoch, Hello{.host = static_cast<std::uint32_t>(place_.host),
                                     .fingerprint = fingerprint_});
}

Result<std::size_t> Leader::greet(BytesView payload, TimePoint now) {
  now_ = now;
  HORO_TRY(const auto envelope, decode(payload));
  const auto* hello = std::get_if<Hello>(&envelope.frame);
  if (hello == nullptr) return fail(Errc::protocol, "a connection that does not begin with hello");
  if (envelope.epoch != params_.epoch) {
    return fail(Errc::cancelled, "host {} speaks of epoch {}, this is epoch {}", hello->host,
                envelope.epoch, params_.epoch);
  }
  if (hello->fingerprint != fingerprint_) {
    return fail(Errc::protocol,
                "host {} has another list of hosts and ranks, or another HORO_TREE_RADIX, "
                "HORO_CPU_OPERATIONS, HORO_HIERARCHICAL_ALLREDUCE or HORO_DETERMINISTIC",
                hello->host);
  }
  const auto link = std::find_if(links_.begin(), links_.end(), [hello](const Link& l) {
    return l.host == static_cast<int>(hello->host) && l.state == LinkState::absent;
  });
  if (link == links_.end())
    return fail(Errc::protocol, "host {} is no neighbour, or here already", hello->host);
  link->state = LinkState::open;
  link->sent = link->heard = now;
  const auto number = static_cast<std::size_t>(link - links_.begin());
  for (auto& waiting : std::exchange(link->backlog, {})) send_raw(number, std::move(waiting));
  return number;
}

bool Leader::connected() const {
  return std::none_of(links_.begin(), links_.end(),
                      [](const Link& link) { return link.state == LinkState::absent; });
}

std::string Leader::absent() const {
  std::string text;
  for (const auto& link : links_) {
    if (link.state != LinkState::absent || text.size() > 200) continue;
    text += fmt::format("{}{}", text.empty() ? "" : ", ",
                        hosts_[static_cast<std::size_t>(link.host)].name);
  }
  return text;
}

void Leader::send(std::size_t link, const Frame& frame) {
  send_raw(link, encode(params_.epoch, frame));
}

void Leader::send_raw(std::size_t link, std::string payload) {
  auto& to = links_[link];
  if (to.state == LinkState::absent) to.backlog.push_back(std::move(payload));
  if (to.state != LinkState::open) return;
  to.sent = now_;
  ++counters_.frames_sent;
  counters_.bytes_sent += payload.size();
  outbox_.send(link, std::move(payload));
}

void Leader::leave() {
  left_ = true;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    send(i, Bye{});
    links_[i].state = LinkState::closed;
  }
}

// -- Events -------------------------------------------------------------------------------------

void Leader::on_frame(std::size_t link, BytesView payload, TimePoint now) {
  now_ = now;
  ++counters_.frames_received;
  counters_.bytes_received += payload.size();
  links_[link].heard = now;
  if (loss_ || left_ || links_[link].state != LinkState::open) return;
  auto envelope = decode(payload);
  auto status = envelope ? receive(link, std::move(*envelope), payload)
                         : Status(Failure(std::move(envelope).error()));
  if (status) return;
  fault_ = fmt::format("host {}: {}", hosts_[static_cast<std::size_t>(links_[link].host)].name,
                       status.error().message);
  blame(link, LossCause::corrupted, 0);
}

Status Leader::receive(std::size_t link, Envelope&& envelope, BytesView payload) {
  if (envelope.epoch != params_.epoch) {
    ++counters_.stale_frames;
    return {};
  }
  auto& frame = envelope.frame;
  const bool from_parent = link == kParent;
  if (std::holds_alternative<Heartbeat>(frame)) return {};
  if (std::holds_alternative<Bye>(frame)) {
    links_[link].state = LinkState::closed;
    inquiries_.forget(link);
    from_parent ? orphan() : depart(link);
    return {};
  }
  if (const auto* loss = std::get_if<Loss>(&frame)) {
    from_parent ? decide(*loss) : report(*loss);
    return {};
  }
  if (auto* question = std::get_if<Question>(&frame)) {
    from_parent ? spread(std::move(*question)) : raise(std::move(*question));
    conclude();
    return {};
  }
  if (const auto* entry = std::get_if<LogEntry>(&frame); entry != nullptr && from_parent)
    return receive_about(entry->set, link, std::move(frame), payload);
  if (from_parent || std::holds_alternative<LogEntry>(frame))
    return fail(Errc::protocol, "a frame of type {} from the wrong side", frame.index() + 1);
  if (auto* answer = std::get_if<Answer>(&frame)) {
    inquiries_.take(link, std::move(*answer));
    conclude();
    return {};
  }
  const auto set = std::visit(
      [](const auto& f) {
        if constexpr (requires { f.set; }) return std::optional(f.set);
        return std::optional<SetId>();
      },
      frame);
  if (!set) return fail(Errc::protocol, "a second hello");
  return receive_about(*set, link, std::move(frame), payload);
}

void Leader::on_closed(std::size_t link, TimePoint now) {
  now_ = now;
  auto& closed = links_[link];
  if (closed.state != LinkState::open) return;
  if (loss_ || left_) {
    closed.state = LinkState::closed;
    return;
  }
  closed.state = LinkState::closing;
  inquiries_.forget(link);  // What its end means is told otherwise.
  closed.closed = now;
}

void Leader::on_time(TimePoint now) {
  now_ = now;
  if (loss_ || left_) return;
  if (const auto loss = state_.loss()) report(*loss);  // While nobody here has time to tell.
  for (std::size_t i = 0; i < links_.size() && !loss_; ++i) {
    auto& link = links_[i];
    if (link.state == LinkState::closing && now >= link.closed + kCloseGrace) {
      blame(i, LossCause::vanished, 0);
    } else if (link.state == LinkState::open) {
      const auto silence = now - link.heard;
      if (silence >= params_.heartbeat_timeout) {
        const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(silence).count();
        blame(i, LossCause::host_lost, static_cast<std::uint32_t>(ms));
      } else if (now >= link.sent + heartbeat()) {
        send(i, Heartbeat{});
      }
    }
  }
  if (!loss_) conclude();
  if (loss_ || !is_root()) return;
  for (auto& [id, set] : sets_) move(id, set);
}

TimePoint Leader::next_time() const {
  auto next = TimePoint::max();
  if (loss_ || left_) return next;
  next = inquiries_.next_time();
  for (const auto& link : links_) {
    if (link.state == LinkState::closing) next = std::min(next, link.closed + kCloseGrace);
    if (link.state != LinkState::open) continue;
    next = std::min({next, link.sent + heartbeat(), link.heard + params_.heartbeat_timeout});
  }
  for (const auto& [id, set] : sets_) {
    if (set.agreement != nullptr) next = std::min(next, set.agreement->next_cut());
  }
  return next;
}

// -- Losses -------------------------------------------------------------------------------------

void Leader::blame(std::size_t link, LossCause cause, std::uint32_t detail) {
  auto& lost = links_[link];
  lost.state = LinkState::closed;
  const auto& host = hosts_[static_cast<std::size_t>(lost.host)];
  const Loss loss{.rank = host.ranks.front(), .cause = cause, .detail = detail, .host = host.name};
  if (link == kParent) {
    decide(reported_.value_or(loss));  // Nobody above can.
  } else {
    report(loss);
  }
}

void Leader::fail_here(const Error& error) {
  fault_ = error.message;
  const auto& host = hosts_[static_cast<std::size_t>(place_.host)];
  report({.rank = host.ranks.front(), .cause = LossCause::corrupted, .host = host.name});
}

void Leader::report(const Loss& loss) {
  if (loss_ || reported_) return;
  reported_ = loss;
  if (is_root() || links_[kParent].state == LinkState::closed) {
    decide(loss);
  } else {
    send(kParent, loss);
  }
}

void Leader::decide(const Loss& loss) {
  if (loss_) return;
  loss_ = loss;
  for (std::size_t i = 1; i < links_.size(); ++i) send(i, loss);
  state_.lose(loss);
}

}  // namespace horo::runtime::tree
