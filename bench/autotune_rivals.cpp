// SPDX-License-Identifier: Apache-2.0
#include "autotune_rivals.hpp"

#include <Eigen/Cholesky>
#include <LBFGS.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "autotune/acquisition.hpp"
#include "autotune/search.hpp"

namespace horo::bench {

using namespace horo::autotune;

namespace {

class HorosSearch final : public Searcher {
 public:
  HorosSearch(const Surface& surface, std::uint64_t seed, std::size_t samples)
      : search_(std::move(Search::make(surface.space, {.seed = seed,
                                                       .scale = surface.scale,
                                                       .most_samples = samples,
                                                       .least_gain = 0}))
                    .value()) {}

  Setting ask() override {
    const auto proposal = search_.ask();
    // A search that has stopped learns nothing more; its choice is measured until all have ended.
    if (proposal.stage == SearchStage::first_points || proposal.stage == SearchStage::model)
      return proposal.setting;
    stopped_ = true;
    return best();
  }

  void tell(const Setting& setting, const Reading& reading) override {
    if (stopped_) return;
    std::ignore = search_.tell(setting, reading.score, reading.standard_error).has_value();
  }

  Setting best() const override {
    const auto best = search_.best_so_far();
    return best ? best->setting : search_.space().fallback();
  }

 private:
  Search search_;
  bool stopped_ = false;
};

/// Keeps the setting with the best measured score.
class BestMeasured : public Searcher {
 public:
  explicit BestMeasured(const Surface& surface) : best_(surface.space.fallback()) {}

  void tell(const Setting& setting, const Reading& reading) override {
    if (reading.score <= best_score_) return;
    best_score_ = reading.score;
    best_ = setting;
  }

  Setting best() const override { return best_; }

 protected:
  double best_score() const { return best_score_; }

 private:
  Setting best_;
  double best_score_ = -std::numeric_limits<double>::infinity();
};

class RandomSearch final : public BestMeasured {
 public:
  RandomSearch(const Surface& surface, std::uint64_t seed)
      : BestMeasured(surface), space_(surface.space), draws_(seed + 1000) {}

  Setting ask() override {
    if (std::exchange(first_, false)) return space_.fallback();
    CubePoint point(space_.free().size());
    for (auto& x : point) x = draws_.uniform();
    return space_.decode(point);
  }

 private:
  SearchSpace space_;
  RandomDraws draws_;
  bool first_ = true;
};

/// From the default, one dimension after the other: four values spread over it, then one on each
/// side of the best, half as far away.
class CoordinateDescent final : public BestMeasured {
 public:
  explicit CoordinateDescent(const Surface& surface)
      : BestMeasured(surface), space_(surface.space), pending_{space_.fallback()} {}

  Setting ask() override {
    while (pending_.empty()) refill();
    auto setting = pending_.front();
    pending_.erase(pending_.begin());
    return setting;
  }

 private:
  void refill() {
    const auto centre = space_.encode(best());
    const double width = std::pow(0.5, round_ / 2);
    const std::vector<double> offsets = round_ % 2 == 0
                                            ? std::vector<double>{-0.375, -0.125, 0.125, 0.375}
                                            : std::vector<double>{-0.0625, 0.0625};
    for (const double offset : offsets) {
      auto point = centre;
      const double middle = round_ == 0 ? 0.5 : centre[coordinate_];
      point[coordinate_] = std::clamp(middle + width * offset, 0.0, 1.0);
      pending_.push_back(space_.decode(point));
    }
    if (round_ % 2 == 0 && ++coordinate_ < centre.size()) return;
    coordinate_ = 0;
    ++round_;
  }

