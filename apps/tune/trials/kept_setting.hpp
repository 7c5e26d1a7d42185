// SPDX-License-Identifier: Apache-2.0
// The setting to keep, as flags and as a config file of `horo run`. Pure.
#pragma once

#include <string>
#include <vector>

#include "apps/tune/record/tune_record.hpp"
#include "apps/tune/trials/trial_space.hpp"
#include "base/knobs/settings.hpp"

namespace horo::apps {

/// The knobs that a setting of a log stands for. Switches of Horovod that Horo does not have are
/// left out.
SettingWords words_of_log(const TuneRecord& record, const std::vector<std::string>& values);

/// "NCCL_ALGO=Ring horo run --cycle-time=1ms ...".
std::string command_to_keep(const SettingWords& words);

/// A config file with the setting, and with the values of the file that the job had. `words` null:
/// the default stays. `verdict`: why, for a comment.
std::string config_file_text(const SettingWords* words, const Settings& settings,
                             const std::string& verdict);

}  // namespace horo::apps
