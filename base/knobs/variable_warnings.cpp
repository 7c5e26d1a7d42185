// SPDX-License-Identifier: Apache-2.0
#include "base/knobs/variable_warnings.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/knobs/nearest.hpp"
#include "base/worker_env.hpp"

namespace horo {

namespace {

constexpr std::string_view kOurs = "HORO_";
constexpr std::string_view kTheirs = "HOROVOD_";

/// A variable of Horovod that is not a knob. A name may end with '*'.
struct TheirVariable {
  std::string_view name;
  std::string_view inert{};  ///< Why it has no effect; empty: there is nothing to tell.
  bool is_switch = false;    ///< 0 asks for nothing.
};

/// The first row that fits counts.
constexpr std::array kTheirVariables{
    // The launcher sets it for the ranks of an elastic job.
    TheirVariable{.name = "HOROVOD_ELASTIC"},
    TheirVariable{.name = "HOROVOD_ENABLE_XLA_OPS",
                  .inert = "Horo has no module for TensorFlow",
                  .is_switch = true},
    TheirVariable{.name = "HOROVOD_BATCH_D2D_MEMCOPIES",
                  .inert = "many small tensors in GPU memory are always copied together"},
    TheirVariable{.name = "HOROVOD_ADASUM_MPI_CHUNK_SIZE",
                  .inert = "Adasum cuts its messages into pieces by itself"},
    TheirVariable{.name = "HOROVOD_CCL_*", .inert = "Horo does not use oneCCL"},
    TheirVariable{.name = "HOROVOD_SPARK_*", .inert = "Horo has no module for Spark"},
    // Sets can always be added and removed.
    TheirVariable{.name = "HOROVOD_DYNAMIC_PROCESS_SETS"},
    // The caller looks at its value.
    TheirVariable{.name = "HOROVOD_CONTROLLER"},
    // Horovod reads these only while it is built; images of containers often keep them.
    TheirVariable{.name = "HOROVOD_WITH_*"},
    TheirVariable{.name = "HOROVOD_WITHOUT_*"},
    TheirVariable{.name = "HOROVOD_GPU*"},
    TheirVariable{.name = "HOROVOD_CUDA_*"},
    TheirVariable{.name = "HOROVOD_NCCL_*"},
    TheirVariable{.name = "HOROVOD_ROCM_*"},
    TheirVariable{.name = "HOROVOD_MPICXX_SHOW"},
    TheirVariable{.name = "HOROVOD_BUILD_*"},
    TheirVariable{.name = "HOROVOD_CMAKE*"},
    TheirVariable{.name = "HOROVOD_ALLOW_MIXED_GPU_IMPL"},
    TheirVariable{.name = "HOROVOD_SKIP_COMPILE"},
    TheirVariable{.name = "HOROVOD_VERSION"},
};

const TheirVariable* find_theirs(std::string_view name) {
  const auto found =
      std::find_if(kTheirVariables.begin(), kTheirVariables.end(), [name](const auto& row) {
        return row.name.back() == '*' ? name.starts_with(row.name.substr(0, row.name.size() - 1))
                                      : name == row.name;
      });
  return found == kTheirVariables.end() ? nullptr : &*found;
}

bool is_off(std::string_view value) {
  constexpr std::array<std::string_view, 4> kOff{"", "0", "false", "False"};
  return std::find(kOff.begin(), kOff.end(), value) != kOff.end();
}

/// The knob's variable that was probably meant; empty: the name is right, or it is another
/// program's.
std::string meant_by(std::string_view variable) {
  // At most one letter in four may be wrong: HORO_TAIL does not mean HORO_TAG.
  int least = static_cast<int>(variable.size() - kOurs.size()) / 4 + 1;
  std::string best;
  for (const auto& row : knob_rows()) {
    auto name = variable_name(row.text->key);
    const int distance = edit_distance(variable, name);
    if (distance == 0) return {};
    if (distance < least) {
      least = distance;
      best = std::move(name);
    }
  }
  return best;
}

std::optional<std::string> warning_of_ours(std::string_view name) {
  if (describes_rank(name) || name == "HORO_CONFIG_FILE" || name == "HORO_RESTART_COUNT" ||
      name == kWarnedVariable)
    return {};
  const auto meant = meant_by(name);
  if (meant.empty()) return {};
  return fmt::format("the variable {} has no effect; did you mean {}?", name, meant);
}

std::optional<std::string> warning_of_theirs(std::string_view name, std::string_view value) {
  std::vector<std::string_view> known;
  for (const auto& row : knob_rows()) {
    if (!row.text->variable.name.empty()) known.push_back(row.text->variable.name);
  }
  if (std::find(known.begin(), known.end(), name) != known.end()) return {};
  if (const auto* row = find_theirs(name)) {
    if (row->inert.empty() || (row->is_switch && is_off(value))) return {};
    return fmt::format("the variable {} has no effect: {}", name, row->inert);
  }
  if (describes_rank(name)) return {};
  for (const auto& row : kTheirVariables) {
    if (row.name.back() != '*') known.push_back(row.name);
  }
  return fmt::format("the variable {} is unknown and has no effect{}", name,
                     did_you_mean(name, known));
}

}  // namespace

std::vector<KnobWarning> variable_warnings(const char* const* environment) {
  std::vector<KnobWarning> warnings;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const auto name = entry.substr(0, entry.find('='));
    const auto value = entry.substr(std::min(name.size() + 1, entry.size()));
    std::optional<std::string> text;
    if (name.starts_with(kOurs)) text = warning_of_ours(name);
    if (name.starts_with(kTheirs)) text = warning_of_theirs(name, value);
    if (text) warnings.push_back({std::string(name), std::move(*text)});
  }
  return warnings;
}

std::vector<KnobWarning> without_warned(std::vector<KnobWarning> warnings,
                                        std::string_view warned) {
  const auto told = fmt::format(",{},", warned);
  std::erase_if(warnings, [&told](const auto& warning) {
    return told.find(fmt::format(",{},", warning.subject)) != std::string::npos;
  });
  return warnings;
}

}  // namespace horo
