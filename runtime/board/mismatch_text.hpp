// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/board/marks.hpp"
#include "runtime/tensor/mismatch_report.hpp"

namespace horo::runtime {

/// Says what the members have submitted differently under one name, and which rank has which value.
MismatchReport describe_mismatch(const SetRegion& region, const Directory& directory,
                                 const Marks& marks, TensorId id);

}  // namespace horo::runtime
