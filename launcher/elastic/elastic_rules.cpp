// SPDX-License-Identifier: Apache-2.0
#include "launcher/elastic/elastic_rules.hpp"

namespace horo::launcher {

namespace {

Status check_numbers(const ElasticRules& rules) {
  if (rules.min_np < 1 || rules.min_np > kMaxRanks) {
    return fail(Errc::invalid_argument, "--min-np {} must be a number from 1 to {}", rules.min_np,
                kMaxRanks);
  }
  if (rules.max_np < rules.min_np) {
    return fail(Errc::invalid_argument,
                "--max-np {} is less than --min-np {}; raise the one or lower the other",
                rules.max_np, rules.min_np);
  }
  if (rules.np < rules.min_np || rules.np > rules.max_np) {
    return fail(Errc::invalid_argument, "-np {} must be from --min-np {} to --max-np {}", rules.np,
                rules.min_np, rules.max_np);
  }
  if (rules.spares < 0 || rules.spares > kMaxRanks)
    return fail(Errc::invalid_argument, "--spares {} must be a number from 0 up", rules.spares);
  if (rules.spares > 0 && rules.max_np >= kMaxRanks) {
    return fail(Errc::invalid_argument,
                "--spares {} needs --max-np: without it every worker is a member, and none is kept "
                "ready",
                rules.spares);
  }
  if (rules.slot_restarts < 0) {
    return fail(Errc::invalid_argument, "--slot-restarts {} must be a number from 0 up",
                rules.slot_restarts);
  }
  if (rules.reset_limit && *rules.reset_limit < 0) {
    return fail(Errc::invalid_argument, "--reset-limit {} must be a number from 0 up",
                *rules.reset_limit);
  }
  return {};
}

long long seconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

}  // namespace

Status check(const ElasticRules& rules) {
  HORO_TRY_STATUS(check_numbers(rules));
  if (!rules.cooldown) return {};
  const auto [least, most] = *rules.cooldown;
  if (least < std::chrono::seconds(1) || most > std::chrono::hours(1) || least > most) {
    return fail(
        Errc::invalid_argument,
        "--blacklist-cooldown-range {} {}: the first number must be from 1 to 3600 seconds, "
        "and the second from there to 3600",
        seconds(least), seconds(most));
  }
  return {};
}

}  // namespace horo::launcher
