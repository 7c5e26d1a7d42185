// SPDX-License-Identifier: Apache-2.0
#include "launcher/process/execute_failure.hpp"

#include <cerrno>
#include <fstream>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace horo::launcher {

namespace {

constexpr std::streamsize kMostOfFirstLine = 256;  ///< The kernel reads no more of it.

std::string seen_from(const std::string& directory, const std::string& path) {
  if (directory.empty() || path.front() == '/') return path;
  return directory + "/" + path.substr(path.starts_with("./") ? 2 : 0);
}

/// The program that the first line of a script names; empty: no script, or not readable.
std::string interpreter_of(const std::string& path) {
  std::string line(kMostOfFirstLine, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(line.data(), kMostOfFirstLine);
  line.resize(static_cast<std::size_t>(file.gcount()));
  if (!line.starts_with("#!")) return {};
  line = line.substr(2, line.find('\n') - 2);
  const auto begin = line.find_first_not_of(" \t");
  if (begin == std::string::npos) return {};
  return line.substr(begin, line.find_first_of(" \t", begin) - begin);
}

/// The first candidate that is an executable file; empty: there is none.
std::string find_executable(const Command& command, const std::vector<std::string>& candidates) {
  for (const auto& candidate : candidates) {
    auto path = seen_from(command.directory, candidate);

    struct stat status {};

    if (stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
        access(path.c_str(), X_OK) == 0)
      return path;
  }
  return {};
}

/// The error for a program that exists, while something that it needs does not.
Failure unusable(int error, const std::string& path) {
  auto interpreter = interpreter_of(path);
  if (interpreter.empty()) {
    return fail(Errc::permission_denied, "program '{}' was found, but {}", path,
                error == EACCES ? "the system does not allow to execute it"
                                : "the loader of its kind of binary is missing");
  }
  if (interpreter.ends_with('\r')) {
    interpreter.pop_back();
    return fail(Errc::permission_denied,
                "program '{}' was found, but its first line ends with a carriage return, which "
                "becomes part of the interpreter's name '{}'; write its lines as Unix does",
                path, interpreter);
  }
  return fail(Errc::permission_denied,
              "program '{}' was found, but its interpreter '{}' {}; correct its first line", path,
              interpreter, error == EACCES ? "cannot be executed" : "is missing");
}

}  // namespace

Failure execute_failure(int error, const Command& command,
                        const std::vector<std::string>& candidates) {
  const auto& program = command.arguments.front();
  const bool by_path = program.find('/') == std::string::npos;
  const auto found = find_executable(command, candidates);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      if (!found.empty()) return unusable(error, found);
      return fail(Errc::not_found, "program '{}' not found{}; check its name{}", program,
                  by_path ? " in PATH" : "", by_path ? " or give its path" : "");
    case EACCES:
    case EPERM:
      if (!found.empty()) return unusable(EACCES, found);
      return fail(Errc::permission_denied,
                  "program '{}' is not executable; try chmod +x, or name its interpreter", program);
    case ENOEXEC:
      return fail(
          Errc::permission_denied,
          "program '{}' cannot be executed: it has no #! line and is not a binary of this machine",
          program);
    case E2BIG:
      return fail(Errc::resource_exhausted,
                  "program '{}': arguments and environment are too large for the system", program);
    default:
      return fail_errno(error, fmt::format("executing '{}'", program));
  }
}

}  // namespace horo::launcher
