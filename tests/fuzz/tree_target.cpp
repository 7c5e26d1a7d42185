// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include "runtime/tree/connections/sealed_channel.hpp"
#include "runtime/tree/frames/frames.hpp"
#include "runtime/tree/leader/leader.hpp"

namespace horo::fuzz {

namespace {

using namespace runtime;        // NOLINT(google-build-using-namespace): what is fuzzed
using namespace runtime::tree;  // NOLINT(google-build-using-namespace): what is fuzzed

/// A decoded frame must encode to the same bytes, because each frame has only one form.
std::string run_frame(std::string_view bytes) {
  const auto envelope = decode(as_bytes(bytes));
  if (!envelope) return envelope.error().code == Errc::protocol ? "" : "the error is not protocol";
  return encode(envelope->epoch, envelope->frame) == bytes
             ? ""
             : "a decoded frame encodes to other bytes";
}

/// Counts the leader's calls; accepts every entry.
class Host final : public HostLog, public HostState, public Outbox {
 public:
  void take_completed(std::vector<Completed>& /*out*/) override {}

  LastSubmission last_submission(TensorId /*id*/) override { return {}; }

  void show_arrivals(TensorId /*id*/, std::span<const LastSubmission> /*others*/) override {}

  Declaration describe(TensorId /*id*/) override { return {}; }

  std::optional<std::string> inputs(TensorId /*id*/) override { return "in"; }

  Result<std::optional<TensorId>> define(std::string_view /*name*/,
                                         const Signature& /*signature*/) override {
    return std::optional(TensorId{defined_++ % kMostTensors});
  }

  std::uint64_t take_place(TensorId /*first*/) override { return 0; }

  RankRanges take_joined() override { return {}; }

  Result<bool> publish(const HostEntry& /*entry*/) override { return true; }

  std::uint64_t done() const override { return 0; }

  std::optional<Loss> loss() override { return lost_; }

  void lose(const Loss& loss) override { lost_ = loss; }

  bool wants_arrivals() override { return true; }

  StallExaminer* examiner() override { return nullptr; }

  RankRanges take_leaving() override { return {}; }

  void send(std::size_t /*link*/, std::string /*payload*/) override { ++sent_; }

  std::uint64_t sent() const { return sent_; }

