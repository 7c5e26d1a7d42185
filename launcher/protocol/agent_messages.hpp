// SPDX-License-Identifier: Apache-2.0
// The messages that an agent sends to the launcher, and those that both send: each with its type
// number, name, fields and what must hold between them. docs/design/agent-protocol.md has the
// bytes.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/elastic/membership_forms.hpp"
#include "launcher/protocol/agent_forms.hpp"
#include "launcher/protocol/launcher_messages.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher::protocol {

inline constexpr std::uint32_t kMagic = 0x41524f48;  ///< "HORA", little endian.
inline constexpr std::uint16_t kVersion = 13;        ///< Version of all messages but Hello.

// -- From either side -------------------------------------------------------------------------

/// The first message of either side. Its bytes are the same in every version.
struct Hello {
  std::uint32_t magic = kMagic;
  std::uint16_t protocol = kVersion;
  std::uint32_t version_code = 0;
  std::string version;

  static constexpr AgentMessageRow kRow = to_both(1, "hello");

  static Hello ours();

  static void fields(auto& field, auto& m) {
    field("magic", m.magic, wire::Fixed{});
    field("protocol", m.protocol, wire::Fixed{});
    field("version_code", m.version_code, wire::Fixed{});
    field("version", m.version, PrintableText{});
  }
};

/// Sent by a side that has nothing else to say.
struct Heartbeat {
  static constexpr AgentMessageRow kRow = to_both(11, "heartbeat");

  static void fields(auto& /*field*/, auto& /*m*/) {}
};

/// A frame for or from the agent of another host, which itself may be a Carry.
struct Carry {
  std::uint32_t host = 0;
  std::string_view frame;  ///< Type and payload. Points into the reader's buffer.

  static constexpr AgentMessageRow kRow = to_both(13, "carry");

  static void fields(auto& field, auto& m) {
    field("host", m.host, wire::Fixed{});
    field("frame", m.frame, wire::Rest{});
  }

  static std::string_view check(const Carry& m) { return m.frame.empty() ? "has no frame" : ""; }
};

// -- Of the agent's own ranks -----------------------------------------------------------------

/// The first message of an assignment: those before it belong to an earlier one. Answers the
/// Prepare or Start that began the assignment.
struct Assigned {
  Epoch epoch{1};

  static constexpr AgentMessageRow kRow = to_launcher(81, "assigned");

  static void fields(auto& field, auto& m) { field("epoch", m.epoch, wire::Fixed{}); }
};

struct Started {
  Rank rank{0};
  int pid = 0;

  static constexpr AgentMessageRow kRow = to_launcher(64, "started");

  static void fields(auto& field, auto& m) {
    field("rank", m.rank, wire::Fixed{});
    field("pid", m.pid, wire::Fixed{});
  }
};

struct SpawnFailed {
  Rank rank{0};
  Error error;

  static constexpr AgentMessageRow kRow = to_launcher(65, "spawn failed");

  static void fields(auto& field, auto& m) {
    field("rank", m.rank, wire::Fixed{});
    field("error", m.error, wire::Fields{});
  }
};

struct Output {
  Rank rank{0};
  Stream stream = Stream::out;
  std::string_view bytes;  ///< Points into the reader's buffer.

  static constexpr AgentMessageRow kRow = to_launcher(66, "output");

  static void fields(auto& field, auto& m) {
    field("rank", m.rank, wire::Fixed{});
    field("stream", m.stream, wire::Choice{Stream::out, Stream::err});
    field("bytes", m.bytes, wire::Rest{.most = kMaxChunk});
  }
};

inline constexpr Duration kLongestLife = std::chrono::hours(24 * 365 * 50);

/// Follows the rank's last output.
struct Exited {
  RankExit exit;

  static constexpr AgentMessageRow kRow = to_launcher(67, "exited");

  static void fields(auto& field, auto& m) {
    field("rank", m.exit.rank, wire::Fixed{});
    field("wait_status", m.exit.wait_status, wire::Fixed{});
    field("core_dumped", m.exit.core_dumped, wire::Bool{});
    field("oom_killed", m.exit.oom_killed, wire::Bool{});
    field("attached", m.exit.attached, wire::Bool{});
    field("undetached", m.exit.undetached, wire::Bool{});
    field("heard", m.exit.heard, wire::Fixed{});
    field("lived", m.exit.lived, wire::Nanoseconds{});
    field("gpu_faults", m.exit.gpu_faults, PrintableText{});
  }

  static std::string_view check(const Exited& m) {
    const auto& exit = m.exit;
    if (exit.rank.value() < 0 || exit.heard.value() < -1 || exit.heard == exit.rank)
      return "has a rank that cannot be";
    if (!is_end_status(exit.wait_status)) return "has a status that is not the end of a process";
    if (exit.lived > kLongestLife) return "has lived too long";
    return exit.undetached && !exit.attached ? "did not detach and had never attached" : "";
  }
};

/// Workers of an elastic assignment ask for their places in the next generation. Answered follows,
/// or the worker ends.
struct Called {
  std::vector<elastic::MembershipCall> calls;

  static constexpr AgentMessageRow kRow = to_launcher(83, "called");

  static void fields(auto& field, auto& m) { field("calls", m.calls, list(wire::Fields{})); }

