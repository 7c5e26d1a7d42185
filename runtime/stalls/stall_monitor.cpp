// SPDX-License-Identifier: Apache-2.0
#include "runtime/stalls/stall_monitor.hpp"

#include "base/log.hpp"
#include "runtime/engine/operations/recording.hpp"

namespace horo::runtime {

void StallMonitor::connect(TreeLink& tree, std::string host_name) {
  tree_ = &tree;
  tree.examine_by(examiner_);
  if (!tree.leads()) return;
  watch_.lead();
  examiner_.lead(std::move(host_name));
}

void StallMonitor::report_due(TimePoint now) {
  if (until_due(now) > Duration::zero()) return;
  examiner_.write_pending();
  auto findings = watch_.look(now);
  for (const auto& line : findings.lines) log::warn("stall", "{}", line);
  for (auto& question : findings.questions) tree_->ask(std::move(question));
  record_stalls(findings.lines.size());
  if (findings.end.empty()) return;
  log::error("stall", "{}", findings.end);
  watch_.end_job(findings);
}

}  // namespace horo::runtime
