// SPDX-License-Identifier: Apache-2.0
// The messages that the launcher sends to an agent: each with its type number, name, fields and
// what must hold between them. docs/design/agent-protocol.md has the bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/board_header.hpp"
#include "base/elastic/membership_forms.hpp"
#include "launcher/protocol/agent_forms.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher::protocol {

/// Bytes of output or standard input in one message.
inline constexpr std::size_t kMaxChunk = 65536;

/// Makes the board and starts the ranks in order. Once per assignment.
struct Start {
  AgentSpec spec;

  static constexpr AgentMessageRow kRow = to_agent(2, "start");

  static void fields(auto& field, auto& m) {
    field("host", m.spec.host, kText);
    field("command", m.spec.command, list(kText));
    field("directory", m.spec.directory, kText);
    field("environment", m.spec, wire::Hidden{WholeEnvironment{}});
    field("ranks", m.spec.ranks, list(wire::Fields{}));
    field("worker_addresses", m.spec.ranks, wire::Hidden{SharedAddresses{}});
    field("own_variables", m.spec.own_variables, list(kText));
    field("stdin", m.spec.stdin_policy, wire::Choice{StdinPolicy::none, StdinPolicy::rank0});
    field("bind_to", m.spec.bind_to, wire::Choice{BindTo::automatic, BindTo::none});
    field("gpus", m.spec.gpus, wire::Choice{GpuMode::off, GpuMode::automatic});
    field("failure_grace", m.spec.failure_grace, wire::Nanoseconds{});
    field("grace", m.spec.grace, wire::Nanoseconds{});
    field("release_timeout", m.spec.release_timeout, wire::Nanoseconds{});
    field("epoch", m.spec.epoch, wire::Fixed{});
    field("secret", m.spec.secret, wire::Hidden{wire::Octets{}});
    field("timeline_directory", m.spec.timeline_directory, kText);
    field("output_window", m.spec.output_window, wire::Fixed{});
    field("stay", m.spec.stay, wire::Nanoseconds{});
    field("elastic", m.spec.elastic, wire::Bool{});
    field("slots", m.spec.slots, wire::Fixed{});
    field("term_grace", m.spec.term_grace, wire::Nanoseconds{});
  }

  static std::string_view check(const Start& m) {
    const auto& ranks = m.spec.ranks;
    if (m.spec.command.empty()) return "has no command";
    if (m.spec.elastic) {
      if (m.spec.slots < 1 || m.spec.slots > kMaxLocalRanks) return "has no slots or too many";
      return check_workers(ranks);
    }
    if (ranks.empty() || ranks.size() > kMaxLocalRanks) return "has no ranks or too many";
    const int first = ranks.front().local_rank.value();
    if (first < 0 || first >= kMaxLocalRanks || ranks.back().local_size > kMaxLocalRanks)
      return "has a local rank out of range";
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i].rank.value() < 0 || ranks[i].rank.value() >= ranks[i].size)
        return "has a rank outside the job";
      if (ranks[i].worker >= 0) return "has a worker, but is not elastic";
      if (ranks[i].local_rank.value() != first + static_cast<int>(i))
        return "has ranks out of order";
    }
    return {};
  }
};

/// For the process group of every living rank.
struct Signal {
  int number = 0;

  static constexpr AgentMessageRow kRow = to_agent(3, "signal");

  static void fields(auto& field, auto& m) { field("number", m.number, wire::Fixed{}); }

  static std::string_view check(const Signal& m) {
    return is_signal(m.number) ? "" : "has a number that is not a signal";
  }
};

/// Poisons the board and ends the ranks. A second one changes nothing.
struct Stop {
  Poison cause;
  std::string host;

  static constexpr AgentMessageRow kRow = to_agent(4, "stop");

  static void fields(auto& field, auto& m) {
    field("rank", m.cause.rank, wire::Fixed{});
    field("cause", m.cause.cause, wire::Choice{LossCause::none, kLastLossCause});
    field("detail", m.cause.detail, wire::Fixed{});
    field("host", m.host, kText);
  }

  static std::string_view check(const Stop& m) {
    const int rank = m.cause.rank.value();
    return rank >= -1 && rank < kMostRanks ? "" : "blames a rank that cannot be";
  }
};

