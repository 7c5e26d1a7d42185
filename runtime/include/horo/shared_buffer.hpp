// SPDX-License-Identifier: Apache-2.0
/// Memory that the ranks of a host share.
#pragma once

#if __cplusplus < 202002L
#error "horo.hpp needs C++20; horo.h is for C and older C++"
#endif

#include <cstddef>
#include <memory>

#include <horo/element.hpp>
#include <horo/error.hpp>
#include <horo/horo.h>

namespace horo {
inline namespace v1 {

/// `size()` elements, initially zero, in the memory that this host's ranks share. A tensor that
/// lies there on all ranks is reduced in place, without a copy. It can be moved, not copied.
/// Memory: it must not be in flight when it is destroyed, and the Job must outlive it. A forked
/// child does not inherit it. Thread: as a std::vector.
template <Element T>
class SharedBuffer {
 public:
  /// Empty.
  SharedBuffer() = default;

  /// Units: elements. Blocks: no. Fails: OUT_OF_MEMORY, RESOURCE_EXHAUSTED (arena size, see
  /// HORO_ARENA_SIZE), NOT_INITIALIZED, FORKED.
  explicit SharedBuffer(std::size_t count) : size_(count) {
    void* memory = nullptr;
    check(horo_alloc(count * sizeof(T), &memory));
    data_.reset(static_cast<T*>(memory));
    std::uninitialized_value_construct_n(data_.get(), count);
  }

  /// The first element, aligned to 64 bytes; null when empty.
  T* data() const noexcept { return data_.get(); }

  /// Units: elements.
  std::size_t size() const noexcept { return size_; }

  /// With end(): a contiguous range, so it converts to std::span<T>.
  T* begin() const noexcept { return data(); }

  /// One past the last element.
  T* end() const noexcept { return data() + size_; }

  /// Element `index`, which is not checked.
  T& operator[](std::size_t index) const noexcept { return data_.get()[index]; }

 private:
  struct Free {
    void operator()(T* memory) const noexcept { horo_free(memory); }
  };

  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace v1
}  // namespace horo
