// SPDX-License-Identifier: Apache-2.0
// Memory and events of a software device that processes share. A name is a process and one of its
// descriptors, so nothing is left behind when processes end. The order of operations is checked
// within each process only.
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include "tests/software_device/machine.hpp"

namespace horo::software_device {

namespace {

constexpr std::size_t kPage = 4096;

int open_file(const SharedName& name) {
  const auto path = fmt::format("/proc/{}/fd/{}", name.process, name.file);
  return open(path.c_str(), O_RDWR | O_CLOEXEC);
}

SharedCounts* map_counts(int file) {
  void* const memory = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<SharedCounts*>(memory);
}

}  // namespace

Event* Machine::make_shared_event(int device) {
  auto* const event = make_event(device);
  const Lock lock(mutex_);
  event->file = memfd_create("horo-software-event", MFD_CLOEXEC);
  if (event->file < 0 || ftruncate(event->file, kPage) != 0) return nullptr;
  event->shared = map_counts(event->file);
  if (event->shared != nullptr) new (event->shared) SharedCounts;
  return event->shared == nullptr ? nullptr : event;
}

int Machine::share_event(void* handle, SharedName& name) {
  const Lock lock(mutex_);
  const auto* const event = event_of(handle);
  if (event == nullptr || event->shared == nullptr) return kInvalidHandle;
  name = {.process = getpid(), .file = event->file};
  return kSuccess;
}

int Machine::open_event(const SharedName& name, int device, void** handle) {
  if (name.process == getpid()) return kInvalidContext;  // As CUDA: not in the process itself.
  const int file = open_file(name);
  if (file < 0) return kInvalidHandle;
  auto* const event = make_event(device);
  const Lock lock(mutex_);
  event->file = file;
  event->shared = map_counts(file);
  *handle = event;
  return event->shared == nullptr ? kInvalidHandle : kSuccess;
}

int Machine::share_memory(const void* memory, SharedName& name) {
  const Lock lock(mutex_);
  const auto* const allocation = memory_.find(memory);
  if (allocation == nullptr || allocation->freed || allocation->imported || allocation->file < 0)
    return kInvalidValue;
  name = {.process = getpid(),
          .file = allocation->file,
          .bytes = allocation->bytes,
          .offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(memory) -
                                               allocation->address)};
  return kSuccess;
}

int Machine::open_memory(const SharedName& name, int device, void** memory) {
  if (name.process == getpid()) return kInvalidContext;
  const int file = open_file(name);
  if (file < 0) return kInvalidHandle;
  const Lock lock(mutex_);
  auto* const made = memory_.import(file, name.bytes, device);
  *memory = made == nullptr ? nullptr : made + name.offset;
  return made == nullptr ? kOutOfMemory : kSuccess;
}

int Machine::close_memory(void* memory) {
  {
    const Lock lock(mutex_);
    const auto* const allocation = memory_.find(memory);
    if (allocation == nullptr || !allocation->imported) return kInvalidValue;
  }
  return free(memory, false);
}

}  // namespace horo::software_device
