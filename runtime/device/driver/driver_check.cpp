// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/driver/driver_check.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <dlfcn.h>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/unique_fd.hpp"
#include "runtime/device/driver/cuda_driver.hpp"
#include "runtime/device/library_in_use.hpp"

namespace horo::runtime::cuda {

namespace {

constexpr Duration kLongest = std::chrono::minutes(1);
constexpr Duration kLongestEnd = std::chrono::seconds(1);
constexpr Code kNotInitialized = 3;
// The first byte of an answer. Others are the code of an error.
constexpr char kCudaUsable = '+';
constexpr char kHipUsable = '*';

/// The file that load_driver() would open, if it is loaded in this process.
std::string loaded_file(const std::string& file) {
  if (!file.empty() && file != kAutomatic) return file;
  return loaded_library(choose_api(look_at_host()).prefix);
}

/// Somebody has started the driver in this process.
bool runs_here(const std::string& file) {
  if (loaded_driver() != nullptr) return true;
  const auto path = loaded_file(file);
  if (path.empty()) return false;
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (library == nullptr) return false;
  const bool hip = dlsym(library, kHip.names.init) != nullptr;
  const auto count_devices =
      reinterpret_cast<decltype(Driver::device_count)>(dlsym(library, kCuda.names.device_count));
  int count = 0;
  const bool runs = hip || (count_devices != nullptr && count_devices(&count) != kNotInitialized);
  dlclose(library);
  return runs;
}

/// In the child, whose parent may have had other threads: it takes no lock that one of them may
/// have held.
[[noreturn]] void answer(const std::string& file, int to) {
  const auto driver = start_driver(file);
  std::string text(1, kCudaUsable);
  if (driver && (*driver)->api == &kHip) text = kHipUsable;
  if (!driver)
    text = fmt::format("{}{}", static_cast<char>(driver.error().code), driver.error().message);
  // A parent that no longer listens needs no answer.
  static_cast<void>(!write(to, text.data(), text.size()));
  _exit(0);
}

/// All that comes until the other end is closed; nothing when the time is over.
std::optional<std::string> read_all(int from, const Deadline& deadline) {
  const auto& clock = SteadyClock::instance();
  std::string text;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.left(clock.now()));
    pollfd watched{.fd = from, .events = POLLIN, .revents = 0};
    const int ready = poll(&watched, 1, static_cast<int>(left.count()));
    if (ready == 0) return {};
    if (ready < 0) continue;  // A signal; the time still counts.
    std::array<char, 512> bytes{};
    const auto count = read(from, bytes.data(), bytes.size());
    if (count > 0) text.append(bytes.data(), static_cast<std::size_t>(count));
    if (count == 0) return text;
  }
}

/// Takes the end of the child, unless the driver keeps it in a call that no signal ends.
void reap(pid_t child, const Deadline& deadline) {
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (deadline.expired(SteadyClock::instance().now())) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

Result<const DeviceApi*> result_of(const std::optional<std::string>& text) {
  if (!text) {
    return fail(Errc::unavailable, "the driver of the GPUs has not started within {} seconds",
                std::chrono::duration_cast<std::chrono::seconds>(kLongest).count());
  }
  if (text->empty()) {
    return fail(Errc::unavailable,
                "the driver of the GPUs cannot be used: the process that started it has ended");
  }
  if (text->front() == kCudaUsable) return &kCuda;
  if (text->front() == kHipUsable) return &kHip;
  return fail(static_cast<Errc>(text->front()), "{}", text->substr(1));
}

}  // namespace

Result<const DeviceApi*> check_driver(const std::string& file) {
  if (runs_here(file)) {
    HORO_TRY(const auto* const driver, load_driver(file));
    return driver->api;
  }
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(errno, "asking for a GPU's driver");
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  const pid_t child = fork();
  if (child < 0) return fail_errno(errno, "asking for a GPU's driver");
  if (child == 0) answer(file, to.value());
  to.reset();
  const auto text = read_all(from.value(), Deadline::in(SteadyClock::instance(), kLongest));
  if (!text) kill(child, SIGKILL);
  reap(child, Deadline::in(SteadyClock::instance(), kLongestEnd));
  return result_of(text);
}

}  // namespace horo::runtime::cuda
