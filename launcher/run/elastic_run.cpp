// SPDX-License-Identifier: Apache-2.0
#include "launcher/run/elastic_run.hpp"

#include <algorithm>
#include <utility>

#include "base/knobs/elastic_knobs.hpp"
#include "base/knobs/knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/log.hpp"
#include "launcher/elastic/driver/monitored_elastic_job.hpp"
#include "launcher/plan/job_facts.hpp"
#include "launcher/run/signal_listener.hpp"

namespace horo::launcher {

namespace {

/// Beyond the agents' own grace periods, for orders and answers on their way.
constexpr Duration kForOrders = std::chrono::seconds(20);

std::optional<CooldownRange> cooldown_range(const Settings& settings) {
  const auto range = parse_number_range(settings.get(knobs::kBlacklistCooldownRange));
  if (!range) return std::nullopt;
  return CooldownRange{std::chrono::seconds(range->least), std::chrono::seconds(range->most)};
}

}  // namespace

ElasticRun::~ElasticRun() = default;

Result<ElasticRules> ElasticRun::make_rules() const {
  const auto& settings = request_.settings;
  const auto& size = *plan_.elastic;
  ElasticRules rules{.min_np = size.least,
                     .max_np = size.most,
                     .np = size.np,
                     .spares = settings.get(knobs::kSpares),
                     .slot_restarts = settings.get(knobs::kSlotRestarts),
                     .hosts_are_fixed = !plan_.offer_may_change,
                     .cooldown = cooldown_range(settings)};
  // Without a limit, fixed slots are shared by ranks and spares.
  if (!size.limited && !plan_.offer_may_change && rules.spares != 0) {
    const auto left = plan_.offered.slots() - rules.spares;
    rules.max_np = static_cast<int>(std::clamp<long long>(left, size.np, kMaxRanks));
  }
  if (const int limit = settings.get(knobs::kResetLimit); limit >= 0) rules.reset_limit = limit;
  rules.elastic_timeout = settings.get(knobs::kElasticTimeout);
  // A worker may import for long before it calls; that its agent starts in time is checked apart.
  rules.start_timeout = std::max(settings.get(knobs::kStartTimeout), rules.elastic_timeout);
  rules.rejoin_timeout = settings.get(knobs::kRejoinTimeout);
  rules.stop_timeout =
      settings.get(knobs::kFailureGrace) + settings.get(knobs::kGrace) + kForOrders;
  rules.close_timeout = settings.get(knobs::kGrace) + kForOrders;
  for (std::size_t i = 0; i < sizeof rules.seed; ++i)
    rules.seed = rules.seed << 8U | plan_.secret[i];
  HORO_TRY_STATUS(check(rules));
  return rules;
}

Status ElasticRun::start(JobPlan plan, std::optional<LogFiles> logs) {
  plan_ = std::move(plan);
  HORO_TRY(const auto rules, make_rules());
  const auto& settings = request_.settings;
  output_.emplace(loop_, plan_.output, std::vector<RankLabel>{}, std::move(logs));
  if (owner_.on_closed) output_->on_closed(owner_.on_closed);
  planner_.emplace(loop_, request_, plan_);
  driver_.emplace(
      loop_,
      ElasticJobSpec{.rules = rules,
                     .secret = plan_.secret,
                     .time_limit = owner_.time_left,
                     .times = {.start = settings.get(knobs::kStartTimeout),
                               .term_grace = settings.get(knobs::kTermGrace),
                               .close = rules.close_timeout},
                     .others_may_come = uses_other_hosts()},
      [this](const ElasticHost& host, HostPlanner::Answer answer) {
        planner_->plan(host, std::move(answer));
      },
      *output_, handlers());
  emit_(GenerationStarting{.plan = plan_, .starter = "agents", .rendezvous = {}});
  HORO_TRY_STATUS(watch_hosts());
  HORO_TRY_STATUS(driver_->start(plan_.offered));
  open_monitor();
  return {};
}

void ElasticRun::open_monitor() {
  if (auto monitor = Monitor::open(loop_, monitored(*driver_, plan_.job_id))) {
    monitor_ = std::move(*monitor);
  } else {
    log::debug("run", "horo top, horo shrink and horo grow cannot reach this job: {}",
               monitor.error().message);
  }
}

Status ElasticRun::watch_hosts() {
  if (!plan_.offer_may_change) return {};
  HORO_TRY(watch_, HostWatch::start(
                       loop_, plan_.offered,
                       [request = request_](int cancel) mutable -> Result<discovery::HostSet> {
                         request.cancel = cancel;
                         HORO_TRY(auto found, offered_hosts(request));
                         return std::move(found.hosts);
                       },
                       {.on_hosts =
                            [this](const discovery::HostSet& hosts) {
                              if (!driver_->end()) driver_->offer(hosts);
                            },
                        .on_failure =
                            [this](const Error& error) {
                              if (!driver_->end()) driver_->offer_failed(error);
                            }},
                       plan_.offer_pause));
  return {};
}

ElasticHandlers ElasticRun::handlers() {
  return {
      .on_change = [this](std::string_view line) { emit_(MembershipChanged{line}); },
      .on_output =
          [this](Rank worker, Stream stream, std::string_view bytes) {
            emit_(RankWrote{.rank = worker, .stream = stream, .bytes = bytes});
          },
      .on_note = [this](const std::string& host,
                        std::string_view text) { emit_(ElasticNoted{.host = host, .text = text}); },
      .on_control_group =
          [this](const std::string& host, const ControlGroupInfo& group) {
            emit_(AgentControlGroup{.host = host, .control_group = group});
          },
      .on_finished = [this] { finished(); }};
}

void ElasticRun::signal(int number) {
  if (driver_->end()) {
    // A reader that never takes the last lines may not keep the launcher from ending.
    if (ends_programs(number)) loop_.stop();
    return;
  }
  driver_->signal(number);
}

std::vector<std::string> ElasticRun::last_lines() const {
  const auto& worker = driver_->end()->worker;
  return worker ? output_->last_lines(Rank{*worker}) : std::vector<std::string>();
}

ElasticReportInput ElasticRun::report(const JobEnd& end) const {
  return {.end = end,
          .history = driver_->history(),
          .signal = driver_->state().verdict.signal,
          .job_id = plan_.job_id,
          .program = plan_.program,
          .begun = owner_.begin,
          .elapsed = SteadyClock::instance().now() - owner_.begin,
          .earlier = owner_.earlier,
          .last_lines = last_lines(),
          .output_directory = request_.settings.get(knobs::kOutputFilename),
          .rank_digits = rank_digits(plan_.size()),
          .timeline = driver_->timeline()};
}

void ElasticRun::finished() {
  watch_.reset();
  monitor_.reset();
  owner_.on_ended();
  output_->when_drained([this] { owner_.on_over(); });
}

}  // namespace horo::launcher
