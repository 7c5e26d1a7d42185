// SPDX-License-Identifier: Apache-2.0
// Carries out the orders of the membership machine of an elastic job: starts agents and workers,
// answers the workers' calls, feeds news to the machine, and keeps the clocks.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/loop/loop.hpp"
#include "launcher/elastic/driver/elastic_agents.hpp"
#include "launcher/elastic/driver/elastic_history.hpp"
#include "launcher/elastic/driver/membership_store.hpp"
#include "launcher/elastic/host_wishes.hpp"
#include "launcher/elastic/membership.hpp"
#include "launcher/questions.hpp"
#include "launcher/resize.hpp"

namespace horo::launcher {

class JobOutput;

/// Settings of an elastic job.
struct ElasticJobSpec {
  ElasticRules rules;
  kv::Secret secret{};
  std::optional<Duration> time_limit;
  ElasticAgent::Times times;
  bool others_may_come = false;  ///< As in ElasticAgents.
};

/// The driver's calls to its owner.
struct ElasticHandlers {
  /// One line about a change, for the user.
  std::function<void(std::string_view line)> on_change;
  std::function<void(Rank worker, Stream stream, std::string_view bytes)> on_output;
  std::function<void(const std::string& host, std::string_view text)> on_note;
  std::function<void(const std::string& host, const ControlGroupInfo& group)> on_control_group;
  /// The job is over. No agent is left, or none that still obeys. Posted, once.
  Task on_finished;
};

/// One elastic job from its first start to its end. Thread: the loop's. Destroying it ends what
/// still runs.
class ElasticDriver {
 public:
  /// `loop` and `output` outlive the driver.
  ElasticDriver(Loop& loop, const ElasticJobSpec& spec, PlanHost plan, JobOutput& output,
                ElasticHandlers handlers);
  ~ElasticDriver();
  ElasticDriver(const ElasticDriver&) = delete;
  ElasticDriver& operator=(const ElasticDriver&) = delete;

  /// Opens the job's store and begins with the hosts that there are. Fails: as
  /// MembershipStore::open; nothing has been started then.
  Status start(const discovery::HostSet& offered);

  /// All hosts that can be used from now on.
  void offer(discovery::HostSet hosts);

  /// The hosts could not be listed.
  void offer_failed(const Error& error);

  /// The user wants more or fewer slots.
  Resized resize(const Resize& wish);

  /// As Agent::ask, for the agent of `host`.
  bool ask(std::size_t host, const Question& question) const;

  /// The answers of agents, with their hosts.
  void on_answer(std::function<void(std::size_t host, const Answer& answer)> task) {
    on_answer_ = std::move(task);
  }

  /// A signal to the launcher.
  void signal(int number);

  /// Stops the clocks until resume(), and all ranks if the machine says so.
  void suspend();
  void resume();

  const MembershipState& state() const { return state_; }

  /// How the job has ended; nothing while it runs.
  const std::optional<JobEnd>& end() const { return end_; }

  const ElasticHistory& history() const { return history_; }

  /// The timelines that agents have saved.
  const SavedTimeline& timeline() const { return timeline_; }

  /// host:port of the store on this machine; empty before start().
  std::string store_address() const;

 private:
  ElasticAgentHooks agent_hooks();
  void apply(const MembershipEvent& event);
  void apply_offer();
  void carry_out(const MembershipOrders& orders);
  void answer_calls(const MembershipOrders& orders);
  void start_workers(const MembershipOrders& orders);
  void end_agents(const MembershipOrders& orders);
  void wake_at(std::optional<TimePoint> when);
  void run_time_limit();
  void finish(const JobEnd& end);

  Loop& loop_;
  const ElasticJobSpec spec_;
  const PlanHost plan_;
  JobOutput& output_;
  const ElasticHandlers handlers_;
  MembershipState state_;
  HostWishes wishes_;
  ElasticHistory history_;
  std::unique_ptr<MembershipStore> store_;  ///< Since start().
  std::optional<ElasticAgents> agents_;     ///< Since start().
  int output_ranks_ = 0;                    ///< Workers that the output knows.
  SavedTimeline timeline_;
  std::function<void(std::size_t, const Answer&)> on_answer_;
  TimePoint begun_{};
  std::optional<TimePoint> suspended_;
  Duration suspended_before_{};
  std::optional<JobEnd> end_;
  Subscription tick_;
  Subscription limit_;
};

}  // namespace horo::launcher
