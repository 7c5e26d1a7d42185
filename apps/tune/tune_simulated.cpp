// SPDX-License-Identifier: Apache-2.0
#include "apps/common/cluster_file.hpp"
#include "apps/common/replace_file.hpp"
#include "apps/common/usage_error.hpp"
#include "apps/tune/simulate/simulate_trials.hpp"
#include "apps/tune/trials/kept_setting.hpp"
#include "apps/tune/tune_command.hpp"

namespace horo::apps {

int tune_simulated(const std::string& file, const std::string& config_out, const TuneViews& views) {
  const auto cluster = read_cluster(file);
  if (!cluster) return usage_error("horo tune", cluster.error());
  const std::pair<std::string_view, std::string> outputs[] = {{"html", views.html},
                                                              {"config-out", config_out}};
  if (const auto checked = check_output_paths(outputs); !checked)
    return refuse_tuning(checked.error());
  const auto found = simulate_trials(*cluster, file);
  if (!found) return usage_error("horo tune", found.error());
  auto summary = summarise(found->record);
  if (found->keep) summary.keep_command = command_to_keep(*found->keep);
  Status written;
  if (!config_out.empty()) {
    written = replace_file(config_out, config_file_text(found->keep ? &*found->keep : nullptr,
                                                        Settings(), summary.verdicts.front()));
    if (written && found->keep) summary.config_file = config_out;
  }
  const int shown = show_result(found->record, summary, views);
  return written ? shown : refuse_tuning(written.error());
}

}  // namespace horo::apps
