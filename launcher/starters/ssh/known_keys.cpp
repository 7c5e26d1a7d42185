// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/ssh/known_keys.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string_view>

#include <fmt/ranges.h>

namespace horo::launcher {

namespace {

int gravity(KnownKey answer) {
  switch (answer) {
    case SSH_KNOWN_HOSTS_CHANGED:
      return 3;
    case SSH_KNOWN_HOSTS_OTHER:
      return 2;
    case SSH_KNOWN_HOSTS_ERROR:
      return 1;
    default:
      return 0;
  }
}

/// libssh drops what it does not support.
const std::vector<std::string_view>& all_types() {
  static const std::vector<std::string_view> types{"ssh-ed25519",
                                                   "ecdsa-sha2-nistp521",
                                                   "ecdsa-sha2-nistp384",
                                                   "ecdsa-sha2-nistp256",
                                                   "sk-ssh-ed25519@openssh.com",
                                                   "sk-ecdsa-sha2-nistp256@openssh.com",
                                                   "rsa-sha2-512",
                                                   "rsa-sha2-256"};
  return types;
}

/// A key of RSA makes signatures of several types.
std::vector<std::string_view> signatures_of(std::string_view key_type) {
  if (key_type == "ssh-rsa") return {"rsa-sha2-512", "rsa-sha2-256"};
  const auto& all = all_types();
  const auto known = std::find(all.begin(), all.end(), key_type);
  return known == all.end() ? std::vector<std::string_view>{} : std::vector{*known};
}

void add_once(std::vector<std::string_view>& list, const std::vector<std::string_view>& more) {
  for (const auto one : more) {
    if (std::find(list.begin(), list.end(), one) == list.end()) list.push_back(one);
  }
}

void add_types(const Libssh& library, const std::string& file, const std::string& name,
               std::vector<std::string_view>& types) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    ssh_knownhosts_entry* entry = nullptr;
    const auto start = line.find_first_not_of(" \t\r");
    if (start == std::string::npos || line[start] == '#') continue;
    if (library.ssh_known_hosts_parse_line(name.c_str(), line.c_str() + start, &entry) != SSH_OK)
      continue;
    add_once(types,
             signatures_of(library.ssh_key_type_to_char(library.ssh_key_type(entry->publickey))));
    library.ssh_knownhosts_entry_free(entry);
  }
}

}  // namespace

KnownKey graver(KnownKey one, KnownKey other) {
  return gravity(other) > gravity(one) ? other : one;
}

std::string wanted_key_types(const Libssh& library, const std::vector<std::string>& files,
                             const std::string& host, std::uint16_t port) {
  auto name = host;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::vector<std::string_view> types;
  if (port != kUsualSshPort) {
    for (const auto& file : files)
      add_types(library, file, fmt::format("[{}]:{}", name, port), types);
  }
  // A host at another port may be known without its port.
  for (const auto& file : files) add_types(library, file, name, types);
  if (types.empty()) return {};
  add_once(types, all_types());
  return fmt::format("{}", fmt::join(types, ","));
}

}  // namespace horo::launcher
