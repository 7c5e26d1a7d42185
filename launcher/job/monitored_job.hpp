// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "launcher/job/job_driver.hpp"
#include "launcher/job_members.hpp"
#include "launcher/protocol/launcher_messages.hpp"
#include "launcher/questions.hpp"
#include "launcher/resize.hpp"

namespace horo::launcher {

/// A job as viewers see it: its agents, and its members where they change. Agents have the numbers
/// of the roster. Thread: the loop's.
class MonitoredJob {
 public:
  using AnswerHandler = std::function<void(std::size_t agent, const Answer& answer)>;

  virtual ~MonitoredJob() = default;

  /// The agents as they are now. Later rosters have the same ones first.
  virtual protocol::Roster roster() const = 0;

  /// As Agent::ask. False: no question reaches the agent now.
  virtual bool ask(std::size_t agent, const Question& question) = 0;

  /// The agent's ranks have ended, and no question reaches it any more.
  virtual bool is_over(std::size_t agent) const = 0;

  /// The agents' answers go to `handler`.
  virtual void on_answer(AnswerHandler handler) = 0;

  /// Nothing: the members of the job do not change.
  virtual std::optional<Members> members() const = 0;

  /// Carries out the wish, or says why not.
  virtual Resized resize(const Resize& wish) = 0;
};

/// A job whose members do not change, or one generation of it. `agent_per_rank`: every rank has an
/// agent of its own. `driver` outlives it.
std::unique_ptr<MonitoredJob> monitored(JobDriver& driver, std::string job_id, bool agent_per_rank);

}  // namespace horo::launcher
