// SPDX-License-Identifier: Apache-2.0
// How the members of a set choose a way for device memory when some of them do not connect.
#include "runtime/backends/device/device_choice.hpp"

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::runtime;

namespace {

/// Nothing is put on it.
class IdleDevice final : public Device {
 public:
  int index() const override { return 0; }

  Status enter() override { return {}; }

  void leave() override {}

  Packer* packer() override { return nullptr; }

  Result<void*> allocate(std::uint64_t) override { return none(); }

  Result<void*> allocate_host(std::uint64_t) override { return none(); }

  void free(void*) override {}

  void free_host(void*) override {}

  Result<StreamHandle> make_stream() override { return none(); }

  Result<StreamHandle> make_urgent_stream() override { return none(); }

  void destroy_stream(StreamHandle) override {}

  Result<EventHandle> make_event() override { return none(); }

  Result<EventHandle> make_timed_event() override { return none(); }

  void destroy_event(EventHandle) override {}

  Result<double> elapsed(EventHandle, EventHandle) override { return none(); }

  Result<bool> is_capturing(StreamHandle) override { return false; }

  Status record(EventHandle, StreamHandle) override { return {}; }

  Status wait(StreamHandle, EventHandle) override { return {}; }

  Result<bool> done(EventHandle) override { return true; }

  Status copy(void*, const void*, std::uint64_t, StreamHandle) override { return {}; }

 private:
  static Failure none() { return fail(Errc::out_of_memory, "the device has nothing"); }
};

/// A backend that moves nothing.
class IdleBackend final : public Backend {
 public:
  explicit IdleBackend(std::shared_ptr<std::atomic<bool>> aborted) : aborted_(std::move(aborted)) {}

  BackendCaps caps() const override { return {.name = "nccl"}; }

  Status start(Bucket) override { return {}; }

  bool progress() override { return false; }

  std::uint64_t completed() const override { return 0; }

  std::uint64_t started() const override { return 0; }

  CopyTimes copied() const override { return {}; }

  Status health() const override { return {}; }

  void abort() override { *aborted_ = true; }

 private:
  const std::shared_ptr<std::atomic<bool>> aborted_;
};

/// Between hosts: the first exchange gives all members the facts of this one, and the second one
/// the verdicts `others`, in the order of positions after this one.
class MirrorBackend final : public Backend {
 public:
  explicit MirrorBackend(std::vector<std::uint8_t> others) : others_(std::move(others)) {}

  BackendCaps caps() const override { return {.name = "mirror"}; }

  Status start(Bucket bucket) override {
    const auto& part = bucket.parts.front();
    auto* const out = static_cast<std::byte*>(part.out);
    for (std::size_t p = 0; p < bucket.rows.size(); ++p)
      std::memcpy(out + p * part.elements, part.in, part.elements);
    if (++started_ == 2) std::memcpy(out + 1, others_.data(), others_.size());
    return {};
  }

  bool progress() override { return false; }

  std::uint64_t completed() const override { return started_; }

  std::uint64_t started() const override { return started_; }

  CopyTimes copied() const override { return {}; }

  Status health() const override { return {}; }

  void abort() override {}

 private:
  const std::vector<std::uint8_t> others_;
  std::uint64_t started_ = 0;
};

/// The test and the thread that connects use it.
struct Shared {
  std::atomic<bool> open{true};  ///< connect() returns.
  std::shared_ptr<std::atomic<bool>> aborted = std::make_shared<std::atomic<bool>>(false);
};

class GatedPath final : public DevicePath {
 public:
  explicit GatedPath(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  std::string_view name() const override { return "nccl"; }

  Result<std::string> offer(Device&, int, int) override { return std::string("offer"); }

  Status check(std::span<const DeviceMember>) const override { return {}; }

  bool takes(const Signature&) const override { return true; }

  Result<std::unique_ptr<Backend>> connect(const DeviceSet&) override {
    shared_->open.wait(false);
    return std::unique_ptr<Backend>(std::make_unique<IdleBackend>(shared_->aborted));
  }

 private:
  const std::shared_ptr<Shared> shared_;
};

struct Choosing {
  Choosing(std::vector<Rank> ranks, std::vector<std::uint8_t> others, Duration limit)
      : host(std::move(others)),
        gpu(std::make_unique<IdleDevice>()),
        options{.paths =
                    [this](const SetPlace&) {
                      std::vector<std::unique_ptr<DevicePath>> paths;
                      paths.push_back(std::make_unique<GatedPath>(shared));
                      return paths;
                    },
                .wanted = GpuOperations::nccl,
                .start_timeout = limit},
        place{.ranks = std::move(ranks), .hosts = {}},
        choice(options, place) {}

  /// Until the members have chosen. The result is why the way is refused; empty: it is used.
  std::string run() {
    while (!*choice.advance(host, &gpu)) std::this_thread::yield();
    return choice.refused() ? std::string() : choice.refused().error().message;
  }

  const std::shared_ptr<Shared> shared = std::make_shared<Shared>();
  MirrorBackend host;
  OpenDevice gpu;
  const DeviceOptions options;
  const SetPlace place;
  DeviceChoice choice;
};

constexpr std::uint8_t kConnected = 0;
constexpr std::uint8_t kFailed = 1;
constexpr std::uint8_t kLate = 2;
constexpr Duration kLong = std::chrono::hours(1);

}  // namespace

TEST_CASE("a way is used when all members have connected") {
  Choosing choosing({Rank{4}, Rank{5}}, {kConnected}, kLong);
  CHECK(choosing.run().empty());
  CHECK_FALSE(*choosing.shared->aborted);
}

TEST_CASE("a member that waits for the others longer than the start timeout leaves the way out") {
  Choosing choosing({Rank{4}, Rank{5}, Rank{7}}, {kFailed, kLate}, std::chrono::milliseconds(1));
  choosing.shared->open = false;
  const auto why = choosing.run();
  CHECK(why.find("nccl: ranks 5 could not connect, and ranks 4, 7 still waited for the others "
                 "after 0.001 s (start.timeout)") != std::string::npos);
  choosing.shared->open = true;
  choosing.shared->open.notify_all();
}

TEST_CASE("a member that has connected aborts when others have not, and names them") {
  Choosing choosing({Rank{4}, Rank{5}, Rank{7}}, {kFailed, kConnected}, kLong);
  CHECK(choosing.run().find("nccl: ranks 5 could not connect") != std::string::npos);
  CHECK(*choosing.shared->aborted);
}
