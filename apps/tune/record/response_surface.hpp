// SPDX-License-Identifier: Apache-2.0
// The model behind a search, fitted to what was measured, and a picture of it over two columns.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/tune/record/tune_record.hpp"
#include "autotune/response_model.hpp"

namespace horo::apps {

/// Predicted scores on a grid.
struct ResponseSurface {
  std::size_t x_column = 0;
  std::size_t y_column = 0;
  std::vector<double> xs;
  std::vector<double> ys;
  std::vector<double> scores;      ///< Row by row: ys.size() rows of xs.size() scores.
  std::vector<double> deviations;  ///< Deviations of the scores.
};

struct ModelPrediction {
  double score = 0;
  double deviation = 0;
};

/// A Gaussian process over the samples. Thread: immutable.
class SampleModel {
 public:
  /// Nothing where fewer than two settings have a score, or no column varies.
  static std::optional<SampleModel> fit(const TuneRecord& record);

  ModelPrediction predict(const std::vector<std::string>& values) const;

  /// The deviation of one sample, as a share of its score.
  double noise() const;

  /// The scores over the first two columns of numbers that vary; the other columns have the values
  /// of `around`. Nothing where there are no two such columns, or fewer than five settings.
  std::optional<ResponseSurface> surface(const std::vector<std::string>& around) const;

 private:
  /// One coordinate of the unit cube.
  struct Axis {
    std::size_t column = 0;
    bool is_number = true;
    double offset = 0;
    double least = 0;  ///< The smallest and the largest scaled number.
    double most = 0;
    std::vector<std::string> words;

    double unit_of(const std::string& value) const;
    double value_at(double unit) const;
  };

  SampleModel(std::vector<Axis> axes, autotune::ResponseModel model)
      : axes_(std::move(axes)), model_(std::move(model)) {}

  static std::optional<Axis> axis_of(const TuneRecord& record, std::size_t column);
  autotune::CubePoint point_of(const std::vector<std::string>& values) const;

  std::vector<Axis> axes_;
  autotune::ResponseModel model_;
};

}  // namespace horo::apps
