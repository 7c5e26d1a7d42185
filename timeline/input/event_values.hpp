// SPDX-License-Identifier: Apache-2.0
// Parses the values of a Chrome trace's events. A trace may contain anything, so all results are
// bounded. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace horo::timeline {

inline constexpr int kMostRanks = 1'000'000;
inline constexpr std::uint64_t kMostElements = std::uint64_t{1} << 40U;

/// Microseconds to nanoseconds, bounded to about 60 years so that differences do not overflow.
std::int64_t to_ns(double us);

bool is_number(std::string_view text);

/// The rank of a row; -1: the row belongs to all ranks.
int row_rank(std::string_view tid);

/// The backend in "MPI_ALLREDUCE"; empty: the activity moves no data.
std::string_view activity_mover(std::string_view activity);

/// Bytes of an element; 0 for an empty name.
std::uint64_t dtype_bytes(std::string_view dtype);

/// The number of elements: 6 for "[2, 3]", 1 for "[]". At most kMostElements.
std::uint64_t shape_elements(std::string_view shape);

}  // namespace horo::timeline
