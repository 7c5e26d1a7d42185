// SPDX-License-Identifier: Apache-2.0
#include "timeline/chrome/trace.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <optional>
#include <pthread.h>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/signals_blocked.hpp"
#include "timeline/chrome/chrome_writer.hpp"
#include "timeline/chrome/trace_file.hpp"
#include "timeline/record/recorder.hpp"
#include "timeline/record/region.hpp"
#include "timeline/record/ticks.hpp"

namespace horo::timeline {

namespace {

using namespace std::chrono_literals;

// The rings of a busy job are emptied before they can overflow; those of a quiet job less often.
constexpr auto kBusyPause = 10ms;
constexpr auto kQuietPause = 250ms;

/// A rank that the trace shows.
struct Source {
  int rank() const { return reader.about().identity.rank; }

  RegionReader reader;
  std::vector<Record> held;  ///< Records so new that earlier ones may still arrive.
};

/// A record, and the index of the source that it comes from.
struct Drained {
  Record record;
  std::size_t source = 0;
};

/// Whether a trace in which a rank has no rows of its own uses this record of it.
bool tells_arrivals(const Record& record) {
  return record.kind == RecordKind::submit || record.kind == RecordKind::declare ||
         record.kind == RecordKind::arrival;
}

}  // namespace

class Trace::Impl {
 public:
  Impl(TraceOptions options, Recorder& recorder)
      : options_(std::move(options)),
        recorder_(recorder),
        writer_({.start_wall_ns = take_anchor().wall_ns,
                 .mark_cycles = options_.mark_cycles,
                 .show_ranks = options_.all_ranks},
                [this](int rank, std::uint16_t set, std::uint32_t id) {
                  return look_up(rank, set, id);
                }) {}

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  ~Impl() {
    ended_ = recorder_.now();
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    bell_.notify_one();
    if (!thread_.joinable()) return;
    thread_.join();
    Recorder::want_arrivals(false);
    for (const auto& source : sources_)
      ask_for_device_times(recorder_.memory(), source.reader.index(), false);
  }

  Status begin() {
    HORO_TRY(auto file, TraceFile::create(options_.path, writer_.head()));
    file_.emplace(std::move(file));
    began_ = recorder_.now();
    HORO_TRY_STATUS(add_source(recorder_.index()));
    regions_ = count_regions(recorder_.memory());
    Recorder::want_arrivals(true);
    thread_ = start_quiet_thread([this] { run(); });
    return {};
  }

  const std::string& path() const { return options_.path; }

 private:
  Status add_source(int index) {
    HORO_TRY(auto reader, RegionReader::open(recorder_.memory(), index));
    // Records from before the trace began are left out. Other ranks are found later than this one.
    std::vector<Record> records;
    if (auto overwritten = reader.drain(records); !overwritten)
      return Failure(std::move(overwritten).error());
    std::erase_if(records, [this](const Record& record) { return record.ticks < began_; });
    if (sources_.empty() || options_.all_ranks)
      ask_for_device_times(recorder_.memory(), index, true);
    sources_.push_back({reader, std::move(records)});
    return {};
  }

  std::optional<NameSlot> look_up(int rank, std::uint16_t set, std::uint32_t id) const {
    for (const auto& source : sources_) {
      if (source.rank() == rank) return source.reader.name_of(set, id);
    }
    return std::nullopt;
  }

  /// Adds the ranks of this host that have begun to record since the last call.
  void look_for_ranks() {
    for (auto& source : sources_) source.reader.read_identity();
    for (int index = 0; sources_.size() < static_cast<std::size_t>(regions_) && index < regions_;
         ++index) {
      const bool known = std::any_of(sources_.begin(), sources_.end(), [&](const Source& source) {
        return source.reader.index() == index;
      });
      // A rank that records nothing is skipped.
      if (!known) (void)add_source(index);
    }
  }

