// SPDX-License-Identifier: Apache-2.0
// Kernels that copy many tensors to or from a buffer in which they lie end to end. A tensor is cut
// into tiles, and each block copies one.
#pragma once

#include "runtime/device/kernels/device_element.hpp"

namespace horo::runtime::device_code {

/// Tensors of one launch. A table goes by value with the launch, which takes 4 KiB on every device,
/// and 32,764 bytes from CUDA 12.1 on.
inline constexpr int kFew = 128;
inline constexpr int kMany = 1024;

// Elements of a tile, which one block copies.
inline constexpr std::uint64_t kMoveTile = 32768;
inline constexpr std::uint64_t kConvertTile = 8192;

template <int kRows>
struct TensorTable {
  void* memory[kRows];
  std::uint64_t elements[kRows];
  std::uint64_t offset[kRows];      ///< Its place in the buffer, in elements.
  std::uint32_t first_tile[kRows];  ///< Tiles of the tensors before it.
};

/// Position of the tensor that a tile belongs to: the last that begins at or before it.
template <int kRows>
HORO_DEVICE int tensor_of(const TensorTable<kRows>& table, int count, std::uint32_t tile) {
  int low = 0;
  int high = count - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (table.first_tile[middle] <= tile) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

/// The elements [begin, end) of one tensor.
struct Tile {
  int tensor;
  std::uint64_t begin;
  std::uint64_t end;
};

template <int kRows>
HORO_DEVICE Tile tile_of(const TensorTable<kRows>& table, int count, std::uint32_t number,
                         std::uint64_t tile_elements) {
  const int tensor = tensor_of(table, count, number);
  const auto begin = (number - table.first_tile[tensor]) * tile_elements;
  return {tensor, begin, smaller(begin + tile_elements, table.elements[tensor])};
}

/// Its elements are those of the buffer's side where the two differ.
template <int kRows>
struct CopyArguments {
  void* buffer;
  double scale;
  int count;
  int to_tensors;  ///< 0: into the buffer.
  TensorTable<kRows> table;
};

struct NoShared {};

/// Reads pieces of `Piece` and writes 16 bytes at once.
template <typename Piece>
HORO_DEVICE void move_wide(char* to, const char* from, std::uint64_t groups, unsigned thread) {
  using Pieces = Group<Piece, static_cast<int>(kWide / sizeof(Piece))>;
  HORO_UNROLL
  for (std::uint64_t g = thread; g < groups; g += kThreads) {
    Pieces pieces;
    for (std::uint64_t p = 0; p < kWide / sizeof(Piece); ++p)
      pieces.at[p] = load<Piece>(from + g * kWide + p * sizeof(Piece));
    store(to + g * kWide, pieces);
  }
}

struct alignas(16) Sixteen {
  std::uint32_t words[4];
};

/// A block copies bytes, whatever their alignment is.
HORO_DEVICE void move_bytes(char* to, const char* from, std::uint64_t bytes, unsigned thread) {
  const auto head = elements_before_wide(to, bytes);
  const auto groups = (bytes - head) / kWide;
  if (thread < head) to[thread] = from[thread];
  const auto off = address(from + head);
  if (off % 16 == 0) {
    move_wide<Sixteen>(to + head, from + head, groups, thread);
  } else if (off % 8 == 0) {
    move_wide<std::uint64_t>(to + head, from + head, groups, thread);
  } else if (off % 4 == 0) {
    move_wide<std::uint32_t>(to + head, from + head, groups, thread);
  } else if (off % 2 == 0) {
    move_wide<std::uint16_t>(to + head, from + head, groups, thread);
  } else {
    move_wide<std::uint8_t>(to + head, from + head, groups, thread);
  }
  const auto tail = head + groups * kWide + thread;
  if (tail < bytes) to[tail] = from[tail];
}

/// Copies without a conversion. Its elements are bytes, whatever the type of the tensors is.
template <typename Byte, int kRows>
struct MoveKernel {
  using Arguments = CopyArguments<kRows>;
  using Shared = NoShared;
  static constexpr int kPhases = 1;
  static constexpr std::uint64_t kFromBytes = sizeof(Byte);
  static constexpr std::uint64_t kToBytes = sizeof(Byte);

  HORO_DEVICE static void phase(int, const Arguments& how, Shared&, const Place& place) {
    const auto tile = tile_of(how.table, how.count, place.block, kMoveTile);
    auto* buffer = static_cast<char*>(how.buffer) + how.table.offset[tile.tensor] + tile.begin;
    auto* tensor = static_cast<char*>(how.table.memory[tile.tensor]) + tile.begin;
    if (how.to_tensors != 0) {
      move_bytes(tensor, buffer, tile.end - tile.begin, place.thread);
    } else {
      move_bytes(buffer, tensor, tile.end - tile.begin, place.thread);
    }
  }
};

/// Converts, and multiplies before the rounding.
template <typename From, typename To, int kRows>
struct ConvertKernel {
  using Arguments = CopyArguments<kRows>;
  using Shared = NoShared;
  static constexpr int kPhases = 1;
  static constexpr std::uint64_t kFromBytes = sizeof(From);
  static constexpr std::uint64_t kToBytes = sizeof(To);
  static constexpr int kGroup =
      static_cast<int>(kWide / (sizeof(From) < sizeof(To) ? sizeof(From) : sizeof(To)));

  template <typename Factor>
  HORO_DEVICE static To convert(From value, Factor scale) {
    return Round<To>::of(static_cast<Factor>(widen(value)) * scale);
  }

  template <typename Factor>
  HORO_DEVICE static void block(To* to, const From* from, std::uint64_t count, Factor scale,
                                unsigned thread) {
    const auto head = elements_before_wide(to, count);
    const bool wide = address(from + head) % kWide == 0;
    const auto groups = wide ? (count - head) / kGroup : 0;
    if (thread < head) to[thread] = convert(from[thread], scale);
    HORO_UNROLL
    for (std::uint64_t g = thread; g < groups; g += kThreads) {
      const auto in = load<Group<From, kGroup>>(from + head + g * kGroup);
      Group<To, kGroup> out;
      for (int i = 0; i < kGroup; ++i) out.at[i] = convert(in.at[i], scale);
      store(to + head + g * kGroup, out);
    }
    for (auto i = head + groups * kGroup + thread; i < count; i += kThreads)
      to[i] = convert(from[i], scale);
  }

  HORO_DEVICE static void phase(int, const Arguments& how, Shared&, const Place& place) {
    using Factor = decltype(widen(From{}) * widen(To{}));
    const auto tile = tile_of(how.table, how.count, place.block, kConvertTile);
    const auto at = how.table.offset[tile.tensor] + tile.begin;
    const auto count = tile.end - tile.begin;
    const auto scale = static_cast<Factor>(how.scale);
    void* const tensor = how.table.memory[tile.tensor];
    if (how.to_tensors != 0) {
      block(static_cast<To*>(tensor) + tile.begin, static_cast<const From*>(how.buffer) + at, count,
            scale, place.thread);
    } else {
      block(static_cast<To*>(how.buffer) + at, static_cast<const From*>(tensor) + tile.begin, count,
            scale, place.thread);
    }
  }
};

}  // namespace horo::runtime::device_code
