// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpi_rank.hpp"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

#include "launcher/mpi/knock.hpp"

namespace horo::launcher {

namespace {

constexpr Duration kPatience = std::chrono::seconds(20);

std::string own_host() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// Which variables name descriptors that an MPI hands down.
void keep_descriptor(const char* variable, std::vector<int>& kept) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return;
  const std::string_view view(text);
  int fd = -1;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), fd);
  if (error == std::errc{} && fd > STDERR_FILENO && fcntl(fd, F_GETFD) >= 0) kept.push_back(fd);
}

}  // namespace

Result<Inheritance> join_from_mpirun() {
  HORO_TRY(auto place, read_mpi_place([](const char* name) { return std::getenv(name); }));
  place.host = own_host();
  const char* addresses = std::getenv(kDoorVariable);
  const char* secret = std::getenv(kDoorSecretVariable);
  HORO_TRY(const UniqueFd connection,
           knock(addresses == nullptr ? "" : addresses, secret == nullptr ? "" : secret, place,
                 Deadline::in(SteadyClock::instance(), kPatience)));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) {
    if (dup2(connection.value(), fd) < 0) return fail_errno(errno, "taking the connection");
  }
  Inheritance inheritance;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const auto name = text.substr(0, equals);
    if (name == kDoorVariable || name == kDoorSecretVariable) continue;
    inheritance.environment.emplace_back(name, text.substr(equals + 1));
  }
  for (const char* variable : {"PMI_FD", "HYDI_CONTROL_FD"})
    keep_descriptor(variable, inheritance.descriptors);
  return inheritance;
}

}  // namespace horo::launcher
