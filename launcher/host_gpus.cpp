// SPDX-License-Identifier: Apache-2.0
#include "launcher/host_gpus.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <optional>
#include <system_error>
#include <utility>

#include "base/mutex.hpp"
#include "base/signals_blocked.hpp"
#include "discovery/amd_gpus.hpp"
#include "discovery/gpus.hpp"
#include "discovery/nvml/gpu_list.hpp"

namespace horo::launcher {

namespace {

timeline::LiveGpu live(const discovery::Gpu& gpu, const std::vector<timeline::LiveRow>& rows) {
  timeline::LiveGpu seen{.host = {},
                         .index = gpu.index,
                         .name = gpu.name,
                         .uuid = gpu.uuid,
                         .busy = gpu.busy,
                         .used = gpu.used,
                         .memory = gpu.memory,
                         .celsius = gpu.celsius,
                         .slices = static_cast<int>(gpu.slices.size()),
                         .links = {},
                         .ranks = {},
                         .problem = gpu.problem};
  for (const auto& links : gpu.links) seen.links.push_back({links.peer, links.links});
  for (const auto& row : rows) {
    if (std::find(gpu.processes.begin(), gpu.processes.end(), row.pid) != gpu.processes.end())
      seen.ranks.push_back(row.rank);
  }
  return seen;
}

discovery::Gpu gpu_of(discovery::AmdGpu&& gpu) {
  return {.index = gpu.index,
          .name = std::move(gpu.name),
          .uuid = std::move(gpu.uuid),
          .pci = std::move(gpu.pci),
          .memory = gpu.memory,
          .used = gpu.used,
          .busy = gpu.busy,
          .celsius = gpu.celsius,
          .processes = std::move(gpu.processes)};
}

/// Reads the GPUs of this host.
class Reader {
 public:
  using Reading = Result<std::vector<discovery::Gpu>>;

  virtual ~Reader() = default;
  virtual std::string_view driver() const = 0;
  /// Thread: one at a time. Blocks: for the driver.
  virtual Reading read() = 0;
};

class NvidiaReader final : public Reader {
 public:
  std::string_view driver() const override { return "NVIDIA's driver"; }

  Reading read() override {
    HORO_TRY(auto list, discovery::list_gpus());
    return std::move(list.gpus);
  }
};

/// Remembers the GPUs, because the kernel no longer lists those that are lost.
class AmdReader final : public Reader {
 public:
  explicit AmdReader(std::string root) : root_(std::move(root)) {}

  std::string_view driver() const override { return "AMD's driver (amdgpu)"; }

  Reading read() override {
    std::vector<discovery::Gpu> now;
    for (auto& gpu : discovery::amd_gpus(root_)) now.push_back(gpu_of(std::move(gpu)));
    if (known_.empty()) known_ = now;
    for (auto& gpu : known_) {
      const auto same = std::find_if(now.begin(), now.end(), [&gpu](const discovery::Gpu& other) {
        return other.pci == gpu.pci && other.uuid == gpu.uuid;
      });
      if (same == now.end()) {
        gpu.problem = "the kernel lists it no more; it has fallen off the bus, or was removed";
        continue;
      }
      // Those behind a lost one have other numbers now; their ranks still use the old ones.
      same->index = gpu.index;
      gpu = std::move(*same);
      now.erase(same);  // Parts of one GPU may have the same address and no UUID: each counts once.
    }
    return known_;
  }

 private:
  const std::string root_;
  std::vector<discovery::Gpu> known_;
};

std::unique_ptr<Reader> reader_of(const std::string& root) {
  if (std::getenv("HORO_NVML_LIBRARY") != nullptr || !discovery::nvidia_gpus(root).empty())
    return std::make_unique<NvidiaReader>();
  if (discovery::has_amd_driver(root)) return std::make_unique<AmdReader>(root);
  return nullptr;
}

}  // namespace

/// Shared by the owner and the thread, because the thread may outlive the owner.
class HostGpus::State : public std::enable_shared_from_this<State> {
 public:
  using Reading = Reader::Reading;

  explicit State(std::unique_ptr<Reader> reader) : reader_(std::move(reader)) {}

  std::string_view driver() const { return reader_->driver(); }

  /// The last reading, and for how long the next one has not ended; nothing: none has ended.
  struct Known {
    std::optional<Reading> last;
    std::optional<Duration> late;
  };

  Known read(Duration most) {
    const auto now = SteadyClock::instance().now();
    MutexLock lock(mutex_);
    if (!reading_since_ && start(now)) {
      const auto until = now + most;
      while (reading_since_ && lock.wait_until(changed_, until) == std::cv_status::no_timeout) {
      }
    }
    Known known{.last = last_, .late = {}};
    if (reading_since_) known.late = SteadyClock::instance().now() - *reading_since_;
    return known;
  }

 private:
  /// `now`: when the caller began to wait, so that a reading for which it waited in vain is late.
  bool start(TimePoint now) HORO_REQUIRES(mutex_) {
    try {
      start_quiet_thread([self = shared_from_this()] { self->work(); }).detach();
    } catch (const std::system_error&) {
      return false;  // The next look tries again.
    }
    reading_since_ = now;
    return true;
  }

  void work() {
    auto reading = reader_->read();
    const MutexLock lock(mutex_);
    last_ = std::move(reading);
    reading_since_.reset();
    changed_.notify_all();
  }

  const std::unique_ptr<Reader> reader_;  ///< Only one thread reads at a time.
  Mutex mutex_;
  std::condition_variable changed_;
  std::optional<Reading> last_ HORO_GUARDED_BY(mutex_);
  std::optional<TimePoint> reading_since_ HORO_GUARDED_BY(mutex_);
};

HostGpus::HostGpus(const std::string& root) {
  if (auto reader = reader_of(root)) state_ = std::make_shared<State>(std::move(reader));
}

HostGpus::~HostGpus() = default;

HostGpus::View HostGpus::look(const std::vector<timeline::LiveRow>& rows, Duration most) {
  View view;
  if (state_ == nullptr) return view;
  const auto known = state_->read(most);
  if (known.last && *known.last) {
    for (const auto& gpu : **known.last) view.gpus.push_back(live(gpu, rows));
  } else if (known.last) {
    view.problem = known.last->error().message;
  }
  if (known.late && *known.late >= most) {
    view.problem = fmt::format("{} has not answered for {:.1f} s{}", state_->driver(),
                               std::chrono::duration<double>(*known.late).count(),
                               known.last ? "; they are shown as they were before" : "");
  }
  return view;
}

}  // namespace horo::launcher
