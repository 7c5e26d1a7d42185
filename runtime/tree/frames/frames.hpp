// SPDX-License-Identifier: Apache-2.0
// The frames that leaders exchange, as values: pure encoding and decoding, no sockets. Every input
// is another process's data: a count is bounded before memory is allocated for it, and every frame
// has one spelling. docs/design/tree.md has the layout.
//
// A frame is one row here, as in base/codec/wire_message.hpp: its type on the wire, the direction
// in which it travels, its fields, and what must hold between them. A new frame is such a struct,
// its name in Frame, and a handler in Leader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "base/board_header.hpp"
#include "base/codec/wire_message.hpp"
#include "base/result.hpp"
#include "base/strong.hpp"
#include "runtime/tensor/carried_sum.hpp"
#include "runtime/tensor/tuning.hpp"
#include "runtime/tree/frames/frame_forms.hpp"
#include "runtime/tree/frames/frame_values.hpp"

namespace horo::runtime::tree {

/// The side a frame comes from. A leader refuses a frame that comes from the wrong side.
enum class FrameDirection : std::uint8_t {
  first,  ///< The first frame on a connection, from both ends, and never later.
  up,     ///< From a child.
  down,   ///< From the parent.
  both,
};

struct FrameRow : MessageRow {
  FrameDirection direction = FrameDirection::both;
};

constexpr FrameRow first_frame(std::uint8_t type, std::string_view name) {
  return {{.type = type, .name = name}, FrameDirection::first};
}

constexpr FrameRow from_child(std::uint8_t type, std::string_view name) {
  return {{.type = type, .name = name}, FrameDirection::up};
}

constexpr FrameRow from_parent(std::uint8_t type, std::string_view name) {
  return {{.type = type, .name = name}, FrameDirection::down};
}

constexpr FrameRow from_both(std::uint8_t type, std::string_view name) {
  return {{.type = type, .name = name}, FrameDirection::both};
}

/// Says which host sends, and which job it believes to be in.
struct LeaderHello {
  static constexpr FrameRow kRow = first_frame(1, "hello");

  std::uint32_t host = 0;
  std::uint64_t fingerprint = 0;  ///< The job's hosts, ranks and settings; see host_tree.hpp.

  static void fields(auto& field, auto& m) {
    field("host", m.host, wire::Varint{});
    field("fingerprint", m.fingerprint, wire::Fixed{});
  }

  friend bool operator==(const LeaderHello&, const LeaderHello&) = default;
};

struct Heartbeat {
  static constexpr FrameRow kRow = from_both(2, "heartbeat");

  static void fields(auto& /*field*/, auto& /*m*/) {}

  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

/// A tensor that is ready and new, or ready and changed.
struct Declaration {
  std::string name;  ///< Not on the wire if there is a number.
  std::uint32_t number = kNoNumber;
  bool again = false;  ///< It was reported before, by a number that has been evicted since.
  Variants variants;

  static void fields(auto& field, auto& m) {
    field("name", std::tie(m.name, m.number, m.again), NameOrNumber{});
    field("variants", m.variants, SignatureVariants{});
  }

  friend bool operator==(const Declaration&, const Declaration&) = default;
};

/// These tensors are complete in the sender's subtree, with the signatures that its ranks declare.
struct Declare {
  static constexpr FrameRow kRow = from_child(3, "declare");

  SetId set;
  std::vector<Declaration> tensors;

  static void fields(auto& field, auto& m) {
    field("set", m.set, wire::Varint{});
    field("tensors", m.tensors, list(wire::Fields{}, {.least_bytes = 6, .least = 1}));
  }

  friend bool operator==(const Declare&, const Declare&) = default;
};

/// These tensors are complete in the sender's subtree, and nothing has changed.
struct Ready {
  static constexpr FrameRow kRow = from_child(4, "ready");

  SetId set;
  Ids ids;

  static void fields(auto& field, auto& m) {
    field("set", m.set, wire::Varint{});
    field("ids", m.ids, TensorNumbers{});
  }

  static std::string_view check(const Ready& m) { return m.ids.empty() ? "has no ids" : ""; }

  friend bool operator==(const Ready&, const Ready&) = default;
};

/// A tensor that is ready, with the inputs of the sender's ranks one behind the other.
struct CarriedTensor {
  std::uint32_t number = 0;
  std::string inputs;

