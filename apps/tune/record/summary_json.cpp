// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "apps/tune/record/summary_views.hpp"
#include "base/json.hpp"
#include "base/result.hpp"

namespace horo::apps {

namespace {

std::string_view kind_name(TuneSource kind) {
  switch (kind) {
    case TuneSource::horo_log:
      return "horo";
    case TuneSource::horovod_log:
      return "horovod";
    case TuneSource::trials:
      return "trials";
    case TuneSource::simulation:
      return "simulation";
  }
  return "";
}

/// Empty: the search came to its end, or only its log is known.
std::string_view stop_name(EarlyStop stop) {
  switch (stop) {
    case EarlyStop::none:
      break;
    case EarlyStop::program_ended:
      return "program";
    case EarlyStop::failures:
      return "failures";
    case EarlyStop::budget:
      return "budget";
    case EarlyStop::trials:
      return "trials";
    case EarlyStop::user:
      return "user";
  }
  return "";
}

void put_texts(JsonWriter& json, const std::vector<std::string>& texts) {
  json.begin_array();
  for (const auto& text : texts) json.value(text);
  json.end_array();
}

void put_numbers(JsonWriter& json, const std::vector<double>& numbers) {
  json.begin_array();
  for (const double number : numbers) json.value(number);
  json.end_array();
}

void put_count(JsonWriter& json, std::size_t count) {
  json.value(static_cast<std::int64_t>(count));
}

void put_index(JsonWriter& json, const std::optional<std::size_t>& index) {
  if (index) {
    put_count(json, *index);
  } else {
    json.null();
  }
}

void put_samples(JsonWriter& json, const TuneRecord& record) {
  json.begin_array();
  for (const auto& sample : record.samples) {
    json.begin_object().key("line");
    put_count(json, sample.line);
    json.key("values");
    put_texts(json, sample.values);
    json.key("score");
    if (sample.failure.empty()) {
      json.value(sample.score);
    } else {
      json.null();
    }
    json.key("standard_error").value(sample.standard_error).key("steps");
    put_count(json, sample.steps);
    json.key("stage").value(sample.stage).key("failure").value(sample.failure).end_object();
  }
  json.end_array();
}

void put_settings(JsonWriter& json, const TuneSummary& summary) {
  json.begin_array();
  for (const auto& setting : summary.settings) {
    json.begin_object().key("values");
    put_texts(json, setting.values);
    json.key("samples");
    put_count(json, setting.samples);
    json.key("failures");
    put_count(json, setting.failures);
    json.key("score").value(setting.score).key("error").value(setting.error);
    json.key("predicted").value(setting.predicted).key("deviation").value(setting.deviation);
    json.end_object();
  }
  json.end_array();
}

void put_gain(JsonWriter& json, const std::optional<TunedGain>& gain) {
  if (!gain) {
    json.null();
    return;
  }
  json.begin_object().key("gain").value(gain->gain).key("error").value(gain->error);
  json.key("chance").value(gain->chance).key("in_turns").value(gain->in_turns).end_object();
}

void put_surface(JsonWriter& json, const std::optional<ResponseSurface>& surface) {
  if (!surface) {
    json.null();
    return;
  }
  json.begin_object().key("x_column");
  put_count(json, surface->x_column);
  json.key("y_column");
  put_count(json, surface->y_column);
  json.key("xs");
  put_numbers(json, surface->xs);
  json.key("ys");
  put_numbers(json, surface->ys);
  json.key("scores");
  put_numbers(json, surface->scores);
  json.key("deviations");
  put_numbers(json, surface->deviations);
  json.end_object();
}

void put_columns(JsonWriter& json, const TuneRecord& record) {
  const auto varied = varied_columns(record);
  json.begin_array();
  for (std::size_t i = 0; i < record.columns.size(); ++i) {
    const auto& column = record.columns[i];
    json.begin_object().key("name").value(column.name).key("unit").value(column.unit);
    json.key("offset").value(column.offset).key("varies");
    json.value(std::find(varied.begin(), varied.end(), i) != varied.end()).end_object();
  }
  json.end_array();
}

/// Escapes '<', so that no text can end the script element of the page.
std::string for_script(std::string text) {
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos;)
    text.replace(at, 1, "\\u003c");
  return text;
}

}  // namespace

std::string summary_json(const TuneRecord& record, const TuneSummary& summary) {
  JsonWriter json;
  json.begin_object().key("source").value(record.source);
  json.key("kind").value(kind_name(record.kind)).key("score_unit").value(record.score_unit);
  json.key("stopped_by");
  if (const auto stop = stop_name(record.early_stop); !stop.empty()) {
    json.value(stop);
  } else {
    json.null();
  }
  json.key("verdicts");
  put_texts(json, summary.verdicts);
  json.key("notes");
  put_texts(json, record.notes);
  json.key("keep_command").value(summary.keep_command);
  json.key("config_file").value(summary.config_file);
  json.key("searches");
  put_count(json, record.earlier.count + 1);
  json.key("keep_best").value(summary.keep_best).key("best");
  put_index(json, summary.best);
  json.key("reference");
  put_index(json, summary.reference);
  json.key("gain");
  put_gain(json, summary.gain);
  json.key("noise").value(summary.noise).key("columns");
  put_columns(json, record);
  json.key("settings");
  put_settings(json, summary);
  json.key("samples");
  put_samples(json, record);
  json.key("best_so_far");
  put_numbers(json, summary.best_so_far);
  json.key("surface");
  put_surface(json, summary.surface);
  json.key("warnings");
  put_texts(json, record.warnings);
  json.end_object();
  return json.text() + "\n";
}

std::string summary_page(const TuneRecord& record, const TuneSummary& summary) {
  constexpr std::string_view kPlace = "{{SUMMARY}}";
  std::string page = kTunePage;
  const auto at = page.find(kPlace);
  HORO_CHECK(at != std::string::npos);
  page.replace(at, kPlace.size(), for_script(summary_json(record, summary)));
  return page;
}

}  // namespace horo::apps
