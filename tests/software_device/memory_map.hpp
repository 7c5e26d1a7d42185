// SPDX-License-Identifier: Apache-2.0
// The memory of a software device, and its last uses. Host code that touches memory of the
// device crashes, as with a real one: the address that callers see cannot be read, and the device's
// own threads use another address of the same pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace horo::software_device {

/// For each stream, the number of its operations that come before something. Streams that are not
/// in the list: none.
using Order = std::vector<std::uint64_t>;

/// Joins `more` into `order`.
void join(Order& order, const Order& more);

enum class Access : std::uint8_t { read, write };

/// An operation on a stream that uses some memory.
struct Use {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  Access access = Access::read;
  std::size_t stream = 0;
  std::uint64_t number = 0;  ///< The operation's number, from 1.
};

struct Allocation {
  std::byte* address = nullptr;  ///< For callers.
  std::byte* alias = nullptr;    ///< For the device's threads; pinned memory: the same.
  std::uint64_t bytes = 0;
  int device = -1;       ///< -1: pinned host memory.
  bool managed = false;  ///< The host may use it, too.
  bool freed = false;
  bool imported = false;  ///< Another process owns it.
  int file = -1;          ///< Its pages, for other processes.
  std::vector<Use> uses;
};

/// Owns the allocations. Thread: one at a time.
class MemoryMap {
 public:
  /// Null when there is no memory.
  std::byte* allocate(std::uint64_t bytes, int device);

  /// Memory of a device that the host can read and write. Null when there is no memory.
  std::byte* allocate_managed(std::uint64_t bytes, int device);

  /// Memory of another process, whose pages are in an open file. Null when it cannot be mapped.
  std::byte* import(int file, std::uint64_t bytes, int device);

  /// False when it is not the address of an allocation. Finds uses that the host does not know to
  /// have ended: `host` is what it knows.
  bool free(const void* address, const Order& host, std::vector<std::string>& findings);

  /// The allocation that holds the address, freed ones included; null: none does.
  Allocation* find(const void* address);

  /// Adds a use, and finds earlier ones that do not come before it. `order`: what does.
  static void use(Allocation& allocation, const Use& use, const Order& order, const Order& host,
                  std::vector<std::string>& findings);

  std::uint64_t allocated() const { return allocated_; }

 private:
  std::byte* keep(Allocation made);

  std::map<const std::byte*, Allocation> allocations_;
  std::uint64_t allocated_ = 0;
};

}  // namespace horo::software_device
