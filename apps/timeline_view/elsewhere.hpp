// SPDX-License-Identifier: Apache-2.0
// A running job's ranks on other hosts: `horo top` runs there, through ssh, and what it says is put
// beside what is seen here. Neither the job nor its agents take part in that.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/timeline_view/live_view.hpp"
#include "base/clock.hpp"
#include "base/result.hpp"

namespace horo::apps {

/// One line of live_json() as a view, without figures. Fails: protocol.
Result<LiveView> parse_live(std::string_view line);

/// Adds the rows of another host. Pure.
void join_views(LiveView& to, const LiveView& other);

/// Who saw the ranks of a host: one, who knows whom of them a rank waits for, or each another.
enum class Seen { by_host, by_rank };

/// A rank that waits, for none that it was seen with, waits for the others that have nothing under
/// way. Pure.
void find_missing(LiveView& view, Seen seen = Seen::by_host);

/// "h1,h2" in its parts. Fails: invalid_argument (what ssh would take for an option, or nothing).
Result<std::vector<std::string>> split_hosts(std::string_view text);

/// Thread: owner. Its processes end with it.
class Elsewhere {
 public:
  /// `once`: one view of each. Fails: not_found (no ssh), unavailable, io.
  static Result<std::unique_ptr<Elsewhere>> start(const std::vector<std::string>& hosts,
                                                  const std::string& job, Duration interval,
                                                  bool once);
  ~Elsewhere();
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;

  /// Adds the newest view of each host, and what is wrong with those that give none. Blocks: no.
  void add_to(LiveView& view);
  /// Returns when all have given a view or ended, at the latest after `most`.
  void await(Duration most);

 private:
  class Impl;
  explicit Elsewhere(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace horo::apps
