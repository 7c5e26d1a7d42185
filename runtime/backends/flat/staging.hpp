// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/result.hpp"

namespace horo::runtime {

/// A piece of memory that grows on demand. Its content is lost when it grows.
class Staging {
 public:
  /// Fails: out_of_memory.
  Status provide(std::uint64_t bytes) {
    if (bytes <= bytes_) return {};
    const auto rounded = (bytes + kPage - 1) / kPage * kPage;
    memory_.reset();
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPage, rounded)));
    bytes_ = memory_ ? rounded : 0;
    if (memory_) return {};
    return fail(Errc::out_of_memory, "{} bytes of staging memory cannot be allocated", rounded);
  }

  std::byte* data() const { return memory_.get(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  static constexpr std::uint64_t kPage = 4096;
  std::unique_ptr<std::byte, Free> memory_;
  std::uint64_t bytes_ = 0;
};

}  // namespace horo::runtime
