// SPDX-License-Identifier: Apache-2.0
#include "launcher/starters/ssh/known_keys.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>

using namespace horo;
using namespace horo::launcher;

namespace {

const std::string kEd25519 =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN/+72IhgXska28ZuyIZcqBQSOP0i7jNWJKQz/qzwnOe";
const std::string kRsa =
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQDSz+bijdBWGBsI5fZpqd71ybms4oM5ABKRmZlA2ao9jUqNG8"
    "tKj5sJhZnrtWWLDLDHQm47tjGiEkIIzLdWZw7B+KD60UTaP36lvPIIU9f4eIyIAOlUd5xuE2Vx9423fQTTJcJZ"
    "0sWwCXL9XMO76K1YK56nlk8vod+v5q1Iuk84ZtplYooLWLR/r2i7bHdRJpvDVMUVHq0HxumO3kBYBHHsxWqB/0"
    "WKFWaNZupDka/2krbNUVLtsawOhepchHMK6M7Mxe+JRzAGsZp2PiwAj/d4G0V60CngZbJK1ZqYeU0L7VR7GCcf"
    "bokWw9WbRRm7+6ZarE8EHXsyWGAwlHk0bghf";
/// A key of type ecdsa-sha2-nistp256 for the host node7, whose name is hashed.
const std::string kHashedEcdsa =
    "|1|+nPxsyn9UtkZ3OPVSd55lv6TQGM=|5v/7USN9ygrk0hfUKxOADh9sSdo= ecdsa-sha2-nistp256 AAAAE"
    "2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBLcpM1JDXKnN8DmgesxgWKO0v0WVqgR5gkw4EHo"
    "ObpCLSqsch5rzT4GMZM0iTE2aHbcCMRP1lrDG9u+rQ/O7+zs=";

/// Two files of known hosts.
struct Files {
  std::string folder = "/tmp/horo-test-XXXXXX";
  std::vector<std::string> paths;

  Files(const std::string& first, const std::string& second) {
    REQUIRE(mkdtemp(folder.data()) != nullptr);
    paths = {folder + "/first", folder + "/second"};
    std::ofstream(paths[0]) << first;
    std::ofstream(paths[1]) << second;
  }

  ~Files() { std::filesystem::remove_all(folder); }

  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;

  /// The types that a server is asked for, and no type twice.
  std::string types(const std::string& host, std::uint16_t port = 22) const {
    const auto library = load_libssh();
    if (!library) return "no library";
    return wanted_key_types(**library, paths, host, port);
  }
};

constexpr auto kOrdinary =
    "ssh-ed25519,ecdsa-sha2-nistp521,ecdsa-sha2-nistp384,ecdsa-sha2-nistp256,"
    "sk-ssh-ed25519@openssh.com,sk-ecdsa-sha2-nistp256@openssh.com,rsa-sha2-512,rsa-sha2-256";

}  // namespace

TEST_CASE("a key type that only the second file of known hosts has is asked for first") {
  if (!load_libssh()) {
    WARN("skipped: there is no libssh here");
    return;
  }
  const Files files("# a comment\n\nother " + kEd25519 + "\n", "h1,10.0.0.1 " + kRsa + "\n");
  const std::string rsa_first = "rsa-sha2-512,rsa-sha2-256,ssh-ed25519,";
  CHECK(files.types("h1").starts_with(rsa_first));
  CHECK(files.types("H1").starts_with(rsa_first));
  CHECK(files.types("10.0.0.1").starts_with(rsa_first));
  CHECK(files.types("other") == kOrdinary);
  CHECK(files.types("h2").empty());
}

TEST_CASE("hashed names, ports, patterns and lines without sense are read as ssh reads them") {
  if (!load_libssh()) {
    WARN("skipped: there is no libssh here");
    return;
  }
  const Files files("node7 ssh-rsa nonsense\n@revoked node7 " + kRsa + "\n" + kHashedEcdsa + "\n",
                    "[node7]:2222 " + kEd25519 + "\nrack?-* " + kRsa);
  CHECK(files.types("node7").starts_with("ecdsa-sha2-nistp256,ssh-ed25519,"));
  CHECK(files.types("node7", 2222).starts_with("ssh-ed25519,ecdsa-sha2-nistp256,"));
  CHECK(files.types("rack3-b").starts_with("rsa-sha2-512,"));
  CHECK(wanted_key_types(**load_libssh(), {files.folder + "/missing"}, "node7", 22).empty());
}

TEST_CASE("of several files' answers about a key, a changed key counts most, then another type") {
  const std::vector<KnownKey> rising{SSH_KNOWN_HOSTS_UNKNOWN, SSH_KNOWN_HOSTS_ERROR,
                                     SSH_KNOWN_HOSTS_OTHER, SSH_KNOWN_HOSTS_CHANGED};
  for (std::size_t i = 0; i < rising.size(); ++i) {
    for (std::size_t j = 0; j < rising.size(); ++j)
      CHECK(graver(rising[i], rising[j]) == rising[std::max(i, j)]);
  }
  CHECK(graver(SSH_KNOWN_HOSTS_OTHER, SSH_KNOWN_HOSTS_NOT_FOUND) == SSH_KNOWN_HOSTS_OTHER);
  CHECK(graver(SSH_KNOWN_HOSTS_UNKNOWN, SSH_KNOWN_HOSTS_NOT_FOUND) == SSH_KNOWN_HOSTS_UNKNOWN);
}
