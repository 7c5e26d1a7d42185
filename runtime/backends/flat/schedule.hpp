// SPDX-License-Identifier: Apache-2.0
// A collective between ranks as data: which bytes of a piece of staging memory are sent to which
// rank, received from which rank, and reduced, round by round. Pure and the same for every
// transport, so that a test can count and run a schedule without one.
//
// All messages of a round may be sent at the same time, and the receives of all rounds may be
// posted at once: no area is received into while its old content is still to be sent. A round ends
// when its messages have arrived and its reductions are done; the next round may send their
// results.
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
  std::uint32_t number = 0;  ///< Counts the messages from this sender to this receiver.
};

/// Which part of the bucket's operation a reduction computes.
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
  exchange,          ///< Every rank sends everything to every other. One round; rank order.
  direct,            ///< Reduce-scatter and all-gather, each in one round. Rank order.
  ring,              ///< Each rank exchanges with its neighbours only: least traffic between hosts.
  doubling,          ///< Whole vectors with partners at distance 1, 2, 4, ...
  halving_doubling,  ///< Halves of what is left with partners at distance 1, 2, 4, ... and back.
};

std::string_view name(Algorithm algorithm);

/// The ranks of a collective, and what they share.
struct Mesh {
  int position = 0;
  int size = 1;
  bool shares_hosts =
      false;  ///< Several ranks of a host are neighbours in the mesh and share its network link.
  bool rank_order =
      false;  ///< All inputs of an element go into one reduction, whatever that costs.
};

/// Whether a sum that is not complete yet may be kept in the tensor's type.
enum class Partial : std::uint8_t {
  exact,    ///< Yes: a sum in rank order would lose as much.
  rounded,  ///< It loses digits at each step; avoided between few ranks.
  wrong,    ///< No: it may overflow where the result does not (averages of integers and float16).
};

/// The algorithm for an all-reduce of `bytes`. One message more costs as much time as
/// `small_message` bytes.
Algorithm choose_allreduce(const Mesh& mesh, std::uint64_t bytes, Partial partial,
                           std::uint64_t small_message);

/// `element`: bytes of one element.
Schedule make_allreduce(const Mesh& mesh, Algorithm algorithm, std::uint64_t elements,
                        std::uint64_t element);

/// `bytes` by position; the parts lie one behind the other, the own part included.
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
