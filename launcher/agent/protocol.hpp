// SPDX-License-Identifier: Apache-2.0
// What launcher and agent say to each other, and its bytes (docs/design/agent-protocol.md). Values
// and pure functions only. Bytes come from another host: bounded, verified, never trusted.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "launcher/questions.hpp"
#include "launcher/starter.hpp"

namespace horo::launcher::protocol {

inline constexpr std::uint32_t kMagic = 0x41524f48;  // "HORA", little endian
inline constexpr std::uint16_t kVersion = 7;         ///< Of these bytes; hello never changes.
inline constexpr std::size_t kHeaderBytes = 5;
inline constexpr std::size_t kMaxFrame = std::size_t{64} << 20U;  ///< Type and payload.
inline constexpr std::size_t kMaxChunk = 65536;  ///< Of output and standard input in one frame.

/// First frame of either side.
struct Hello {
  std::uint32_t magic = kMagic;
  std::uint16_t protocol = kVersion;
  std::uint32_t version_code = 0;
  std::string version;

  static Hello ours();
};

// Launcher to agent.
struct Start {
  AgentSpec spec;
};

struct Signal {
  int number = 0;
};

struct Stop {
  Poison cause;
  std::string host;
};

struct Kill {};

/// No rank of the job runs any more: an agent that has stayed on for orders may leave.
struct Dismiss {};

struct FeedStdin {
  std::string_view bytes;  ///< Into the reader's buffer.
};

struct CloseStdin {};

/// So much of a rank's output has reached its readers.
struct OutputTaken {
  Rank rank{0};
  std::uint32_t bytes = 0;
};

/// Before `start`, to an agent on another host.
struct Prepare {
  int ports = 0;                 ///< To find there.
  std::string launcher_address;  ///< A number; where it is to find the launcher.
  Duration heartbeat{};          ///< How long either side may be silent.
  bool relayed = false;          ///< Another host's agent is between: it is next to this one.
};

/// To an agent that passes on: start the agent of another host and speak with it for the launcher.
struct Reach {
  std::uint32_t host = 0;            ///< What both call it from here on.
  std::string name;                  ///< As the user wrote it.
  std::vector<std::string> program;  ///< A whole command line; empty: by the library.
  std::string target;                ///< To look up.
  std::string known_as;
  std::int32_t port = 0;
  std::string user;
  std::vector<std::string> identities;   ///< "~/" is the home there.
  std::vector<std::string> known_hosts;  ///< Likewise.
  std::string global_known_hosts;
  bool accept_unknown = false;
  std::string command_line;  ///< That starts the agent.
  Duration heartbeat{};      ///< Between the two agents.
  Duration patience{};       ///< For a connection; then somebody else tries.
};

/// From either side: a frame for or from the agent of another host, which itself may be such a one.
struct Carry {
  std::uint32_t host = 0;
  std::string_view frame;  ///< Type and payload. Into the reader's buffer.
};

/// To an agent that passes on: ends the input of that host's agent, or all that is in reach.
struct Leave {
  std::uint32_t host = 0;
  bool at_once = false;
};

/// From either side, when it has nothing else to say.
struct Heartbeat {};

// Agent to launcher.
struct Covered {
  Cover cover;
};

struct Prepared {
  std::vector<int> ports;
  std::string address;    ///< By which it reaches the launcher.
  std::string interface;  ///< That has the address; empty: none.
};

/// Of an agent that passes on: another host's agent has greeted. Its frames follow.
struct Reached {
  std::uint32_t host = 0;
  std::string address;  ///< Where it was found, a number; empty: not known.
};

/// It could not be reached, or it is gone. Nothing of it follows.
struct Gone {
  std::uint32_t host = 0;
  Error error;
};

/// What is being done to reach it.
struct Step {
  std::uint32_t host = 0;
  std::string text;
};

struct Started {
  Rank rank{0};
  int pid = 0;
};

struct SpawnFailed {
  Rank rank{0};
  Error error;
};

struct Output {
  Rank rank{0};
  Stream stream = Stream::out;
  std::string_view bytes;  ///< Into the reader's buffer.
};

struct Exited {
  RankExit exit;
};

struct StdinRoom {};

struct Finished {
  int survivors = 0;
};

struct Recorded {
  SavedTimeline saved;
};

/// A batch system has told the agent to end, and perhaps nobody else: it waits for an order.
struct EndAsked {
  int number = 0;  ///< The signal.
};

/// The agent could not do its work: no board, no descriptors. Its last frame.
struct Failed {
  Error error;
};

/// Launcher to whoever looks at its job: where its ranks are. In a Carry, `host` is a place here.
struct Roster {
  struct Agent {
    std::string host;
    std::vector<int> ranks;
  };

  std::string job;
  std::vector<Agent> agents;
};

/// In the order of their type numbers' table in protocol.cpp.
using Message =
    std::variant<Hello, Start, Signal, Stop, Kill, FeedStdin, CloseStdin, OutputTaken, Started,
                 SpawnFailed, Output, Exited, StdinRoom, Finished, Failed, Covered, Prepare,
                 Heartbeat, Prepared, Reach, Carry, Leave, Reached, Gone, Step, Recorded, EndAsked,
                 Look, Fetch, Viewed, Piece, Roster, Dismiss>;

/// Appends the frame of `message` to `to`. Fails: resource_exhausted (larger than kMaxFrame).
Status encode(const Message& message, std::string& to);

/// One frame's type and payload, without its length. Fails: protocol.
Result<Message> decode(std::string_view frame);

/// Appends such a frame with its length in front.
void append_frame(std::string_view frame, std::string& to);

/// Whether a frame holds a message of that kind, by its type alone.
template <typename M>
bool is(std::string_view frame);

/// Drops what a stream carries before the first hello. Thread: owner.
class Noise {
 public:
  /// Takes the next bytes; true once the hello has begun: rest() is the stream from there on.
  bool pass(std::string_view bytes);

  std::string_view rest() const { return seen_; }

 private:
  std::string seen_;
};

/// Cuts a stream into frames. Thread: owner.
class FrameReader {
 public:
  /// Appends what has arrived; views into earlier messages end.
  void feed(std::string_view bytes);
  /// The next whole message, nullopt when more bytes are needed. Fails: protocol; then for ever.
  Result<std::optional<Message>> next();
  /// The same before it is decoded: type and payload, a view into this.
  Result<std::optional<std::string_view>> next_frame();

 private:
  std::string buffer_;
  std::size_t start_ = 0;
};

/// Whether the two builds may work together. Fails: version_mismatch, naming both versions;
/// protocol, when `theirs` is no hello of ours. `who` is the other side, for the message.
Status check_hello(const Hello& theirs, std::string_view who);

}  // namespace horo::launcher::protocol
