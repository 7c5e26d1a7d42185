// SPDX-License-Identifier: Apache-2.0
// One rank's part of a communicator: its place, the number of its launches, and whether it still
// works.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/software_device/nccl/shared_memory.hpp"

namespace horo::software_nccl {

/// Thread: any. Launches run in the order of their tickets, whatever streams they are on.
class Communicator {
 public:
  struct Place {
    std::string id;
    int ranks = 1;
    int rank = 0;
    int device = 0;  ///< This process's number of it.
    std::uint64_t device_of_all = 0;
  };

  explicit Communicator(Place place);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  /// Blocks: until all ranks have joined, or abort(). The result is ncclResult_t.
  int join();
  /// The same by a thread; error() is "in progress" until it has ended.
  void join_later();

  const Place& place() const { return place_; }

  std::uint64_t number() const { return number_; }

  const SharedMemory& memory() const { return *memory_; }

  /// The result of ncclCommGetAsyncError.
  int error() const { return error_.load(); }

  void fail(int error);
  void abort();

  bool aborted() const { return aborted_.load(); }

  /// Collectives started so far.
  std::uint64_t started() const { return started_.load(); }

  std::uint64_t take_ticket(std::uint64_t collectives);

  std::uint64_t in_flight() const { return tickets_.load() - ran_.load(); }

  /// Blocks: until earlier launches have ended. False: the communicator was aborted.
  bool begin(std::uint64_t ticket);
  void end();

  /// Blocks: until `ready` holds. False when the launch has to end without it.
  bool await(const std::function<bool()>& ready);

  /// Steps in which all ranks have shown a piece. Belongs to the launch that runs.
  std::uint64_t steps = 0;
  /// The same for the messages to and from each rank.
  std::vector<std::uint64_t> sent;
  std::vector<std::uint64_t> received;

 private:
  bool lost_a_peer();
  int meet();

  const Place place_;
  const std::uint64_t number_;
  std::unique_ptr<SharedMemory> memory_;
  std::thread joining_;
  std::atomic<int> error_{0};
  std::atomic<bool> aborted_{false};
  std::atomic<std::uint64_t> started_{0};
  std::atomic<std::uint64_t> tickets_{0};
  std::atomic<std::uint64_t> ran_{0};
};

/// A communicator as a program has it. It is never destroyed, so that a later use is found.
struct Handle {
  std::shared_ptr<Communicator> communicator;  ///< Null when it has ended.
  const char* ended = "";                      ///< The call that ended it.
};

/// The communicators of this process. Thread: any.
class Communicators {
 public:
  static Communicators& instance();

  Handle* add(std::shared_ptr<Communicator> communicator);
  /// Null, with a finding, when `handle` is none or has ended.
  std::shared_ptr<Communicator> find(void* handle, const char* call);
  /// Takes it out of the handle.
  std::shared_ptr<Communicator> end(void* handle, const char* call);

  /// Launches on a device that wait look again.
  void ring(int device);

  /// Adds the numbers of collectives that other communicators than `except` have started on its
  /// device.
  void describe_others(const Communicator& except, Operation& operation);

 private:
  std::shared_ptr<Communicator> find_locked(void* handle, const char* call);

  std::mutex mutex_;
  std::vector<std::unique_ptr<Handle>> handles_;
};

}  // namespace horo::software_nccl
