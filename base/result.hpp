// SPDX-License-Identifier: Apache-2.0
// The only way to report a failure. Causes from outside (files, flags, network, peers) give a
// Result; broken invariants of our own code abort through HORO_CHECK.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

namespace horo {

/// Kinds of failure. The values are part of the C ABI (runtime/include/horo/horo.h): append only.
enum class Errc : int {
  ok = 0,
  invalid_argument = 1,  ///< The caller's value is wrong; the message names it and what is allowed.
  not_found = 2,         ///< A file, host, key, program or operation does not exist.
  unavailable = 3,       ///< It exists but cannot be used now (busy, refused, limit reached).
  timed_out = 4,
  io = 5,  ///< The system refused; the message contains its error text.
  out_of_memory = 6,
  resource_exhausted = 7,  ///< One of Horo's limits was reached; the message names its knob.
  mismatch = 8,            ///< Ranks disagree about a tensor; the job continues.
  duplicate = 9,           ///< An operation of this name is already in flight.
  peer_lost = 10,          ///< A rank ended; every pending operation ends with this error.
  shut_down = 11,          ///< The runtime was shut down, here or by a peer.
  not_initialized = 12,
  forked = 13,  ///< Called in a forked child of the process that initialised.
  unsupported = 14,
  protocol = 15,  ///< Another process sent invalid bytes.
  permission_denied = 16,
  version_mismatch = 17,
  in_progress = 18,  ///< Not a failure: the operation has not completed yet.
  cancelled = 19,
  removed = 20,  ///< This process is no longer part of its elastic job, and should end.
};

inline constexpr Errc kLastErrc = Errc::removed;

/// Stable lower-case name, for messages and JSON.
std::string_view name(Errc code);

/// The property about which the ranks disagree. The values are part of the C ABI (horo_subject in
/// runtime/include/horo/horo.h): append only.
enum class ErrorSubject : std::uint8_t {
  none = 0,
  operation = 1,
  dtype = 2,
  shape = 3,
  root_rank = 4,
  reduce_op = 5,
  prescale = 6,
  postscale = 7,
  group = 8,        ///< The tensor's group, so other members of it may never complete.
  joined = 9,       ///< A rank has joined, and the operation is not possible without it.
  wire_dtype = 10,  ///< Or whether the rounding error is fed back.
  memory = 11,      ///< Host memory on one rank, device memory on another.
};

inline constexpr ErrorSubject kLastErrorSubject = ErrorSubject::memory;

/// Fields that do not apply are empty.
struct ErrorDetail {
  ErrorSubject subject = ErrorSubject::none;  ///< mismatch
  std::string tensor;                         ///< mismatch, duplicate: the name of the tensor.
  std::string host;                           ///< peer_lost: the host of the lost rank.
  std::vector<int> ranks;  ///< peer_lost: the lost rank. shut_down: the rank that has left.
};

// A false positive, for a Result that was moved from:
// NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign)
struct Error {
  Errc code = Errc::ok;
  std::string message;  ///< Names the object, the value and the remedy; lower case, no full stop.
  /// The same facts as fields, for code that must decide. Null for most errors.
  std::shared_ptr<const ErrorDetail> detail = nullptr;

  /// Adds `where` in front: "reading hostfile 'h': line 3: ...".
  Error context(std::string_view where) && {
    message = fmt::format("{}: {}", where, message);
    return std::move(*this);
  }
};

/// The error that `HORO_TRY` and `return fail(...)` pass on; converts to any Result.
class [[nodiscard]] Failure {
 public:
  explicit Failure(Error error) : error_(std::move(error)) {}

  Error take() && { return std::move(error_); }

  /// Adds the facts as fields.
  Failure with(ErrorDetail detail) && {
    error_.detail = std::make_shared<const ErrorDetail>(std::move(detail));
    return std::move(*this);
  }

 private:
  Error error_;
};

template <typename... Args>
Failure fail(Errc code, fmt::format_string<Args...> format, Args&&... args) {
  return Failure(Error{.code = code, .message = fmt::format(format, std::forward<Args>(args)...)});
}

/// Failure of a system call: `what` and the error text of `errno_value`.
Failure fail_errno(int errno_value, std::string_view what);

/// A value or an Error. The member names follow std::expected.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {
  }  // NOLINT(google-explicit-constructor): mirrors std::expected

  Result(Failure failure)
      : state_(std::in_place_index<1>, std::move(failure).take()) {
  }  // NOLINT(google-explicit-constructor): as above

  bool has_value() const { return state_.index() == 0; }

  explicit operator bool() const { return has_value(); }

  T& value() & { return std::get<0>(state_); }

  const T& value() const& { return std::get<0>(state_); }

  T&& value() && { return std::get<0>(std::move(state_)); }

  T& operator*() & { return value(); }

  const T& operator*() const& { return value(); }

  T&& operator*() && { return std::move(*this).value(); }

  T* operator->() { return &value(); }

  const T* operator->() const { return &value(); }

  const Error& error() const& { return std::get<1>(state_); }

  Error error() && { return std::get<1>(std::move(state_)); }

  T value_or(T other) && { return has_value() ? std::get<0>(std::move(state_)) : std::move(other); }

  Result context(std::string_view where) && {
    if (has_value()) return std::move(*this);
    return Failure(std::move(*this).error().context(where));
  }

 private:
  std::variant<T, Error> state_;
};

/// Success without a value, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;

  Result(Failure failure)
      : error_(std::move(failure).take()) {
  }  // NOLINT(google-explicit-constructor): mirrors std::expected

  bool has_value() const { return !error_.has_value(); }

  explicit operator bool() const { return has_value(); }

  const Error& error() const& { return *error_; }

  Error error() && { return std::move(*error_); }

  Result context(std::string_view where) && {
    if (has_value()) return {};
    return Failure(std::move(*error_).context(where));
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

/// Reports a broken invariant and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition);

}  // namespace horo

// Only for invariants of our own code: never for input, shared memory or network content.
#define HORO_CHECK(condition)                               \
  do {                                                      \
    if (!(condition)) [[unlikely]]                          \
      ::horo::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)

#define HORO_CONCAT_(a, b) a##b
#define HORO_CONCAT(a, b) HORO_CONCAT_(a, b)

// HORO_TRY(auto hosts, source.list(deadline)) declares the value, or returns the error.
#define HORO_TRY(declaration, expression) \
  HORO_TRY_(HORO_CONCAT(horo_try_, __LINE__), declaration, expression)
#define HORO_TRY_(name, declaration, expression)     \
  auto name = (expression);                          \
  if (!name) [[unlikely]]                            \
    return ::horo::Failure(std::move(name).error()); \
  declaration = std::move(name).value()

// HORO_TRY_STATUS(store.set(k, v)) returns the error of a Status, if it has one.
#define HORO_TRY_STATUS(expression)                                 \
  do {                                                              \
    if (auto horo_status = (expression); !horo_status) [[unlikely]] \
      return ::horo::Failure(std::move(horo_status).error());       \
  } while (false)
