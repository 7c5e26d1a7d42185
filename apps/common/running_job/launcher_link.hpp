// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "apps/common/running_job/running_launchers.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "launcher/protocol/protocol.hpp"

namespace horo::apps {

/// A connection to a launcher, to observe its job or to change an elastic one. Thread: owner.
class LauncherLink {
 public:
  /// Called with the roster index of an agent and a message from it.
  using Take = std::function<void(std::uint32_t, const launcher::protocol::Message&)>;

  /// Blocks: for two seconds at most. Fails: as WholeJob::attach.
  static Result<std::unique_ptr<LauncherLink>> open(const RunningLauncher& launcher);

  const launcher::protocol::Roster& roster() const { return roster_; }

  /// The members of an elastic job, as of the last answer to ask_members().
  const std::optional<launcher::Members>& members() const { return members_; }

  /// The launcher's answer to send_wish().
  const std::optional<launcher::Resized>& resized() const { return resized_; }

  /// Queues a question for the roster and the members of an elastic job; until the answer comes,
  /// members() is empty.
  void ask_members();

  /// Queues a wish for fewer or more slots.
  void send_wish(const launcher::Resize& wish);

  /// Queues a question to an agent; pump() sends it.
  void ask(std::uint32_t at, const launcher::protocol::Message& question);

  /// Sends and receives until `done` returns true, `until` has come, or the connection ends.
  /// Blocks.
  void pump(TimePoint until, const std::function<bool()>& done, const Take& take);

  bool ended() const { return !socket_; }

 private:
  explicit LauncherLink(RunningLauncher launcher) : launcher_(std::move(launcher)) {}

  Status connect();
  Status greet();
  bool wait(TimePoint until);
  void write_some();
  void read_some(const Take& take);
  Status take_message(const launcher::protocol::Message& message, const Take& take);

  const RunningLauncher launcher_;
  UniqueFd socket_;
  launcher::protocol::FrameSplitter reader_;
  std::string outbox_;
  launcher::protocol::Roster roster_;
  std::optional<launcher::Members> members_;
  std::optional<launcher::Resized> resized_;
  bool greeted_ = false;
  Status status_;  ///< Why the connection has ended.
};

}  // namespace horo::apps
