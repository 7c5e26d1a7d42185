// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "runtime/bootstrap/identity/identity.hpp"
#include "runtime/bootstrap/meeting/meeting.hpp"
#include "runtime/bootstrap/store/store_server.hpp"

namespace horo::runtime::bootstrap {

/// How ranks that `horo run` did not start find the job's key-value store: rank 0 serves it,
/// and its address and secret come from HORO_RENDEZVOUS and HORO_SECRET (or HORO_SECRET_FILE) when
/// these are set, else rank 0 draws a secret and PMIx or PMI tells the others. Found once in the
/// life of a process. Thread: one at a time.
class StoreFinder {
 public:
  /// True if find() has a way to reach a store.
  static bool possible(const Identity& identity, const Lookup& lookup);

  /// Every rank calls it. Blocks. Fails: unsupported (no way to find it; names the variables),
  /// invalid_argument (a variable), permission_denied (a secret file that others can read),
  /// timed_out, unavailable.
  Result<std::shared_ptr<JobStore>> find(const Identity& identity, const Lookup& lookup,
                                         const Deadline& deadline);

  /// Uses a launcher's store.
  std::shared_ptr<JobStore> adopt(JobStore store);

  /// Ends the server, if it is here, and tells the process manager that this rank ends.
  void retire();

 private:
  Status from_variables(const Identity& identity, const Lookup& lookup);
  Status from_manager(const Identity& identity, const Lookup& lookup, const Deadline& deadline);
  Result<std::string> serve();

  std::shared_ptr<JobStore> store_;
  std::unique_ptr<StoreServer> server_;
  int pmi_fd_ = -1;
  std::uint64_t pmi_inode_ = 0;  ///< Inode of `pmi_fd_` when it was used; 0: it was not.
};

/// HORO_SECRET or the content of HORO_SECRET_FILE: 64 hexadecimal digits. Neither set: nullopt.
Result<std::optional<kv::Secret>> read_secret(const Lookup& lookup);

/// How to reach rank 0's store. The addresses are tried in this order; loopback ones only by
/// processes of machine `machine`.
struct StoreContact {
  kv::Secret secret{};
  std::string machine;
  std::vector<std::string> addresses;  ///< host:port
};

std::string encode(const StoreContact& word);
Result<StoreContact> decode_store_contact(std::string_view text);

}  // namespace horo::runtime::bootstrap
