// SPDX-License-Identifier: Apache-2.0
// Ways to search, behind one interface: Horo's, and those that it is compared with.
#pragma once

#include "autotune_surfaces.hpp"

#include <memory>
#include <string>
#include <vector>

namespace horo::bench {

class Searcher {
 public:
  virtual ~Searcher() = default;
  virtual autotune::Setting ask() = 0;
  virtual void tell(const autotune::Setting& setting, const Reading& reading) = 0;
  /// The setting that it would choose now.
  virtual autotune::Setting best() const = 0;
};

inline const std::vector<std::string> kSearchers = {"horo", "horovod's scheme", "random",
                                                    "coordinate descent"};

std::unique_ptr<Searcher> make_searcher(const std::string& name, const Surface& surface,
                                        std::uint64_t seed, std::size_t samples);

}  // namespace horo::bench
