// SPDX-License-Identifier: Apache-2.0
#include "runtime/tree/leader/leader.hpp"

#include <algorithm>

namespace horo::runtime::tree {

Leader::Leader(const LeaderParams& params, const std::vector<HostRanks>& hosts, HostState& state,
               Outbox& outbox)
    : context_(params, hosts),
      state_(state),
      links_(context_, outbox),
      sets_(context_, links_),
      stalls_(context_, links_, sets_, state) {}

void Leader::add_set(SetId set, const RankRanges& members, HostLog* log, TimePoint now) {
  now_ = now;
  for (const auto& early : sets_.add(set, members, log))
    on_frame(early.link, as_bytes(early.payload), now);
}

void Leader::leave() {
  if (phase_ != Phase::over) phase_ = Phase::left;
  for (std::size_t i = 0; i < links_.count(); ++i) {
    links_.send(i, Bye{}, now_);
    links_.close(i);
  }
}

// -- Frames -------------------------------------------------------------------------------------

namespace {

bool may_come(FrameDirection direction, bool from_parent) {
  switch (direction) {
    case FrameDirection::up:
      return !from_parent;
    case FrameDirection::down:
      return from_parent;
    case FrameDirection::first:
    case FrameDirection::both:
      break;
  }
  return true;
}

}  // namespace

void Leader::on_frame(std::size_t link, BytesView payload, TimePoint now) {
  now_ = now;
  links_.on_payload(link, payload.size(), now);
  if (!active() || !links_.is_open(link)) return;
  auto envelope = decode(payload);
  const auto status = envelope ? receive(link, std::move(*envelope), payload)
                               : Status(Failure(std::move(envelope).error()));
  if (status) return;
  fault_ = fmt::format("host {}: {}", links_.host(link).name, status.error().message);
  blame({.link = link, .cause = LossCause::corrupted});
}

Status Leader::receive(std::size_t link, Envelope&& envelope, BytesView payload) {
  if (envelope.epoch != context_.params.epoch) {
    links_.count_stale_frame();
    return {};
  }
  return std::visit(
      [&](auto& frame) -> Status {
        using F = std::decay_t<decltype(frame)>;
        if (!may_come(F::kRow.direction, link == kParent))
          return fail(Errc::protocol, "a frame of type {} from the wrong side", F::kRow.type);
        return handle(link, frame, payload);
      },
      envelope.frame);
}

Status Leader::handle(std::size_t /*link*/, LeaderHello& /*hello*/, BytesView /*payload*/) {
  return fail(Errc::protocol, "a second hello");
}

Status Leader::handle(std::size_t /*link*/, Heartbeat& /*heartbeat*/, BytesView /*payload*/) {
  return {};
}

Status Leader::handle(std::size_t link, Bye& /*bye*/, BytesView /*payload*/) {
  links_.close(link);
  stalls_.forget(link);
  if (link == kParent) {
    sets_.on_parent_left(now_);
  } else {
    sets_.on_child_left(link, now_);
  }
  report_faults();
  return {};
}

Status Leader::handle(std::size_t link, Loss& loss, BytesView /*payload*/) {
  link == kParent ? decide(loss) : report(loss);
  return {};
}

Status Leader::handle(std::size_t link, StallQuestion& question, BytesView /*payload*/) {
  if (link == kParent) {
    stalls_.spread(std::move(question), now_);
  } else {
    stalls_.ask(std::move(question), now_);
  }
  conclude();
  return {};
}

Status Leader::handle(std::size_t link, StallAnswer& answer, BytesView /*payload*/) {
  stalls_.take_answer(link, std::move(answer));
  conclude();
  return {};
}

Status Leader::handle(std::size_t /*link*/, ShowArrivals& show, BytesView /*payload*/) {
  show_arrivals(show.wanted);
  return {};
}

void Leader::show_arrivals(bool wanted) {
  if (wanted == shows_arrivals_) return;
  shows_arrivals_ = wanted;
  for (std::size_t i = 1; i < links_.count(); ++i)
    links_.send(i, ShowArrivals{.wanted = wanted}, now_);
  sets_.show_arrivals(wanted);
}

// -- Other events -------------------------------------------------------------------------------

void Leader::on_closed(std::size_t link, TimePoint now) {
  now_ = now;
  if (!active()) return links_.close(link);
  if (!links_.is_open(link)) return;
  stalls_.forget(link);  // The loss is reported when the grace time is over.
  links_.on_ended(link, now);
}

void Leader::on_news(TimePoint now) {
  now_ = now;
  if (!active()) return;
  if (const auto loss = state_.loss()) {
    report(*loss);
    if (!active()) return;
  }
  if (context_.is_root()) show_arrivals(state_.wants_arrivals());
  sets_.on_news(now);
  report_faults();
}

void Leader::change_tuning(SetId set, const Tuning& tuning, TimePoint now) {
  now_ = now;
  if (!active()) return;
  sets_.change_tuning(set, tuning, now);
  report_faults();
}

void Leader::on_time(TimePoint now) {
  now_ = now;
  if (!active()) return;
  // The ranks of this host may be too busy to pass on a loss.
  if (const auto loss = state_.loss()) report(*loss);
  for (std::size_t i = 0; i < links_.count() && active(); ++i) {
    if (const auto lost = links_.check(i, now)) blame(*lost);
  }
  if (active()) conclude();
  if (!active()) return;
  sets_.on_time(now);
  report_faults();
}

TimePoint Leader::next_time() const {
  if (!active()) return TimePoint::max();
  return std::min({stalls_.next_time(), links_.next_time(), sets_.next_cut()});
}

void Leader::ask(StallQuestion&& question, TimePoint now) {
  now_ = now;
  if (!active()) return;
  stalls_.ask(std::move(question), now);
  conclude();
}

void Leader::conclude() {
  if (const auto loss = stalls_.conclude(now_)) report(*loss);
}

// -- Losses -------------------------------------------------------------------------------------

void Leader::blame(const LeaderLinks::LostLink& lost) {
  links_.close(lost.link);
  const auto& host = links_.host(lost.link);
  const Loss loss{
      .rank = host.ranks.front(), .cause = lost.cause, .detail = lost.detail, .host = host.name};
  if (lost.link == kParent) {
    decide(reported_.value_or(loss));  // No host above can decide any more.
  } else {
    report(loss);
  }
}

void Leader::report_faults() {
  const auto fault = sets_.take_fault();
  if (!fault) return;
  fault_ = fault->message;
  const auto& host = context_.own_host();
  report({.rank = host.ranks.front(), .cause = LossCause::corrupted, .host = host.name});
}

void Leader::report(const Loss& loss) {
  if (phase_ != Phase::running) return;
  phase_ = Phase::reported;
  reported_ = loss;
  if (context_.is_root() || links_.is_closed(kParent)) {
    decide(loss);
  } else {
    links_.send(kParent, loss, now_);
  }
}

void Leader::decide(const Loss& loss) {
  if (!active()) return;
  phase_ = Phase::over;
  decided_ = loss;
  for (std::size_t i = 1; i < links_.count(); ++i) links_.send(i, loss, now_);
  state_.lose(loss);
}

}  // namespace horo::runtime::tree
