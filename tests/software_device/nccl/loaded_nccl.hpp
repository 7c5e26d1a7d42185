// SPDX-License-Identifier: Apache-2.0
// The software NCCL in a test's process, and programs of several ranks that use it, each as a
// thread with a device of its own.
#pragma once

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/software_device/loaded_device.hpp"

namespace horo::tests {

struct NcclId {
  std::array<char, 128> bytes{};
};

/// Thread: any. There is one per process, and the software device is loaded before it.
struct SoftwareNccl {
  /// The path of the library.
  static std::string path();

  /// Loads it with this plan, see plan.hpp.
  explicit SoftwareNccl(const std::string& plan = "");

  void plan(const std::string& text) const;
  /// The findings since the last plan; empty: there are none.
  std::string findings() const;

  int (*get_version)(int* version) = nullptr;
  int (*get_unique_id)(NcclId* id) = nullptr;
  int (*init)(void** comm, int ranks, NcclId id, int rank) = nullptr;
  int (*init_with_config)(void** comm, int ranks, NcclId id, int rank,
                          const void* config) = nullptr;
  int (*abort)(void* comm) = nullptr;
  int (*destroy)(void* comm) = nullptr;
  int (*async_error)(void* comm, int* error) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*all_reduce)(const void*, void*, std::size_t, int type, int op, void* comm,
                    void* stream) = nullptr;
  int (*reduce)(const void*, void*, std::size_t, int type, int op, int root, void* comm,
                void* stream) = nullptr;
  int (*broadcast)(const void*, void*, std::size_t, int type, int root, void* comm,
                   void* stream) = nullptr;
  int (*all_gather)(const void*, void*, std::size_t, int type, void* comm, void* stream) = nullptr;
  int (*reduce_scatter)(const void*, void*, std::size_t, int type, int op, void* comm,
                        void* stream) = nullptr;
  int (*send)(const void*, std::size_t, int type, int peer, void* comm, void* stream) = nullptr;
  int (*receive)(void*, std::size_t, int type, int peer, void* comm, void* stream) = nullptr;

 private:
  int (*plan_)(const char*) = nullptr;
  std::size_t (*findings_)(char*, std::size_t) = nullptr;
};

/// One rank of a program: its device is current in its thread. Thread: its own.
class NcclRank {
 public:
  NcclRank(const SoftwareDevice& software, int rank, int device);
  ~NcclRank();
  NcclRank(const NcclRank&) = delete;
  NcclRank& operator=(const NcclRank&) = delete;

  const int rank;
  const std::unique_ptr<runtime::Device> device;
  runtime::StreamHandle stream = nullptr;
  void* comm = nullptr;

  /// Device memory with these elements, put there by the rank's stream.
  template <typename T>
  T* put(const std::vector<T>& values) {
    std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    auto* const memory = static_cast<T*>(allocate(bytes.size()));
    tests::put(*device, memory, bytes, stream);
    return memory;
  }

  /// Blocks: until the rank's stream is there.
  template <typename T>
  std::vector<T> fetch(const T* memory, std::size_t count) {
    const auto bytes = tests::fetch(*device, memory, count * sizeof(T), stream);
    std::vector<T> values(count);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

  void* allocate(std::size_t bytes);

  /// Whether all work of the stream has run.
  bool idle();
  /// Blocks: until it has, however it ended.
  void drain();

 private:
  const runtime::cuda::Driver& driver_;
  int handle_ = 0;
};

/// Runs `body` for `ranks` ranks at once, each on a device of its own and with a communicator of
/// all, which is destroyed when the body has left it.
void run_ranks(const SoftwareDevice& software, const SoftwareNccl& nccl, int ranks,
               const std::function<void(NcclRank&)>& body);

}  // namespace horo::tests
