// SPDX-License-Identifier: Apache-2.0
#include "tests/software_device/nccl/software_communicator.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tests/software_device/nccl/device_library.hpp"
#include "tests/software_device/nccl/plan.hpp"

namespace horo::software_nccl {

Communicator::Communicator(Place place)
    : sent(static_cast<std::size_t>(place.ranks)),
      received(static_cast<std::size_t>(place.ranks)),
      place_(std::move(place)),
      number_(std::hash<std::string>{}(place_.id)),
      memory_(SharedMemory::open(place_.id, place_.ranks, place_.rank)) {}

Communicator::~Communicator() {
  if (joining_.joinable()) joining_.join();
}

int Communicator::join() {
  if (memory_ == nullptr) return kInvalidArgument;
  if (!memory_->join(place_.device_of_all)) {
    Plan::instance().find(
        fmt::format("rank {} of communicator {} joins twice", place_.rank, place_.id));
    return kInvalidArgument;
  }
  return meet();
}

int Communicator::meet() {
  if (!await([this] { return memory_->all_joined(); })) return kInvalidUsage;
  for (int r = 0; r < place_.ranks; ++r) {
    if (r == place_.rank || memory_->member(r).device != place_.device_of_all) continue;
    Plan::instance().find(fmt::format("ranks {} and {} of communicator {} are on one device",
                                      std::min(r, place_.rank), std::max(r, place_.rank),
                                      place_.id));
    return kInvalidUsage;
  }
  return kSuccess;
}

void Communicator::join_later() {
  error_ = kInProgress;
  joining_ = std::thread([this] { error_ = join(); });
}

void Communicator::fail(int error) {
  error_ = error;
  memory_->ring();
}

void Communicator::abort() {
  aborted_ = true;
  if (memory_ == nullptr) return;
  memory_->member(place_.rank).aborted = 1;
  memory_->ring();
}

std::uint64_t Communicator::take_ticket(std::uint64_t collectives) {
  started_ += collectives;
  return tickets_++;
}

bool Communicator::begin(std::uint64_t ticket) {
  return await([this, ticket] { return ran_.load() == ticket; });
}

void Communicator::end() {
  ++ran_;
  memory_->ring();
}

bool Communicator::lost_a_peer() {
  if (!Plan::instance().peers_are_remote()) return false;
  for (int r = 0; r < place_.ranks; ++r) {
    if (r == place_.rank || memory_->member(r).joined == 0) continue;
    if (memory_->member(r).aborted != 0 || memory_->has_ended(r)) return true;
  }
  return false;
}

bool Communicator::await(const std::function<bool()>& ready) {
  for (;;) {
    const auto heard = memory_->bell();
    if (aborted_) return false;
    if (ready()) return true;
    const auto* const device = device_library();
    if (device == nullptr || device->broken() != 0) return false;
    if (error_ == kSuccess && lost_a_peer()) error_ = kRemoteError;
    memory_->await_bell(heard);
  }
}

// -- Communicators --------------------------------------------------------------------------------

Communicators& Communicators::instance() {
  static auto* const all = new Communicators;  // Threads may use it until the process ends.
  return *all;
}

Handle* Communicators::add(std::shared_ptr<Communicator> communicator) {
  const std::lock_guard lock(mutex_);
  auto made = std::make_unique<Handle>();
  made->communicator = std::move(communicator);
  return handles_.emplace_back(std::move(made)).get();
}

/// Under the lock.
std::shared_ptr<Communicator> Communicators::find_locked(void* handle, const char* call) {
  for (const auto& known : handles_) {
    if (known.get() != handle) continue;
    if (known->communicator != nullptr) return known->communicator;
    Plan::instance().find(
        fmt::format("{} of a communicator that {} has ended", call, known->ended));
    return nullptr;
  }
  Plan::instance().find(fmt::format("{} of {}, which is no communicator", call, handle));
  return nullptr;
}

std::shared_ptr<Communicator> Communicators::find(void* handle, const char* call) {
  const std::lock_guard lock(mutex_);
  return find_locked(handle, call);
}

std::shared_ptr<Communicator> Communicators::end(void* handle, const char* call) {
  const std::lock_guard lock(mutex_);
  auto found = find_locked(handle, call);
  if (found == nullptr) return nullptr;
  auto& known = *static_cast<Handle*>(handle);
  known.communicator = nullptr;
  known.ended = call;
  return found;
}

void Communicators::ring(int device) {
  const std::lock_guard lock(mutex_);
  for (const auto& known : handles_) {
    if (known->communicator != nullptr && known->communicator->place().device == device)
      known->communicator->memory().ring();
  }
}

void Communicators::describe_others(const Communicator& except, Operation& operation) {
  const std::lock_guard lock(mutex_);
  // The youngest first, when there are more than fit.
  for (auto known = handles_.rbegin(); known != handles_.rend(); ++known) {
    const auto& other = (*known)->communicator;
    if (other == nullptr || other.get() == &except || operation.others == kMostOthers) continue;
    if (other->place().device != except.place().device) continue;
    operation.other.at(operation.others++) = {other->number(), other->started()};
  }
}

}  // namespace horo::software_nccl
