// SPDX-License-Identifier: Apache-2.0
// What leaders say to each other: pure encoding and decoding, no sockets. Input is another
// process's data: every count is bounded before it is believed, and every frame has one spelling.
// docs/design/tree.md has the layout.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/board_header.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "runtime/coordinator/tree/rank_ranges.hpp"
#include "runtime/signature.hpp"

namespace horo::runtime::tree {

inline constexpr std::uint32_t kVersion = 1;
inline constexpr std::size_t kMostPayload = std::size_t{16} << 20U;
inline constexpr std::uint32_t kMostTensors = 1U << 20U;  ///< Names of one process set at a time.
inline constexpr std::size_t kMostNameBytes = 4096;
inline constexpr std::size_t kMostTextBytes = 8192;
inline constexpr std::size_t kMostAsked = 32;    ///< Names of one question.
inline constexpr std::size_t kMostVerdicts = 8;  ///< Of one answer.
inline constexpr std::size_t kMostVerdictBytes = 512;

/// A name's agreed number is a place, below kMostTensors, and how often that place has changed
/// hands, times kMostTensors: what is said of a name that gave way means nobody else.
inline constexpr std::uint32_t kNoNumber = 0xffffffffU;

constexpr std::size_t place_of_number(std::uint32_t number) {
  return number % kMostTensors;
}

using Ids = std::vector<std::uint32_t>;  ///< Tensors' agreed numbers, ascending, each once.

/// First from both ends of a connection: who I am, and which job I think this is.
struct Hello {
  std::uint32_t host = 0;
  std::uint64_t fingerprint = 0;  ///< Of the hosts, see topology.hpp.

  friend bool operator==(const Hello&, const Hello&) = default;
};

struct Heartbeat {
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

/// By every field, so that equal submissions of many ranks become one.
struct SignatureOrder {
  bool operator()(const std::optional<Signature>& a, const std::optional<Signature>& b) const;
};

/// What ranks say of a tensor, with who says so. No signature: what they agreed to last.
using Variants = std::map<std::optional<Signature>, RankRanges, SignatureOrder>;

/// A tensor that is ready and new, or ready and changed.
struct Declaration {
  std::string name;  ///< Not on the wire if there is a number.
  std::uint32_t number = kNoNumber;
  bool again = false;  ///< Said before by a number that gave way meanwhile.
  Variants variants;

  friend bool operator==(const Declaration&, const Declaration&) = default;
};

/// Up: these tensors are complete in the sender's subtree, with what its ranks say of them.
struct Declare {
  SetId set;
  std::vector<Declaration> tensors;

  friend bool operator==(const Declare&, const Declare&) = default;
};

/// Up: these are complete in the sender's subtree, and nothing has changed.
struct Ready {
  SetId set;
  Ids ids;

  friend bool operator==(const Ready&, const Ready&) = default;
};

/// Up: these ranks submit nothing more until all have joined.
struct Joined {
  SetId set;
  RankRanges ranks;

  friend bool operator==(const Joined&, const Joined&) = default;
};

/// Up: these ranks submit nothing more, ever.
struct Leave {
  SetId set;
  RankRanges ranks;

  friend bool operator==(const Leave&, const Leave&) = default;
};

/// Up, from the host that paces a set which the root is no member of: it has done so many entries.
struct Done {
  SetId set;
  std::uint64_t entries = 0;

  friend bool operator==(const Done&, const Done&) = default;
};

/// A name gets its number, and the one that had its place gives way; whoever has never submitted it
/// (it joined) finds what it would be.
struct Definition {
  std::uint32_t id = 0;
  std::string name;
  Signature signature;

  friend bool operator==(const Definition&, const Definition&) = default;
};

enum class LogKind : std::uint8_t {
  work = 1,      ///< Run `ids` together; `rows` as in the board's log.
  mismatch = 2,  ///< End `ids` with `text`.
  join = 3,      ///< All ranks have joined, `ranks` last.
  left = 4,      ///< `ranks` have shut down: what is not in the log by now never will be.
};

/// Down: one entry of a process set's log.
struct LogEntry {
  SetId set;
  std::uint64_t sequence = 0;
  LogKind kind = LogKind::work;
  std::vector<Definition> definitions;
  Ids ids;
  std::vector<std::uint64_t> rows;  ///< Tensor by tensor, member by member.
  std::string text;
  RankRanges ranks;

  friend bool operator==(const LogEntry&, const LogEntry&) = default;
};

/// Up and down: the job is over. The root passes the first one it hears of to all.
struct Loss {
  Rank rank{-1};  ///< -1: nobody is to blame.
  LossCause cause = LossCause::host_lost;
  std::uint32_t detail = 0;
  std::string host;
  std::string text;  ///< cause stalled: the verdict.

  friend bool operator==(const Loss&, const Loss&) = default;
};

/// Either way: the sender closes this connection, and nobody is lost.
struct Bye {
  friend bool operator==(const Bye&, const Bye&) = default;
};

/// Up from a host whose ranks have waited too long, then from the root down to all: what keeps
/// these tensors?
struct Question {
  SetId set;
  std::uint32_t number = 0;       ///< By the root; 0 on the way up.
  std::uint32_t least_ms = 0;     ///< Tensors that have waited for less are fine.
  std::uint32_t patience_ms = 0;  ///< The answer comes within.
  bool under_way = false;         ///< They are in an entry, and nothing moves.
  bool ends = false;              ///< The job ends if they are not fine.
  std::uint32_t more = 0;         ///< So many tensors beside the named ones.
  std::vector<std::string> names;

  friend bool operator==(const Question&, const Question&) = default;
};

/// Of one tensor of a question.
struct Lacking {
  std::uint32_t waited_ms = 0;  ///< By those who have submitted it; 0: nobody has.
  RankRanges missing;
  RankRanges undeclared;  ///< Those of them that have never declared it.
  std::string group;      ///< Its ranks have it and wait for the rest of this group.

  friend bool operator==(const Lacking&, const Lacking&) = default;
};

/// Why one of the missing ranks is missing.
struct Verdict {
  Rank rank;
  std::string host;
  std::string text;

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

/// Up: what the sender's subtree knows.
struct Answer {
  SetId set;
  std::uint32_t number = 0;
  std::vector<Lacking> lacking;   ///< Name by name.
  std::vector<Verdict> verdicts;  ///< Of the lowest missing ranks; ascending.

  friend bool operator==(const Answer&, const Answer&) = default;
};

using Frame = std::variant<Hello, Heartbeat, Declare, Ready, Joined, Leave, Done, LogEntry, Loss,
                           Bye, Question, Answer>;

struct Envelope {
  Epoch epoch;
  Frame frame;
};

/// The payload of a frame.
std::string encode(Epoch epoch, const Frame& frame);

/// Fails: protocol.
Result<Envelope> decode(BytesView payload);

inline BytesView as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace horo::runtime::tree