/// SIGKILL to all, now.
struct Kill {
  static constexpr AgentMessageRow kRow = to_agent(5, "kill");

  static void fields(auto& /*field*/, auto& /*m*/) {}
};

/// Standard input of rank 0; the next one only after StdinRoom.
struct FeedStdin {
  std::string_view bytes;  ///< Points into the reader's buffer.

  static constexpr AgentMessageRow kRow = to_agent(6, "feed stdin");

  static void fields(auto& field, auto& m) {
    field("bytes", m.bytes, wire::Rest{.most = kMaxChunk});
  }
};

struct CloseStdin {
  static constexpr AgentMessageRow kRow = to_agent(7, "close stdin");

  static void fields(auto& /*field*/, auto& /*m*/) {}
};

/// So many more bytes of a rank's output have reached their readers.
struct OutputTaken {
  Rank rank{0};
  std::uint32_t bytes = 0;

  static constexpr AgentMessageRow kRow = to_agent(8, "output taken");

  static void fields(auto& field, auto& m) {
    field("rank", m.rank, wire::Fixed{});
    field("bytes", m.bytes, wire::Fixed{});
  }
};

/// Goes to an agent on another host, before Start. The agent answers with Prepared.
struct Prepare {
  int ports = 0;                 ///< How many free ports to find there.
  std::string launcher_address;  ///< A number: the launcher's end of the route to that host.
  Duration heartbeat{};          ///< How long either side may be silent.
  bool relayed = false;          ///< The agent's peer is another host's agent, not the launcher.
  Epoch epoch{1};                ///< The Start that follows has the same one.

  static constexpr AgentMessageRow kRow = to_agent(10, "prepare");

  static void fields(auto& field, auto& m) {
    field("ports", m.ports, wire::Fixed{});
    field("launcher_address", m.launcher_address, kText);
    field("heartbeat", m.heartbeat, wire::Nanoseconds{});
    field("relayed", m.relayed, wire::Bool{});
    field("epoch", m.epoch, wire::Fixed{});
  }

  static std::string_view check(const Prepare& m) {
    return m.ports >= 0 && m.ports <= kMaxLocalRanks + 1 ? "" : "asks for too many ports";
  }
};

/// Asks an agent that relays to start the agent of another host and to relay frames to it.
struct Reach {
  std::uint32_t host = 0;            ///< The number that both sides use for that host from now on.
  std::string name;                  ///< As the user wrote it.
  std::vector<std::string> program;  ///< A whole command line; empty: log in with the library.
  std::string target;                ///< The name to look up.
  std::string known_as;              ///< The name in the files of known hosts.
  std::int32_t port = 0;
  std::string user;
  std::vector<std::string> identities;   ///< Key files; "~/" is the relaying agent's home.
  std::vector<std::string> known_hosts;  ///< Files; "~/" is the relaying agent's home.
  std::string global_known_hosts;
  bool accept_unknown = false;
  std::string command_line;    ///< Starts the agent there.
  Duration heartbeat{};        ///< Between the two agents.
  Duration connect_timeout{};  ///< Time limit for the connection; then another agent tries.

  static constexpr AgentMessageRow kRow = to_agent(12, "reach");

  static void fields(auto& field, auto& m) {
    field("host", m.host, wire::Fixed{});
    field("name", m.name, kText);
    field("program", m.program, list(kText));
    field("target", m.target, kText);
    field("known_as", m.known_as, kText);
    field("port", m.port, wire::Fixed{});
    field("user", m.user, kText);
    field("identities", m.identities, list(kText));
    field("known_hosts", m.known_hosts, list(kText));
    field("global_known_hosts", m.global_known_hosts, kText);
    field("accept_unknown", m.accept_unknown, wire::Bool{});
    field("command_line", m.command_line, kText);
    field("heartbeat", m.heartbeat, wire::Nanoseconds{});
    field("connect_timeout", m.connect_timeout, wire::Nanoseconds{});
  }

  static std::string_view check(const Reach& m) {
    return m.port == 0 || is_port(m.port) ? "" : "has a number that is not a port";
  }
};

/// Asks an agent that relays to end the input of that host's agent, or to close its connection.
struct Leave {
  std::uint32_t host = 0;
  bool at_once = false;

  static constexpr AgentMessageRow kRow = to_agent(14, "leave");

