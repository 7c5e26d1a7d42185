// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "target.hpp"

#include <random>
#include <string>

namespace horo::fuzz {

/// Makes one to eight random changes to one of the target's seeds: bits, bytes, lengths, words, or
/// pieces of other seeds. The same generator state gives the same bytes on every machine.
std::string mutated(const Target& target, std::mt19937_64& random);

}  // namespace horo::fuzz
