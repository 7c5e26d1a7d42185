// SPDX-License-Identifier: Apache-2.0
// Chooses the hyper-parameters of a Gaussian process: those under which the measurements are most
// likely. Pure.
#pragma once

#include <optional>
#include <vector>

#include "autotune/gaussian_process.hpp"

namespace horo::autotune {

struct Likelihood {
  double log_value = 0;
  Eigen::VectorXd gradient;  ///< By log_lengths, log_signal, log_noise.
};

/// The logarithm of the marginal likelihood of all measurements, replicates included, up to a
/// constant that depends on the number of replicates only. With a prior, its logarithm up to a
/// constant is added. Nothing if the covariances cannot be factorised.
std::optional<Likelihood> log_likelihood(const MeasuredPoints& measured,
                                         const HyperParameters& parameters,
                                         const HyperPrior* prior);

/// The most likely hyper-parameters, found by L-BFGS-B from `starts` different starts. Always
/// returns finite ones; without any row they are the prior's means.
HyperParameters fit_hyper_parameters(const MeasuredPoints& measured, const HyperPrior& prior,
                                     int starts);

/// Hyper-parameters with the weight of what they predict.
struct WeightedParameters {
  HyperParameters parameters;
  double weight = 1;
};

/// At most `count` further hyper-parameters that are about as likely as `best`, spread over their
/// posterior: a normal one around `best` with the curvature there proposes them, and the likelihood
/// weighs them. The weights of all and of `best`, which has 1, say how much each counts.
std::vector<WeightedParameters> likely_hyper_parameters(const MeasuredPoints& measured,
                                                        const HyperPrior& prior,
                                                        const HyperParameters& best, int count);

/// The same, from one start: hyper-parameters of nearly the same measurements.
HyperParameters refit_hyper_parameters(const MeasuredPoints& measured, const HyperPrior& prior,
                                       const HyperParameters& before);

}  // namespace horo::autotune
