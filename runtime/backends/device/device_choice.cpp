// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/device/device_choice.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include <fmt/ranges.h>

#include "base/deadline.hpp"
#include "base/log.hpp"
#include "base/signals_blocked.hpp"

namespace horo::runtime {

namespace {

constexpr Duration kLeavesThread = std::chrono::milliseconds(250);

std::string_view word_of(GpuOperations wanted) {
  switch (wanted) {
    case GpuOperations::automatic:
      return "auto";
    case GpuOperations::nccl:
      return "nccl";
    case GpuOperations::ipc:
      return "ipc";
    case GpuOperations::staged:
      return "staged";
  }
  return "auto";
}

template <std::size_t Room>
std::uint16_t keep(std::array<char, Room>& to, std::string_view text) {
  const auto length = std::min(text.size(), Room);
  std::copy_n(text.begin(), length, to.begin());
  return static_cast<std::uint16_t>(length);
}

template <std::size_t Room>
std::string text_of(const std::array<char, Room>& from, std::uint16_t length) {
  return {from.data(), std::min<std::size_t>(length, Room)};
}

}  // namespace

DeviceChoice::~DeviceChoice() {
  // These end in their own time, which others need; and never hang, unlike those that abort() ends.
  std::erase_if(ways_, [](const Way& way) { return !way.path->waits_on_device(); });
  abort();
  ways_.clear();
}

/// The reason why this rank cannot use the path; empty: it can.
std::string DeviceChoice::offer_of(DevicePath& path, OpenDevice* gpu, ToldPath& told) const {
  const auto word = word_of(options_.wanted);
  const bool whole = path.reach() == DeviceReach::set;
  if (whole && options_.wanted != GpuOperations::automatic && path.name() != word)
    return fmt::format("gpu.operations is {}", word);
  if (gpu == nullptr) return "it has no device";
  auto offer = path.offer(gpu->device(), place_.position, place_.size());
  if (!offer) return offer.error().message;
  told.offer_length = keep(told.offer, *offer);
  return {};
}

void DeviceChoice::prepare(OpenDevice* gpu) {
  if (options_.paths) {
    for (auto& path : options_.paths(place_)) paths_.emplace_back(std::move(path));
  }
  if (options_.wanted == GpuOperations::staged) paths_.clear();
  if (paths_.size() > kMostPaths) paths_.resize(kMostPaths);
  mine_.device = gpu == nullptr ? -1 : gpu->index();
  if (gpu != nullptr) mine_.uuid_length = keep(mine_.uuid, gpu->device().uuid());
  for (std::size_t p = 0; p < paths_.size(); ++p) {
    auto& told = mine_.paths[p];
    told.reason_length = keep(told.reason, offer_of(*paths_[p], gpu, told));
  }
}

Status DeviceChoice::tell(Backend& host) {
  told_.resize(static_cast<std::size_t>(place_.size()));
  if (place_.size() == 1) {
    told_[0] = mine_;
    return {};
  }
  Bucket bucket{.like = {.kind = Kind::allgather, .dtype = DType::u8},
                .path = DataPath::staged,
                .parts = {Part{.in = &mine_,
                               .out = told_.data(),
                               .elements = sizeof(Told),
                               .row_elements = sizeof(Told)}},
                .rows = std::vector<std::uint64_t>(told_.size(), 1)};
  HORO_TRY_STATUS(host.start(std::move(bucket)));
  ticket_ = host.started();
  return {};
}

std::vector<DeviceMember> DeviceChoice::members_of(std::size_t path) const {
  std::vector<DeviceMember> members;
  for (std::size_t p = 0; p < told_.size(); ++p) {
    const auto& told = told_[p].paths[path];
    members.push_back({.rank = place_.ranks[p].value(),
                       .host = place_.hosts.empty() ? 0 : place_.hosts[p],
                       .device = told_[p].device,
                       .uuid = text_of(told_[p].uuid, told_[p].uuid_length),
                       .offer = text_of(told.offer, told.offer_length),
                       .why_not = text_of(told.reason, told.reason_length)});
  }
  return members;
}

std::string DeviceChoice::why_not(std::size_t path) const {
  const auto members = members_of(path);
  for (const auto& member : members) {
    if (!member.why_not.empty()) return fmt::format("rank {}: {}", member.rank, member.why_not);
  }
  const auto together = paths_[path]->check(members);
  return together ? std::string() : together.error().message;
}

/// By hosts is the way where no path moves sums between all devices, unless it is asked for.
std::string DeviceChoice::why_spare(std::size_t path) const {
  if (paths_[path]->reach() == DeviceReach::set) return {};
  const auto better = std::find_if(ways_.begin(), ways_.end(), [&](const Way& way) {
    return way.path->reach() == DeviceReach::host || !paths_[path]->comes_first();
  });
  return better == ways_.end() ? std::string() : fmt::format("{} is used", better->path->name());
}

void DeviceChoice::try_next(OpenDevice* gpu) {
  for (; next_ < paths_.size(); ++next_) {
    auto reason = why_not(next_);
    if (reason.empty()) reason = why_spare(next_);
    if (reason.empty() && gpu != nullptr) return connect(*gpu);
    reasons_ += fmt::format("; {}: {}", paths_[next_]->name(), reason);
  }
  conclude();
}

void DeviceChoice::connect(OpenDevice& gpu) {
  connection_ = std::make_shared<Connection>();
  connection_->members = members_of(next_);
  connection_->path = paths_[next_];
  connection_->set = {.position = place_.position,
                      .members = connection_->members,
                      .gpu = &gpu,
                      .start_timeout = options_.start_timeout,
                      .timeout = options_.timeout};
  stage_ = Stage::connecting;
  connects_until_ = Deadline::in(SteadyClock::instance(), options_.start_timeout);
  try {
    thread_ = start_quiet_thread([connection = connection_] {
      connection->made = connection->path->connect(connection->set);
      connection->done.store(true, std::memory_order_release);
    });
  } catch (const std::system_error& error) {
    connection_->made =
        fail(Errc::resource_exhausted, "a thread cannot be started: {}", error.code().message());
    connection_->done.store(true, std::memory_order_release);
  }
}

bool DeviceChoice::has_connected() const {
  return connection_->done.load(std::memory_order_acquire) ||
         connects_until_.expired(SteadyClock::instance().now());
}

/// A library may wait without end for a rank that could not connect.
Status DeviceChoice::agree(Backend& host) {
  const auto name = paths_[next_]->name();
  if (!connection_->done.load(std::memory_order_acquire)) {
    verdict_ = Verdict::late;
    thread_.detach();  // It owns all that it uses.
  } else {
    if (thread_.joinable()) thread_.join();
    verdict_ = connection_->made ? Verdict::connected : Verdict::failed;
    if (!connection_->made)
      reasons_ += fmt::format("; {}: {}", name, connection_->made.error().message);
  }
  stage_ = Stage::agreeing;
  verdicts_.assign(static_cast<std::size_t>(place_.size()), verdict_);
  if (place_.size() == 1) return {};
  Bucket said{
      .like = {.kind = Kind::allgather, .dtype = DType::u8},
      .path = DataPath::staged,
      .parts = {Part{.in = &verdict_, .out = verdicts_.data(), .elements = 1, .row_elements = 1}},
      .rows = std::vector<std::uint64_t>(verdicts_.size(), 1)};
  HORO_TRY_STATUS(host.start(std::move(said)));
  ticket_ = host.started();
  return {};
}

/// Empty: all members have connected.
std::string DeviceChoice::disagreement() const {
  std::vector<int> failed;
  std::vector<int> late;
  for (std::size_t p = 0; p < verdicts_.size(); ++p) {
    if (verdicts_[p] == Verdict::connected) continue;
    (verdicts_[p] == Verdict::late ? late : failed).push_back(place_.ranks[p].value());
  }
  std::string text;
  if (!failed.empty()) text += fmt::format("ranks {} could not connect", fmt::join(failed, ", "));
  if (late.empty()) return text;
  const std::chrono::duration<double> limit = options_.start_timeout;
  return text + fmt::format("{}ranks {} still waited for the others after {} s (start.timeout)",
                            text.empty() ? "" : ", and ", fmt::join(late, ", "), limit.count());
}

void DeviceChoice::warn_of_shared_device() const {
  static std::atomic<bool> warned{false};
  if (place_.position != 0 || paths_.empty()) return;
  const auto members = members_of(0);
  const auto twins = shared_device(members);
  if (!twins || warned.exchange(true)) return;
  log::warn("runtime",
            "ranks {} and {} use one GPU (device {} of rank {}, {}), so they share its speed and "
            "NCCL cannot be used; start the job with --gpus auto, choose the device by the local "
            "rank, or start fewer ranks on the host",
            twins->first->rank, twins->second->rank, twins->second->device, twins->second->rank,
            twins->first->uuid);
}

void DeviceChoice::warn_of_late(const std::string& why) const {
  const bool late = std::find(verdicts_.begin(), verdicts_.end(), Verdict::late) != verdicts_.end();
  if (place_.position != 0 || !late) return;
  log::warn("runtime", "tensors in device memory do not move by {}: {}", paths_[next_]->name(),
            why);
}

void DeviceChoice::conclude() {
  stage_ = Stage::chosen;
  warn_of_shared_device();
  const bool by_hosts = std::any_of(paths_.begin(), paths_.end(),
                                    [](const auto& path) { return path->comes_first(); });
  paths_.clear();  // This frees what those that are not used allocated for their offers.
  const bool named =
      options_.wanted == GpuOperations::nccl || options_.wanted == GpuOperations::ipc;
  // hierarchical.allreduce concerns all sets, and those with one rank on each host are staged.
  if (ways_.empty() && named && !by_hosts) {
    refused_ = fail(Errc::unsupported, "gpu.operations asks for {}, which cannot be used{}",
                    word_of(options_.wanted), reasons_);
  }
  if (place_.position == 0) {
    std::string names;
    for (const auto& way : ways_) names += fmt::format("{} and ", way.path->described());
    log::info("runtime", "{} ranks move tensors in device memory by {}staged{}", place_.size(),
              names, reasons_);
  }
}

void DeviceChoice::take_agreed() {
  const auto why_not = disagreement();
  if (why_not.empty()) {
    const auto at = connection_->path->comes_first() ? ways_.begin() : ways_.end();
    ways_.insert(at, {connection_->path, std::move(*connection_->made)});
  } else {
    reasons_ += fmt::format("; {}: {}", paths_[next_]->name(), why_not);
    warn_of_late(why_not);
    // In good order it would wait for members that have not connected.
    if (verdict_ == Verdict::connected) (*connection_->made)->abort();
  }
  connection_.reset();
  ++next_;
  stage_ = Stage::trying;
}

Result<bool> DeviceChoice::advance(Backend& host, OpenDevice* gpu) {
  if (stage_ == Stage::start) {
    prepare(gpu);
    stage_ = Stage::telling;
    if (paths_.empty()) {
      conclude();
    } else {
      HORO_TRY_STATUS(tell(host));
    }
  }
  if (stage_ == Stage::telling && said(host)) stage_ = Stage::trying;
  if (stage_ == Stage::trying) try_next(gpu);
  if (stage_ == Stage::connecting && has_connected()) HORO_TRY_STATUS(agree(host));
  if (stage_ == Stage::agreeing && said(host)) {
    take_agreed();
    try_next(gpu);
  }
  return stage_ == Stage::chosen;
}

Backend* DeviceChoice::way_of(const Bucket& bucket) const {
  // Ranks that have joined, on whatever host, take part in host memory.
  if (bucket.partial || bucket.place == 0) return nullptr;
  std::uint64_t bytes = 0;
  for (const auto& part : bucket.parts) bytes += part.elements * size_of(bucket.like.dtype);
  Backend* other = nullptr;
  for (const auto& way : ways_) {
    if (!way.path->takes(bucket.like) || bytes < way.path->best_from()) continue;
    if (bytes <= way.path->best_up_to()) return way.backend.get();
    if (other == nullptr) other = way.backend.get();
  }
  return other;
}

const DeviceChoice::Way* DeviceChoice::find(const Backend* backend) const {
  const auto found = std::find_if(ways_.begin(), ways_.end(), [backend](const Way& way) {
    return way.backend.get() == backend;
  });
  return found == ways_.end() ? nullptr : &*found;
}

bool DeviceChoice::owns(const Backend* backend) const {
  return find(backend) != nullptr;
}

bool DeviceChoice::is_within_hosts(const Backend* backend) const {
  const auto* const way = find(backend);
  return way != nullptr && way->path->reach() == DeviceReach::host;
}

bool DeviceChoice::is_ordered(const Backend* backend) const {
  const auto* const way = find(backend);
  return way != nullptr && way->path->waits_on_device();
}

bool DeviceChoice::may_be_ordered() const {
  return stage_ != Stage::chosen || std::any_of(ways_.begin(), ways_.end(), [](const Way& way) {
           return way.path->waits_on_device();
         });
}

bool DeviceChoice::progress() {
  bool moved = false;
  for (const auto& way : ways_) moved = way.backend->progress() || moved;
  return moved;
}

Status DeviceChoice::health() const {
  for (const auto& way : ways_) HORO_TRY_STATUS(way.backend->health());
  return {};
}

void DeviceChoice::abort() {
  for (const auto& way : ways_) way.backend->abort();
  if (!thread_.joinable()) return;
  // A library that waits for a lost rank may never return. Its thread owns all that it uses.
  const auto& clock = SteadyClock::instance();
  const auto deadline = Deadline::in(clock, kLeavesThread);
  while (!connection_->done.load(std::memory_order_acquire) && !deadline.expired(clock.now()))
    std::this_thread::yield();
  if (connection_->done.load(std::memory_order_acquire)) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

}  // namespace horo::runtime
