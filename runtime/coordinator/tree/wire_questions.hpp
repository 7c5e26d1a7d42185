// SPDX-License-Identifier: Apache-2.0
// How questions about tensors that do not complete are spelled, and their answers; wire.cpp has
// all other frames.
#pragma once

#include "runtime/coordinator/tree/bytes.hpp"
#include "runtime/coordinator/tree/wire.hpp"

namespace horo::runtime::tree {

inline constexpr std::size_t kMostHostName = 256;

inline SetId take_set(Reader& reader) {
  return SetId{static_cast<std::uint32_t>(reader.varint(0xffffffffU))};
}

void put(Writer& writer, const Question& question);
Question take_question(Reader& reader);

void put(Writer& writer, const Answer& answer);
Answer take_answer(Reader& reader);

}  // namespace horo::runtime::tree
