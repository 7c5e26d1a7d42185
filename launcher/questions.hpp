// SPDX-License-Identifier: Apache-2.0
// The questions of a program that looks at a running job, and the agents' answers. The launcher
// passes both on. Agents inspect their ranks only when they are asked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/board_header.hpp"
#include "launcher/message_forms.hpp"
#include "timeline/live/live_gpu.hpp"
#include "timeline/live/live_row.hpp"

namespace horo::launcher {

inline constexpr std::size_t kMostTensorText = 64;  ///< Bytes of a tensor's name in an answer.
inline constexpr std::size_t kMostMissing = 8;      ///< Ranks in a row of an answer.
inline constexpr std::size_t kMostGpus = 64;        ///< GPUs in an answer.
inline constexpr std::size_t kMostGpuLinks = 64;    ///< Neighbours of a GPU in an answer.
inline constexpr std::size_t kMostGpuText = 256;    ///< Bytes of each text about a GPU.
inline constexpr std::uint32_t kPieceBytes = 65536;

/// Asks what each rank is doing. The next question follows the answer.
struct Look {
  static constexpr AgentMessageRow kRow = to_agent(15, "look");

  static void fields(auto& /*field*/, auto& /*m*/) {}
};

/// Asks for a part of the ranks' records. At offset 0 the agent takes a new snapshot of them.
struct Fetch {
  std::uint32_t asker = 0;
  std::uint64_t offset = 0;

  static constexpr AgentMessageRow kRow = to_agent(16, "fetch");

  static void fields(auto& field, auto& m) {
    field("asker", m.asker, wire::Fixed{});
    field("offset", m.offset, wire::Fixed{});
  }
};

using Question = std::variant<Look, Fetch>;

/// The answer to Look: a row per rank and one per GPU, without their host. They are within bound().
struct Viewed {
  std::string problem;  ///< Why there are no rows; empty: there are those of ranks that record.
  std::vector<timeline::LiveRow> rows;
  std::vector<timeline::LiveGpu> gpus{};
  std::string gpu_problem{};  ///< Why `gpus` is empty or old; empty: there is no reason.

  static constexpr AgentMessageRow kRow = to_launcher(78, "viewed");

  static void fields(auto& field, auto& m) {
    field("problem", m.problem, PrintableText{});
    field("rows", m.rows, list(wire::Fields{}));
    field("gpus", m.gpus, list(wire::Fields{}));
    field("gpu_problem", m.gpu_problem, PrintableText{});
  }

  static std::string_view check(const Viewed& m) {
    if (m.rows.size() > kMaxLocalRanks) return "has more rows than a host has ranks";
    if (!std::ranges::all_of(m.rows, is_plausible)) return "has an invalid row";
    if (m.gpus.size() > kMostGpus) return "has more GPUs than a host";
    return std::ranges::all_of(m.gpus, is_plausible_gpu) ? "" : "has an invalid GPU";
  }

 private:
  static bool is_plausible(const timeline::LiveRow& row) {
    return row.rank >= 0 && row.rank < kMostRanks && row.for_ns >= 0 && row.lag_ns >= 0 &&
           row.tensor.size() <= kMostTensorText && row.missing.size() <= kMostMissing;
  }

  static bool is_plausible_gpu(const timeline::LiveGpu& gpu) {
    const auto is_rank = [](int rank) { return rank >= 0 && rank < kMostRanks; };
    return gpu.index >= 0 && gpu.busy >= -1 && gpu.celsius >= -1 && gpu.slices >= 0 &&
           gpu.ranks.size() <= kMaxLocalRanks && std::ranges::all_of(gpu.ranks, is_rank) &&
           gpu.links.size() <= kMostGpuLinks && gpu.name.size() <= kMostGpuText &&
           gpu.uuid.size() <= kMostGpuText && gpu.problem.size() <= kMostGpuText;
  }
};

/// The answer to Fetch: a part of a snapshot, which holds for each rank its number (i32), the size
/// of its file (u64) and the file.
struct Piece {
  std::uint32_t asker = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;  ///< The size of the whole snapshot.
  std::string problem;     ///< Why there is no snapshot; empty: there is one.
  std::string_view bytes;  ///< Points into the sender's or reader's buffer.

  static constexpr AgentMessageRow kRow = to_launcher(79, "piece");

  static void fields(auto& field, auto& m) {
    field("asker", m.asker, wire::Fixed{});
    field("offset", m.offset, wire::Fixed{});
    field("size", m.size, wire::Fixed{});
    field("problem", m.problem, PrintableText{});
    field("bytes", m.bytes, wire::Rest{.most = kPieceBytes});
  }
};

using Answer = std::variant<Viewed, Piece>;

}  // namespace horo::launcher

template <>
struct horo::FieldsOf<horo::timeline::LiveGpuLinks> {
  static void visit(auto& field, auto& links) {
    field("peer", links.peer, horo::launcher::PrintableText{});
    field("links", links.links, wire::Fixed{});
  }
};

template <>
struct horo::FieldsOf<horo::timeline::LiveGpu> {
  static void visit(auto& field, auto& gpu) {
    namespace forms = horo::launcher;
    field("index", gpu.index, wire::Fixed{});
    field("name", gpu.name, forms::PrintableText{});
    field("uuid", gpu.uuid, forms::PrintableText{});
    field("busy", gpu.busy, wire::Fixed{});
    field("used", gpu.used, wire::Fixed{});
    field("memory", gpu.memory, wire::Fixed{});
    field("celsius", gpu.celsius, wire::Fixed{});
    field("slices", gpu.slices, wire::Fixed{});
    field("links", gpu.links, forms::list(wire::Fields{}));
    field("ranks", gpu.ranks, forms::list(wire::Fixed{}));
    field("problem", gpu.problem, forms::PrintableText{});
  }
};

template <>
struct horo::FieldsOf<horo::timeline::LiveRow> {
  static void visit(auto& field, auto& row) {
    using horo::timeline::LiveState;
    namespace forms = horo::launcher;
    field("rank", row.rank, wire::Fixed{});
    field("pid", row.pid, wire::Fixed{});
    field("state", row.state, wire::Choice{LiveState::starts, LiveState::ended});
    field("tensor", row.tensor, forms::kText);
    field("tensors", row.tensors, wire::Fixed{});
    field("for_ns", row.for_ns, wire::Fixed{});
    field("missing", row.missing, forms::list(wire::Fixed{}));
    field("operations_per_s", row.operations_per_s, wire::Figure{});
    field("bytes_per_s", row.bytes_per_s, wire::Figure{});
    field("waiting", row.waiting, wire::Figure{});
    field("lag_ns", row.lag_ns, wire::Fixed{});
    field("stalls", row.stalls, wire::Fixed{});
    field("lost", row.lost, wire::Fixed{});
  }
};
