// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "apps/tune/record/summary_views.hpp"
#include "base/text/printable.hpp"

namespace horo::apps {

namespace {

constexpr std::array<std::string_view, 8> kBars{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::size_t kMostBars = 72;

/// One character per sample, or per some samples where there are many.
std::string curve(const std::vector<double>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const std::size_t count = std::min(values.size(), kMostBars);
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    const double value = values[(i + 1) * values.size() / count - 1];
    const double share = *most > *least ? (value - *least) / (*most - *least) : 1;
    text += kBars.at(static_cast<std::size_t>(share * static_cast<double>(kBars.size() - 1)));
  }
  return text;
}

using TextTable = std::vector<std::vector<std::string>>;

/// Columns are aligned to the right.
std::string table_text(const TextTable& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += fmt::format("{}{:>{}}", i == 0 ? "  " : "   ", row[i], widths[i]);
    }
    text += "\n";
  }
  return text;
}

std::string mark_of(const TuneSummary& summary, const TuneRecord& record, std::size_t index) {
  if (summary.keep_best && index == *summary.best) return "keep";
  if (index != summary.reference) return index == summary.best ? "best" : "";
  if (record.kind == TuneSource::horovod_log) return "first";
  return record.earlier.count > 0 ? "before" : "default";
}

std::string figure_text(double number) {
  return number > 0 ? fmt::format("{:.4g}", number) : "-";
}

std::vector<std::string> row_of(const TuneRecord& record, const TuneSummary& summary,
                                const std::vector<std::size_t>& varied, std::size_t index) {
  const auto& figures = summary.settings[index];
  std::vector<std::string> row{mark_of(summary, record, index)};
  for (const auto column : varied) row.push_back(printable(figures.values[column]));
  row.push_back(figures.samples == 0 ? "failed" : figure_text(figures.score));
  row.push_back(figure_text(figures.error));
  row.push_back(fmt::format("{}", figures.samples));
  row.push_back(figures.samples == 0 ? "-" : figure_text(figures.predicted));
  return row;
}

std::string settings_table(const TuneRecord& record, const TuneSummary& summary) {
  const auto varied = varied_columns(record);
  TextTable rows{{""}};
  for (const auto column : varied) {
    const auto& described = record.columns[column];
    rows.front().push_back(described.unit.empty()
                               ? described.name
                               : fmt::format("{} ({})", described.name, described.unit));
  }
  for (const auto* name : {"score", "error", "samples", "model"}) rows.front().emplace_back(name);
  for (std::size_t i = 0; i < summary.settings.size(); ++i)
    rows.push_back(row_of(record, summary, varied, i));
  return table_text(rows);
}

std::string_view kind_text(TuneSource kind) {
  switch (kind) {
    case TuneSource::horo_log:
      return "log of Horo's autotuner";
    case TuneSource::horovod_log:
      return "log of Horovod's autotuner";
    case TuneSource::trials:
      return "trials";
    case TuneSource::simulation:
      return "predictions";
  }
  return "";
}

/// How to use the setting to keep.
std::string advice(const TuneSummary& summary) {
  if (summary.keep_command.empty()) return {};
  auto text = fmt::format("\nto keep it:\n  {}\n", summary.keep_command);
  if (!summary.config_file.empty())
    text += fmt::format("or:\n  horo run --config-file {} ...\n", printable(summary.config_file));
  return text;
}

/// Columns that are equal in all samples, in one line.
std::string constant_columns(const TuneRecord& record) {
  const auto varied = varied_columns(record);
  std::string text;
  for (std::size_t i = 0; i < record.columns.size(); ++i) {
    if (std::find(varied.begin(), varied.end(), i) != varied.end()) continue;
    const auto& column = record.columns[i];
    text += fmt::format("{}{} {}{}{}", text.empty() ? "the same in all samples: " : ", ",
                        column.name, printable(record.samples.front().values[i]),
                        column.unit.empty() ? "" : " ", column.unit);
  }
  return text.empty() ? text : text + "\n";
}

}  // namespace

std::string summary_text(const TuneRecord& record, const TuneSummary& summary) {
  auto text = fmt::format("{}: {}, {} samples of {} settings\n", printable(record.source),
                          kind_text(record.kind), record.samples.size(), summary.settings.size());
  for (const auto& verdict : summary.verdicts) text += fmt::format("* {}\n", printable(verdict));
  for (const auto& note : record.notes) text += fmt::format("* {}\n", printable(note));
  if (!summary.best) return text;
  if (record.kind != TuneSource::simulation && summary.noise > 0)
    text += fmt::format("noise of one sample: {:.1f} %\n", 100 * summary.noise);
  const auto& curve_values = summary.best_so_far;
  text += fmt::format("\nbest so far, from {:.4g} to {:.4g} {}:\n  {}\n\n", curve_values.front(),
                      curve_values.back(), record.score_unit, curve(curve_values));
  text += fmt::format("scores in {}:\n{}", record.score_unit, settings_table(record, summary));
  return text + constant_columns(record) + advice(summary);
}

}  // namespace horo::apps
