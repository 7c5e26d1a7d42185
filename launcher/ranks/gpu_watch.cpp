// SPDX-License-Identifier: Apache-2.0
#include "launcher/ranks/gpu_watch.hpp"

#include <array>
#include <cstdlib>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/signals_blocked.hpp"
#include "discovery/amd_faults.hpp"
#include "discovery/gpus.hpp"
#include "discovery/nvml/gpu_list.hpp"
#include "discovery/nvml/nvml_library.hpp"

namespace horo::launcher {

namespace nvml = discovery::nvml;

namespace {

constexpr unsigned kLooksMs = 50;

struct Xid {
  unsigned long long number;
  std::string_view meaning;
};

constexpr std::array kXids{
    Xid{13, "a kernel has failed"},
    Xid{31, "a kernel has used an address that is not mapped"},
    Xid{43, "a process's work on it was stopped"},
    Xid{45, "a process's work on it was stopped"},
    Xid{48, "an uncorrectable memory error"},
    Xid{63, "memory was retired or remapped"},
    Xid{64, "memory could not be retired or remapped"},
    Xid{74, "an error of NVLink"},
    Xid{79, "it has fallen off the bus"},
    Xid{92, "many correctable memory errors"},
    Xid{94, "an uncorrectable memory error, contained"},
    Xid{95, "an uncorrectable memory error that needs a reset"},
    Xid{119, "its processor GSP does not answer"},
    Xid{120, "an error of its processor GSP"},
};

std::string describe_event(const nvml::NvmlFunctions& library, const nvml::Event& event) {
  std::array<char, 128> uuid{};
  std::string index = "?";
  unsigned count = 0;
  static_cast<void>(library.count(&count));
  for (unsigned i = 0; i < count; ++i) {
    nvml::Device device = nullptr;
    if (library.device(i, &device) == nvml::kSuccess && device == event.device)
      index = std::to_string(i);
  }
  static_cast<void>(library.uuid(event.device, uuid.data(), uuid.size()));
  return fmt::format("GPU {} ({}) reported Xid {} ({})", index, uuid.data(), event.data,
                     describe_xid(event.data));
}

bool can_watch(const nvml::NvmlFunctions& library) {
  return library.make_events != nullptr && library.watch != nullptr && library.await != nullptr &&
         library.free_events != nullptr;
}

}  // namespace

std::string_view describe_xid(unsigned long long number) {
  for (const auto& xid : kXids) {
    if (xid.number == number) return xid.meaning;
  }
  return "an error of the GPU";
}

GpuWatch::GpuWatch(std::string root) : root_(std::move(root)) {
  // A driver may take long to answer. The thread waits for it, so that ranks start without delay.
  if (std::getenv("HORO_NVML_LIBRARY") != nullptr || !discovery::nvidia_gpus(root_).empty()) {
    thread_ = start_quiet_thread([this] { watch_nvidia(); });
  } else if (discovery::has_amd_driver(root_)) {
    thread_ = start_quiet_thread([this] { watch_amd(); });
  }
}

GpuWatch::~GpuWatch() {
  {
    const MutexLock lock(mutex_);
    stops_ = true;
    stopping_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

std::string GpuWatch::faults() const {
  const MutexLock lock(mutex_);
  return faults_;
}

void GpuWatch::note(const std::string& fault) {
  log::warn("agent", "{}", fault);
  const MutexLock lock(mutex_);
  constexpr std::size_t kMostText = 4096;  // The first ones say what has happened.
  if (faults_.size() > kMostText || faults_.find(fault) != std::string::npos) return;
  faults_ += (faults_.empty() ? "" : "; ") + fault;
}

bool GpuWatch::pause() {
  MutexLock lock(mutex_);
  const auto until = SteadyClock::instance().now() + std::chrono::milliseconds(kLooksMs);
  while (!stops_ && lock.wait_until(stopping_, until) == std::cv_status::no_timeout) {
  }
  return !stops_;
}

void GpuWatch::watch_amd() {
  discovery::AmdFaults faults(root_);
  if (!faults.log()) {
    log::info("agent",
              "failures of GPUs that only the kernel's log tells are not noticed: {}; it is for "
              "root, or for all with 'sysctl kernel.dmesg_restrict=0'",
              faults.log().error().message);
  }
  do {
    for (const auto& fault : faults.look()) note(fault);
  } while (pause());
}

void GpuWatch::watch_nvidia() {
  const auto library = nvml::load();
  if (!library) {
    log::info("agent", "failures of GPUs are not noticed: {}", library.error().message);
    return;
  }
  const auto& nvml = **library;
  nvml::EventSet events = nullptr;
  if (!can_watch(nvml) || nvml.make_events(&events) != nvml::kSuccess) return;
  unsigned count = 0;
  static_cast<void>(nvml.count(&count));
  for (unsigned i = 0; i < count; ++i) {
    nvml::Device device = nullptr;
    // A GPU that is lost already is no news of this job; one that cannot report stays unwatched.
    if (nvml.device(i, &device) == nvml::kSuccess)
      static_cast<void>(nvml.watch(device, nvml::kXidEvent, events));
  }
  while (!stops_) {
    nvml::Event event{};
    const auto code = nvml.await(events, &event, kLooksMs);
    if (code == nvml::kSuccess && event.type == nvml::kXidEvent) {
      note(describe_event(nvml, event));
    } else if (code != nvml::kSuccess && code != nvml::kTimeout) {
      log::info("agent", "failures of GPUs are no longer noticed: {}", nvml.error_text(code));
      break;
    }
  }
  static_cast<void>(nvml.free_events(events));
}

}  // namespace horo::launcher
