// SPDX-License-Identifier: Apache-2.0
// Who can run ranks, and how many: the answer of every source and the input of placement.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"

namespace horo::discovery {

inline constexpr int kMaxSlots = 1'000'000;        ///< Of one host; more is a typing error.
inline constexpr std::size_t kMaxHosts = 100'000;  ///< Of one job; a larger range is refused.
inline constexpr std::size_t kMaxHostName = 253;   ///< As in the name system.

struct Host {
  std::string name;    ///< As the user wrote it; an IPv6 address without its brackets.
  int slots = 1;       ///< Ranks it takes.
  int gpus = 0;        ///< That a scheduler says the job has there; 0: it says nothing.
  std::string user{};  ///< To log in as, where that is how it is reached; empty: as configured.

  friend bool operator==(const Host&, const Host&) = default;
};

/// Hosts in the order they fill up, each name once.
class HostSet {
 public:
  HostSet() = default;

  explicit HostSet(const std::vector<Host>& hosts);

  /// A name that is there already gets the slots added, up to kMaxSlots: `a:2,a:2` is `a:4`.
  void add(const Host& host);

  const std::vector<Host>& hosts() const { return hosts_; }

  /// Of this name; null: none.
  const Host* find(const std::string& name) const;

  bool empty() const { return hosts_.empty(); }

  std::size_t size() const { return hosts_.size(); }

  long long slots() const;

  friend bool operator==(const HostSet& a, const HostSet& b) { return a.hosts_ == b.hosts_; }

 private:
  std::vector<Host> hosts_;
  std::unordered_map<std::string, std::size_t> places_;  ///< By name, in hosts_.
};

/// "a:2, b:4"; of a long list its beginning and how many more there are.
std::string describe(const HostSet& hosts);

}  // namespace horo::discovery
