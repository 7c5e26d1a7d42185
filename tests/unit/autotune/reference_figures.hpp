// SPDX-License-Identifier: Apache-2.0
// Made by reference_figures.py with scikit-learn 1.9.1 and SciPy 1.17.1.
#pragma once

#include <vector>

namespace horo::reference {

inline const std::vector<double> kPoints = {0.05, 0.9,  0.3, 0.2,  0.45, 0.55, 0.6,
                                            0.1,  0.75, 0.8, 0.95, 0.35, 0.2,  0.65};
inline const std::vector<double> kScores = {-0.4, 1.3, 0.6, 0.9, -1.2, -0.7, -0.1};
inline const std::vector<double> kLengths = {0.4, 0.7};
inline const std::vector<double> kSignal = {1.5};
inline const std::vector<double> kNoise = {0.02};
inline const std::vector<double> kQueries = {0.1, 0.1, 0.5, 0.5, 0.9, 0.9, 0.3, 0.2};
inline const std::vector<double> kMeans = {0.81461127815, 0.5952258356, -1.38601565063,
                                           1.27360277423};
inline const std::vector<double> kDeviations = {0.624921312516, 0.183954224283, 0.51351462531,
                                                0.137985797172};
inline const std::vector<double> kLikelihood = {-7.83117051181};
/// By the logarithms of signal, lengths and noise, in this order.
inline const std::vector<double> kGradient = {-0.908789836086, 0.506682407453, 0.27482926458,
                                              -0.062081636384};
/// The most likely hyper-parameters, without a prior, and their likelihood.
inline const std::vector<double> kFitted = {-0.14069853296, -1.09173476925, -0.58101085684,
                                            -18.420680744};
inline const std::vector<double> kFittedLikelihood = {-7.57378452325};
/// Triples: t, degrees of freedom, probability above t.
inline const std::vector<double> kStudent = {2.5,  3,  0.043853323504,   0.3, 7, 0.386445025201,
                                             -1.2, 2,  0.82349831961,    9,   2, 0.00606083004639,
                                             4,    30, 0.000190922818042};

}  // namespace horo::reference
