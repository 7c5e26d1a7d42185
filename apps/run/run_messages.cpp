// SPDX-License-Identifier: Apache-2.0
#include "apps/run/run_messages.hpp"

#include <cstring>
#include <unistd.h>
#include <variant>

#include "apps/run/plan_text.hpp"
#include "base/knobs/knobs.hpp"
#include "base/knobs/launcher_knobs.hpp"
#include "base/text/printable.hpp"

namespace horo::apps {

namespace {

std::string control_group_text(std::string_view host, const launcher::ControlGroupInfo& group) {
  return fmt::format("horo: host {}: agent, guard and launcher end the processes{}\n", host,
                     group.path.empty()
                         ? fmt::format("; no control group: {}", group.reason)
                         : fmt::format("; so does the control group {}", group.path));
}

std::string hosts_text(const launcher::Placement& placement) {
  if (placement.hosts.empty()) return "no host so far";
  if (placement.hosts.size() == 1) return placement.hosts.front().name;
  return fmt::format("{} hosts from {}", placement.hosts.size(), placement.hosts.front().name);
}

}  // namespace

void RunMessages::show(const launcher::RunEvent& event) {
  std::visit([this](const auto& e) { take(e); }, event);
}

void RunMessages::say(std::string_view text) {
  if (progress_) progress_->end();
  runner_->say(printable_lines(text));
}

void RunMessages::take(const launcher::MembershipChanged& event) {
  say(fmt::format("horo: {}\n", event.line));
}

void RunMessages::take(const launcher::AgentControlGroup& event) {
  if (!settings_.get(knobs::kVerbose)) return;
  say(control_group_text(event.host, event.control_group));
}

void RunMessages::take(const launcher::ElasticNoted& event) {
  if (event.host.empty()) return say(fmt::format("horo: {}\n", event.text));
  if (settings_.get(knobs::kVerbose))
    say(fmt::format("horo: host {}: {}\n", event.host, event.text));
}

void RunMessages::take(const launcher::ElasticEnded& event) {
  auto text = launcher::end_report(event.report);
  if (text.empty() && settings_.get(knobs::kVerbose)) text = success_report(event.report);
  text += restart_text(event.decision, event.restarts);
  report_.write([&] { return json_report(event.report); });
  if (!text.empty()) say(text);
}

void RunMessages::take(const launcher::ElasticNotRestarted& event) {
  report_.write([&] { return json_report(event.report); });
  say(fmt::format("horo: {}\n", event.why));
}

std::string RunMessages::restart_text(const launcher::RestartDecision& decision,
                                      std::size_t restarts) const {
  if (decision.restart) {
    return fmt::format("horo: restarting the job, restart {} of {}\n", restarts,
                       settings_.get(knobs::kMaxRestarts));
  }
  return decision.why.empty() ? std::string() : fmt::format("horo: {}\n", decision.why);
}

void RunMessages::take(const launcher::GenerationStarting& event) {
  if (settings_.get(knobs::kVerbose)) introduce(event);
  if (event.plan.elastic) return;
  if (event.plan.starts.uses_other_hosts())
    progress_.emplace(loop_, STDERR_FILENO, [this] { return describe_progress(); });
}

void RunMessages::introduce(const launcher::GenerationStarting& event) {
  const auto& plan = event.plan;
  say(fmt::format("horo: job {}: {} ranks of {} on {}{}, starter {}\n", plan.job_id, plan.size(),
                  plan.program, hosts_text(plan.placement),
                  event.rendezvous.empty() ? "" : fmt::format(", rendezvous {}", event.rendezvous),
                  event.starter));
  say(fmt::format("horo: hosts: {}\n", plan.hosts_from));
  for (std::size_t host = 0; host < plan.placement.hosts.size(); ++host) {
    say(fmt::format("horo: host {}: {}{}\n", plan.placement.hosts[host].name,
                    describe_parts(plan, host), describe_start(plan, host)));
  }
  if (plan.mpi) {
    for (const auto& note : plan.mpi->command.notes)
      say(fmt::format("horo: {}: {}\n", plan.mpi->program, note));
  }
  if (plan.threads != 0) {
    say(fmt::format(
        "horo: OMP_NUM_THREADS={} for every rank; set the variable to choose another value\n",
        plan.threads));
  }
}

std::string RunMessages::describe_progress() const {
  const auto progress = runner_->progress();
  return fmt::format("horo: {} of {} hosts are connected, {} of {} ranks have started; {}",
                     progress.ready_hosts, progress.hosts, progress.started_ranks, progress.ranks,
                     progress.steps);
}

void RunMessages::take(const launcher::HostsReady& event) {
  if (!settings_.get(knobs::kVerbose)) return;
  say(fmt::format("horo: {} hosts are connected; rendezvous {}, rank 0 at {}\n", event.hosts,
                  event.rendezvous, event.rank_zero));
}

void RunMessages::take(const launcher::HostControlGroup& event) {
  if (!settings_.get(knobs::kVerbose)) return;
  say(control_group_text(event.plan.placement.hosts[event.host].name, event.control_group));
}

void RunMessages::take(const launcher::HostNoted& event) {
  if (!settings_.get(knobs::kVerbose)) return;
  say(fmt::format("horo: host {}: {}\n", event.plan.placement.hosts[event.host].name, event.text));
}

void RunMessages::take(const launcher::StarterSaid& event) {
  say(fmt::format("{}: {}\n", event.program, printable(event.line)));
}

void RunMessages::take(const launcher::RanksStarted& event) {
  progress_.reset();
  if (!settings_.get(knobs::kVerbose) || event.kept_agents == 0) return;
  say(fmt::format("horo: all ranks have started; {} of {} agents are those of the attempt before\n",
                  event.kept_agents, event.hosts));
}

void RunMessages::take(const launcher::RankWrote&) {
  progress_.reset();
}

void RunMessages::take(const launcher::NoticeTaken& event) {
  say(fmt::format("horo: SIG{}: notice that the job's time ends; the ranks get it\n",
                  sigabbrev_np(event.signal)));
}

void RunMessages::take(const launcher::GenerationEnded& event) {
  progress_.reset();
  auto text = end_report(event.report);
  if (text.empty() && settings_.get(knobs::kVerbose)) text = success_report(event.report);
  text += restart_text(event.decision, event.restarts);
  report_.write([&] { return json_report(event.report); });
  if (!text.empty()) say(text);
}

void RunMessages::take(const launcher::AllHostsAgain&) {
  say("horo: the remaining hosts have too few slots; all hosts will be tried again soon\n");
}

void RunMessages::take(const launcher::NotRestarted& event) {
  report_.write([&] { return json_report(event.report); });
  say(launcher::not_restarted_report(event.report.state));
}

}  // namespace horo::apps
