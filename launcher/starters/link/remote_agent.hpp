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

/// The last lines that a process wrote, for an error message. Thread: owner.
class OutputTail {
 public:
  void add(std::string_view bytes);
  /// ": line; line", or empty.
  std::string text() const;

 private:
  std::string kept_;
};

/// Tells the agent from another program that runs in its place, by what it writes. Thread: owner.
class AgentRecognizer {
 public:
  /// The next bytes of its standard output.
  void add(std::string_view bytes) { is_agent_ = is_agent_ || finder_.pass(bytes); }

  /// Whether an agent's hello has come.
  bool is_agent() const { return is_agent_; }

 private:
  protocol::HelloFinder finder_;
  bool is_agent_ = false;
};

}  // namespace horo::launcher
