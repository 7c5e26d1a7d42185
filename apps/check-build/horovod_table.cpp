// SPDX-License-Identifier: Apache-2.0
#include "apps/check-build/horovod_table.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/version.hpp"

namespace horo::apps {

namespace {

/// The version whose interface Horo has, as in horovod.__version__.
constexpr std::string_view kHorovodVersion = "0.28.1";

/// A row of Horovod's table and the findings that make it true: one of them is enough. No finding:
/// Horo never has it.
struct TheirRow {
  std::string_view name;
  std::array<std::string_view, 2> findings{};
};

struct TheirSection {
  std::string_view title;
  std::vector<TheirRow> rows;
};

const std::array kSections{
    TheirSection{"Available Frameworks",
                 {{"TensorFlow", {"TensorFlow"}}, {"PyTorch", {"PyTorch"}}, {"MXNet"}}},
    TheirSection{"Available Controllers", {{"MPI", {"mpirun"}}, {"Gloo", {"local"}}}},
    TheirSection{"Available Tensor Operations",
                 {{"NCCL", {"nccl"}},
                  {"DDL"},
                  {"CCL"},
                  {"MPI", {"openmpi", "mpich"}},
                  {"Gloo", {"gloo", "tcp"}}}},
};

bool is_available(const TheirRow& row, const std::vector<Finding>& findings) {
  return std::any_of(findings.begin(), findings.end(), [&row](const Finding& finding) {
    return finding.available &&
           std::find(row.findings.begin(), row.findings.end(), finding.name) != row.findings.end();
  });
}

}  // namespace

std::string horovod_table(const std::vector<Finding>& findings) {
  auto text = fmt::format("Horovod v{}, as Horo {} has it:\n", kHorovodVersion, version());
  for (const auto& section : kSections) {
    text += fmt::format("\n{}:\n", section.title);
    for (const auto& row : section.rows)
      text += fmt::format("    [{}] {}\n", is_available(row, findings) ? 'X' : ' ', row.name);
  }
  return text;
}

}  // namespace horo::apps