  static void fields(auto& field, auto& m) {
    field("number", m.number, wire::Varint{.most = kNoNumber - 1});
    field("inputs", m.inputs, FrameText{.least = 1, .most = kMostCarriedBytes});
  }

  friend bool operator==(const CarriedTensor&, const CarriedTensor&) = default;
};

/// As Ready, for sums so small that their inputs travel along.
struct ReadyWithInputs {
  static constexpr FrameRow kRow = from_child(15, "ready with inputs");

  SetId set;
  std::vector<CarriedTensor> tensors;

  static void fields(auto& field, auto& m) {
    field("set", m.set, wire::Varint{});
    field("tensors", m.tensors, list(wire::Fields{}, {.least_bytes = 3, .least = 1}));
  }

  friend bool operator==(const ReadyWithInputs&, const ReadyWithInputs&) = default;
};

/// These ranks submit nothing more until all have joined.
struct Joined {
  static constexpr FrameRow kRow = from_child(5, "joined");

  SetId set;
  RankRanges ranks;

  static void fields(auto& field, auto& m) {
    field("set", m.set, wire::Varint{});
    field("ranks", m.ranks, Ranks{});
  }

  static std::string_view check(const Joined& m) { return m.ranks.empty() ? "has no ranks" : ""; }

  friend bool operator==(const Joined&, const Joined&) = default;
};

/// These ranks never submit anything more.
struct Leave {
  static constexpr FrameRow kRow = from_child(6, "leave");

  SetId set;
  RankRanges ranks;

  static void fields(auto& field, auto& m) {
    field("set", m.set, wire::Varint{});
    field("ranks", m.ranks, Ranks{});
  }

  static std::string_view check(const Leave& m) { return m.ranks.empty() ? "has no ranks" : ""; }

  friend bool operator==(const Leave&, const Leave&) = default;
};

/// How many entries the host that paces a set has run. Sent only if the root is no member.
struct Done {
  static constexpr FrameRow kRow = from_child(7, "done");

  SetId set;
  std::uint64_t entries = 0;

  static void fields(auto& field, auto& m) {
    field("set", m.set, wire::Varint{});
    field("entries", m.entries, wire::Varint{});
  }

  friend bool operator==(const Done&, const Done&) = default;
};

/// Gives a name its number, and thereby evicts the name that had this place. The signature is for
/// ranks that joined and have never submitted the tensor.
struct Definition {
  std::uint32_t id = 0;
  std::string name;
  Signature signature;

  static void fields(auto& field, auto& m) {
    field("id", m.id, wire::Varint{.most = kNoNumber - 1});
    field("name", m.name, FrameText{.least = 1, .most = kMostNameBytes});
    field("signature", m.signature, WholeSignature{});
  }

  friend bool operator==(const Definition&, const Definition&) = default;
};

enum class LogKind : std::uint8_t {
  work = 1,      ///< Run `ids` together; `rows` as in the board's log.
  mismatch = 2,  ///< End `ids` with `text`, a MismatchReport as bytes.
  join = 3,      ///< All ranks have joined; `ranks` are the last.
  left = 4,      ///< `ranks` have shut down: they take part in no later entry.
  tuning = 5,    ///< All members change their tuning here.
  carried = 6,   ///< As work; `inputs` are here, and no bytes move otherwise.
};

/// The entry's tensors are run.
constexpr bool runs(LogKind kind) {
  return kind == LogKind::work || kind == LogKind::carried;
}

/// One entry of a process set's log.
struct LogEntry {
  static constexpr FrameRow kRow = from_parent(8, "log entry");

  SetId set;
  std::uint64_t sequence = 0;
  LogKind kind = LogKind::work;
  std::vector<Definition> definitions;
  Ids ids;
  std::vector<std::uint64_t> rows;  ///< Tensor by tensor, member by member.
  std::vector<std::string> inputs;  ///< By tensor: all members' inputs, in rank order.
  std::string text;
  RankRanges ranks;
  Tuning tuning;
  bool joined = false;  ///< Ranks have joined, so on some host a member may take part without data.

