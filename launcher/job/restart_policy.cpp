// SPDX-License-Identifier: Apache-2.0
#include "launcher/job/restart_policy.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstring>
#include <optional>
#include <sys/wait.h>

#include "base/knobs/launcher_knobs.hpp"
#include "base/knobs/value.hpp"
#include "launcher/job/job_state.hpp"

namespace horo::launcher {

namespace {

using namespace std::chrono_literals;

constexpr Duration kLongestPause = 30s;
constexpr int kMostCode = 255;

std::optional<int> number_of(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

/// A duration in the form that --timeout reads; 0: `text` is none.
Duration duration_of(std::string_view text) {
  const auto rows = knob_rows();
  const auto row = std::find_if(rows.begin(), rows.end(), [](const KnobRow& candidate) {
    return candidate.text->key == knobs::kTimeout.text.key;
  });
  const auto value = parse_knob(*row, {}, text);
  if (!value || !std::holds_alternative<std::int64_t>(*value)) return {};
  return Duration(std::get<std::int64_t>(*value));
}

std::optional<int> signal_of(std::string_view name) {
  if (!name.starts_with("SIG")) return std::nullopt;
  for (int number = 1; number < NSIG; ++number) {
    const char* known = sigabbrev_np(number);
    if (known != nullptr && name.substr(3) == known) return number;
  }
  return std::nullopt;
}

Status add_cause(RestartPolicy& policy, std::string_view word) {
  if (word == "any") {
    policy.after_anything = true;
    return {};
  }
  if (const auto number = signal_of(word)) {
    policy.signals.push_back(*number);
    return {};
  }
  const auto dash = word.find('-');
  const auto first = number_of(word.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : number_of(word.substr(dash + 1));
  if (!first || !last || *first < 1 || *last < *first || *last > kMostCode) {
    return fail(Errc::invalid_argument,
                "'{}' in --restart-on is neither an exit code of 1-255, as 75 or 100-110, nor a "
                "signal, as SIGSEGV, nor 'any'",
                word);
  }
  for (int code = *first; code <= *last; ++code) policy.codes.push_back(code);
  return {};
}

bool has(const std::vector<int>& list, int number) {
  return std::find(list.begin(), list.end(), number) != list.end();
}

bool is_worth_it(const RestartPolicy& policy, const FirstFailure& failure) {
  switch (failure.kind) {
    case FailureKind::exited:
      return policy.after_anything || has(policy.codes, WEXITSTATUS(failure.exit.wait_status));
    case FailureKind::signalled: {
      const int number = WTERMSIG(failure.exit.wait_status);
      return policy.after_anything || number == SIGKILL || has(policy.signals, number);
    }
    case FailureKind::left:
      return policy.after_anything;
    case FailureKind::not_spawned:
    case FailureKind::host_lost:
      return may_pass(failure.error);
    case FailureKind::start_timeout:
      return true;
    case FailureKind::time_limit:
      return false;
  }
  return false;
}

}  // namespace

Result<RestartPolicy> RestartPolicy::parse(std::string_view most, std::string_view after) {
  RestartPolicy policy;
  const auto slash = most.find('/');
  const auto number = number_of(most.substr(0, slash));
  if (!number)
    return fail(Errc::invalid_argument, "--max-restarts '{}' is not a number, as 3, or 3/1h", most);
  policy.most = *number;
  if (slash != std::string_view::npos) {
    policy.within = duration_of(most.substr(slash + 1));
    if (policy.within == Duration::zero()) {
      return fail(Errc::invalid_argument,
                  "--max-restarts '{}': the time behind the slash is not one, as 10min or 3600",
                  most);
    }
  }
  while (!after.empty()) {
    const auto word = after.substr(0, after.find(','));
    after.remove_prefix(std::min(after.size(), word.size() + 1));
    HORO_TRY_STATUS(add_cause(policy, word));
  }
  return policy;
}

bool may_pass(const Error& error) {
  return error.code != Errc::not_found && error.code != Errc::permission_denied &&
         error.code != Errc::version_mismatch && error.code != Errc::invalid_argument;
}

RestartDecision decide_restart(const RestartPolicy& policy, const JobState& state,
                               const std::vector<TimePoint>& earlier, TimePoint now) {
  const auto& failure = state.generation.first_failure;
  if (!failure || state.interrupted || state.noticed) return {};
  return decide_restart(policy, *failure, state.generation.survivors != 0, earlier, now);
}

RestartDecision decide_restart(const RestartPolicy& policy, const FirstFailure& failure,
                               bool processes_left, const std::vector<TimePoint>& earlier,
                               TimePoint now) {
  if (policy.most == 0) return {};
  if (!is_worth_it(policy, failure)) {
    if (failure.kind == FailureKind::time_limit) return {};
    return {false, "not restarted: this is a failure of the program (see --restart-on)"};
  }
  if (processes_left) return {false, "not restarted: processes of this attempt are still there"};
  const auto spent = std::count_if(earlier.begin(), earlier.end(), [&](TimePoint at) {
    return policy.within == Duration::zero() || now - at < policy.within;
  });
  if (spent >= policy.most) return {false, "not restarted: --max-restarts is used up"};
  return {true, {}};
}

Duration restart_pause(std::size_t count) {
  Duration pause = Duration::zero();
  for (; count > 0 && pause < kLongestPause; --count) pause = 2 * pause + 1s;
  return std::min(pause, kLongestPause);
}

}  // namespace horo::launcher
