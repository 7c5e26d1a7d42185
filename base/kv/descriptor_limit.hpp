// SPDX-License-Identifier: Apache-2.0
// How many file descriptors, and so how many connections, this process may have.
#pragma once

#include <cstddef>
#include <string>

namespace horo::kv {

/// Programs that use select() rely on descriptors below this number.
inline constexpr std::size_t kFewDescriptors = 1024;

/// Raises this process's limit to `wanted`, or as far as its user may. False: it is as high as that
/// already. Thread: any.
bool raise_descriptor_limit(std::size_t wanted);

/// For a process that has no descriptor left: raises the limit as far as its user may. False: the
/// limit could not be raised.
bool raise_descriptor_limit();

/// Such as "this process may have 64 file descriptors and no more (ulimit -Hn)".
std::string describe_descriptor_limit();

}  // namespace horo::kv
