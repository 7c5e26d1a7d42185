// SPDX-License-Identifier: Apache-2.0
// The devices, streams and events of a software device. Each stream is a thread that runs its
// operations in order, after pauses that the plan's seed decides. The order of operations is
// checked when they are put on a stream, so a missing event is found whatever the pauses are.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/software_device/fault_plan.hpp"
#include "tests/software_device/memory_map.hpp"
#include "tests/software_device/software_device.h"

namespace horo::software_device {

// CUDA's errors that are used here.
inline constexpr int kSuccess = 0;
inline constexpr int kCaptureUnsupported = 900;
inline constexpr int kRelaxedCapture = 2;
inline constexpr int kInvalidValue = 1;
inline constexpr int kOutOfMemory = 2;
inline constexpr int kInvalidDevice = 101;
inline constexpr int kInvalidContext = 201;
inline constexpr int kInvalidHandle = 400;
inline constexpr int kNotReady = 600;

/// The counts of an event between processes.
struct SharedCounts {
  std::atomic<std::uint64_t> recorded{0};
  std::atomic<std::uint64_t> completed{0};
};

/// A name of memory or of an event in another process. A handle of CUDA has 64 bytes.
struct SharedName {
  int process = 0;
  int file = -1;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;
};

struct Event {
  int device = 0;
  std::uint64_t recorded = 0;   ///< Records that were put on streams.
  std::uint64_t completed = 0;  ///< The last of them that has run.
  Order order;                  ///< Operations before the last record.
  bool destroyed = false;
  SharedCounts* shared = nullptr;  ///< Replaces the counts above in an event between processes.
  int file = -1;                   ///< The pages of `shared`.
  bool timed = false;
  std::int64_t ran_ns = 0;  ///< When the last record ran, by the device's clock.
};

struct Work {
  enum class Kind : std::uint8_t { copy, launch, record, wait };

  Kind kind = Kind::copy;
  std::uint64_t number = 0;
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::uint64_t bytes = 0;
  std::vector<std::byte> pageable;  ///< The source's bytes, taken when the copy was started.
  Event* event = nullptr;
  std::uint64_t record = 0;        ///< The record of `event` that this makes or waits for.
  std::function<void(bool)> body;  ///< The kernel of a launch; true: the device is broken.
};

struct Stream {
  std::size_t index = 0;
  int device = 0;
  int priority = 0;  ///< It changes nothing.
  std::deque<Work> work;
  std::uint64_t put = 0;  ///< Operations put on it so far.
  std::uint64_t ran = 0;
  Order order;  ///< Operations before the next one.
  bool destroyed = false;
};

/// The variable that hides devices from the process, or null.
const char* visible_list();

/// One process's devices. It is never destroyed, because its threads may run until the process
/// ends. Thread: any.
class Machine {
 public:
  static Machine& instance();

  bool plan(std::string_view text);
  std::string findings(std::size_t& count);
  std::size_t pending();
  std::size_t allocated();
  /// Devices that this process sees: those of CUDA_VISIBLE_DEVICES, or all.
  int devices();
  /// The host's number by the plan.
  int host();
  /// The number of a device on its host, which CUDA_VISIBLE_DEVICES does not change.
  int physical(int device);
  bool capturing();
  int driver_version();
  /// The error that has broken the device; 0: it works.
  int broken();

  /// The calling thread's mode, see cuThreadExchangeStreamCaptureMode.
  static int& capture_mode();

  /// The error that this call returns by the plan, or because the device is broken; else 0.
  int begin_call(const char* name);
  /// How often begin_call() had this name since the last plan.
  std::size_t calls(std::string_view name);

  int allocate(std::uint64_t bytes, int device, void** memory);
  /// Memory that the host can use as well.
  int allocate_managed(std::uint64_t bytes, int device, void** memory);
  int free(void* memory, bool pinned);
  /// Device of the memory at an address, -1 if it is pinned, -2 if it is not known.
  int device_of(const void* address);
  bool is_managed(const void* address);

  Stream* make_stream(int device);
  /// The default stream of a device for a null handle; null if there is no such stream.
  Stream* stream_of(void* handle, int device);
  int destroy_stream(void* handle);
  int synchronize(Stream& stream);

  /// `timed`: elapsed() can be asked for it.
  Event* make_event(int device, bool timed = false);
  /// Can be shared between processes.
  Event* make_shared_event(int device);
  int share_event(void* handle, SharedName& name);
  int open_event(const SharedName& name, int device, void** event);
  int share_memory(const void* memory, SharedName& name);
  int open_memory(const SharedName& name, int device, void** memory);
  /// Frees memory that open_memory() has made.
  int close_memory(void* memory);
  int destroy_event(void* handle);
  int record(void* event, Stream& stream);
  int wait(Stream& stream, void* event);
  int query(void* event);
  int synchronize_event(void* event);
  /// The time between two timed events, in milliseconds.
  int elapsed(float* time, void* from, void* to);

  int copy(void* to, const void* from, std::uint64_t bytes, Stream& stream);

  /// Puts a kernel on a stream. It uses no memory but the spans, whose aliases it finds filled in.
  /// When the device is broken, a kernel is told so and only frees what it owns.
  int launch(Stream& stream, std::span<horo_software_device_span> spans,
             std::function<void(bool)> body);

 private:
  using Lock = std::unique_lock<std::mutex>;

  Machine();
  Event* event_of(void* handle);
  Stream* add_stream(int device);
  std::byte* resolve(const void* address, const Use& use, Stream& stream, int& error,
                     bool& pageable);
  void find(std::string finding);
  void put(Stream& stream, Work work);
  void run(Stream& stream);
  bool run_first(Stream& stream, Lock& lock);
  bool breaks_here(Lock& lock);
  /// The time of the device's own clock.
  std::int64_t device_ns() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  FaultPlan plan_;
  std::map<std::string, std::uint64_t, std::less<>> calls_;
  std::uint64_t ran_ = 0;
  int broken_ = 0;
  std::uint64_t plans_ = 0;
  std::vector<std::string> findings_;
  MemoryMap memory_;
  Order host_;  ///< Operations that the host knows to have ended.
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<Stream*> defaults_;  ///< By device.
  std::vector<int> visible_;       ///< By device, its number on the host.
  std::vector<std::unique_ptr<Event>> events_;
};

}  // namespace horo::software_device