  static void fields(auto& field, auto& m) {
    field("host", m.host, wire::Fixed{});
    field("at_once", m.at_once, wire::Bool{});
  }
};

/// No rank of the job runs any more: an agent that has stayed for orders may leave.
struct Dismiss {
  static constexpr AgentMessageRow kRow = to_agent(17, "dismiss");

  static void fields(auto& /*field*/, auto& /*m*/) {}
};

/// No further assignment follows: an agent that waits for one ends.
struct Release {
  static constexpr AgentMessageRow kRow = to_agent(18, "release");

  static void fields(auto& /*field*/, auto& /*m*/) {}
};

/// Starts further workers of an elastic assignment, each in a free slot of the board.
struct Spawn {
  std::vector<WorkerIdentity> workers;

  static constexpr AgentMessageRow kRow = to_agent(19, "spawn");

  static void fields(auto& field, auto& m) { field("workers", m.workers, list(wire::Fields{})); }

  static std::string_view check(const Spawn& m) {
    return m.workers.empty() ? "has no workers" : check_workers(m.workers);
  }
};

/// Ends one worker of an elastic assignment, if it has not ended yet.
struct EndWorker {
  Rank worker{0};

  static constexpr AgentMessageRow kRow = to_agent(20, "end worker");

  static void fields(auto& field, auto& m) { field("worker", m.worker, wire::Fixed{}); }
};

/// For the board of an elastic assignment: the membership is to change.
struct PostNotice {
  Notice notice;

  static constexpr AgentMessageRow kRow = to_agent(21, "notice");

  static void fields(auto& field, auto& m) {
    field("sequence", m.notice.sequence, wire::Fixed{});
    field("flags", m.notice.flags, wire::Fixed{});
  }

  static std::string_view check(const PostNotice& m) {
    constexpr std::uint32_t kAll = Notice::kRemoved | Notice::kAdded;
    if (m.notice.sequence < 1 || m.notice.sequence > Notice::kMostSequence)
      return "has a sequence number out of range";
    return (m.notice.flags & ~kAll) == 0 ? "" : "has unknown flags";
  }
};

/// An elastic assignment gets no further worker: it is over once none lives.
struct Close {
  static constexpr AgentMessageRow kRow = to_agent(22, "close");

  static void fields(auto& /*field*/, auto& /*m*/) {}
};

/// Answers calls of workers of an elastic assignment, see Called.
struct Answered {
  std::vector<elastic::CallAnswer> answers;

  static constexpr AgentMessageRow kRow = to_agent(23, "answered");

  static void fields(auto& field, auto& m) { field("answers", m.answers, list(wire::Fields{})); }

  static std::string_view check(const Answered& m) {
    if (m.answers.empty() || m.answers.size() > kMaxLocalRanks) return "has no answers or too many";
    for (const auto& one : m.answers) {
      if (const auto problem = elastic::problem_of(one.answer); !problem.empty()) return problem;
    }
    return {};
  }
};

/// The workers that still meet in that generation of an elastic job need not wait for each other.
struct EndMeeting {
  std::uint64_t generation = 1;

  static constexpr AgentMessageRow kRow = to_agent(24, "end meeting");

  static void fields(auto& field, auto& m) { field("generation", m.generation, wire::Fixed{}); }

  static std::string_view check(const EndMeeting& m) {
    const bool valid = m.generation >= 1 && m.generation <= elastic::kMostGeneration;
    return valid ? "" : "has no valid generation";
  }
};

/// Tells a viewer of the job, such as `horo top`, which agents the job has. In Carry and Gone,
/// `host` is an index of `agents`. The list of an elastic job changes: agents are added at its end,
/// and their ranks are those of the current generation.
struct Roster {
  struct Agent {
    std::string host;
    std::vector<int> ranks;

    static void fields(auto& field, auto& agent) {
      field("host", agent.host, kText);
      field("ranks", agent.ranks, list(wire::Fixed{}));
    }
  };

  std::string job;
  bool elastic = false;
  std::vector<Agent> agents;

  static constexpr AgentMessageRow kRow = to_viewer(80, "roster");

  static void fields(auto& field, auto& m) {
    field("job", m.job, kText);
    field("elastic", m.elastic, wire::Bool{});
    field("agents", m.agents, list(wire::Fields{}));
  }
};

}  // namespace horo::launcher::protocol
