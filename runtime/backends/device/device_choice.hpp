// SPDX-License-Identifier: Apache-2.0
// How the members of a set choose the way of their tensors in device memory. Each tells the others
// what it has, by the set's backend for host memory, in the order of the log: so all know the same
// and come to the same choice, and a set without such tensors pays nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/deadline.hpp"
#include "runtime/backends/device/device_options.hpp"
#include "runtime/bucket/backend.hpp"

namespace horo::runtime {

/// Thread: the holder of the progress token.
class DeviceChoice {
 public:
  /// Both outlive this.
  DeviceChoice(const DeviceOptions& options, const SetPlace& place)
      : options_(options), place_(place) {}

  ~DeviceChoice();
  DeviceChoice(const DeviceChoice&) = delete;
  DeviceChoice& operator=(const DeviceChoice&) = delete;

  /// Goes on choosing; true when all have chosen. `gpu` is this rank's device; null: it has none.
  /// Fails: as Backend::start.
  Result<bool> advance(Backend& host, OpenDevice* gpu);

  /// A thread connects: look again soon.
  bool connects() const { return stage_ == Stage::connecting; }

  /// The way of a bucket; null: through host memory. The same on all members.
  Backend* way_of(const Bucket& bucket) const;

  bool owns(const Backend* backend) const;

  /// It moves buckets among the devices of each host only.
  bool is_within_hosts(const Backend* backend) const;

  /// Its operations wait for other ranks on the device itself.
  bool is_ordered(const Backend* backend) const;

  /// The set has such a way, or the members have not chosen yet.
  bool may_be_ordered() const;

  /// True when anything moved.
  bool progress();
  Status health() const;

  /// The way that `gpu.operations` asks for cannot be used.
  const Status& refused() const { return refused_; }

  /// Blocks: briefly; a thread that connects may be left behind.
  void abort();

 private:
  static constexpr std::size_t kMostPaths = 4;
  static constexpr std::size_t kMostReason = 240;
  static constexpr std::size_t kMostUuid = 48;

  enum class Stage : std::uint8_t { start, telling, trying, connecting, agreeing, chosen };

  /// How a member's connecting has ended, as it travels.
  enum class Verdict : std::uint8_t { connected, failed, late };

  /// One member's facts about one path, as they travel.
  struct ToldPath {
    std::uint16_t offer_length;
    std::uint16_t reason_length;
    std::array<char, kMostOffer> offer;
    std::array<char, kMostReason> reason;
  };

  struct Told {
    std::int32_t device;
    std::uint16_t uuid_length;
    std::array<char, kMostUuid> uuid;
    std::array<ToldPath, kMostPaths> paths;
  };

  /// A path that the members use.
  struct Way {
    std::shared_ptr<DevicePath> path;
    std::unique_ptr<Backend> backend;
  };

  /// Outlives this object where its thread does.
  struct Connection {
    std::atomic<bool> done{false};
    std::vector<DeviceMember> members;
    std::shared_ptr<DevicePath> path;
    DeviceSet set;
    Result<std::unique_ptr<Backend>> made = fail(Errc::unavailable, "not connected");
  };

  const Way* find(const Backend* backend) const;
  void prepare(OpenDevice* gpu);
  std::string offer_of(DevicePath& path, OpenDevice* gpu, ToldPath& told) const;
  Status tell(Backend& host);
  std::vector<DeviceMember> members_of(std::size_t path) const;
  /// Why the path cannot be used by these ranks; empty: it can.
  std::string why_not(std::size_t path) const;
  /// Why a path that could be used is not needed; empty: it is.
  std::string why_spare(std::size_t path) const;
  void try_next(OpenDevice* gpu);
  void connect(OpenDevice& gpu);
  /// The thread that connects has ended, or has no more time.
  bool has_connected() const;
  Status agree(Backend& host);
  std::string disagreement() const;
  void take_agreed();
  void warn_of_shared_device() const;
  void warn_of_late(const std::string& why) const;
  void conclude();

  bool said(const Backend& host) const { return place_.size() == 1 || ticket_ <= host.completed(); }

  const DeviceOptions& options_;
  const SetPlace& place_;
  Stage stage_ = Stage::start;
  std::vector<std::shared_ptr<DevicePath>> paths_;
  std::vector<Told> told_;
  Told mine_{};
  std::size_t next_ = 0;  ///< The path that is tried.
  std::string reasons_;
  std::uint64_t ticket_ = 0;
  std::shared_ptr<Connection> connection_;
  std::thread thread_;
  Deadline connects_until_ = Deadline::never();
  Verdict verdict_ = Verdict::connected;
  std::vector<Verdict> verdicts_;  ///< By position.
  std::vector<Way> ways_;          ///< The best for small buckets first.
  Status refused_;
};

}  // namespace horo::runtime
