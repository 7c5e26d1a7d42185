// SPDX-License-Identifier: Apache-2.0
#include "runtime/bootstrap/store/store_finder.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "base/net/own_addresses.hpp"
#include "runtime/bootstrap/identity/process_manager.hpp"
#include "runtime/bootstrap/store/machine_key.hpp"

namespace horo::runtime::bootstrap {

namespace {

constexpr std::string_view kForm = "horo1";
constexpr Duration kOneTry = std::chrono::seconds(1);
constexpr Duration kPause = std::chrono::milliseconds(50);  ///< After all have refused.

std::string hex(const kv::Secret& secret) {
  std::string text;
  for (const auto byte : secret) text += fmt::format("{:02x}", byte);
  return text;
}

std::optional<kv::Secret> unhex(std::string_view text) {
  kv::Secret secret{};
  if (text.size() != 2 * secret.size()) return std::nullopt;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    const char* from = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(from, from + 2, secret[i], 16);
    if (error != std::errc{} || end != from + 2) return std::nullopt;
  }
  return secret;
}

Result<std::string> read_secret_file(const char* path) {
  const UniqueFd fd(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return fail_errno(errno, fmt::format("HORO_SECRET_FILE='{}'", path));

  struct stat status {};

  if (fstat(fd.value(), &status) != 0) return fail_errno(errno, path);
  if (!S_ISREG(status.st_mode)) {
    return fail(Errc::invalid_argument,
                "HORO_SECRET_FILE='{}' is not a plain file; give the path of a file with 64 "
                "hexadecimal digits",
                path);
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return fail(Errc::permission_denied,
                "HORO_SECRET_FILE='{}' can be read by others; 'chmod 600 {}'", path, path);
  }
  std::array<char, 128> block{};
  const auto got = read(fd.value(), block.data(), block.size());
  if (got < 0) return fail_errno(errno, path);
  std::string text(block.data(), static_cast<std::size_t>(got));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

/// Its own number if the name is one, else all interfaces.
kv::Address listen_for(const kv::Address& address) {
  in6_addr number{};
  if (inet_pton(AF_INET, address.host.c_str(), &number) == 1 ||
      inet_pton(AF_INET6, address.host.c_str(), &number) == 1)
    return address;
  return {"0.0.0.0", address.port};
}

/// The first of `word`'s addresses that a server of this job answers at. A number that another host
/// has too (a container bridge's) is told from it by the secret.
Result<JobStore> reach(const StoreContact& word, const Deadline& deadline) {
  const auto& clock = SteadyClock::instance();
  Error last{Errc::unavailable, "rank 0 gives no address"};
  const bool here = word.machine == machine_key();
  for (;;) {
    for (const auto& text : word.addresses) {
      HORO_TRY(const auto address, kv::parse_address(text));
      if (is_loopback(address.host) != here) continue;
      const auto limit = std::min(deadline.when(), clock.now() + kOneTry);
      const JobStore store{text, word.secret};
      auto client = store.connect(Deadline::at(limit));
      if (client) return store;
      last = client.error();
      if (deadline.expired(clock.now()) || last.code == Errc::version_mismatch)
        return Failure(std::move(last).context("rank 0's store"));
    }
    if (deadline.expired(clock.now())) return Failure(std::move(last).context("rank 0's store"));
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

Result<std::optional<kv::Secret>> read_secret(const Lookup& lookup) {
  const char* given = lookup("HORO_SECRET");
  const char* path = lookup("HORO_SECRET_FILE");
  if (given != nullptr && path != nullptr)
    return fail(Errc::invalid_argument, "HORO_SECRET and HORO_SECRET_FILE are both set; set one");
  if (given == nullptr && path == nullptr) return std::optional<kv::Secret>{};
  std::string text = given != nullptr ? given : "";
  if (path != nullptr) {
    HORO_TRY(text, read_secret_file(path));
  }
  const auto secret = unhex(text);
  if (secret) return secret;
  return fail(Errc::invalid_argument,
              "{} must be 64 hexadecimal digits; 'openssl rand -hex 32' makes them",
              given != nullptr ? "HORO_SECRET" : fmt::format("HORO_SECRET_FILE='{}'", path));
}

std::string encode(const StoreContact& word) {
  auto text = fmt::format("{},{},{}", kForm, hex(word.secret), word.machine);
  for (const auto& address : word.addresses) {
    if (text.size() + 1 + address.size() <= kMostWord) text += "," + address;
  }
  return text;
}

Result<StoreContact> decode_store_contact(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= text.size();) {
    const auto end = std::min(text.find(',', from), text.size());
    parts.emplace_back(text.substr(from, end - from));
    from = end + 1;
  }
  const auto secret = parts.size() > 3 ? unhex(parts[1]) : std::nullopt;
  if (!secret || parts[0] != kForm) {
    return fail(Errc::protocol,
                "the data of rank 0 in the process manager comes from another version of horo; "
                "install one version for all ranks");
  }
  return StoreContact{*secret, parts[2], {parts.begin() + 3, parts.end()}};
}

bool StoreFinder::possible(const Identity& identity, const Lookup& lookup) {
  return lookup("HORO_SECRET") != nullptr || lookup("HORO_SECRET_FILE") != nullptr ||
         has_pmix(lookup) || identity.pmi_fd >= 0;
}

Result<std::shared_ptr<JobStore>> StoreFinder::find(const Identity& identity, const Lookup& lookup,
                                                    const Deadline& deadline) {
  if (store_ != nullptr) return store_;
  if (lookup("HORO_SECRET") != nullptr || lookup("HORO_SECRET_FILE") != nullptr) {
    HORO_TRY_STATUS(from_variables(identity, lookup));
  } else if (possible(identity, lookup)) {
    HORO_TRY_STATUS(from_manager(identity, lookup, deadline));
  } else {
    return fail(
        Errc::unsupported,
        "{} ranks on several hosts, started by {}, which does not tell them where rank 0 is; "
        "set HORO_RENDEZVOUS (rank 0's host and a free port) and HORO_SECRET (or "
        "HORO_SECRET_FILE) on all ranks{}",
        identity.worker.size, name(identity.launcher),
        identity.launcher == LauncherKind::slurm ? ", or use 'srun --mpi=pmix'" : "");
  }
  return store_;
}

std::shared_ptr<JobStore> StoreFinder::adopt(JobStore store) {
  store_ = std::make_shared<JobStore>(std::move(store));
  return store_;
}

void StoreFinder::retire() {
  server_.reset();
  leave_pmix();
  leave_pmi(pmi_fd_, std::exchange(pmi_inode_, 0));
}

Status StoreFinder::from_variables(const Identity& identity, const Lookup& lookup) {
  HORO_TRY(const auto secret, read_secret(lookup));
  const auto& rendezvous = identity.worker.rendezvous;
  if (!secret || rendezvous.empty()) {
    return fail(Errc::invalid_argument,
                "HORO_SECRET is set but HORO_RENDEZVOUS is not; set it to rank 0's host and a free "
                "port on all ranks");
  }
  HORO_TRY(const auto address, kv::parse_address(rendezvous));
  if (identity.worker.rank == Rank{0}) {
    auto server = StoreServer::start(*secret, listen_for(address));
    if (!server) {
      return Failure(std::move(server).error().context(
          fmt::format("HORO_RENDEZVOUS='{}', at which rank 0 has to listen", rendezvous)));
    }
    server_ = std::move(server).value();
  }
  adopt({rendezvous, *secret});
  return {};
}

Result<std::string> StoreFinder::serve() {
  StoreContact word{.secret = {}, .machine = machine_key(), .addresses = {}};
  HORO_TRY(word.secret, kv::make_secret());
  auto server = StoreServer::start(word.secret, {"0.0.0.0", 0});
  if (!server) server = StoreServer::start(word.secret, {"::", 0});
  if (!server) return Failure(std::move(server).error());
  server_ = std::move(server).value();
  const auto port = server_->address().port;
  const bool four = server_->address().host == "0.0.0.0";
  for (const auto& host : own_addresses()) {
    const bool is_four = host.find(':') == std::string::npos;
    if (is_four == four) word.addresses.push_back(kv::to_string({host, port}));
  }
  // First, so that a long list does not crowd it out; only processes of this machine try it.
  word.addresses.insert(word.addresses.begin(), kv::to_string({four ? "127.0.0.1" : "::1", port}));
  return encode(word);
}

Status StoreFinder::from_manager(const Identity& identity, const Lookup& lookup,
                                 const Deadline& deadline) {
  const auto rank = identity.worker.rank;
  std::string mine;
  if (rank == Rank{0}) {
    HORO_TRY(mine, serve());
  }
  if (!has_pmix(lookup)) {
    pmi_fd_ = identity.pmi_fd;
    pmi_inode_ = socket_inode(pmi_fd_);
  }
  auto text = has_pmix(lookup) ? broadcast_by_pmix(rank, mine, deadline)
                               : broadcast_by_pmi(identity.pmi_fd, rank, mine, deadline);
  if (!text) {
    server_.reset();
    return Failure(std::move(text).error());
  }
  HORO_TRY(const auto word, decode_store_contact(*text));
  HORO_TRY(auto store, reach(word, deadline));
  adopt(std::move(store));
  return {};
}

}  // namespace horo::runtime::bootstrap
