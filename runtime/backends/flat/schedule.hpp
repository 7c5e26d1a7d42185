// SPDX-License-Identifier: Apache-2.0
// A collective between ranks as data: which bytes of a piece of staging memory go to whom, come
// from whom and are reduced, round by round. Pure, the same for every transport; it can be counted
// and run without one.
//
// All messages of a round may go at the same time, and the receiving of all rounds may begin at
// once: no area is received into before its old content has reached whom it was for. A round ends
// when its messages have come and its reductions are done; the next one may send what they made.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace horo::runtime {

struct Transfer {
  int peer = 0;
  std::uint64_t offset = 0;  ///< In the staging memory, in bytes.
  std::uint64_t bytes = 0;
  std::uint32_t number = 0;  ///< Among the messages from this sender to this receiver.
};

/// What a reduction computes of the bucket's operation.
enum class Stage : std::uint8_t {
  whole,    ///< Everything: scaling of the inputs, operation, division, scaling of the result.
  partial,  ///< Only the operation: between scaled inputs.
  last,     ///< Operation, division and scaling of the result: inputs are scaled.
};

struct Combine {
  std::uint64_t target = 0;            ///< Byte offsets.
  std::vector<std::uint64_t> sources;  ///< In the order in which they are added.
  std::uint64_t elements = 0;
  Stage stage = Stage::whole;
};

struct Round {
  std::vector<Transfer> sends;
  std::vector<Transfer> receives;
  std::vector<Combine> combines;
};

struct Schedule {
  std::vector<Round> rounds;
  std::uint64_t memory = 0;   ///< Bytes of staging memory, input at 0.
  std::uint64_t result = 0;   ///< Where the output is.
  bool scale_inputs = false;  ///< The input is scaled on its way in (before Stage::partial).

  std::uint64_t sent() const;  ///< Bytes that this rank sends.
};

enum class Algorithm : std::uint8_t {
  exchange,          ///< Everybody sends everything to everybody. One round; rank order.
  direct,            ///< Reduce-scatter and all-gather, each in one round. Rank order.
  ring,              ///< Each rank talks to its neighbours only: least traffic between hosts.
  doubling,          ///< Whole vectors with partners at distance 1, 2, 4, ...
  halving_doubling,  ///< Halves of what is left with partners at distance 1, 2, 4, ... and back.
};

std::string_view name(Algorithm algorithm);

/// Which ranks there are, as far as the way between them is concerned.
struct Mesh {
  int position = 0;
  int size = 1;
  bool shares_hosts = false;  ///< Several ranks of a host, neighbours: they share its wire.
  bool rank_order = false;    ///< All inputs meet in one reduction, whatever that costs.
};

/// What a sum on its way may be kept in.
enum class Partial : std::uint8_t {
  exact,    ///< The tensor's type: nothing is lost that a sum in rank order would keep.
  rounded,  ///< It loses digits at each step: between few ranks better not at all.
  wrong,    ///< It may overflow where the result does not (averages of integers and float16).
};

/// For an all-reduce of so many bytes.
Algorithm choose_allreduce(const Mesh& mesh, std::uint64_t bytes, Partial partial);

/// `element`: bytes of one.
Schedule make_allreduce(const Mesh& mesh, Algorithm algorithm, std::uint64_t elements,
                        std::uint64_t element);

/// `bytes` by position; they lie one behind the other, own part included.
Schedule make_allgather(const Mesh& mesh, std::span<const std::uint64_t> bytes);

Schedule make_broadcast(const Mesh& mesh, int root, std::uint64_t bytes);

/// `elements` by position; the input has the parts of all, one behind the other.
Schedule make_reducescatter(const Mesh& mesh, std::span<const std::uint64_t> elements,
                            std::uint64_t element, Partial partial);

/// Bytes to and from each position; both lie one behind the other, output at `result`.
Schedule make_alltoall(const Mesh& mesh, std::span<const std::uint64_t> to,
                       std::span<const std::uint64_t> from);

Schedule make_barrier(const Mesh& mesh);

}  // namespace horo::runtime
