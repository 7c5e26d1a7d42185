// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "apps/timeline_view/launchers.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/unique_fd.hpp"
#include "launcher/agent/protocol.hpp"

namespace horo::apps {

/// A connection to a launcher, as one who looks at its job. Thread: owner.
class LauncherLink {
 public:
  /// What came from the agent at that place of the roster.
  using Take = std::function<void(std::uint32_t, const launcher::protocol::Message&)>;

  /// Blocks: for two seconds at most. Fails: as WholeJob::attach.
  static Result<std::unique_ptr<LauncherLink>> open(const RunningLauncher& launcher);

  const launcher::protocol::Roster& roster() const { return roster_; }

  /// To be sent by pump().
  void ask(std::uint32_t at, const launcher::protocol::Message& question);

  /// Sends and takes what comes: until `done`, `until` or the end. Blocks.
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
  launcher::protocol::FrameReader reader_;
  std::string outbox_;
  launcher::protocol::Roster roster_;
  bool greeted_ = false;
  Status status_;  ///< Why it has ended.
};

}  // namespace horo::apps
