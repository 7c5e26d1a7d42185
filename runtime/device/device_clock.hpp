// SPDX-License-Identifier: Apache-2.0
// When a device ran something, on the host's clock. Timed events tell how much time has passed on
// the device between them. A reference event relates the device's clock to the host's. No thread
// waits for an event: its time on the host is only known to lie between the call that recorded it
// and the moment at which it was seen to have run. The bounds of all events narrow each other.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "runtime/device/device.hpp"
#include "timeline/record/record.hpp"

namespace horo::runtime {

/// A timed event on a stream. The event goes back to its clock when the last owner lets go.
struct TimedMark {
  std::shared_ptr<void> event;
  TimePoint called{};  ///< Before the call that recorded it.
};

/// When the device worked for one phase of a bucket.
struct DeviceTime {
  timeline::DevicePhase phase = timeline::DevicePhase::other;
  int device = -1;
  int stream = 0;  ///< Its number among the streams that the clock knows.
  TimePoint from{};
  TimePoint to{};
  Duration error{};  ///< `from` and `to` may both be earlier or later by this.
};

/// The times at which a device worked for one bucket, as far as they are known.
struct DeviceTimes {
  int device = -1;  ///< The bucket's.
  std::vector<DeviceTime> phases{};
  /// Why there are no times, or not all.
  std::optional<timeline::NoDeviceTimes> missing{};
};

/// Owns the timed events of one device, and what relates its clock to the host's. It outlives the
/// marks that it has handed out. Thread: the holder of the progress token.
class DeviceClock {
 public:
  /// A new reference is taken when the last one is this old, because the clocks drift apart.
  static constexpr Duration kRenewal = std::chrono::milliseconds(200);
  /// The clocks drift apart by no more than this share of the time.
  static constexpr double kDrift = 1e-4;

  /// Both outlive it.
  explicit DeviceClock(Device& device, const Clock& host = SteadyClock::instance())
      : device_(device), host_(host), began_(host.now()) {}

  ~DeviceClock();
  DeviceClock(const DeviceClock&) = delete;
  DeviceClock& operator=(const DeviceClock&) = delete;

  /// Puts an event behind the work that is on the stream. Blocks: no. Fails: as Device; `reason`
  /// then says which of the steps it was.
  Result<TimedMark> mark(StreamHandle stream, timeline::NoDeviceTimes& reason);

  /// The time between two marks of one stream, both of which the host has seen to have run. `from`
  /// and `to` of the result lie between the call that recorded the first mark, and now. Blocks: no.
  /// Fails: as Device.
  Result<DeviceTime> between(const TimedMark& from, const TimedMark& to);

  /// How long the device took from one to the other, of which the same holds.
  Result<Duration> lasted(const TimedMark& from, const TimedMark& to);

  /// Looks whether a new reference has run. The more often it is called while work is in flight,
  /// the smaller the errors are. Blocks: no.
  void look() {
    if (pending_) [[unlikely]]
      look_at_pending();
  }

  /// The stream's number, which it gets when it is first asked for.
  int number_of(StreamHandle stream);

  /// Says in the log, once, why times are missing.
  void warn(const Error& error);

 private:
  /// Nanoseconds of the host's clock since `began_`, between which an event has run.
  struct Bounds {
    double least = -std::numeric_limits<double>::infinity();
    double most = std::numeric_limits<double>::infinity();

    double middle() const { return (least + most) / 2; }

    bool possible() const { return least <= most; }
  };

  struct Reference {
    std::shared_ptr<void> event;
    Bounds ran;
    TimePoint taken{};
  };

  static Bounds both(const Bounds& a, const Bounds& b);
  /// The bounds of an event that ran `later` nanoseconds of the device after one with these bounds.
  static Bounds shifted(const Bounds& bounds, double later);

  double since_beginning(TimePoint time) const {
    return static_cast<double>((time - began_).count());
  }

  TimePoint host_time(double ns) const { return began_ + Duration(static_cast<Duration::rep>(ns)); }

  Result<std::shared_ptr<void>> event();
  void begin_reference(TimePoint now);
  void look_at_pending();
  void adopt(Reference fresh);

  Device& device_;
  const Clock& host_;
  const TimePoint began_;
  StreamHandle stream_ = nullptr;  ///< For references. It has no other work, so they run at once.
  std::vector<EventHandle> idle_;
  std::vector<StreamHandle> streams_;  ///< By number.
  std::optional<Reference> known_;
  std::optional<TimedMark> pending_;  ///< The next reference.
  bool warned_ = false;
};

/// Measures the phases of one bucket. Every function costs one comparison where nothing is
/// measured. Thread: the holder of the progress token.
class PhaseTimer {
 public:
  /// Measures nothing.
  PhaseTimer() = default;

  /// `clock` outlives it. Null: as above.
  explicit PhaseTimer(DeviceClock* clock) : clock_(clock) {}

  bool measures() const { return clock_ != nullptr; }

  /// The work that comes on the stream belongs to this phase; the phase before ends here.
  void enter(timeline::DevicePhase phase, StreamHandle stream) {
    if (clock_ != nullptr) [[unlikely]]
      pass(phase, stream);
  }

  /// The phase ends here.
  void leave() {
    if (clock_ != nullptr && open_) [[unlikely]]
      close();
  }

  /// Adds the times of the phases that have ended, when the host has seen that the device has
  /// passed them. It measures nothing any more.
  void read(DeviceTimes& to) {
    if (clock_ != nullptr || missing_) [[unlikely]]
      add_to(to);
  }

 private:
  struct Phase {
    timeline::DevicePhase what = timeline::DevicePhase::other;
    StreamHandle stream = nullptr;
    TimedMark from;
    TimedMark to;
  };

  void pass(timeline::DevicePhase phase, StreamHandle stream);
  void close();
  std::optional<TimedMark> mark(StreamHandle stream);
  void add_to(DeviceTimes& to);
  Status add_row(std::span<const Phase> row, DeviceTimes& to);
  void give_up(timeline::NoDeviceTimes reason, const Error& error);

  DeviceClock* clock_ = nullptr;
  bool open_ = false;  ///< The last phase has no end.
  std::vector<Phase> phases_;
  std::optional<timeline::NoDeviceTimes> missing_;
};

}  // namespace horo::runtime
