// SPDX-License-Identifier: Apache-2.0
#include "bindings/mpi_abi/departure.hpp"

#include <chrono>
#include <cstdlib>
#include <dirent.h>
#include <fstream>
#include <memory>
#include <pthread.h>
#include <string>
#include <system_error>
#include <unistd.h>

#include "bindings/mpi_abi/horo_functions.hpp"

namespace horo::mpi_abi {

namespace {

// So many looks in a row must find all threads asleep. A program of XLA either computes, or waits
// in a collective, which is counted; a thread that only waits for a processor does not sleep.
constexpr int kQuietLooks = 6;
constexpr auto kBetweenLooks = std::chrono::milliseconds(50);

// A rank that ends because a peer left waits so long, so that the launcher's report names the peer
// as the first failure.
constexpr auto kAfterPeer = std::chrono::seconds(1);

bool sleeps(const std::string& thread) {
  std::ifstream file("/proc/self/task/" + thread + "/stat");
  std::string text;
  if (!std::getline(file, text)) return true;  // it has ended
  const auto state = text.rfind(") ");         // behind the name, which may hold anything
  return state == std::string::npos || text.compare(state + 2, 1, "S") == 0;
}

/// Whether all threads of the process but the calling one sleep.
bool others_sleep() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc/self/task"), closedir);
  if (!folder) return false;
  const auto own = std::to_string(gettid());
  while (const auto* entry = readdir(folder.get())) {
    const std::string thread = entry->d_name;
    if (thread[0] != '.' && thread != own && !sleeps(thread)) return false;
  }
  return true;
}

}  // namespace

Departure& Departure::instance() {
  static auto* const one = new Departure();
  return *one;
}

bool Departure::enter() {
  const MutexLock lock(mutex_);
  if (state_ == State::left) return false;
  ++running_;
  ++entered_;
  return true;
}

void Departure::exit(horo_status status) {
  const MutexLock lock(mutex_);
  --running_;
  if (status == HORO_PEER_LOST || status == HORO_SHUT_DOWN) peer_left_ = true;
}

void Departure::begin() {
  const MutexLock lock(mutex_);
  if (state_ != State::taking_part) return;
  state_ = State::leaving;
  // It runs before libhoro leaves the job, because the function registered last is called first.
  if (std::atexit([] { instance().end(); }) != 0) return;
  try {
    watcher_ = std::thread([this] { watch(); });
    pthread_setname_np(watcher_.native_handle(), "horo-departure");
  } catch (const std::system_error&) {
    // At a limit on the number of threads. libhoro leaves when the process ends.
  }
}

void Departure::watch() {
  int quiet = 0;
  MutexLock lock(mutex_);
  while (state_ == State::leaving) {
    const auto before = entered_;
    lock.unlock();
    const bool asleep = others_sleep();
    lock.lock();
    quiet = asleep && running_ == 0 && entered_ == before ? quiet + 1 : 0;
    if (state_ == State::leaving && quiet == kQuietLooks) {
      state_ = State::left;
      horo_functions()->shutdown();  // with the mutex, since no other call may run meanwhile
      return;
    }
    lock.wait_for(changed_, kBetweenLooks);
  }
}

/// The process ends.
void Departure::end() {
  MutexLock lock(mutex_);
  state_ = State::left;
  const bool waits = peer_left_;
  changed_.notify_all();
  lock.unlock();
  if (watcher_.joinable()) watcher_.join();
  if (waits) std::this_thread::sleep_for(kAfterPeer);
}

}  // namespace horo::mpi_abi
