// SPDX-License-Identifier: Apache-2.0
#include "apps/tune/record/response_surface.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace horo::apps {

namespace {

using autotune::CubePoint;

constexpr std::size_t kGridColumns = 48;
constexpr std::size_t kGridRows = 32;
constexpr std::size_t kLeastForSurface = 5;

double as_number(const std::string& text) {
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// On the scale on which distances are measured.
double scaled(double offset, double number) {
  return offset > 0 ? std::log(std::max(0.0, number) + offset) : number;
}

ModelPrediction on_score_scale(const autotune::Prediction& prediction) {
  const double score = std::exp(prediction.mean);
  return {.score = score, .deviation = score * prediction.deviation};
}

}  // namespace

double SampleModel::Axis::unit_of(const std::string& value) const {
  if (is_number) return (scaled(offset, as_number(value)) - least) / (most - least);
  const auto found = std::find(words.begin(), words.end(), value);
  return (static_cast<double>(found - words.begin()) + 0.5) / static_cast<double>(words.size());
}

double SampleModel::Axis::value_at(double unit) const {
  const double place = least + unit * (most - least);
  return offset > 0 ? std::max(0.0, std::exp(place) - offset) : place;
}

std::optional<SampleModel::Axis> SampleModel::axis_of(const TuneRecord& record,
                                                      std::size_t column) {
  const auto& described = record.columns[column];
  Axis axis{.column = column,
            .is_number = described.is_number,
            .offset = described.offset,
            .least = 0,
            .most = 0,
            .words = {}};
  std::vector<double> numbers;
  for (const auto& sample : record.samples) {
    numbers.push_back(scaled(axis.offset, as_number(sample.values[column])));
    if (std::find(axis.words.begin(), axis.words.end(), sample.values[column]) == axis.words.end())
      axis.words.push_back(sample.values[column]);
  }
  if (axis.words.size() < 2) return std::nullopt;
  axis.least = *std::min_element(numbers.begin(), numbers.end());
  axis.most = *std::max_element(numbers.begin(), numbers.end());
  if (axis.is_number && !(axis.most > axis.least)) return std::nullopt;
  return axis;
}

CubePoint SampleModel::point_of(const std::vector<std::string>& values) const {
  CubePoint point;
  for (const auto& axis : axes_) point.push_back(axis.unit_of(values[axis.column]));
  return point;
}

std::optional<SampleModel> SampleModel::fit(const TuneRecord& record) {
  std::vector<Axis> axes;
  std::vector<autotune::Dimension> dimensions;
  for (std::size_t i = 0; i < record.columns.size(); ++i) {
    auto axis = axis_of(record, i);
    if (!axis) continue;
    autotune::Dimension dimension{
        .name = record.columns[i].name, .range = autotune::RealRange{0, 1}, .fallback = 0.0};
    if (!axis->is_number) {
      dimension.range = autotune::Categories{axis->words};
      dimension.fallback = axis->words.front();
    }
    dimensions.push_back(std::move(dimension));
    axes.push_back(std::move(*axis));
  }
  const auto space = autotune::SearchSpace::make(std::move(dimensions));
  if (!space || axes.empty()) return std::nullopt;
  SampleModel mapping(axes, autotune::ResponseModel(*space, {}, autotune::ScoreScale::relative));
  std::vector<autotune::Measurement> measurements;
  for (const auto& sample : record.samples) {
    if (!sample.failure.empty()) continue;
    measurements.push_back({.setting = space->decode(mapping.point_of(sample.values)),
                            .score = sample.score,
                            .standard_error = sample.standard_error});
  }
  mapping.model_ = autotune::ResponseModel(*space, measurements, autotune::ScoreScale::relative);
  if (mapping.model_.groups().size() < 2) return std::nullopt;
  return mapping;
}

ModelPrediction SampleModel::predict(const std::vector<std::string>& values) const {
  return on_score_scale(model_.predict({point_of(values)}).front());
}

double SampleModel::noise() const {
  return std::expm1(model_.noise());
}

std::optional<ResponseSurface> SampleModel::surface(const std::vector<std::string>& around) const {
  std::vector<std::size_t> numbers;  // Indices in axes_.
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].is_number) numbers.push_back(i);
  }
  if (numbers.size() < 2 || model_.groups().size() < kLeastForSurface) return std::nullopt;
  const auto& x = axes_[numbers[0]];
  const auto& y = axes_[numbers[1]];
  ResponseSurface surface{.x_column = x.column, .y_column = y.column};
  std::vector<CubePoint> points;
  for (std::size_t row = 0; row < kGridRows; ++row) {
    const double y_unit = static_cast<double>(row) / (kGridRows - 1);
    surface.ys.push_back(y.value_at(y_unit));
    for (std::size_t column = 0; column < kGridColumns; ++column) {
      auto point = point_of(around);
      point[numbers[0]] = static_cast<double>(column) / (kGridColumns - 1);
      point[numbers[1]] = y_unit;
      if (row == 0) surface.xs.push_back(x.value_at(point[numbers[0]]));
      points.push_back(std::move(point));
    }
  }
  for (const auto& prediction : model_.predict(points)) {
    const auto here = on_score_scale(prediction);
    surface.scores.push_back(here.score);
    surface.deviations.push_back(here.deviation);
  }
  return surface;
}

}  // namespace horo::apps
