// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/find_program.hpp"

#include <cerrno>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace horo::launcher {

namespace {

bool is_python(std::string_view program) {
  return program.ends_with(".py");
}

Status check_executable(const std::string& program) {
  struct stat status {};

  if (stat(program.c_str(), &status) != 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR)
      return fail(Errc::not_found, "command '{}' does not exist", program);
    return fail_errno(error, fmt::format("command '{}'", program));
  }
  if (S_ISDIR(status.st_mode))
    return fail(Errc::permission_denied, "command '{}' is a directory", program);
  if (access(program.c_str(), X_OK) != 0) {
    return fail(Errc::permission_denied, "command '{}' is not executable; {}", program,
                is_python(program) ? fmt::format("write python3 {}, or try chmod +x", program)
                                   : std::string("try chmod +x, or name its interpreter"));
  }
  return {};
}

}  // namespace

Result<std::string> find_program(const std::string& command, const char* path) {
  if (command.empty()) return fail(Errc::not_found, "the command is an empty word");
  if (command.find('/') != std::string::npos) {
    HORO_TRY_STATUS(check_executable(command));
    return command;
  }
  std::string_view rest = path == nullptr ? "/bin:/usr/bin" : path;
  std::string unusable;
  while (true) {
    const auto colon = rest.find(':');
    const auto folder = rest.substr(0, colon);
    auto program = folder.empty() ? "./" + command : fmt::format("{}/{}", folder, command);
    const auto usable = check_executable(program);
    if (usable) return program;

    struct stat status {};

    if (unusable.empty() && stat(program.c_str(), &status) == 0 && S_ISREG(status.st_mode))
      unusable = program;
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  if (!unusable.empty()) {
    return fail(Errc::permission_denied, "command '{}' is '{}', which is not executable", command,
                unusable);
  }
  const bool here = access(command.c_str(), F_OK) == 0;
  const auto* const prefix =
      is_python(command) && !check_executable("./" + command) ? "python3 " : "./";
  return fail(
      Errc::not_found, "command '{}' is not found in PATH{}", command,
      here ? fmt::format("; for the one in this directory write {}{}", prefix, command) : "");
}

}  // namespace horo::launcher