  SearchSpace space_;
  std::vector<Setting> pending_;
  std::size_t coordinate_ = 0;
  int round_ = 0;
};

/// Minimises without a gradient of its own: forward differences of 1e-8, at most 100 iterations.
template <typename Function>
std::pair<Eigen::VectorXd, double> minimise(Eigen::VectorXd x, const Function& function) {
  LBFGSpp::LBFGSParam<double> options;
  options.epsilon = 1e-5;
  options.epsilon_rel = 1e-5;
  options.max_iterations = 100;
  Eigen::VectorXd best = x;
  double best_value = std::numeric_limits<double>::infinity();
  const auto with_gradient = [&](const Eigen::VectorXd& at, Eigen::VectorXd& gradient) {
    const double value = function(at);
    if (std::isnan(value)) throw std::runtime_error("not a number");
    if (value < best_value) {
      best_value = value;
      best = at;
    }
    gradient.resize(at.size());
    for (Eigen::Index i = 0; i < at.size(); ++i) {
      Eigen::VectorXd moved = at;
      moved[i] += 1e-8;
      gradient[i] = (function(moved) - value) / 1e-8;
    }
    return value;
  };
  try {
    double value = 0;
    LBFGSpp::LBFGSSolver<double> solver(options);
    solver.minimize(with_gradient, x, value);
  } catch (const std::exception&) {
    // The best point so far is the result.
  }
  return {best, best_value};
}

/// The tuner that Horovod 0.28 describes: a Gaussian process on raw megabytes and milliseconds with
/// one length scale and a fixed noise of 0.8, and expected improvement from 25 random starts.
class HorovodsScheme final : public BestMeasured {
 public:
  HorovodsScheme(const Surface& surface, std::uint64_t seed)
      : BestMeasured(surface), surface_(surface), draws_(seed + 5000) {}

  Setting ask() override {
    const auto count = scores_.size();
    constexpr double kFirst[4][2] = {{4, 5}, {32, 50}, {16, 25}, {8, 10}};
    Eigen::VectorXd raw(static_cast<Eigen::Index>(surface_.raw.size()));
    if (count < 4) {
      for (Eigen::Index i = 0; i < raw.size(); ++i) {
        const auto& range = surface_.raw[static_cast<std::size_t>(i)];
        const double share = kFirst[count][i % 2] / (i % 2 == 0 ? 64 : 100);
        raw[i] = range.least + share * (range.most - range.least);
      }
    } else {
      raw = proposal();
    }
    asked_ = raw;
    return setting_of(raw);
  }

  void tell(const Setting& setting, const Reading& reading) override {
    BestMeasured::tell(setting, reading);
    points_.push_back(asked_);
    scores_.push_back(reading.score);
  }

 private:
  static constexpr double kAlpha = 0.8;

  Setting setting_of(const Eigen::VectorXd& raw) const {
    // Dimensions that it does not know keep their default.
    auto point = space().encode(space().fallback());
    for (std::size_t i = 0; i < surface_.raw.size(); ++i) {
      const auto& range = surface_.raw[i];
      const double inside = std::clamp(raw[static_cast<Eigen::Index>(i)], range.least, range.most);
      const auto& dimension = space().dimensions()[i];
      point[i] = unit_of(dimension, inside * range.unit);
    }
    return space().decode(point);
  }

  const SearchSpace& space() const { return surface_.wide ? *surface_.wide : surface_.space; }

  static double unit_of(const Dimension& dimension, double value) {
    if (const auto* whole = std::get_if<IntegerRange>(&dimension.range)) {
      const auto step = static_cast<double>(whole->step);
      return std::log(value / step + 1) / std::log(static_cast<double>(whole->most) / step + 1);
    }
    const auto& real = std::get<RealRange>(dimension.range);
    if (real.scale == Scale::linear) return (value - real.least) / (real.most - real.least);
    return std::log(value / real.least) / std::log(real.most / real.least);
  }

  double kernel(const Eigen::VectorXd& a, const Eigen::VectorXd& b) const {
    return signal_ * signal_ * std::exp(-(a - b).squaredNorm() / (2 * length_ * length_));
  }

