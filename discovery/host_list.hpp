// SPDX-License-Identifier: Apache-2.0
// How hosts are written, by people and by schedulers: `a:2,node[01-16]:4,eva@[fe80::1]:2`. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "discovery/host.hpp"

namespace horo::discovery {

/// One element of a list and where it stands.
struct ListEntry {
  std::string_view text;   ///< Without blanks around it.
  std::size_t column = 1;  ///< Of its first character, from 1.
};

/// Cuts at the commas that stand in no brackets. A list without any gives one entry; entries may be
/// empty.
std::vector<ListEntry> split_list(std::string_view list);

/// Names with ranges in brackets: `node[01-03,7]` is node01, node02, node03, node7; with several
/// brackets the last one counts up first. A name without brackets is itself.
/// Fails: invalid_argument, naming `text`; more than kMaxHosts names are refused before any is
/// made.
Result<std::vector<std::string>> expand_names(std::string_view text);

/// One entry, `name[:slots]`, with ranges, or `[IPv6 address][:slots]`, into `hosts`, each with
/// `user@` before it or not; `default_slots` when none are written.
/// Fails: invalid_argument, naming the entry; also for a host that is there with another user.
Status add_entry(HostSet& hosts, std::string_view entry, int default_slots);

/// A whole list, `a:2,b:4`. Fails: invalid_argument, naming the column and the entry.
Result<HostSet> parse_list(std::string_view list, int default_slots);

/// Whether this is one host's name, or its address without brackets.
bool is_host_name(std::string_view name);

/// Whether this can be the name of a user.
bool is_user_name(std::string_view name);

/// A whole number of slots of `entry`. Fails: invalid_argument.
Result<int> parse_slots(std::string_view text, std::string_view entry);

}  // namespace horo::discovery
