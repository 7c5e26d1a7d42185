// SPDX-License-Identifier: Apache-2.0
#include "launcher/job/host_link.hpp"

#include <utility>

#include "base/log.hpp"

namespace horo::launcher {

HostLink::HostLink(Loop& loop, std::shared_ptr<Starter> starter, const Hooks& hooks)
    : loop_(loop), starter_(std::move(starter)), hooks_(hooks) {}

void HostLink::start(std::size_t host, const AgentSpec& spec, AgentEvents& news) {
  host_ = host;
  spec_ = &spec;
  news_ = &news;
  unconfirmed_.reset();
  if (stage_ == Stage::waiting && agent_->assign(spec)) {
    stage_ = Stage::assigned;
    unconfirmed_.emplace();
    return;
  }
  start_new();
}

void HostLink::start_new() {
  stage_ = Stage::working;
  reused_ = false;
  agent_.reset();
  auto agent = starter_->start(*spec_, *this);
  if (agent) {
    agent_ = std::move(agent).value();
    repeat_input();
  } else {
    on_lost(std::move(agent).error());
  }
}

void HostLink::feed_stdin(std::string_view bytes) {
  if (unconfirmed_) {
    unconfirmed_->fed = true;
    unconfirmed_->bytes.append(bytes);
  }
  if (agent_ != nullptr) agent_->feed_stdin(bytes);
}

void HostLink::close_stdin() {
  if (unconfirmed_) unconfirmed_->closed = true;
  if (agent_ != nullptr) agent_->close_stdin();
}

/// For a new agent: the one before it was lost with this input.
void HostLink::repeat_input() {
  const auto input = std::exchange(unconfirmed_, std::nullopt);
  if (!input) return;
  if (input->fed) agent_->feed_stdin(input->bytes);
  if (input->closed) agent_->close_stdin();
}

std::string HostLink::step() const {
  const auto step = agent_ == nullptr ? std::string() : agent_->step();
  return step.empty() ? step : fmt::format("host {}: {}", spec_->host, step);
}

void HostLink::release() {
  if (stage_ != Stage::waiting) return;
  stage_ = Stage::leaving;
  agent_->release();
}

void HostLink::on_control_group(const ControlGroupInfo& control_group) {
  if (stage_ == Stage::assigned) {
    stage_ = Stage::working;
    reused_ = true;
    unconfirmed_.reset();
  }
  news_->on_control_group(control_group);
}

void HostLink::on_end_asked(int number) {
  if (stage_ != Stage::leaving) news_->on_end_asked(number);
}

void HostLink::on_waiting(int survivors) {
  stage_ = Stage::waiting;
  news_->on_finished(survivors);
}

void HostLink::on_finished(int survivors) {
  if (!has_left()) news_->on_finished(survivors);
}

void HostLink::on_lost(const Error& error) {
  const bool took_nothing = stage_ == Stage::assigned;
  if (has_left() || (took_nothing && hooks_.may_replace(host_))) {
    log::debug("job", "an agent that waited for its next ranks is gone: {}", error.message);
    if (!took_nothing) return;
    // In a later turn of the loop: the agent that is gone tells those behind it first.
    replacement_ = loop_.after(Duration::zero(), [this] {
      if (hooks_.may_replace(host_)) return start_new();
      news_->on_finished(0);
    });
    return;
  }
  news_->on_lost(error);
}

/// The agent is gone. True: it had no part in the current generation.
bool HostLink::has_left() {
  const auto before = std::exchange(stage_, Stage::gone);
  const bool had_no_part = before == Stage::waiting || before == Stage::leaving;
  if (had_no_part) hooks_.on_left();
  return had_no_part;
}

}  // namespace horo::launcher
