// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/driver/cuda_driver.hpp"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>

#include "base/mutex.hpp"
#include "runtime/device/device_memory.hpp"
#include "runtime/device/driver/hip_calls.hpp"
#include "runtime/device/library_in_use.hpp"

namespace horo::runtime::cuda {

namespace {

constexpr Code kOutOfMemory = 2;
constexpr Code kNoDevice = 100;
constexpr Code kInvalidDevice = 101;

std::atomic<const Driver*> loaded{nullptr};
Mutex loading;

template <typename Function>
bool may_find(void* library, Function& function, const char* symbol) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

/// All of these functions, or the first is null.
void find_sharing(void* library, Driver& driver) {
  const auto& names = driver.names();
  if (!may_find(library, driver.open_memory, names.open_memory) ||
      !may_find(library, driver.close_memory, names.close_memory) ||
      !may_find(library, driver.share_event, names.share_event) ||
      !may_find(library, driver.open_event, names.open_event) ||
      !may_find(library, driver.share_memory, names.share_memory))
    driver.share_memory = nullptr;
}

/// Finds a function that has one of these names, of which the first ones are better.
template <typename Function, typename Names>
void find_first(void* library, Function& function, const Names& names) {
  for (const auto* const name : names) {
    if (may_find(library, function, name)) return;
  }
}

/// Finds functions that must be there, and lists those that are not.
struct Needed {
  template <typename Function>
  void operator()(Function& function, const char* symbol) {
    if (!may_find(library, function, symbol))
      missing += missing.empty() ? symbol : fmt::format(", {}", symbol);
  }

  void* library = nullptr;
  std::string missing{};
};

void find_launches(Needed& find, Driver& driver) {
  const auto& names = driver.names();
  find(driver.version, names.version);
  find(driver.load_module, names.load_module);
  find(driver.unload_module, names.unload_module);
  find(driver.module_function, names.module_function);
  find(driver.launch, names.launch);
}

/// Fills the table; the text lists the functions that the library lacks.
std::string find_functions(void* library, Driver& driver) {
  const auto& names = driver.names();
  Needed find{library};
  find_launches(find, driver);
  find(driver.init, names.init);
  find(driver.device_count, names.device_count);
  find(driver.device_get, names.device_get);
  find(driver.retain_primary_context, names.retain_primary_context);
  find(driver.release_primary_context, names.release_primary_context);
  find(driver.push_context, names.push_context);
  find(driver.pop_context, names.pop_context);
  find(driver.allocate, names.allocate);
  find(driver.free, names.free);
  find(driver.allocate_host, names.allocate_host);
  find(driver.free_host, names.free_host);
  find(driver.pointer_attribute, names.pointer_attribute);
  find(driver.copy, names.copy);
  find(driver.make_stream, names.make_stream);
  find(driver.make_stream_with_priority, names.make_stream_with_priority);
  find(driver.priority_range, names.priority_range);
  find(driver.destroy_stream, names.destroy_stream);
  find(driver.stream_is_capturing, names.stream_is_capturing);
  find(driver.make_event, names.make_event);
  find(driver.destroy_event, names.destroy_event);
  find(driver.record, names.record);
  find(driver.query, names.query);
  find(driver.wait, names.wait);
  find(driver.error_name, names.error_name);
  find(driver.error_text, names.error_text);
  if (find.missing.empty() && driver.api == &kHip) return adapt_hip(library, driver);
  return find.missing;
}

/// A library that is open, and which of the two it is.
struct Opened {
  void* library = nullptr;
  std::string file;
  const DeviceApi* api = &kCuda;
};

Failure not_loaded(const DeviceApi& api, const std::string& file, const char* why) {
  return fail(Errc::unavailable, "{} cannot be loaded: {}; {}", api.library,
              why == nullptr ? file : why, api.comes_with);
}

Result<Opened> open_file(const std::string& file) {
  Opened opened{.library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL), .file = file};
  if (opened.library == nullptr) {
    const char* const why = dlerror();
    const bool hip = file.substr(file.rfind('/') + 1).starts_with(kHip.prefix);
    return not_loaded(hip ? kHip : kCuda, file, why);
  }
  if (dlsym(opened.library, kHip.names.init) != nullptr) opened.api = &kHip;
  return opened;
}

/// The library that the program or this host needs. One that the program has loaded comes first:
/// two in one process share no streams.
Result<Opened> open_chosen() {
  const auto& api = choose_api(look_at_host());
  Opened opened{.library = nullptr, .file = loaded_library(api.prefix), .api = &api};
  std::string why;
  if (!opened.file.empty()) opened.library = dlopen(opened.file.c_str(), RTLD_NOW | RTLD_LOCAL);
  for (const auto* const file : api.files) {
    if (opened.library != nullptr || file == nullptr) break;
    opened.file = file;
    opened.library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const char* const said = opened.library == nullptr ? dlerror() : nullptr;
    if (why.empty() && said != nullptr) why = said;
  }
  if (opened.library == nullptr) return not_loaded(api, opened.file, why.c_str());
  return opened;
}

Failure no_device(const DeviceApi& api) {
  for (const auto* const variable : api.visibility) {
    const char* const visible = variable == nullptr ? nullptr : std::getenv(variable);
    if (visible == nullptr) continue;
    return fail(Errc::unavailable,
                "{} sees no device: {} is '{}'; it must begin with the number or UUID of a device "
                "of this machine, or be unset",
                api.library, variable, visible);
  }
  return fail(Errc::unavailable,
              "{} sees no device: this machine has none, or the container was not given any",
              api.library);
}

Status start(const Driver& driver) {
  auto code = driver.init(0);
  const char* call = driver.names().init;
  int count = 0;
  // Without a device, HIP's runtime does not start (kInvalidDevice), or its count is an error.
  const bool starts = code != kInvalidDevice || driver.api != &kHip;
  if (code == kSuccess) {
    call = driver.names().device_count;
    code = driver.device_count(&count);
  }
  if (code == kNoDevice || !starts || (code == kSuccess && count == 0))
    return no_device(*driver.api);
  if (auto ready = driver.status(code, call); !ready) {
    return fail(Errc::unavailable, "{} cannot be used: {}", driver.api->library,
                ready.error().message);
  }
  return {};
}

}  // namespace

