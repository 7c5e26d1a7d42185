// SPDX-License-Identifier: Apache-2.0
// What one rank knows of the tensors that it has declared in a process set.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/strong.hpp"
#include "runtime/host/board_layout.hpp"
#include "runtime/tensor/signature.hpp"

namespace horo::runtime {

/// One tensor. `operation` is taken by the submitter and given back at the end. The other fields
/// belong to the thread that works on the tensor in between: the submitter until its mark, then the
/// holder of the progress token.
struct LocalTensor {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  const void* in = nullptr;
  void* out = nullptr;
  std::byte* lent = nullptr;  ///< Arena memory that holds this submission's bytes; null: none.
  std::atomic<std::uint32_t> incarnation{kNone};  ///< Equal to that of valid handles.
  std::atomic<std::uint32_t> operation{0};        ///< Index + 1; 0: not in flight.
  std::uint32_t signature = 0;                    ///< Number of what this rank has declared.
  std::atomic<bool> submitted{false};  ///< The submitter has written all that the engine needs.
  bool agreed = false;                 ///< All ranks have agreed on what is declared now.
  std::uint8_t parity = 0;             ///< The tensor's generation at the submission, modulo 2.
};

// Models declare thousands of tensors: board.md says what each takes.
static_assert(sizeof(LocalTensor) == 40);

/// Owns one rank's tensors and copies of their signatures: what other processes write to the board
/// cannot change the copies. Entries never move. Thread: any reads what exists; one at a time
/// provides.
class LocalTensors {
 public:
  explicit LocalTensors(const BoardParams& params, const BoardLayout& layout)
      : blocks_(new std::atomic<LocalTensor*>[params.capacity / kBlock + 1]()),
        signatures_(new std::atomic<Signature*>[layout.most_signatures / kSignatures + 1]()) {}

  bool contains(TensorId id) const { return block(id) != nullptr; }

  /// For a tensor that is there.
  LocalTensor& at(TensorId id) { return block(id)[id.index() % kBlock]; }

  const LocalTensor& at(TensorId id) const { return block(id)[id.index() % kBlock]; }

  /// The copy of a signature that was kept, by its number on the board.
  const Signature& signature(std::uint32_t number) const {
    return signatures_[number / kSignatures].load(std::memory_order_acquire)[number % kSignatures];
  }

  void provide(TensorId id);
  void keep(std::uint32_t number, const Signature& signature);

 private:
  static constexpr std::size_t kBlock = 256;
  static constexpr std::size_t kSignatures = 32;  ///< In a block.

  LocalTensor* block(TensorId id) const {
    return blocks_[id.index() / kBlock].load(std::memory_order_acquire);
  }

  const std::unique_ptr<std::atomic<LocalTensor*>[]> blocks_;
  const std::unique_ptr<std::atomic<Signature*>[]> signatures_;
  std::vector<std::unique_ptr<LocalTensor[]>> owned_blocks_;
  std::vector<std::unique_ptr<Signature[]>> owned_signatures_;
};

}  // namespace horo::runtime
