// SPDX-License-Identifier: Apache-2.0
// PMIx by dlopen: a build needs no PMIx, and a process that has one loaded (MPI's) shares it.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <memory>
#include <type_traits>

#include "runtime/bootstrap/identity/process_manager.hpp"

namespace horo::runtime::bootstrap {

namespace {

// The little that is used of libpmix.so.2's ABI, which its soname promises.
struct Process {
  char space[256];
  std::uint32_t rank;
};

struct Value {
  std::uint16_t type;

  union {
    bool flag;
    int number;
    char* text;
    std::uint64_t room[3];
  } data;
};

struct Info {
  char key[512];
  std::uint32_t flags;
  Value value;
};

static_assert(sizeof(Process) == 260 && sizeof(Value) == 32 && sizeof(Info) == 552);

constexpr std::uint16_t kBool = 1;
constexpr std::uint16_t kString = 3;
constexpr std::uint16_t kInt = 6;
constexpr std::uint8_t kGlobal = 3;
constexpr std::uint32_t kAllRanks = 0xffffffffU - 1;
constexpr int kTimedOut = -24;
constexpr const char* kPmixKey = "horo.store";

/// Connected while it lives; PMIx counts its users in the process. Open MPI cannot connect again
/// once all have closed it, so this object lasts until the process ends.
class Pmix {
 public:
  static Result<std::unique_ptr<Pmix>> open() {
    HORO_TRY(auto pmix, load());
    HORO_TRY_STATUS(pmix->check(pmix->init_(&pmix->me_, nullptr, 0), "PMIx_Init"));
    pmix->connected_ = true;
    return pmix;
  }

  /// Not connected.
  static Result<std::unique_ptr<Pmix>> load() {
    void* library = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      return fail(Errc::not_found, "the ranks' PMIx needs libpmix.so.2: {}", dlerror());
    }
    std::unique_ptr<Pmix> pmix(new Pmix());
    const auto find = [library](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    if (!find(pmix->init_, "PMIx_Init") || !find(pmix->put_, "PMIx_Put") ||
        !find(pmix->commit_, "PMIx_Commit") || !find(pmix->fence_, "PMIx_Fence") ||
        !find(pmix->get_, "PMIx_Get") || !find(pmix->finalize_, "PMIx_Finalize") ||
        !find(pmix->describe_, "PMIx_Error_string"))
      return fail(Errc::version_mismatch, "libpmix.so.2 lacks a function: {}", dlerror());
    return pmix;
  }

  Pmix(const Pmix&) = delete;
  Pmix& operator=(const Pmix&) = delete;

  ~Pmix() {
    if (connected_) finalize_(nullptr, 0);
  }

  Status put(const std::string& word) {
    auto text = word;
    Value value{.type = kString, .data = {.text = text.data()}};
    HORO_TRY_STATUS(check(put_(kGlobal, kPmixKey, &value), "PMIx_Put"));
    return check(commit_(), "PMIx_Commit");
  }

  Status fence(const Deadline& deadline) {
    const auto left =
        std::min<Duration>(deadline.left(SteadyClock::instance().now()), std::chrono::hours(24));
    std::array<Info, 2> wishes{};
    std::strcpy(wishes[0].key, "pmix.collect");
    wishes[0].value = {.type = kBool, .data = {.flag = true}};
    std::strcpy(wishes[1].key, "pmix.timeout");
    wishes[1].value = {.type = kInt,
                       .data = {.number = static_cast<int>(
                                    std::chrono::ceil<std::chrono::seconds>(left).count())}};
    auto all = me_;
    all.rank = kAllRanks;
    const int code = fence_(&all, 1, wishes.data(), wishes.size());
    if (code != kTimedOut) return check(code, "PMIx_Fence");
    return fail(Errc::timed_out,
                "not all ranks have called horo_init (PMIx); raise HORO_START_TIMEOUT if they are "
                "only slow");
  }

  Result<std::string> get() {
    auto first = me_;
    first.rank = 0;
    Value* value = nullptr;
    HORO_TRY_STATUS(check(get_(&first, kPmixKey, nullptr, 0, &value), "PMIx_Get"));
    if (value == nullptr || value->type != kString || value->data.text == nullptr)
      return fail(Errc::protocol, "PMIx gives a value that is not a text");
    std::string word = value->data.text;
    std::free(value->data.text);
    std::free(value);
    return word;
  }

 private:
  Pmix() = default;

  Status check(int code, std::string_view what) const {
    if (code == 0) return {};
    return fail(Errc::unavailable, "{}: {}", what, describe_(code));
  }

  int (*init_)(Process*, Info*, std::size_t) = nullptr;
  int (*put_)(std::uint8_t, const char*, Value*) = nullptr;
  int (*commit_)() = nullptr;
  int (*fence_)(const Process*, std::size_t, const Info*, std::size_t) = nullptr;
  int (*get_)(const Process*, const char*, const Info*, std::size_t, Value**) = nullptr;
  int (*finalize_)(const Info*, std::size_t) = nullptr;
  const char* (*describe_)(int) = nullptr;
  Process me_{};
  bool connected_ = false;
};

/// The process's own; PMIx is one per process too.
std::unique_ptr<Pmix>& connection() {
  static auto* const instance = new std::unique_ptr<Pmix>;  // Exit handlers may still use it.
  return *instance;
}

}  // namespace

bool has_pmix(const Lookup& lookup) {
  return lookup("PMIX_NAMESPACE") != nullptr && lookup("PMIX_RANK") != nullptr;
}

Result<std::string> broadcast_by_pmix(Rank me, const std::string& word, const Deadline& deadline) {
  auto& pmix = connection();
  if (!pmix) {
    HORO_TRY(pmix, Pmix::open());
  }
  if (me == Rank{0}) HORO_TRY_STATUS(pmix->put(word));
  HORO_TRY_STATUS(pmix->fence(deadline));
  return pmix->get();
}

Status pmix_usable() {
  HORO_TRY(const auto pmix, Pmix::load());
  static_cast<void>(pmix);
  return {};
}

void leave_pmix() {
  connection().reset();
}

}  // namespace horo::runtime::bootstrap
