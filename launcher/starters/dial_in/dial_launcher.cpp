// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/dial_in/dial_launcher.hpp"

#include <algorithm>
#include <charconv>

#include "base/kv/client.hpp"

namespace horo::launcher {

namespace {

constexpr Duration kAttempt = std::chrono::seconds(3);  ///< The longest time for one address.

Result<kv::Secret> secret_from(std::string_view text) {
  kv::Secret secret{};
  if (text.size() == 2 * secret.size()) {
    bool good = true;
    for (std::size_t i = 0; i < secret.size() && good; ++i) {
      const char* begin = text.data() + 2 * i;
      const auto [end, error] = std::from_chars(begin, begin + 2, secret[i], 16);
      good = error == std::errc{} && end == begin + 2;
    }
    if (good) return secret;
  }
  return fail(Errc::invalid_argument, "{} is not 64 hexadecimal digits; horo run --mpi sets it",
              kLauncherSecretVariable);
}

}  // namespace

kv::Secret listener_key(const kv::Secret& secret) {
  return kv::derived_secret(secret, "agents", 0);
}

Result<DialledLauncher> dial_launcher(const std::string& addresses, const std::string& secret,
                                      const RankClaim& claim, Deadline deadline) {
  HORO_TRY(const auto known, secret_from(secret));
  const auto key = listener_key(known);
  std::string tried;
  std::string_view rest = addresses;
  while (!rest.empty()) {
    const auto comma = std::min(rest.find(','), rest.size());
    const auto address = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const auto& clock = SteadyClock::instance();
    const auto limit = Deadline::in(clock, std::min(kAttempt, deadline.left(clock.now())));
    auto client = kv::Client::connect(address, key, limit);
    if (client) {
      // The name of the key is part of the protocol.
      HORO_TRY_STATUS(client->set("place", encode(claim), deadline));
      auto released = std::move(*client).release();
      return DialledLauncher{.connection = UniqueFd(released.descriptor),
                             .seals = std::move(released.seals)};
    }
    tried += fmt::format("{}{}", tried.empty() ? "" : "; ", client.error().message);
  }
  return fail(Errc::unavailable, "rank {} on host '{}' cannot reach horo run: {}", claim.rank,
              claim.host, tried.empty() ? fmt::format("{} is empty", kLauncherVariable) : tried);
}

}  // namespace horo::launcher