  Eigen::LLT<Eigen::MatrixXd> factor() const {
    const auto n = static_cast<Eigen::Index>(points_.size());
    Eigen::MatrixXd k(n, n);
    for (Eigen::Index i = 0; i < n; ++i) {
      for (Eigen::Index j = 0; j < n; ++j) {
        k(i, j) =
            kernel(points_[static_cast<std::size_t>(i)], points_[static_cast<std::size_t>(j)]);
      }
    }
    k.diagonal().array() += kAlpha * kAlpha;
    return Eigen::LLT<Eigen::MatrixXd>(k);
  }

  void fit(const Eigen::VectorXd& y) {
    Eigen::VectorXd start(2);
    start << 1, 1;
    const auto [best, value] = minimise(start, [&](const Eigen::VectorXd& at) {
      length_ = at[0];
      signal_ = at[1];
      const auto llt = factor();
      if (llt.info() != Eigen::Success) return std::numeric_limits<double>::quiet_NaN();
      const Eigen::MatrixXd lower = llt.matrixL();
      return y.dot(llt.solve(y)) / 2 + lower.diagonal().array().log().sum();
    });
    length_ = best[0];
    signal_ = best[1];
  }

  Eigen::VectorXd proposal() {
    const auto n = static_cast<Eigen::Index>(scores_.size());
    Eigen::VectorXd y = Eigen::Map<Eigen::VectorXd>(scores_.data(), n);
    const double mean = y.mean();
    const double deviation = std::sqrt((y.array() - mean).square().mean());
    y = (y.array() - mean) / (deviation > 0 ? deviation : 1);
    fit(y);
    const auto llt = factor();
    const Eigen::VectorXd weights = llt.solve(y);
    const auto predicted = [&](const Eigen::VectorXd& x) {
      Eigen::VectorXd k(n);
      for (Eigen::Index i = 0; i < n; ++i) k[i] = kernel(points_[static_cast<std::size_t>(i)], x);
      const double variance = signal_ * signal_ + 1e-8 - k.dot(llt.solve(k));
      return Prediction{.mean = k.dot(weights), .deviation = std::sqrt(std::max(0.0, variance))};
    };
    double incumbent = -std::numeric_limits<double>::infinity();
    for (const auto& point : points_) incumbent = std::max(incumbent, predicted(point).mean);
    return best_start([&](const Eigen::VectorXd& x) {
      if (!inside(x)) return std::numeric_limits<double>::max();
      return -expected_improvement(predicted(x), incumbent + 0.01);
    });
  }

  template <typename Function>
  Eigen::VectorXd best_start(const Function& function) {
    Eigen::VectorXd best = random_point();
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 25; ++i) {
      const auto [x, value] = minimise(random_point(), function);
      if (value >= least) continue;
      least = value;
      best = x;
    }
    return best;
  }

  Eigen::VectorXd random_point() {
    Eigen::VectorXd x(static_cast<Eigen::Index>(surface_.raw.size()));
    for (Eigen::Index i = 0; i < x.size(); ++i) {
      const auto& range = surface_.raw[static_cast<std::size_t>(i)];
      x[i] = range.least + draws_.uniform() * (range.most - range.least);
    }
    return x;
  }

  bool inside(const Eigen::VectorXd& x) const {
    for (std::size_t i = 0; i < surface_.raw.size(); ++i) {
      const double value = x[static_cast<Eigen::Index>(i)];
      if (value < surface_.raw[i].least || value > surface_.raw[i].most) return false;
    }
    return true;
  }

  Surface surface_;
  RandomDraws draws_;
  std::vector<Eigen::VectorXd> points_;
  std::vector<double> scores_;
  Eigen::VectorXd asked_;
  double length_ = 1;
  double signal_ = 1;
};

}  // namespace

std::unique_ptr<Searcher> make_searcher(const std::string& name, const Surface& surface,
                                        std::uint64_t seed, std::size_t samples) {
  if (name == "horo") return std::make_unique<HorosSearch>(surface, seed, samples);
  if (name == "random") return std::make_unique<RandomSearch>(surface, seed);
  if (name == "coordinate descent") return std::make_unique<CoordinateDescent>(surface);
  return std::make_unique<HorovodsScheme>(surface, seed);
}

}  // namespace horo::bench
