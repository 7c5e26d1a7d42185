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

}  // namespace

/// Shared by the owner and the thread, because the thread may outlive the owner.
class HostGpus::State : public std::enable_shared_from_this<State> {
 public:
  using Reading = Result<discovery::GpuList>;

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
    auto reading = discovery::list_gpus();
    const MutexLock lock(mutex_);
    last_ = std::move(reading);
    reading_since_.reset();
    changed_.notify_all();
  }

  Mutex mutex_;
  std::condition_variable changed_;
  std::optional<Reading> last_ HORO_GUARDED_BY(mutex_);
  std::optional<TimePoint> reading_since_ HORO_GUARDED_BY(mutex_);
};

HostGpus::HostGpus() {
  if (std::getenv("HORO_NVML_LIBRARY") == nullptr && discovery::nvidia_gpus().empty()) return;
  state_ = std::make_shared<State>();
}

HostGpus::~HostGpus() = default;

HostGpus::View HostGpus::look(const std::vector<timeline::LiveRow>& rows, Duration most) {
  View view;
  if (state_ == nullptr) return view;
  const auto known = state_->read(most);
  if (known.last && *known.last) {
    for (const auto& gpu : (*known.last)->gpus) view.gpus.push_back(live(gpu, rows));
  } else if (known.last) {
    view.problem = known.last->error().message;
  }
  if (known.late && *known.late >= most) {
    view.problem = fmt::format("NVIDIA's driver has not answered for {:.1f} s{}",
                               std::chrono::duration<double>(*known.late).count(),
                               known.last ? "; they are shown as they were before" : "");
  }
  return view;
}

}  // namespace horo::launcher
