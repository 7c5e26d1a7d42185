// SPDX-License-Identifier: Apache-2.0
// One kernel over many tensors: between them and a buffer in which they lie end to end.
#pragma once

#include <cstdint>

#include "runtime/device/stream.hpp"
#include "runtime/tensor/dtype.hpp"

namespace horo::runtime {

/// A table goes by value with the launch: no copy, and nothing to keep until it has run.
struct CopyTable {
  static constexpr int kMost = 128;
  static constexpr std::uint64_t kTile = 8192;  ///< Elements that one block copies.

  void* memory[kMost];
  std::uint64_t elements[kMost];
  std::uint64_t offset[kMost];      ///< In the buffer, in elements.
  std::uint32_t first_tile[kMost];  ///< Tiles of the tensors before it.
  int count;
  std::uint32_t tiles;
};

enum class CopyWay : std::uint8_t { into_buffer, out_of_buffer };

/// False when there is no kernel for that conversion. Errors of the launch are CUDA's last error.
bool launch_copy(const CopyTable& table, void* buffer, CopyWay way, DType from, DType to,
                 double scale, StreamHandle stream);

}  // namespace horo::runtime