  static void fields(auto& field, auto& m) {
    field("set", m.set, wire::Varint{});
    field("sequence", m.sequence, wire::Varint{});
    field("kind", m.kind, wire::Choice{LogKind::work, LogKind::carried});
    field("definitions", m.definitions, list(wire::Fields{}, {.least_bytes = 7}));
    field("ids", m.ids, TensorNumbers{});
    switch (m.kind) {
      case LogKind::work:
        field("rows", m.rows, RowRuns{});
        field("flags", std::tie(m.joined), wire::FlagBits{});
        break;
      case LogKind::mismatch:
        field("text", m.text, FrameText{.most = kMostTextBytes});
        break;
      case LogKind::join:
      case LogKind::left:
        field("ranks", m.ranks, Ranks{});
        break;
      case LogKind::tuning:
        field("fusion threshold", m.tuning.fusion_threshold, wire::Varint{});
        field("cycle", m.tuning.cycle_ns, wire::Varint{.most = kLongestTuningTime});
        field("wake delay", m.tuning.wake_delay_ns, wire::Varint{.most = kLongestTuningTime});
        field("small message", m.tuning.small_message, wire::Varint{});
        break;
      case LogKind::carried:
        field("inputs", m.inputs,
              list(FrameText{.least = 1, .most = kMostCarriedBytes}, {.least_bytes = 2}));
        break;
    }
  }

  static std::string_view check(const LogEntry& m) {
    const bool about_tensors = runs(m.kind) || m.kind == LogKind::mismatch;
    const bool about_ranks = m.kind == LogKind::join || m.kind == LogKind::left;
    if (about_tensors == m.ids.empty()) return "has ids that do not fit its kind";
    if (about_tensors && m.rows.size() % m.ids.size() != 0)
      return "has not as many rows for each tensor";
    if (m.kind == LogKind::carried && m.inputs.size() != m.ids.size())
      return "has not the inputs of each tensor";
    if (about_ranks && m.ranks.empty()) return "has no ranks";
    return {};
  }

  friend bool operator==(const LogEntry&, const LogEntry&) = default;
};

/// The job is over. The root passes the first loss that it hears of to all.
struct Loss {
  static constexpr FrameRow kRow = from_both(9, "loss");

  Rank rank{-1};  ///< -1: no rank is to blame.
  LossCause cause = LossCause::host_lost;
  std::uint32_t detail = 0;
  std::string host;
  std::string text;  ///< Only if `cause` is stalled: the verdict.

  static void fields(auto& field, auto& m) {
    field("rank", m.rank, RankOrNone{});
    field("cause", m.cause, wire::Choice{static_cast<LossCause>(1), kLastLossCause});
    field("detail", m.detail, wire::Fixed{});
    field("host", m.host, Clipped{kMostHostName});
    field("text", m.text, Clipped{kMostTextBytes});
  }

  friend bool operator==(const Loss&, const Loss&) = default;
};

/// The sender closes this connection, and no rank is lost by that.
struct Bye {
  static constexpr FrameRow kRow = from_both(10, "bye");

  static void fields(auto& /*field*/, auto& /*m*/) {}

  friend bool operator==(const Bye&, const Bye&) = default;
};

/// Asks why tensors do not complete: up from a host whose ranks have waited too long, then from the
/// root down to all hosts.
struct StallQuestion {
  static constexpr FrameRow kRow = from_both(11, "stall question");

  SetId set;
  std::uint32_t number = 0;      ///< Given by the root; 0 on the way up.
  std::uint32_t least_ms = 0;    ///< Tensors that have waited for less are left out.
  std::uint32_t timeout_ms = 0;  ///< Time limit for the answer.
  bool under_way = false;        ///< The tensors are in an entry that makes no progress.
  bool ends = false;             ///< The job ends if they do not complete.
  std::uint32_t more = 0;        ///< Stalled tensors that are not named.
  std::vector<std::string> names;

  static void fields(auto& field, auto& m) {
    field("set", m.set, wire::Varint{});
    field("number", m.number, wire::Varint{});
    field("least_ms", m.least_ms, wire::Varint{});
    field("timeout_ms", m.timeout_ms, wire::Varint{});
    field("flags", std::tie(m.under_way, m.ends), wire::FlagBits{});
    field("more", m.more, wire::Varint{});
    field("names", m.names,
          list(FrameText{.most = kMostNameBytes}, {.least = 1, .most = kMostAsked}));
  }

  friend bool operator==(const StallQuestion&, const StallQuestion&) = default;
};

/// A subtree's knowledge of one tensor of a question.
struct TensorStall {
  std::uint32_t waited_ms = 0;  ///< Longest wait of a rank that has submitted it; 0: none has.
  RankRanges missing;
  RankRanges undeclared;  ///< The missing ranks that have never declared it.
  std::string group;      ///< Its ranks have it and wait for the rest of this group.