  static std::string_view check(const Called& m) {
    if (m.calls.empty() || m.calls.size() > kMaxLocalRanks) return "has no calls or too many";
    for (const auto& call : m.calls) {
      if (const auto problem = elastic::problem_of(call); !problem.empty()) return problem;
    }
    return {};
  }
};

/// The rank has read the last FeedStdin, or no rank reads any more.
struct StdinRoom {
  static constexpr AgentMessageRow kRow = to_launcher(68, "stdin room");

  static void fields(auto& /*field*/, auto& /*m*/) {}
};

inline constexpr int kMostProcesses = 1 << 22;  ///< On a host, by the kernel's limit.

/// No rank and no descendant is left. The last message of an assignment but for EndAsked. The agent
/// waits for a further assignment if Start said so and there are no survivors.
struct Finished {
  int survivors = 0;

  static constexpr AgentMessageRow kRow = to_launcher(69, "finished");

  static void fields(auto& field, auto& m) { field("survivors", m.survivors, wire::Fixed{}); }

  static std::string_view check(const Finished& m) {
    return m.survivors >= 0 && m.survivors <= kMostProcesses ? "" : "has an impossible number";
  }
};

/// The agent could not do its work, such as without descriptors. Its last message.
struct Failed {
  Error error;

  static constexpr AgentMessageRow kRow = to_launcher(70, "failed");

  static void fields(auto& field, auto& m) { field("error", m.error, wire::Fields{}); }
};

/// Once, right after Hello: which control group all processes of the host are in.
struct ControlGroupMade {
  ControlGroupInfo control_group;

  static constexpr AgentMessageRow kRow = to_launcher(71, "cgroup");

  static void fields(auto& field, auto& m) {
    field("path", m.control_group.path, kText);
    field("reason", m.control_group.reason, PrintableText{});
  }
};

/// The answer to Prepare.
struct Prepared {
  std::vector<int> ports;
  std::string address;    ///< The agent's own address on its route to the launcher.
  std::string interface;  ///< The name of the interface that has it; empty: not known.

  static constexpr AgentMessageRow kRow = to_launcher(72, "prepared");

  static void fields(auto& field, auto& m) {
    field("ports", m.ports, list(wire::Fixed{}));
    field("address", m.address, kText);
    field("interface", m.interface, kText);
  }

  static std::string_view check(const Prepared& m) {
    return std::ranges::all_of(m.ports, is_port) ? "" : "has a number that is not a port";
  }
};

/// Where the last records of the ranks of a failed job were saved, before Finished.
struct Recorded {
  SavedTimeline saved;

  static constexpr AgentMessageRow kRow = to_launcher(76, "recorded");

  static void fields(auto& field, auto& m) {
    field("ranks", m.saved.ranks, wire::Fixed{});
    field("directory", m.saved.directory, PrintableText{});
    field("problem", m.saved.problem, PrintableText{});
  }

  static std::string_view check(const Recorded& m) {
    return m.saved.ranks >= 0 && m.saved.ranks <= kMaxLocalRanks ? "" : "has an impossible number";
  }
};

/// A batch system has sent the agent a signal to end, and perhaps only the agent: it waits for an
/// order.
struct EndAsked {
  int number = 0;  ///< The signal.

  static constexpr AgentMessageRow kRow = to_launcher(77, "end asked");

  static void fields(auto& field, auto& m) { field("number", m.number, wire::Fixed{}); }

  static std::string_view check(const EndAsked& m) {
    return is_signal(m.number) ? "" : "has a number that is not a signal";
  }
};

/// A sentence about this host's agent, which --verbose shows.
struct Noted {
  std::string text;

  static constexpr AgentMessageRow kRow = to_launcher(82, "noted");

  static void fields(auto& field, auto& m) { field("text", m.text, PrintableText{}); }
};

// -- From an agent that relays, of another host's agent ---------------------------------------

/// That agent's hello has come; its frames follow.
struct Reached {
  std::uint32_t host = 0;
  std::string address;  ///< The host's address, a number; empty: not known.

  static constexpr AgentMessageRow kRow = to_launcher(73, "reached");

  static void fields(auto& field, auto& m) {
    field("host", m.host, wire::Fixed{});
    field("address", m.address, kText);
  }
};

/// That agent could not be reached, or has ended. Nothing of it follows.
struct Gone {
  std::uint32_t host = 0;
  Error error;

  static constexpr AgentMessageRow kRow = to_launcher(74, "gone");

  static void fields(auto& field, auto& m) {
    field("host", m.host, wire::Fixed{});
    field("error", m.error, wire::Fields{});
  }
};

/// Progress of a relaying agent that takes long to reach that host.
struct Step {
  std::uint32_t host = 0;
  std::string text;

  static constexpr AgentMessageRow kRow = to_launcher(75, "step");

  static void fields(auto& field, auto& m) {
    field("host", m.host, wire::Fixed{});
    field("text", m.text, PrintableText{});
  }
};

/// Messages about the agent of another host.
template <typename M>
inline constexpr bool kIsOfRelay = std::is_same_v<M, Reached> || std::is_same_v<M, Carry> ||
                                   std::is_same_v<M, Gone> || std::is_same_v<M, Step>;

}  // namespace horo::launcher::protocol
