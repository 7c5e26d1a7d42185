// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/dial_in/dial_in.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

#include "launcher/starters/dial_in/dial_launcher.hpp"

namespace horo::launcher {

namespace {

constexpr Duration kConnectTimeout = std::chrono::seconds(20);

std::string own_host() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// Adds the descriptor whose number `variable` holds, if it is open.
void keep_descriptor(const char* variable, std::vector<int>& kept) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return;
  const std::string_view view(text);
  int fd = -1;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), fd);
  if (error == std::errc{} && fd > STDERR_FILENO && fcntl(fd, F_GETFD) >= 0) kept.push_back(fd);
}

}  // namespace

Result<DialledIn> dial_in() {
  HORO_TRY(auto claim, read_rank_claim([](const char* name) { return std::getenv(name); }));
  claim.host = own_host();
  const char* addresses = std::getenv(kLauncherVariable);
  const char* secret = std::getenv(kLauncherSecretVariable);
  HORO_TRY(auto dialled,
           dial_launcher(addresses == nullptr ? "" : addresses, secret == nullptr ? "" : secret,
                         claim, Deadline::in(SteadyClock::instance(), kConnectTimeout)));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) {
    if (dup2(dialled.connection.value(), fd) < 0) return fail_errno(errno, "taking the connection");
  }
  Inheritance inheritance;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const auto name = text.substr(0, equals);
    // A rank may start a job of its own, whose agents must not take these for theirs.
    if (name == kLauncherVariable || name == kLauncherSecretVariable ||
        name.starts_with("HORO_DIAL_IN_"))
      continue;
    inheritance.environment.emplace_back(name, text.substr(equals + 1));
  }
  for (const char* variable : {"PMI_FD", "HYDI_CONTROL_FD"})
    keep_descriptor(variable, inheritance.descriptors);
  return DialledIn{.inheritance = std::move(inheritance),
                   .seals = std::make_shared<protocol::SealedBytes>(std::move(dialled.seals))};
}

}  // namespace horo::launcher
