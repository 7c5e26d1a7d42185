// SPDX-License-Identifier: Apache-2.0
// A way in which buckets in device memory move between the devices of a set's ranks. The members
// choose one together when the set has its first tensor in device memory: each tells the others
// what it has, all look at the same facts, and so all come to the same choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "runtime/bucket/backend.hpp"
#include "runtime/device/open_device.hpp"

namespace horo::runtime {

/// Bytes that one rank can tell the others about one path.
inline constexpr std::size_t kMostOffer = 512;

/// A member of the set, as all members know it. They stand in the order of their positions.
struct DeviceMember {
  int rank = -1;          ///< In the job.
  int host = 0;           ///< Members with the same number share a host.
  int device = -1;        ///< Its index in that member's process.
  std::string uuid{};     ///< The device has it; empty: unknown. Equal ones are one device.
  std::string offer{};    ///< DevicePath::offer() has returned it there.
  std::string why_not{};  ///< Why that member cannot use the path; empty: it can.
};

/// Two members that use one device.
using DeviceTwins = std::optional<std::pair<const DeviceMember*, const DeviceMember*>>;

inline DeviceTwins shared_device(std::span<const DeviceMember> members) {
  for (std::size_t b = 1; b < members.size(); ++b) {
    for (std::size_t a = 0; a < b; ++a) {
      if (!members[a].uuid.empty() && members[a].uuid == members[b].uuid)
        return std::pair(&members[a], &members[b]);
    }
  }
  return {};
}

/// A path needs this to connect a set.
struct DeviceSet {
  int position = 0;
  std::span<const DeviceMember> members{};
  OpenDevice* gpu = nullptr;     ///< Outlives the backend.
  Duration start_timeout{};      ///< For all members to connect.
  Duration timeout{};            ///< For a peer that is silent; zero: no limit.
  std::function<bool()> lost{};  ///< A rank of the job was lost: connecting has no use.
};

/// Between which devices a path moves buckets.
enum class DeviceReach : std::uint8_t {
  set,   ///< It connects the devices of all members.
  host,  ///< It connects those of the members on one host; ByHostsBucket does the rest.
};

/// Pure but for offer() and connect(). Thread: one at a time.
class DevicePath {
 public:
  virtual ~DevicePath() = default;

  /// For people. Those of reach `set` have the words of `gpu.operations`.
  virtual std::string_view name() const = 0;

  virtual DeviceReach reach() const { return DeviceReach::set; }

  /// Where the members can use several paths, this one comes before those of reach `set`. The same
  /// on all members, after check().
  virtual bool comes_first() const { return false; }

  /// The name with what else the log shows, once connected.
  virtual std::string described() const { return std::string(name()); }

  /// Bytes for the other members, at most kMostOffer: for NCCL ids of communicators; for memory
  /// that ranks of one host share its handles. What it allocates belongs to this object. Blocks:
  /// no. Fails: unavailable (why this rank cannot use the path: a library or a device that is
  /// missing; says which).
  virtual Result<std::string> offer(Device& device, int position, int members) = 0;

  /// Whether these members can use it together. The same answer on all of them. Fails: unavailable
  /// (two ranks on one device, members on several hosts, versions that differ; says which).
  virtual Status check(std::span<const DeviceMember> members) const = 0;

  /// Whether it moves buckets of this kind; others go through host memory. The same answer on all
  /// members.
  virtual bool takes(const Signature& like) const = 0;

  /// Where the members can use several paths, this one is the best for buckets of up to so many
  /// bytes. The same on all members.
  virtual std::uint64_t best_up_to() const { return std::numeric_limits<std::uint64_t>::max(); }

  /// The same for buckets from so many bytes on. Smaller ones are staged.
  virtual std::uint64_t best_from() const { return 0; }

  /// Its operations wait for other ranks on the device itself, so all that a device has of them
  /// must start in one order on all ranks.
  virtual bool waits_on_device() const { return true; }

  /// Connects. The backend waits for Part::ready on its streams, records DeviceOutcome::finished,
  /// and blocks no thread. Thread: one of its own. Blocks: until all members have connected. Fails:
  /// as the library; timed_out, peer_lost.
  virtual Result<std::unique_ptr<Backend>> connect(const DeviceSet& set) = 0;
};

}  // namespace horo::runtime
