#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Computes reference_figures.hpp with scikit-learn and SciPy, independently of Horo's code.

usage: reference_figures.py > reference_figures.hpp; clang-format-16 -i reference_figures.hpp

Needs scikit-learn and SciPy from PyPI; the header names the versions that the committed figures came from."""

import numpy
import scipy
import scipy.stats
import sklearn
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

POINTS = numpy.array([[0.05, 0.9], [0.3, 0.2], [0.45, 0.55], [0.6, 0.1], [0.75, 0.8], [0.95, 0.35], [0.2, 0.65]])
SCORES = numpy.array([-0.4, 1.3, 0.6, 0.9, -1.2, -0.7, -0.1])
LENGTHS, SIGNAL, NOISE = (0.4, 0.7), 1.5, 0.02
QUERIES = numpy.array([[0.1, 0.1], [0.5, 0.5], [0.9, 0.9], [0.3, 0.2]])
STUDENT = ((2.5, 3), (0.3, 7), (-1.2, 2), (9, 2), (4, 30))


def numbers(values):
    return "{%s}" % ", ".join("%.12g" % value for value in numpy.ravel(values))


def constant(name, values):
    print("inline const std::vector<double> %s = %s;" % (name, numbers(values)))


def main():
    kernel = ConstantKernel(SIGNAL, (1e-4, 100)) * Matern(LENGTHS, (0.02, 20), nu=2.5) + WhiteKernel(NOISE, (1e-8, 10))
    given = GaussianProcessRegressor(kernel, alpha=1e-12, optimizer=None).fit(POINTS, SCORES)
    means, deviations = given.predict(QUERIES, return_std=True)
    value, gradient = given.log_marginal_likelihood(kernel.theta, eval_gradient=True)
    # The prediction's deviation contains the noise of a new measurement; Horo's does not.
    deviations = numpy.sqrt(numpy.maximum(0, deviations**2 - NOISE))
    fitted = GaussianProcessRegressor(kernel, alpha=1e-12, n_restarts_optimizer=20, random_state=1).fit(POINTS, SCORES)
    print("// SPDX-License-Identifier: Apache-2.0")
    print("// Made by reference_figures.py with scikit-learn %s and SciPy %s." % (sklearn.__version__, scipy.__version__))
    print("#pragma once\n\n#include <vector>\n\nnamespace horo::reference {\n")
    for name, values in (("kPoints", POINTS), ("kScores", SCORES), ("kLengths", LENGTHS), ("kSignal", [SIGNAL]),
                         ("kNoise", [NOISE]), ("kQueries", QUERIES), ("kMeans", means), ("kDeviations", deviations),
                         ("kLikelihood", [value])):
        constant(name, values)
    print("/// By the logarithms of signal, lengths and noise, in this order.")
    constant("kGradient", gradient)
    print("/// The most likely hyper-parameters, without a prior, and their likelihood.")
    constant("kFitted", fitted.kernel_.theta)
    constant("kFittedLikelihood", [fitted.log_marginal_likelihood_value_])
    print("/// Triples: t, degrees of freedom, probability above t.")
    constant("kStudent", [(t, degrees, scipy.stats.t.sf(t, degrees)) for t, degrees in STUDENT])
    print("\n}  // namespace horo::reference")


if __name__ == "__main__":
    main()
