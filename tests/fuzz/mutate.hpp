// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "target.hpp"

#include <random>
#include <string>

namespace horo::fuzz {

/// One of the target's seeds with one to eight random changes: bits, bytes, lengths, words, pieces
/// of other seeds. The same generator state gives the same bytes on every machine.
std::string mutated(const Target& target, std::mt19937_64& random);

}  // namespace horo::fuzz