 private:
  std::uint32_t defined_ = 0;
  std::uint64_t sent_ = 0;
  std::optional<Loss> lost_;
};

const std::vector<HostRanks>& hosts() {
  static const std::vector<HostRanks> all{{.name = "a", .ranks = {Rank{0}}},
                                          {.name = "b", .ranks = {Rank{1}}},
                                          {.name = "c", .ranks = {Rank{2}}},
                                          {.name = "d", .ranks = {Rank{3}}}};
  return all;
}

/// A leader in the middle of the tree. The input is cut into pieces; the first byte of a piece
/// gives its length, up to 63, and its sender. The leader may lose the job, but must do nothing
/// else.
std::string run_leader(std::string_view bytes) {
  Host host;
  Leader leader({.host = 1, .radix = 1}, hosts(), host, host);
  Host neighbour;
  const Leader above({.host = 0, .radix = 1}, hosts(), neighbour, neighbour);
  const Leader below({.host = 2, .radix = 1}, hosts(), neighbour, neighbour);
  const TimePoint now{};
  if (!leader.greet(as_bytes(above.hello()), now) || !leader.greet(as_bytes(below.hello()), now))
    return "a neighbour was refused";
  leader.add_set(SetId{0}, RankRanges::of(0, 4), &host, now);
  while (!bytes.empty() && !leader.loss()) {
    const auto head = static_cast<unsigned char>(bytes[0]);
    bytes.remove_prefix(1);
    const auto piece = bytes.substr(0, head & 63U);
    bytes.remove_prefix(piece.size());
    leader.on_frame((head & 64U) != 0 ? 1 : Leader::kParent, as_bytes(piece), now);
  }
  return host.sent() > 10000 ? "a few frames led to thousands of frames" : "";
}

/// The stream of an unauthenticated peer, on either side of a connection. It is never trusted, and
/// is read no further than the handshake needs.
std::string run_unauthenticated(std::string_view bytes) {
  const auto side = !bytes.empty() && (bytes[0] & 1) != 0 ? SealedChannel::Side::connects
                                                          : SealedChannel::Side::accepts;
  SealedChannel channel(side, channel_key({1, 2, 3}, Epoch{1}), kv::Nonce{4});
  while (!bytes.empty()) {
    if (channel.room() > 44) return "an unauthenticated peer may send more than a hello";
    const auto part = bytes.substr(0, channel.room());
    if (part.empty()) return "the channel neither reads nor ends";
    channel.feed(as_bytes(part));
    bytes.remove_prefix(part.size());
    const auto payload = channel.next();
    if (channel.open() || (payload && payload->has_value()))
      return "an unauthenticated peer was trusted";
    if (!payload) return "";
  }
  return "";
}

std::vector<Frame> frames() {
  const Signature signature{.ndim = 1, .extents_hash = 7, .extents = {1}};
  return {
      LeaderHello{.host = 1, .fingerprint = 2},
      Heartbeat{},
      Declare{.set = {},
              .tensors = {{.name = "x", .variants = {{signature, RankRanges::of(2, 2)}}}}},
      Ready{.set = {}, .ids = {0, 1, 2, 9}},
      ReadyWithInputs{.set = {}, .tensors = {{.number = 0, .inputs = "in"}}},
      LogEntry{.set = {}, .sequence = 1, .kind = LogKind::carried, .ids = {0}, .inputs = {"inin"}},
      Joined{.set = {}, .ranks = RankRanges::of(2, 2)},
      Leave{.set = {}, .ranks = RankRanges::of(3, 1)},
      Done{.set = {}, .entries = 3},
      LogEntry{.set = {},
               .kind = LogKind::join,
               .definitions = {{.id = 0, .name = "x", .signature = signature}},
               .ranks = RankRanges::of(1, 1)},
      LogEntry{.set = {}, .sequence = 1, .kind = LogKind::work, .ids = {0}, .rows = {1, 1, 2, 1}},
      LogEntry{.set = {}, .sequence = 2, .kind = LogKind::tuning, .tuning = {.cycle_ns = 9}},
      LogEntry{.set = {}, .kind = LogKind::mismatch, .ids = {0}, .text = "no"},
      Loss{.rank = Rank{2}, .cause = LossCause::exited, .detail = 1, .host = "c"},
      StallQuestion{.set = {}, .number = 1, .least_ms = 9, .timeout_ms = 8, .names = {"x"}},
      StallAnswer{.set = {},
                  .number = 1,
                  .lacking = {{.missing = RankRanges::of(2, 1)}},
                  .verdicts = {{.rank = Rank{2}, .host = "c", .text = "no"}}},
      Bye{}};
}

std::vector<std::string> payloads() {
  std::vector<std::string> out;
  for (const auto& frame : frames()) out.push_back(encode(Epoch{1}, frame));
  return out;
}

std::vector<std::string> streams() {
  std::vector<std::string> out;
  for (const char side : {'\0', '\x40'}) {
    std::string stream;
    for (const auto& payload : payloads()) {
      if (payload.size() > 63) continue;
      const auto piece = static_cast<char>(static_cast<char>(payload.size()) | side) + payload;
      out.push_back(piece);
      stream += piece;
    }
    out.push_back(stream);
  }
  return out;
}

}  // namespace

std::vector<Target> tree_targets() {
  return {
      {.name = "tree-frame", .run = run_frame, .seeds = payloads(), .words = {}, .rounds = 100000},
      {.name = "tree-unauthenticated",
       .run = run_unauthenticated,
       .seeds = {std::string("horo-tr\0\1\0\0\0", 12) + std::string(64, 'x'),
                 std::string(1, '\1') + std::string(100, 'y')},
       .words = {"horo-tr"},
       .rounds = 20000},
      {.name = "tree-leader", .run = run_leader, .seeds = streams(), .words = {}, .rounds = 30000}};
}

}  // namespace horo::fuzz
