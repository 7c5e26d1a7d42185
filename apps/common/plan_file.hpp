// SPDX-License-Identifier: Apache-2.0
// A plan as a file: what --plan-out writes and --plan reads. It holds where ranks run and what, and
// neither secrets nor what differs from run to run, so two plans can be compared line by line.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace horo::apps {

struct PlannedHost {
  std::string name;
  std::vector<int> ranks;  ///< Ascending; by local rank.
  std::string user{};      ///< To log in as: of a name "user@host".

  friend bool operator==(const PlannedHost&, const PlannedHost&) = default;
};

struct PlanFile {
  std::vector<std::string> command;
  std::string directory;
  std::string bind_to;  ///< As the knob bind.to.
  std::string gpus;     ///< As the knob gpus.
  std::vector<PlannedHost> hosts;

  friend bool operator==(const PlanFile&, const PlanFile&) = default;
};

/// JSON; ranks as "0-3,8". Pure.
std::string plan_file_text(const PlanFile& plan);

/// The same back; every rank from 0 up stands on one host, every host has ranks and a name of its
/// own. `path` is for messages. Fails: invalid_argument, naming path, line, column and what is
/// wrong.
Result<PlanFile> parse_plan_file(const std::string& text, std::string_view path);

/// Blocks: for the file. Fails: not_found, permission_denied, io, invalid_argument.
Result<PlanFile> read_plan_file(const std::string& path);

/// Fails: permission_denied, not_found, io.
Status write_plan_file(const std::string& path, const PlanFile& plan);

}  // namespace horo::apps
