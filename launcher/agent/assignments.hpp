// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"

namespace horo::launcher {

/// The assignments of one agent, one after the other: each is the agent's part in one generation of
/// the job, and has that generation's epoch. Values only; it says which order of the launcher may
/// follow which.
///
///   none -> prepared -> begun -> waiting -> prepared -> ...
///           none or waiting -> begun                   without Prepare, on the launcher's machine
///                       begun -> over                  the last assignment
///                              waiting -> over         by Release
class Assignments {
 public:
  enum class Stage : std::uint8_t { none, prepared, begun, waiting, over };

  /// Prepare. Fails: protocol, if the last assignment goes on, or `epoch` is none that can follow.
  Status prepare(Epoch epoch);

  /// Start; when its ranks are gone, the agent stays for this long. Fails: as prepare.
  Status begin(Epoch epoch, Duration stay);

  /// The ranks are gone. Those that could not be killed are the launcher's to judge: an agent that
  /// other agents are reached through stays in any case.
  void finish();

  /// No further assignment follows.
  void release();

  Stage stage() const { return stage_; }

  Epoch epoch() const { return epoch_; }

  Duration stay() const { return stay_; }

 private:
  Status open(Epoch epoch);

  Stage stage_ = Stage::none;
  Epoch epoch_{0};
  Duration stay_{};
  bool released_ = false;
};

}  // namespace horo::launcher
