// SPDX-License-Identifier: Apache-2.0
// Reads hosts as people and schedulers write them: `a:2,node[01-16]:4,eva@[fe80::1]:2`. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "discovery/host.hpp"

namespace horo::discovery {

/// One element of a list and its position.
struct ListEntry {
  std::string_view text;   ///< Without surrounding blanks.
  std::size_t column = 1;  ///< Column of its first character, from 1.
};

/// Splits at the commas outside brackets. A list without a comma gives one entry; entries may be
/// empty.
std::vector<ListEntry> split_list(std::string_view list);

/// Expands ranges in brackets: `node[01-03,7]` is node01, node02, node03, node7. With several
/// brackets, the last one counts up first. A name without brackets gives itself. Fails:
/// invalid_argument, naming `text`; more than kMaxHosts names are refused before any is made.
Result<std::vector<std::string>> expand_names(std::string_view text);

/// Adds one entry to `hosts`: `name[:slots]`, with ranges, or `[IPv6 address][:slots]`, each
/// optionally after `user@`. Without slots, `default_slots` are used; a host with 0 slots takes no
/// rank. Fails: invalid_argument,
/// naming the entry; also if the host exists with another user.
Status add_entry(HostSet& hosts, std::string_view entry, int default_slots);

/// Reads a whole list, `a:2,b:4`. Fails: invalid_argument, naming the column and the entry.
Result<HostSet> parse_list(std::string_view list, int default_slots);

/// Whether `name` is the name of one host, or its address without brackets.
bool is_host_name(std::string_view name);

/// Whether `name` can be the name of a user.
bool is_user_name(std::string_view name);

/// Reads the number of slots of `entry`, `least` or more. Fails: invalid_argument.
Result<int> parse_slots(std::string_view text, std::string_view entry, int least);

}  // namespace horo::discovery