Status Driver::status(Code code, std::string_view call) const {
  if (code == kSuccess) return {};
  if (call.ends_with("_v2")) call.remove_suffix(3);
  const char* name = nullptr;
  const char* text = nullptr;
  static_cast<void>(error_name(code, &name));
  static_cast<void>(error_text(code, &text));
  return fail(code == kOutOfMemory ? Errc::out_of_memory : Errc::io, "{}: {} ({}, {})", call,
              text == nullptr ? "an error that the driver does not know" : text,
              name == nullptr ? "no name" : name, code);
}

const Driver* loaded_driver() {
  return loaded.load(std::memory_order_acquire);
}

Result<std::unique_ptr<Driver>> start_driver(const std::string& file) {
  HORO_TRY(const auto opened, file.empty() || file == kAutomatic ? open_chosen() : open_file(file));
  auto driver = std::make_unique<Driver>();
  driver->api = opened.api;
  find_sharing(opened.library, *driver);
  find_first(opened.library, driver->device_uuid, driver->names().device_uuid);
  find_first(opened.library, driver->elapsed, driver->names().elapsed);
  may_find(opened.library, driver->exchange_capture_mode, driver->names().exchange_capture_mode);
  if (const auto missing = find_functions(opened.library, *driver); !missing.empty()) {
    return fail(Errc::unavailable, "{} has no {}; install {} or later", opened.file, missing,
                opened.api->oldest);
  }
  HORO_TRY_STATUS(start(*driver));
  return driver;
}

Result<const Driver*> load_driver(const std::string& file) {
  const MutexLock lock(loading);
  if (const auto* const driver = loaded_driver(); driver != nullptr) return driver;
  HORO_TRY(auto driver, start_driver(file));
  ask_about_memory(driver->pointer_attribute);
  // The library is never unloaded, because it may have threads.
  loaded.store(driver.get(), std::memory_order_release);
  return driver.release();
}

}  // namespace horo::runtime::cuda
