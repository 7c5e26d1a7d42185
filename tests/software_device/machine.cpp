// SPDX-License-Identifier: Apache-2.0
#include "tests/software_device/machine.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

namespace horo::software_device {

namespace {

constexpr int kUnknown = -2;
constexpr auto kLooksAgain = std::chrono::microseconds(200);

std::uint64_t records_of(const Event& event) {
  return event.shared != nullptr ? event.shared->recorded.load() : event.recorded;
}

std::uint64_t completed_of(const Event& event) {
  return event.shared != nullptr ? event.shared->completed.load() : event.completed;
}

/// The records of an event come from one stream at a time.
void complete(Event& event, std::uint64_t record) {
  event.completed = std::max(event.completed, record);
  if (event.shared == nullptr) return;
  auto seen = event.shared->completed.load();
  while (seen < record && !event.shared->completed.compare_exchange_weak(seen, record)) {
  }
}

/// How much longer than others the plan has operations of this kind take.
std::uint64_t slow_us(const FaultPlan& plan, Work::Kind kind) {
  if (kind == Work::Kind::copy) return plan.slow_copy_us;
  return kind == Work::Kind::launch ? plan.slow_launch_us : 0;
}

void set_known(Order& order, std::size_t stream, std::uint64_t number) {
  if (order.size() <= stream) order.resize(stream + 1);
  order[stream] = std::max(order[stream], number);
}

}  // namespace

/// HIP's stand-in has another one.
[[gnu::weak]] const char* visible_list() {
  return std::getenv("CUDA_VISIBLE_DEVICES");
}

Machine& Machine::instance() {
  static auto* const machine = new Machine;
  return *machine;
}

Machine::Machine() {
  const char* text = std::getenv("HORO_SOFTWARE_DEVICE");
  if (!plan(text == nullptr ? "" : text)) std::abort();
}

// -- Plans and findings -------------------------------------------------------------------------

bool Machine::plan(std::string_view text) {
  std::string fault;
  auto read = parse_plan(text, fault);
  if (!fault.empty()) {
    std::fprintf(stderr, "horo-software-device: '%s' is not known\n", fault.c_str());
    return false;
  }
  const Lock lock(mutex_);
  plan_ = std::move(read);
  visible_ = visible_devices(visible_list(), plan_.devices);
  ++plans_;
  calls_.clear();
  findings_.clear();
  ran_ = 0;
  broken_ = kSuccess;
  while (defaults_.size() < static_cast<std::size_t>(plan_.devices))
    defaults_.push_back(add_stream(static_cast<int>(defaults_.size())));
  changed_.notify_all();
  return true;
}

/// Under the lock. Findings are also written, so that a job's output has those of all its ranks.
void Machine::find(std::string finding) {
  std::fprintf(stderr, "horo-software-device: finding: %s\n", finding.c_str());
  findings_.push_back(std::move(finding));
}

std::string Machine::findings(std::size_t& count) {
  const Lock lock(mutex_);
  count = findings_.size();
  std::string text;
  for (const auto& finding : findings_) text += finding + "\n";
  return text;
}

std::size_t Machine::pending() {
  const Lock lock(mutex_);
  std::size_t sum = 0;
  for (const auto& stream : streams_) sum += stream->work.size();
  return sum;
}

std::size_t Machine::allocated() {
  const Lock lock(mutex_);
  return memory_.allocated();
}

int Machine::host() {
  const Lock lock(mutex_);
  return plan_.host;
}

int Machine::devices() {
  const Lock lock(mutex_);
  return static_cast<int>(visible_.size());
}

int Machine::physical(int device) {
  const Lock lock(mutex_);
  return visible_.at(static_cast<std::size_t>(device));
}

int Machine::broken() {
  const Lock lock(mutex_);
  return broken_;
}

int Machine::driver_version() {
  const Lock lock(mutex_);
  return plan_.cuda;
}

bool Machine::capturing() {
  const Lock lock(mutex_);
  return plan_.capturing;
}

namespace {

/// Calls that a thread may not make while another one captures, unless its mode is relaxed.
bool is_unsafe_in_capture(std::string_view name) {
  constexpr std::array kUnsafe{"cuMemAlloc",    "cuMemFree",    "cuMemHostAlloc",
                               "cuMemFreeHost", "cuEventQuery", "cuEventSynchronize"};
  return std::find(kUnsafe.begin(), kUnsafe.end(), name) != kUnsafe.end();
}

}  // namespace

int& Machine::capture_mode() {
  thread_local int mode = 0;  // CU_STREAM_CAPTURE_MODE_GLOBAL
  return mode;
}

int Machine::begin_call(const char* name) {
  const Lock lock(mutex_);
  const auto count = ++calls_[name];
  if (plan_.captures && capture_mode() != kRelaxedCapture && is_unsafe_in_capture(name)) {
    find(fmt::format("{} ends the program's capture of a graph", name));
    return kCaptureUnsupported;
  }
  if (broken_ != kSuccess) return broken_;
  const auto planned = plan_.calls.find(std::string_view(name));
  if (planned == plan_.calls.end()) return kSuccess;
  const auto& [at, code] = planned->second;
  return at == 0 || at == count ? code : kSuccess;
}

// -- Memory -------------------------------------------------------------------------------------

std::size_t Machine::calls(std::string_view name) {
  const Lock lock(mutex_);
  const auto found = calls_.find(name);
  return found == calls_.end() ? 0 : found->second;
}

int Machine::allocate(std::uint64_t bytes, int device, void** memory) {
  const Lock lock(mutex_);
  if (bytes == 0 || memory == nullptr) return kInvalidValue;
  *memory = memory_.allocate(bytes, device);
  return *memory == nullptr ? kOutOfMemory : kSuccess;
}

int Machine::allocate_managed(std::uint64_t bytes, int device, void** memory) {
  const Lock lock(mutex_);
  if (bytes == 0 || memory == nullptr) return kInvalidValue;
  *memory = memory_.allocate_managed(bytes, device);
  return *memory == nullptr ? kOutOfMemory : kSuccess;
}

int Machine::free(void* memory, bool pinned) {
  const Lock lock(mutex_);
  if (memory == nullptr) return kSuccess;
  const auto* const allocation = memory_.find(memory);
  std::vector<std::string> found;
  const bool known = allocation != nullptr && (allocation->device < 0) == pinned &&
                     memory_.free(memory, host_, found);
  for (auto& finding : found) find(std::move(finding));
  if (!known) find(fmt::format("{} is freed, but is no allocation, or freed already", memory));
  return known ? kSuccess : kInvalidValue;
}

int Machine::device_of(const void* address) {
  const Lock lock(mutex_);
  const auto* const allocation = memory_.find(address);
  return allocation == nullptr || allocation->freed ? kUnknown : allocation->device;
}

bool Machine::is_managed(const void* address) {
  const Lock lock(mutex_);
  const auto* const allocation = memory_.find(address);
  return allocation != nullptr && !allocation->freed && allocation->managed;
}

// -- Streams ------------------------------------------------------------------------------------

Stream* Machine::add_stream(int device) {
  auto& stream = *streams_.emplace_back(std::make_unique<Stream>());
  stream.index = streams_.size() - 1;
  stream.device = device;
  std::thread([this, &stream] { run(stream); }).detach();  // It ends with the process.
  return &stream;
}

Stream* Machine::make_stream(int device) {
  const Lock lock(mutex_);
  // A destroyed stream whose work is done is as good as a new one.
  for (const auto& old : streams_) {
    if (!old->destroyed || !old->work.empty() || old->device != device) continue;
    old->destroyed = false;
    old->priority = 0;
    return old.get();
  }
  return add_stream(device);
}

Stream* Machine::stream_of(void* handle, int device) {
  const Lock lock(mutex_);
  if (handle == nullptr) return defaults_[static_cast<std::size_t>(device)];
  const auto found = std::find_if(streams_.begin(), streams_.end(), [&](const auto& stream) {
    return stream.get() == handle && !stream->destroyed;
  });
  return found == streams_.end() ? nullptr : found->get();
}

int Machine::destroy_stream(void* handle) {
  auto* const stream = handle == nullptr ? nullptr : stream_of(handle, 0);
  if (stream == nullptr) return kInvalidHandle;
  const Lock lock(mutex_);
  stream->destroyed = true;  // As CUDA says: what is on the stream still runs.
  return kSuccess;
}

int Machine::synchronize(Stream& stream) {
  Lock lock(mutex_);
  const auto until = stream.put;
  const auto order = stream.order;
  changed_.wait(lock, [&] { return stream.ran >= until || broken_ != kSuccess; });
  if (broken_ != kSuccess) return broken_;
  join(host_, order);
  return kSuccess;
}

// -- Events -------------------------------------------------------------------------------------

Event* Machine::make_event(int device, bool timed) {
  const Lock lock(mutex_);
  auto& event = *events_.emplace_back(std::make_unique<Event>());
  event.device = device;
  event.timed = timed;
  return &event;
}

/// Under the lock.
Event* Machine::event_of(void* handle) {
  const auto found = std::find_if(events_.begin(), events_.end(), [&](const auto& event) {
    return event.get() == handle && !event->destroyed;
  });
  return found == events_.end() ? nullptr : found->get();
}

int Machine::destroy_event(void* handle) {
  const Lock lock(mutex_);
  auto* const event = event_of(handle);
  if (event == nullptr) return kInvalidHandle;
  event->destroyed = true;
  return kSuccess;
}

int Machine::record(void* handle, Stream& stream) {
  const Lock lock(mutex_);
  auto* const event = event_of(handle);
  if (event == nullptr || event->device != stream.device) return kInvalidHandle;
  const auto number = event->shared != nullptr ? ++event->shared->recorded : ++event->recorded;
  put(stream, {.kind = Work::Kind::record, .event = event, .record = number});
  event->order = stream.order;
  return kSuccess;
}

int Machine::wait(Stream& stream, void* handle) {
  const Lock lock(mutex_);
  auto* const event = event_of(handle);
  if (event == nullptr) return kInvalidHandle;
  const auto recorded = records_of(*event);
  if (recorded == 0) return kSuccess;
  join(stream.order, event->order);
  put(stream, {.kind = Work::Kind::wait, .event = event, .record = recorded});
  return kSuccess;
}

int Machine::query(void* handle) {
  const Lock lock(mutex_);
  auto* const event = event_of(handle);
  if (event == nullptr) return kInvalidHandle;
  if (completed_of(*event) < records_of(*event)) return kNotReady;
  join(host_, event->order);
  return kSuccess;
}

int Machine::synchronize_event(void* handle) {
  Lock lock(mutex_);
  auto* const event = event_of(handle);
  if (event == nullptr) return kInvalidHandle;
  const auto until = records_of(*event);
  while (completed_of(*event) < until && broken_ == kSuccess) changed_.wait_for(lock, kLooksAgain);
  if (broken_ != kSuccess) return broken_;
  join(host_, event->order);
  return kSuccess;
}

int Machine::elapsed(float* time, void* from, void* to) {
  constexpr double kNsPerMs = 1e6;
  const Lock lock(mutex_);
  const auto* const first = event_of(from);
  const auto* const second = event_of(to);
  for (const auto* const event : {first, second}) {
    if (event == nullptr || !event->timed || event->recorded == 0) return kInvalidHandle;
    if (event->completed < event->recorded) return kNotReady;
  }
  if (first->device != second->device) return kInvalidHandle;
  *time = static_cast<float>(static_cast<double>(second->ran_ns - first->ran_ns) / kNsPerMs);
  return kSuccess;
}

// -- Copies -------------------------------------------------------------------------------------

/// Under the lock. The address by which the device's threads reach the memory.
std::byte* Machine::resolve(const void* address, const Use& use, Stream& stream, int& error,
                            bool& pageable) {
  auto* const allocation = memory_.find(address);
  if (allocation == nullptr) {
    pageable = true;
    return static_cast<std::byte*>(const_cast<void*>(address));
  }
  auto known = use;
  known.offset =
      static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - allocation->address);
  if (allocation->freed || known.offset + use.bytes > allocation->bytes) {
    find(fmt::format("operation {} of stream {} uses {} bytes at {} that are {}", use.number,
                     use.stream, use.bytes, address,
                     allocation->freed ? "freed" : "not all allocated"));
    error = kInvalidValue;
    return nullptr;
  }
  std::vector<std::string> found;
  MemoryMap::use(*allocation, known, stream.order, host_, found);
  for (auto& finding : found) find(std::move(finding));
  return allocation->alias + known.offset;
}

