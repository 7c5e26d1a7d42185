// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/driver/elastic_driver.hpp"

#include <algorithm>
#include <utility>

#include "launcher/elastic/resize_plan.hpp"
#include "launcher/output/job_output.hpp"

namespace horo::launcher {

namespace {

TimePoint now() {
  return SteadyClock::instance().now();
}

}  // namespace

ElasticDriver::ElasticDriver(Loop& loop, const ElasticJobSpec& spec, PlanHost plan,
                             JobOutput& output, ElasticHandlers handlers)
    : loop_(loop),
      spec_(spec),
      plan_(std::move(plan)),
      output_(output),
      handlers_(std::move(handlers)),
      state_(begin_membership(spec.rules, now())) {}

ElasticDriver::~ElasticDriver() {
  output_.on_taken({});
}

ElasticAgentHooks ElasticDriver::agent_hooks() {
  const auto name_of = [this](std::size_t host) { return state_.hosts.at(host).name; };
  return {
      .tell = [this](const MembershipEvent& event) { apply(event); },
      .on_ready = {},
      .on_gone = {},
      .on_output =
          [this](Rank worker, Stream stream, std::string_view bytes) {
            handlers_.on_output(worker, stream, bytes);
            output_.take(worker, stream, bytes);
          },
      .on_output_end = [this](Rank worker) { output_.finish(worker); },
      .on_note = [this, name_of](std::size_t host,
                                 std::string_view text) { handlers_.on_note(name_of(host), text); },
      .on_control_group =
          [this, name_of](std::size_t host, const ControlGroupInfo& group) {
            handlers_.on_control_group(name_of(host), group);
          },
      .on_timeline = [this](const SavedTimeline& saved) { timeline_.add(saved); },
      .on_answer =
          [this](std::size_t host, const Answer& answer) {
            if (on_answer_) on_answer_(host, answer);
          }};
}

Status ElasticDriver::start(const discovery::HostSet& offered) {
  HORO_TRY(store_, MembershipStore::open(loop_, spec_.secret, [this](const auto& resumed) {
             if (const auto* row = history_.note(resumed))
               handlers_.on_change(describe_resumed(*row));
           }));
  agents_.emplace(
      loop_, *store_, plan_, agent_hooks(),
      ElasticAgents::Options{.times = spec_.times, .others_may_come = spec_.others_may_come});
  output_.on_taken(
      [this](Rank worker, std::size_t bytes) { agents_->output_taken(worker, bytes); });
  begun_ = now();
  run_time_limit();
  wishes_.take(offered);
  apply(HostsOffered{offered});
  return {};
}

void ElasticDriver::offer(discovery::HostSet hosts) {
  wishes_.take(std::move(hosts));
  apply_offer();
}

/// A host whose agent runs gets no more workers than the agent has room for.
void ElasticDriver::apply_offer() {
  discovery::HostSet fitting;
  const auto wanted = wishes_.hosts();
  for (auto host : wanted.hosts()) {
    const auto known = state_.hosts.find(host.name);
    const auto room = known ? agents_->room_of(*known) : std::nullopt;
    if (room && host.slots > *room) {
      handlers_.on_change(fmt::format(
          "host {}: {} of its {} slots are used, because its agent has room for no more", host.name,
          *room, host.slots));
      host.slots = *room;
    }
    fitting.add(host);
  }
  apply(HostsOffered{std::move(fitting)});
}

void ElasticDriver::offer_failed(const Error& error) {
  apply(OfferFailed{error});
}

Resized ElasticDriver::resize(const Resize& wish) {
  auto plan = plan_resize(
      {.state = state_, .wishes = wishes_, .others_may_come = spec_.others_may_come}, wish);
  if (!plan.answer.accepted || wish.dry_run) return plan.answer;
  wish_slots(wishes_, wish);
  if (plan.event) apply(*plan.event);
  apply_offer();
  return plan.answer;
}

bool ElasticDriver::ask(std::size_t host, const Question& question) const {
  return agents_ && agents_->ask(host, question);
}

void ElasticDriver::signal(int number) {
  apply(LauncherSignalled{number});
}

void ElasticDriver::suspend() {
  if (suspended_ || state_.phase == MembershipPhase::finished) return;
  suspended_ = now();
  limit_.reset();
  agents_->suspend();
  apply(LauncherSuspended{});
}

void ElasticDriver::resume() {
  if (!suspended_) return;
  suspended_before_ += now() - *std::exchange(suspended_, {});
  agents_->resume();
  apply(LauncherResumed{});
  run_time_limit();
}

void ElasticDriver::run_time_limit() {
  if (!spec_.time_limit || state_.phase == MembershipPhase::finished) return;
  const auto ran = now() - begun_ - suspended_before_;
  limit_ = loop_.after(std::max(Duration::zero(), *spec_.time_limit - ran),
                       [this] { apply(JobTimedOut{}); });
}

std::string ElasticDriver::store_address() const {
  return store_ == nullptr ? std::string() : store_->address_at({}).value();
}

void ElasticDriver::apply(const MembershipEvent& event) {
  const auto time = now();
  state_ = next(std::move(state_), event, time);
  history_.note(state_, event, time);
  carry_out(std::exchange(state_.orders, {}));
}

void ElasticDriver::carry_out(const MembershipOrders& orders) {
  for (const auto& line : orders.changes) handlers_.on_change(line);
  answer_calls(orders);
  if (orders.notice) agents_->notice(*orders.notice);
  start_workers(orders);
  end_agents(orders);
  wake_at(orders.wake_at);
  if (orders.finish) finish(*orders.finish);
}

void ElasticDriver::answer_calls(const MembershipOrders& orders) {
  if (orders.over) {
    agents_->end_meeting(*orders.over);
    store_->clear_before(*orders.over);
  }
  for (const auto& end : orders.end) agents_->end_worker(end.worker);
  if (orders.formed) agents_->answer(*orders.formed);
  if (orders.formed) handlers_.on_change(describe_generation(history_.generations().back()));
  for (const auto& worker : orders.removed)
    agents_->turn_away(worker, elastic::MembershipKind::removed);
  for (const auto& worker : orders.refused)
    agents_->turn_away(worker, elastic::MembershipKind::refused);
}

void ElasticDriver::start_workers(const MembershipOrders& orders) {
  for (const auto& worker : orders.start) {
    const auto& host = state_.hosts.at(worker.host);
    for (; output_ranks_ <= worker.worker; ++output_ranks_)
      output_.add_rank({worker.planned.local_rank, host.name});
    agents_->spawn(worker, host);
  }
}

void ElasticDriver::end_agents(const MembershipOrders& orders) {
  for (const auto host : orders.close) agents_->close(host);
  if (orders.pass_signal) agents_->signal(*orders.pass_signal);
  if (orders.stop) agents_->stop(*orders.stop, orders.stop_host);
  if (orders.kill) agents_->kill();
}

void ElasticDriver::wake_at(std::optional<TimePoint> when) {
  tick_.reset();
  if (!when) return;
  tick_ = loop_.after(std::max(Duration::zero(), *when - now()), [this] { apply(Ticked{}); });
}

/// Agents that are left now are ended by their destructors.
void ElasticDriver::finish(const JobEnd& end) {
  end_ = end;
  limit_.reset();
  loop_.post(handlers_.on_finished);
}

}  // namespace horo::launcher
