// SPDX-License-Identifier: Apache-2.0
// The hosts that can run ranks, with their slots: the result of every source and the input of
// placement.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"

namespace horo::discovery {

/// Limit for one host; a larger number is a typing error.
inline constexpr int kMaxSlots = 1'000'000;
/// Limit for one job; a larger range is refused.
inline constexpr std::size_t kMaxHosts = 100'000;
inline constexpr std::size_t kMaxHostName = 253;  ///< The limit of DNS.

struct Host {
  std::string name;    ///< As the user wrote it; an IPv6 address without its brackets.
  int slots = 1;       ///< Number of ranks that it takes.
  int gpus = 0;        ///< GPUs that the scheduler gave to the job there; 0 if it does not say.
  std::string user{};  ///< User to log in as; empty for the configured one.
  int entries = 1;     ///< Number of lines or entries that name it; equality ignores it.

  friend bool operator==(const Host& a, const Host& b) {
    return a.name == b.name && a.slots == b.slots && a.gpus == b.gpus && a.user == b.user;
  }
};

/// Hosts in the order in which they are filled, each name once.
class HostSet {
 public:
  HostSet() = default;

  explicit HostSet(const std::vector<Host>& hosts);

  /// If the name exists already, its slots are added, up to kMaxSlots: `a:2,a:2` is `a:4`.
  void add(const Host& host);

  const std::vector<Host>& hosts() const { return hosts_; }

  /// The host of this name, or null.
  const Host* find(const std::string& name) const;

  bool empty() const { return hosts_.empty(); }

  std::size_t size() const { return hosts_.size(); }

  long long slots() const;

  friend bool operator==(const HostSet& a, const HostSet& b) { return a.hosts_ == b.hosts_; }

 private:
  std::vector<Host> hosts_;
  std::unordered_map<std::string, std::size_t> places_;  ///< Index in hosts_ by name.
};

/// "a:2, b:4"; for a long list, its beginning and the number of further hosts.
std::string describe(const HostSet& hosts);

}  // namespace horo::discovery
