// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "launcher/elastic/driver/elastic_agent.hpp"
#include "launcher/elastic/driver/membership_store.hpp"
#include "launcher/elastic/elastic_hosts.hpp"

namespace horo::launcher {

/// Plans how the agent of a host is started. Calls `answer` once from the loop, in a later turn,
/// unless whatever plans has been destroyed.
using PlanHost = std::function<void(const ElasticHost& host,
                                    std::function<void(Result<ElasticHostPlan>)> answer)>;

/// The agents of all hosts of an elastic job. Starts an agent when the first worker of its host is
/// ordered, and tells it where the workers find the job's store. Thread: the loop's.
class ElasticAgents {
 public:
  struct Options {
    ElasticAgent::Times times;
    /// Hosts besides this machine may come: its workers then meet at an address that other hosts
    /// reach, and not over loopback.
    bool others_may_come = false;
  };

  /// `loop` and `store` outlive it. `hooks`: on_ready and on_gone are set here.
  ElasticAgents(Loop& loop, MembershipStore& store, PlanHost plan, ElasticAgentHooks hooks,
                Options options);

  /// `host`: of worker.host.
  void spawn(const StartWorker& worker, const ElasticHost& host);
  void end_worker(int worker);
  void close(std::size_t host);
  void notice(const Notice& notice);

  /// Answers the calls of all members, with one message for each host.
  void answer(const FormedGeneration& generation);
  /// Answers a call that leads into no generation.
  void turn_away(const TurnedAway& worker, elastic::MembershipKind kind) const;
  /// The workers that still meet in that generation need not wait for each other.
  void end_meeting(std::uint64_t generation);

  void suspend();
  void resume();
  void signal(int number);
  void stop(const Poison& cause, const std::string& host);
  void kill();
  void output_taken(Rank worker, std::size_t bytes);
  /// As Agent::ask, for the agent of `host`.
  bool ask(std::size_t host, const Question& question) const;

  /// The number of workers that the host's agent has room for; nothing: it has no agent.
  std::optional<int> room_of(std::size_t host) const;

 private:
  ElasticAgent* of_worker(int worker) const;
  void each(const std::function<void(ElasticAgent&)>& task) const;
  void begin_ready_ones();
  void begin(ElasticAgent& agent);
  std::string address_for(const HostFacts& facts) const;

  Loop& loop_;
  MembershipStore& store_;
  const PlanHost plan_;
  const Options options_;
  ElasticAgentHooks hooks_;
  std::vector<std::unique_ptr<ElasticAgent>> agents_;  ///< By host; null: it never had one.
  std::vector<int> rooms_;                             ///< By host.
  std::unordered_map<int, std::size_t> hosts_;         ///< By worker.
  std::shared_ptr<const int> alive_ = std::make_shared<const int>(0);  ///< For plans to come.
  std::string own_address_;  ///< By which another host has reached this machine; empty: none has.
};

}  // namespace horo::launcher