  static void fields(auto& field, auto& m) {
    field("waited_ms", m.waited_ms, wire::Varint{});
    field("missing", m.missing, Ranks{});
    field("undeclared", m.undeclared, Ranks{});
    field("group", m.group, FrameText{.most = kMostNameBytes});
  }

  friend bool operator==(const TensorStall&, const TensorStall&) = default;
};

/// Why a rank is missing.
struct RankVerdict {
  Rank rank;
  std::string host;
  std::string text;

  static void fields(auto& field, auto& m) {
    field("rank", m.rank, wire::Varint{.most = kMostRanks - 1});
    field("host", m.host, Clipped{kMostHostName});
    field("text", m.text, Clipped{kMostVerdictBytes});
  }

  friend bool operator==(const RankVerdict&, const RankVerdict&) = default;
};

/// The sender's subtree answers a question.
struct StallAnswer {
  static constexpr FrameRow kRow = from_child(12, "stall answer");

  SetId set;
  std::uint32_t number = 0;
  std::vector<TensorStall> lacking;   ///< One for each name of the question.
  std::vector<RankVerdict> verdicts;  ///< For the lowest missing ranks; ascending.

  static void fields(auto& field, auto& m) {
    field("set", m.set, wire::Varint{});
    field("number", m.number, wire::Varint{});
    field("lacking", m.lacking, list(wire::Fields{}, {.least_bytes = 4, .most = kMostAsked}));
    field("verdicts", m.verdicts, list(wire::Fields{}, {.least_bytes = 3, .most = kMostVerdicts}));
  }

  static std::string_view check(const StallAnswer& m) {
    for (std::size_t i = 1; i < m.verdicts.size(); ++i) {
      if (m.verdicts[i - 1].rank >= m.verdicts[i].rank)
        return "has verdicts that are not in the order of their ranks";
    }
    return {};
  }

  friend bool operator==(const StallAnswer&, const StallAnswer&) = default;
};

/// The rank of the sender's subtree that submitted a tensor last.
struct LastArrival {
  std::string name;  ///< Empty if there is a number.
  std::uint32_t number = kNoNumber;
  Rank rank;
  std::uint64_t us_ago = 0;  ///< When it did, in microseconds before this frame was sent.

  static void fields(auto& field, auto& m) {
    field("name", m.name, FrameText{.most = kMostNameBytes});
    if (m.name.empty()) field("number", m.number, wire::Varint{.most = kNoNumber - 1});
    field("rank", m.rank, wire::Varint{.most = kMostRanks - 1});
    field("us_ago", m.us_ago, wire::Varint{});
  }

  friend bool operator==(const LastArrival&, const LastArrival&) = default;
};

/// Comes before the frames that say that these tensors are complete, while the root wants it.
struct Arrived {
  static constexpr FrameRow kRow = from_child(13, "arrived");

  SetId set;
  std::vector<LastArrival> tensors;

  static void fields(auto& field, auto& m) {
    field("set", m.set, wire::Varint{});
    field("tensors", m.tensors, list(wire::Fields{}, {.least_bytes = 4, .least = 1}));
  }

  friend bool operator==(const Arrived&, const Arrived&) = default;
};

/// Whether a trace at the root shows which ranks submit last, so that the hosts below have to tell.
struct ShowArrivals {
  static constexpr FrameRow kRow = from_parent(14, "show arrivals");

  bool wanted = false;

  static void fields(auto& field, auto& m) { field("wanted", m.wanted, wire::Bool{}); }

  friend bool operator==(const ShowArrivals&, const ShowArrivals&) = default;
};

/// All frames. A type number may occur once; their order here means nothing.
using Frame =
    std::variant<LeaderHello, Heartbeat, Declare, Ready, Joined, Leave, Done, LogEntry, Loss, Bye,
                 StallQuestion, StallAnswer, Arrived, ShowArrivals, ReadyWithInputs>;

struct Envelope {
  Epoch epoch;
  Frame frame;
};

/// The payload of a frame.
std::string encode(Epoch epoch, const Frame& frame);

/// Fails: protocol.
Result<Envelope> decode(BytesView payload);

}  // namespace horo::runtime::tree
