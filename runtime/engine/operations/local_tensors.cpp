// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/operations/local_tensors.hpp"

namespace horo::runtime {

void LocalTensors::provide(TensorId id) {
  if (contains(id)) return;
  owned_blocks_.push_back(std::make_unique<LocalTensor[]>(kBlock));
  blocks_[id.index() / kBlock].store(owned_blocks_.back().get(), std::memory_order_release);
}

void LocalTensors::keep(std::uint32_t number, const Signature& signature) {
  auto& block = signatures_[number / kSignatures];
  if (block.load(std::memory_order_relaxed) == nullptr) {
    owned_signatures_.push_back(std::make_unique<Signature[]>(kSignatures));
    block.store(owned_signatures_.back().get(), std::memory_order_release);
  }
  // The number stands for another signature only if no tensor of this rank has the old one.
  auto& mine = block.load(std::memory_order_relaxed)[number % kSignatures];
  if (mine != signature) mine = signature;
}

}  // namespace horo::runtime
