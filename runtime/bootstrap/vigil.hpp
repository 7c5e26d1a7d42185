// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/strong.hpp"

namespace horo::runtime::bootstrap {

/// Somebody poisons the board of this host when one of its ranks ends without having left: an
/// agent, or all other ranks. A vigil is this process's part in that, and ends with its object.
class Vigil {
 public:
  Vigil() = default;
  virtual ~Vigil() = default;
  Vigil(const Vigil&) = delete;
  Vigil& operator=(const Vigil&) = delete;

  /// This rank's operations end because `lost` has: what it does next is a consequence.
  virtual void tell(Rank lost) = 0;
};

}  // namespace horo::runtime::bootstrap