  void run() {
    pthread_setname_np(pthread_self(), "horo-timeline");
    auto pause = kBusyPause;
    MutexLock lock(mutex_);
    while (!stopping_) {
      const auto until = std::chrono::steady_clock::now() + pause;
      while (!stopping_ && lock.wait_until(bell_, until) == std::cv_status::no_timeout) {
      }
      lock.unlock();
      pause = drain(recorder_.now()) ? kBusyPause : std::min(pause * 2, kQuietPause);
      lock.lock();
    }
    lock.unlock();
    drain(~std::uint64_t{0});
    // The other ranks end at about the same time, so their last records arrive shortly.
    for (int i = 0; options_.all_ranks && i < kLastDrains; ++i) {
      std::this_thread::sleep_for(kBusyPause);
      if (!drain(~std::uint64_t{0}) && i > 0) break;
    }
    if (lost_ != 0) {
      log::warn("timeline", "{} records were overwritten before they could be written to {}", lost_,
                options_.path);
    }
  }

  /// Writes the records up to `until`, a time that was read before: all earlier records have been
  /// published by now. Returns whether there were any.
  bool drain(std::uint64_t until) {
    if (!file_) return false;
    look_for_ranks();
    drained_.clear();
    for (std::size_t i = 0; i < sources_.size(); ++i) drain(i, until);
    // The ranks of a host have one clock. Where each rank has rows of its own, only the order of
    // its own records matters.
    std::stable_sort(drained_.begin(), drained_.end(), [](const Drained& a, const Drained& b) {
      return a.record.ticks < b.record.ticks;
    });
    const TickClock clock(sources_.front().reader.about().anchor, take_anchor());
    const int owner = sources_.front().rank();
    for (const auto& [record, from] : drained_) {
      const int rank = sources_[from].rank();
      const auto ns = clock.wall_ns(record.ticks);
      if (from == 0 || options_.all_ranks) {
        writer_.take(rank, record, ns, clock.ns_per_tick());
      } else {
        writer_.take_from_peer(owner, rank, record, ns);
      }
    }
    write();
    return !drained_.empty();
  }

  /// Adds a source's new records up to `until` to `drained_`.
  void drain(std::size_t from, std::uint64_t until) {
    auto& source = sources_[from];
    std::vector<Record> records = std::exchange(source.held, {});
    const auto missed = source.reader.drain(records);
    if (!missed) return;
    const bool shown = from == 0 || options_.all_ranks;
    if (shown) lost_ += *missed;
    for (const auto& record : records) {
      // Other ranks may have gone on while this one ends the trace.
      if (!shown && (!tells_arrivals(record) || record.ticks > ended_)) continue;
      if (record.ticks > until) {
        source.held.push_back(record);
      } else {
        drained_.push_back({.record = record, .source = from});
      }
    }
  }

  void write() {
    auto written = file_->append(writer_.events());
    writer_.clear();
    if (!written) {
      log::warn("timeline", "the trace ends here: {}", written.error().message);
      file_.reset();
      return;
    }
    if (file_->bytes() < options_.limit.value()) return;
    const auto older = options_.path + ".1";
    if (std::rename(options_.path.c_str(), older.c_str()) != 0) return;
    if (auto next = TraceFile::create(options_.path, writer_.head())) {
      file_.emplace(std::move(*next));
    } else {
      log::warn("timeline", "the trace ends here: {}", next.error().message);
      file_.reset();
    }
  }

  static constexpr int kLastDrains = 8;

  const TraceOptions options_;
  Recorder& recorder_;
  ChromeWriter writer_;
  std::optional<TraceFile> file_;  ///< Empty after a failure.
  std::vector<Source> sources_;    ///< The first one is this rank.
  std::vector<Drained> drained_;
  int regions_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t began_ = 0;                              ///< The ticks at which the trace began.
  std::atomic<std::uint64_t> ended_{~std::uint64_t{0}};  ///< The ticks at which it was ended.
  Mutex mutex_;
  std::condition_variable bell_;
  bool stopping_ HORO_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

Result<std::unique_ptr<Trace>> Trace::start(TraceOptions options) {
  auto* const recorder = Recorder::current();
  if (recorder == nullptr) {
    return fail(Errc::not_initialized,
                "nothing is recorded: HORO_TIMELINE_RECORDER is off, or there is no memory for it");
  }
  auto impl = std::make_unique<Impl>(std::move(options), *recorder);
  HORO_TRY_STATUS(impl->begin());
  return std::unique_ptr<Trace>(new Trace(std::move(impl)));
}

Trace::Trace(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Trace::~Trace() = default;

const std::string& Trace::path() const {
  return impl_->path();
}

}  // namespace horo::timeline
