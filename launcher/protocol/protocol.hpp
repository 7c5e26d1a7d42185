// SPDX-License-Identifier: Apache-2.0
// The protocol between launcher and agent: all its messages, and the frames that carry them
// (docs/design/agent-protocol.md). Values and pure functions only. The bytes come from another
// host: their lengths are bounded and their values checked before anything relies on them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "launcher/job_members.hpp"
#include "launcher/protocol/agent_messages.hpp"
#include "launcher/protocol/launcher_messages.hpp"
#include "launcher/questions.hpp"
#include "launcher/resize.hpp"

namespace horo::launcher::protocol {

inline constexpr std::size_t kHeaderBytes = 5;
inline constexpr std::size_t kMaxFrame = std::size_t{64} << 20U;  ///< Type and payload.

using Message =
    std::variant<Hello, Start, Signal, Stop, Kill, FeedStdin, CloseStdin, OutputTaken, Started,
                 SpawnFailed, Output, Exited, StdinRoom, Finished, Failed, ControlGroupMade,
                 Prepare, Heartbeat, Prepared, Reach, Carry, Leave, Reached, Gone, Step, Recorded,
                 EndAsked, Look, Fetch, Viewed, Piece, Roster, Dismiss, Release, Assigned, Noted,
                 Spawn, EndWorker, PostNotice, Close, Resize, Resized, AskMembers, Members, Called,
                 Answered, EndMeeting>;

/// Calls `handler.on(message)` with the message's own type if it is one for `receiver`, and
/// `handler.on_misdirected(row)` otherwise. A handler without an `on` for one of its messages does
/// not compile.
template <Receiver receiver, typename Handler>
void dispatch(const Message& message, Handler& handler) {
  std::visit(
      [&handler](const auto& m) {
        using M = std::decay_t<decltype(m)>;
        if constexpr (is_for<M>(receiver)) {
          handler.on(m);
        } else {
          handler.on_misdirected(M::kRow);
        }
      },
      message);
}

/// Appends the frame of `message` to `to`. Fails: resource_exhausted (larger than kMaxFrame).
Status encode(const Message& message, std::string& to);

/// Reads one frame's type and payload, without its length. Fails: protocol.
Result<Message> decode(std::string_view frame);

/// One line for people: "signal number=15". Secrets and the values of variables are left out.
std::string describe(const Message& message);

/// Appends such a frame with its length in front.
void append_frame(std::string_view frame, std::string& to);

/// Whether a frame holds a message of that kind, by its type alone.
template <typename M>
bool is(std::string_view frame) {
  return !frame.empty() && static_cast<std::uint8_t>(frame.front()) == M::kRow.type;
}

/// Finds the first hello in a stream and drops what comes before it, such as a login shell's
/// greeting. Thread: owner.
class HelloFinder {
 public:
  /// Takes the next bytes; true once the hello has begun: rest() is the stream from there on.
  bool pass(std::string_view bytes);

  std::string_view rest() const { return seen_; }

 private:
  std::string seen_;
};

/// Cuts a stream into frames. Thread: owner.
class FrameSplitter {
 public:
  /// Appends what has arrived; views into earlier messages end.
  void feed(std::string_view bytes);
  /// The next whole message, nullopt when more bytes are needed. Fails: protocol; then for ever.
  Result<std::optional<Message>> next();
  /// The next whole frame, not decoded: type and payload, as a view into this reader.
  Result<std::optional<std::string_view>> next_frame();

 private:
  std::string buffer_;
  std::size_t start_ = 0;
};

/// Whether the two builds may work together. Fails: version_mismatch, naming both versions;
/// protocol, when `theirs` is no hello of horo. `sender` names the other side in the message.
Status check_hello(const Hello& theirs, std::string_view sender);

}  // namespace horo::launcher::protocol
