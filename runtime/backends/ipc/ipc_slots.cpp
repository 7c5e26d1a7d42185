// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/ipc/ipc_slots.hpp"

#include <cstring>
#include <fcntl.h>
#include <new>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace horo::runtime::ipc {

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHandleBytes = 64;

using Handle = std::array<char, kHandleBytes>;

/// The bytes of an offer.
struct Offer {
  std::int32_t process = 0;
  std::int32_t file = -1;
  Handle memory{};
  std::array<Handle, kSlots> packed{};
  std::array<Handle, kSlots> reduced{};
};

Status put(Handle& handle, Result<std::string> bytes) {
  HORO_TRY(const auto text, std::move(bytes));
  if (text.size() != handle.size())
    return fail(Errc::protocol, "a handle of device memory has {} bytes", text.size());
  std::memcpy(handle.data(), text.data(), text.size());
  return {};
}

std::string bytes_of(const Handle& handle) {
  return {handle.begin(), handle.end()};
}

}  // namespace

Status Slots::map(UniqueFd file) {
  file_ = std::move(file);
  void* const page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file_.value(), 0);
  if (page == MAP_FAILED) return fail_errno(errno, "mapping counters of ranks");
  counters_ = static_cast<Counters*>(page);
  return {};
}

Result<std::unique_ptr<Slots>> Slots::make(Device& device, const SharedDevice& shared) {
  std::unique_ptr<Slots> made(new Slots(device, shared, true));
  HORO_TRY(made->memory_, device.allocate(kSlots * kSlotBytes));
  for (std::size_t s = 0; s < kSlots; ++s) {
    HORO_TRY(made->packed_[s], shared.make_event());
    HORO_TRY(made->reduced_[s], shared.make_event());
  }
  UniqueFd file(memfd_create("horo-ipc", MFD_CLOEXEC));
  if (!file || ftruncate(file.value(), kPage) != 0)
    return fail_errno(errno, "making counters of ranks");
  HORO_TRY_STATUS(made->map(std::move(file)));
  new (made->counters_) Counters;
  return made;
}

Result<std::string> Slots::offer() const {
  Offer offer{.process = getpid(), .file = file_.value()};
  HORO_TRY_STATUS(put(offer.memory, shared_.share_memory(memory_)));
  for (std::size_t s = 0; s < kSlots; ++s) {
    HORO_TRY_STATUS(put(offer.packed[s], shared_.share_event(packed_[s])));
    HORO_TRY_STATUS(put(offer.reduced[s], shared_.share_event(reduced_[s])));
  }
  return std::string(reinterpret_cast<const char*>(&offer), sizeof offer);
}

Result<std::unique_ptr<Slots>> Slots::open(Device& device, const SharedDevice& shared,
                                           const std::string& text) {
  Offer offer;
  if (text.size() != sizeof offer)
    return fail(Errc::protocol, "{} bytes are no offer of the backend ipc", text.size());
  std::memcpy(&offer, text.data(), sizeof offer);
  std::unique_ptr<Slots> made(new Slots(device, shared, false));
  const auto path = fmt::format("/proc/{}/fd/{}", offer.process, offer.file);
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) {
    return fail(Errc::peer_lost,
                "process {} cannot be reached: {}; ranks that use 'ipc' must run as one user and "
                "see each other's processes",
                offer.process, std::strerror(errno));
  }
  made->process_ = UniqueFd(static_cast<int>(syscall(SYS_pidfd_open, offer.process, 0)));
  HORO_TRY_STATUS(made->map(std::move(file)));
  HORO_TRY(made->memory_, shared.open_memory(bytes_of(offer.memory)));
  for (std::size_t s = 0; s < kSlots; ++s) {
    HORO_TRY(made->packed_[s], shared.open_event(bytes_of(offer.packed[s])));
    HORO_TRY(made->reduced_[s], shared.open_event(bytes_of(offer.reduced[s])));
  }
  return made;
}

bool Slots::ended() const {
  pollfd watched{.fd = process_.value(), .events = POLLIN, .revents = 0};
  return process_ && poll(&watched, 1, 0) == 1;
}

Slots::~Slots() {
  for (std::size_t s = 0; s < kSlots; ++s) {
    if (packed_[s] != nullptr) device_.destroy_event(packed_[s]);
    if (reduced_[s] != nullptr) device_.destroy_event(reduced_[s]);
  }
  if (memory_ != nullptr && own_) device_.free(memory_);
  if (memory_ != nullptr && !own_) shared_.close_memory(memory_);
  if (counters_ != nullptr) munmap(counters_, kPage);
}

}  // namespace horo::runtime::ipc
