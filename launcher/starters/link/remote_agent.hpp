// SPDX-License-Identifier: Apache-2.0
// Shared by all carriers that start horo-agent on another host.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/protocol/protocol.hpp"

namespace horo::launcher {

/// The arguments of a command that starts horo-agent there: the program at `path`, or else the one
/// in PATH. If there is neither, it exits with code 127 and an error that names both.
std::vector<std::string> remote_command(const std::string& path);

/// The same command as one line for the login shell of an ssh server, whichever shell it is.
std::string remote_command_line(const std::string& path);

/// The last lines that a process wrote to its standard error, for an error message. Thread: owner.
class StderrTail {
 public:
  void add(std::string_view bytes);
  /// ": line; line", or empty.
  std::string text() const;

 private:
  std::string kept_;
};

/// The text that the other host's shell, or a program in place of the agent, wrote to standard
/// output instead of the agent's hello: some give no other reason for their end, such as nologin.
/// Thread: owner.
class StrayOutput {
 public:
  /// The bytes of the agent's stream. Nothing is kept once its hello has come.
  void add(std::string_view bytes);

  /// As StderrTail::text.
  std::string text() const { return greeted_ ? std::string() : tail_.text(); }

 private:
  protocol::HelloFinder finder_;
  bool greeted_ = false;
  StderrTail tail_;
};

}  // namespace horo::launcher
