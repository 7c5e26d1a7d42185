// SPDX-License-Identifier: Apache-2.0
// Who can run ranks, and how many: the answer of every source and the input of placement.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace horo::discovery {

inline constexpr int kMaxSlots = 1'000'000;  ///< Of one host; more is a typing error.

struct Host {
  std::string name;  ///< As the user wrote it; an IPv6 address without its brackets.
  int slots = 1;     ///< Ranks it takes.

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

  bool empty() const { return hosts_.empty(); }

  long long slots() const;

  friend bool operator==(const HostSet&, const HostSet&) = default;

 private:
  std::vector<Host> hosts_;
};

/// "a:2, b:4".
std::string describe(const HostSet& hosts);

/// One entry, `name[:slots]`, `address[:slots]` or `[IPv6 address][:slots]`; one slot when none is
/// written. Fails: invalid_argument, naming the entry.
Result<Host> parse_host(std::string_view entry);

}  // namespace horo::discovery
