// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/ssh/ssh_route.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <glob.h>
#include <pwd.h>
#include <unistd.h>
#include <utility>

#include "base/text/printable.hpp"
#include "discovery/program.hpp"
#include "launcher/starters/ssh/libssh.hpp"

namespace horo::launcher {

namespace {

constexpr const char* kProgram = "ssh";
constexpr std::size_t kMostChildren = 32;

std::string home() {
  const auto* entry = getpwuid(getuid());
  if (entry != nullptr && entry->pw_dir != nullptr) return entry->pw_dir;
  const char* variable = std::getenv("HOME");
  return variable == nullptr ? "" : variable;
}

}  // namespace

std::string expand_home(std::string_view path) {
  return path.starts_with("~/") ? home() + std::string(path.substr(1)) : std::string(path);
}

namespace {

/// The user in "user@host"; empty: there is none.
std::string user_of(const std::string& host) {
  const auto at = host.find('@');
  return at == std::string::npos ? std::string() : host.substr(0, at);
}

std::string name_of(const std::string& host) {
  return host.substr(host.find('@') + 1);
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    if (end > 0) words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

/// Why one line of the configuration needs the program; empty: the library can do it.
std::string beyond_library(std::string_view key, std::string_view value,
                           const std::function<bool(const std::string&)>& exists) {
  if ((key == "proxyjump" || key == "proxycommand") && value != "none")
    return fmt::format("its configuration has {} {}", key, value);
  if (key == "certificatefile" && value != "none" && exists(expand_home(value)))
    return fmt::format("its configuration has a certificate, {}", value);
  if (key == "identityfile" && exists(expand_home(value) + "-cert.pub"))
    return fmt::format("there is a certificate, {}-cert.pub", value);
  if (key == "gssapiauthentication" && value == "yes" && std::getenv("KRB5CCNAME") != nullptr)
    return "there is a Kerberos ticket (KRB5CCNAME) and its configuration wants GSSAPI";
  if (key == "identitiesonly" && value == "yes" && std::getenv("SSH_AUTH_SOCK") != nullptr)
    return "its configuration chooses among the agent's keys (IdentitiesOnly)";
  if (key == "identityagent" && value != "none" && value != "SSH_AUTH_SOCK")
    return fmt::format("its configuration has an agent of its own, {}", value);
  if (key == "pkcs11provider" && value != "none" && value != "internal")
    return fmt::format("its configuration has keys on a device, {}", value);
  return {};
}

/// Facts about the files of a configuration that `ssh -G` does not tell.
struct Config {
  bool runs_commands = false;    ///< Match exec: the program runs them at each connection.
  bool differs_by_host = false;  ///< Hosts may have different settings.
};

std::vector<std::string> matching_files(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> files;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return files;
}

void read_config(const std::string& path, int depth, Config& config) {
  std::ifstream file(path);
  std::string line;
  while (depth > 0 && std::getline(file, line)) {
    std::replace(line.begin(), line.end(), '\t', ' ');
    const auto words = words_of(line);
    if (words.empty() || words.front().front() == '#') continue;
    auto key = words.front();
    std::transform(key.begin(), key.end(), key.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    config.runs_commands =
        config.runs_commands || (key == "match" && line.find(" exec ") != std::string::npos);
    config.differs_by_host = config.differs_by_host || key == "match" ||
                             line.find('%') != std::string::npos ||
                             (key == "host" && (words.size() != 2 || words[1] != "*"));
    if (key != "include") continue;
    const auto folder = path.substr(0, path.rfind('/') + 1);
    for (std::size_t i = 1; i < words.size(); ++i) {
      const auto& name = words[i];
      const auto pattern =
          name.front() == '/' || name.front() == '~' ? expand_home(name) : folder + name;
      for (const auto& included : matching_files(pattern)) read_config(included, depth - 1, config);
    }
  }
}

Config read_configs() {
  constexpr int kDepth = 4;
  Config config;
  read_config(home() + "/.ssh/config", kDepth, config);
  read_config("/etc/ssh/ssh_config", kDepth, config);
  return config;
}

bool has_program(const char* name) {
  const char* path = std::getenv("PATH");
  if (path == nullptr) return false;
  for (std::string_view rest(path); !rest.empty();) {
    const auto end = std::min(rest.find(':'), rest.size());
    if (access(fmt::format("{}/{}", rest.substr(0, end), name).c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

/// Its output is read later.
Result<discovery::RunningProgram> ask(const std::string& host, const SshWishes& wishes) {
  std::vector<std::string> arguments{kProgram, "-G"};
  if (wishes.port != 0) arguments.insert(arguments.end(), {"-p", std::to_string(wishes.port)});
  arguments.insert(arguments.end(), {"--", host});
  return discovery::RunningProgram::start(arguments).context("ssh -G");
}

/// Programs that run at the same time. Those that are left in the end are told to end at the same
/// time, too.
struct Questions {
  std::vector<discovery::RunningProgram> running;

  Questions() = default;

  ~Questions() {
    for (auto& question : running) question.release();
  }

  Questions(const Questions&) = delete;
  Questions& operator=(const Questions&) = delete;
};

Error without_answer(const Error& error, const std::string& host) {
  if (error.code == Errc::cancelled)
    return {error.code, fmt::format("nobody waits for 'ssh -G {}' any longer", host)};
  if (error.code == Errc::timed_out)
    return {error.code, fmt::format("'ssh -G {}' did not end in time", host)};
  return Error(error).context(fmt::format("'ssh -G {}'", host));
}

Result<std::string> hear(discovery::RunningProgram& question, const std::string& host,
                         const WaitLimit& limit) {
  auto answer = question.hear(limit);
  if (!answer) return Failure(without_answer(answer.error(), host));
  if (answer->wait_status == 0) return std::move(answer->output);
  const auto line = printable(answer->errors.substr(0, answer->errors.find('\n')));
  return fail(Errc::invalid_argument, "ssh refuses its configuration for host '{}': {}", host,
              line);
}

SshRoute plain_route(const std::string& host) {
  const auto folder = home() + "/.ssh/";
  const auto* entry = getpwuid(getuid());
  const auto user = user_of(host);
  return {.host = host,
          .name = name_of(host),
          .known_as = name_of(host),
          .user = !user.empty()      ? user
                  : entry == nullptr ? ""
                                     : entry->pw_name,
          .identities = {folder + "id_ed25519", folder + "id_ecdsa", folder + "id_rsa"},
          .known_hosts = {folder + "known_hosts"},
          .global_known_hosts = "/etc/ssh/ssh_known_hosts"};
}

Result<std::vector<SshRoute>> ask_one_for_all(const std::vector<std::string>& hosts,
                                              const SshWishes& wishes, const WaitLimit& limit) {
  const auto first = name_of(hosts.front());
  HORO_TRY(auto question, ask(first, wishes));
  HORO_TRY(const auto text, hear(question, first, limit));
  const auto exists = [](const std::string& path) { return access(path.c_str(), R_OK) == 0; };
  HORO_TRY(const auto route, parse_ssh_config(first, text, exists));
  std::vector<SshRoute> routes(hosts.size(), route);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    routes[i].host = hosts[i];
    routes[i].name = routes[i].known_as = name_of(hosts[i]);
    if (const auto user = user_of(hosts[i]); !user.empty()) routes[i].user = user;
  }
  return routes;
}

}  // namespace

std::string shorten_home(std::string_view path) {
  const auto folder = home() + "/";
  return folder.size() > 1 && path.starts_with(folder)
             ? "~/" + std::string(path.substr(folder.size()))
             : std::string(path);
}

namespace {

Status set_port(SshRoute& route, std::string_view value) {
  const auto* stop = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), stop, route.port);
  if (error == std::errc{} && rest == stop) return {};
  return fail(Errc::invalid_argument, "ssh's configuration gives host '{}' the port '{}'",
              route.host, value);
}

/// Applies one line of the output of `ssh -G`. Fails: invalid_argument.
Status apply_setting(SshRoute& route, std::string_view key, std::string_view value) {
  const bool given = value != "none";
  if (key == "hostname") route.name = value;
  // A user in "user@host" overrides the configuration.
  if (key == "user" && user_of(route.host).empty()) route.user = value;
  if ((key == "proxyjump" || key == "proxycommand") && given) route.jump_host = value;
  if (key == "hostkeyalias" && given) route.known_as = value;
  if (key == "identityfile") route.identities.push_back(expand_home(value));
  if (key == "userknownhostsfile" && given) {
    for (const auto& file : words_of(value)) route.known_hosts.push_back(expand_home(file));
  }
  if (const auto files = words_of(value); key == "globalknownhostsfile" && !files.empty())
    route.global_known_hosts = files.front();
  if (key == "stricthostkeychecking") {
    const bool accepts =
        value == "accept-new" || value == "no" || value == "off" || value == "false";
    route.unknown_keys = accepts ? UnknownKeys::accept : UnknownKeys::refuse;
  }
  return key == "port" ? set_port(route, value) : Status();
}

}  // namespace

Result<SshRoute> parse_ssh_config(const std::string& host, std::string_view text,
                                  const std::function<bool(const std::string&)>& exists) {
  SshRoute route{.host = host, .name = name_of(host), .user = user_of(host)};
  std::vector<std::string> more_files;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    const auto key = line.substr(0, blank);
    const auto value = line.substr(blank + 1);
    HORO_TRY_STATUS(apply_setting(route, key, value));
    if (auto files = words_of(value); key == "globalknownhostsfile" && files.size() > 1)
      more_files.assign(files.begin() + 1, files.end());
    if (auto reason = beyond_library(key, value, exists); route.reason.empty() && !reason.empty()) {
      route.program = kProgram;
      route.reason = std::move(reason);
    }
  }
  if (route.known_as.empty()) route.known_as = route.name;
  // The first file gets new keys, so it has to be one of the user's.
  if (!route.known_hosts.empty())
    route.known_hosts.insert(route.known_hosts.end(), more_files.begin(), more_files.end());
  return route;
}

Result<std::vector<SshRoute>> ask_for_each(const std::vector<std::string>& hosts,
                                           const SshWishes& wishes, WaitLimit limit) {
  const auto exists = [](const std::string& path) { return access(path.c_str(), R_OK) == 0; };
  std::vector<SshRoute> routes;
  for (std::size_t first = 0; first < hosts.size(); first += kMostChildren) {
    const auto last = std::min(hosts.size(), first + kMostChildren);
    Questions questions;
    for (std::size_t i = first; i < last; ++i) {
      HORO_TRY(auto question, ask(hosts[i], wishes));
      questions.running.push_back(std::move(question));
    }
    for (std::size_t i = first; i < last; ++i) {
      HORO_TRY(const auto text, hear(questions.running[i - first], hosts[i], limit));
      HORO_TRY(auto route, parse_ssh_config(hosts[i], text, exists));
      routes.push_back(std::move(route));
    }
  }
  return routes;
}

Result<std::vector<SshRoute>> find_ssh_routes(const std::vector<std::string>& hosts,
                                              const SshWishes& wishes, WaitLimit limit) {
  std::vector<SshRoute> routes;
  const bool program = has_program(kProgram);
  const auto config = read_configs();
  if (program && config.differs_by_host) {
    HORO_TRY(routes, ask_for_each(hosts, wishes, limit));
  } else if (program) {
    HORO_TRY(routes, ask_one_for_all(hosts, wishes, limit));
  } else {
    for (const auto& host : hosts) routes.push_back(plain_route(host));
  }
  const auto library = load_libssh();
  for (auto& route : routes) {
    if (wishes.port != 0) route.port = static_cast<std::uint16_t>(wishes.port);
    if (!wishes.identity_file.empty())
      route.identities.insert(route.identities.begin(), expand_home(wishes.identity_file));
    if (!wishes.program.empty()) {
      route.program = wishes.program;
      route.reason = "--ssh-program";
    } else if (program && config.runs_commands && route.program.empty()) {
      route.program = kProgram;
      route.reason = "the configuration of ssh has a Match exec";
    } else if (!library && route.program.empty()) {
      if (!program) {
        return fail(Errc::not_found, "neither libssh ({}) nor a program ssh is here",
                    library.error().message);
      }
      route.program = kProgram;
      route.reason = library.error().message;
    }
  }
  return routes;
}

std::vector<std::string> ssh_arguments(const SshRoute& route, const SshWishes& wishes,
                                       const std::string& remote_command) {
  // BatchMode: no user can answer a question. ClearAllForwardings: a forwarded port that is in use
  // would end the connection.
  std::vector<std::string> arguments{route.program,   "-T", "-o",
                                     "BatchMode=yes", "-o", "ClearAllForwardings=yes"};
  if (wishes.port != 0) arguments.insert(arguments.end(), {"-p", std::to_string(wishes.port)});
  if (!wishes.identity_file.empty())
    arguments.insert(arguments.end(), {"-i", wishes.identity_file});
  arguments.insert(arguments.end(), {"--", route.host, remote_command});
  return arguments;
}

}  // namespace horo::launcher