int Machine::copy(void* to, const void* from, std::uint64_t bytes, Stream& stream) {
  Lock lock(mutex_);
  if (bytes == 0) return kSuccess;
  int error = kSuccess;
  bool from_pageable = false;
  bool to_pageable = false;
  join(stream.order, host_);
  Use use{.bytes = bytes, .stream = stream.index, .number = stream.put + 1};
  Work work{.kind = Work::Kind::copy, .bytes = bytes};
  work.from = resolve(from, use, stream, error, from_pageable);
  use.access = Access::write;
  work.to = resolve(to, use, stream, error, to_pageable);
  if (error != kSuccess) return error;
  if (from_pageable) {
    work.pageable.assign(work.from, work.from + bytes);
    work.from = work.pageable.data();
  }
  put(stream, std::move(work));
  lock.unlock();
  return to_pageable ? synchronize(stream) : kSuccess;
}

int Machine::launch(Stream& stream, std::span<horo_software_device_span> spans,
                    std::function<void(bool)> body) {
  const Lock lock(mutex_);
  join(stream.order, host_);
  int error = kSuccess;
  for (auto& span : spans) {
    if (span.bytes == 0) continue;
    const Use use{.bytes = span.bytes,
                  .access = span.writes != 0 ? Access::write : Access::read,
                  .stream = stream.index,
                  .number = stream.put + 1};
    bool pageable = false;
    span.alias = resolve(span.address, use, stream, error, pageable);
    if (!pageable) continue;
    find(fmt::format("operation {} of stream {} uses {}, which is not memory of a device",
                     use.number, use.stream, span.address));
    error = kInvalidValue;
  }
  if (error != kSuccess) return error;
  put(stream, {.kind = Work::Kind::launch, .body = std::move(body)});
  return kSuccess;
}

