// SPDX-License-Identifier: Apache-2.0
#include "tests/software_device/nccl/shared_memory.hpp"

#include <climits>
#include <cstdlib>
#include <fcntl.h>
#include <linux/futex.h>
#include <random>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/format.h>

namespace horo::software_nccl {

namespace {

constexpr long kPatienceNs = 20'000'000;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + 4095) / 4096 * 4096;
}

/// A lock on the byte of a rank's number ends with the process.
struct flock lock_of(int rank) {
  struct flock lock {};

  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

}  // namespace

std::string SharedMemory::new_name() {
  std::random_device random;
  return fmt::format("horo-nccl-{}-{:08x}{:08x}", getpid(), random(), random());
}

std::unique_ptr<SharedMemory> SharedMemory::open(const std::string& name, int ranks, int rank) {
  const char* folder = std::getenv("HORO_SOFTWARE_NCCL_FOLDER");
  std::unique_ptr<SharedMemory> made(new SharedMemory);
  made->path_ = fmt::format("{}/{}", folder == nullptr ? "/dev/shm" : folder, name);
  made->ranks_ = ranks;
  made->rank_ = rank;
  if (!made->map()) return nullptr;
  return made;
}

bool SharedMemory::map() {
  const auto n = static_cast<std::size_t>(ranks_);
  size_ = whole_pages(sizeof(Head)) + n * whole_pages(sizeof(Slot)) +
          n * n * whole_pages(sizeof(Mailbox));
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(size_)) != 0) return false;
  void* const memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
  memory_ = memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
  return memory_ != nullptr;
}

SharedMemory::~SharedMemory() {
  if (memory_ != nullptr) {
    if (!all_joined()) unlink(path_.c_str());
    munmap(memory_, size_);
  }
  if (file_ >= 0) close(file_);
}

bool SharedMemory::join(std::uint64_t device) {
  auto lock = lock_of(rank_);
  if (fcntl(file_, F_OFD_SETLK, &lock) != 0) return false;
  member(rank_).device = device;
  if (member(rank_).joined.exchange(1) != 0) return false;
  if (all_joined()) unlink(path_.c_str());
  ring();
  return true;
}

bool SharedMemory::all_joined() const {
  for (int r = 0; r < ranks_; ++r) {
    if (member(r).joined.load(std::memory_order_acquire) == 0) return false;
  }
  return true;
}

Slot& SharedMemory::slot(int rank) const {
  auto* const first = memory_ + whole_pages(sizeof(Head));
  return *reinterpret_cast<Slot*>(first +
                                  static_cast<std::size_t>(rank) * whole_pages(sizeof(Slot)));
}

Mailbox& SharedMemory::mailbox(int from, int to) const {
  const auto n = static_cast<std::size_t>(ranks_);
  auto* const first = memory_ + whole_pages(sizeof(Head)) + n * whole_pages(sizeof(Slot));
  const auto index = static_cast<std::size_t>(from) * n + static_cast<std::size_t>(to);
  return *reinterpret_cast<Mailbox*>(first + index * whole_pages(sizeof(Mailbox)));
}

bool SharedMemory::has_ended(int rank) const {
  auto lock = lock_of(rank);
  return fcntl(file_, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

void SharedMemory::ring() const {
  head().bell.fetch_add(1, std::memory_order_acq_rel);
  syscall(SYS_futex, &head().bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void SharedMemory::await_bell(std::uint32_t heard) const {
  const timespec patience{.tv_sec = 0, .tv_nsec = kPatienceNs};
  syscall(SYS_futex, &head().bell, FUTEX_WAIT, heard, &patience, nullptr, 0);
}

}  // namespace horo::software_nccl