// -- The streams' threads -----------------------------------------------------------------------

/// Under the lock.
void Machine::put(Stream& stream, Work work) {
  work.number = ++stream.put;
  join(stream.order, host_);
  set_known(stream.order, stream.index, work.number);
  stream.work.push_back(std::move(work));
  changed_.notify_all();
}

void Machine::run(Stream& stream) {
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !stream.work.empty(); });
    // An event of another process completes without a word to this one.
    while (!run_first(stream, lock)) {
      if (stream.work.front().event->shared == nullptr) {
        changed_.wait(lock);
      } else {
        changed_.wait_for(lock, kLooksAgain);
      }
    }
    stream.ran = stream.work.front().number;
    stream.work.pop_front();
    changed_.notify_all();
  }
}

/// Under the lock, which it leaves for a while. True when this operation ends here: by the plan it
/// breaks the device, or never ends.
bool Machine::breaks_here(Lock& lock) {
  const auto count = ++ran_;
  if (plan_.async.at == count) {
    broken_ = plan_.async.code;
    changed_.notify_all();
  }
  if (plan_.hang_at == count) {
    const auto plan = plans_;
    changed_.wait(lock, [&] { return plans_ != plan; });
  }
  return broken_ != kSuccess;
}

/// It counts from a moment of its own, and faster or slower than the host's by the plan.
std::int64_t Machine::device_ns() const {
  const std::chrono::nanoseconds host = std::chrono::steady_clock::now().time_since_epoch();
  return host.count() / 1'000'000 * plan_.drift_ppm + host.count() - 1'000'000'000;
}

/// False when the operation has to wait for something that changes.
bool Machine::run_first(Stream& stream, Lock& lock) {
  auto& work = stream.work.front();
  if (work.kind == Work::Kind::wait)
    return completed_of(*work.event) >= work.record || broken_ != kSuccess;
  const auto pause = plan_.pause_us(stream.index, work.number) + slow_us(plan_, work.kind);
  if (pause != 0) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(pause));
    lock.lock();
  }
  const bool broken = breaks_here(lock);
  if (work.kind == Work::Kind::record) {
    work.event->ran_ns = device_ns();
    complete(*work.event, work.record);
  } else if (work.kind == Work::Kind::launch) {
    lock.unlock();
    work.body(broken);
    lock.lock();
  } else if (!broken) {
    lock.unlock();
    std::memmove(work.to, work.from, work.bytes);
    lock.lock();
  }
  return true;
}

}  // namespace horo::software_device
