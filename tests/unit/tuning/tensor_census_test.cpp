// SPDX-License-Identifier: Apache-2.0
#include "runtime/tuning/tensor_census.hpp"

#include <algorithm>

#include <catch2/catch.hpp>

using namespace horo::runtime::tuning;  // NOLINT(google-build-using-namespace): a test of it
using horo::TensorId;

namespace {

/// The signature of a training of some steps; tensor i has the name `names[i]`.
std::string signature(const std::vector<std::string>& names, int steps,
                      const std::vector<std::uint32_t>& once = {}) {
  TensorCensus census;
  for (const auto id : once) census.count(std::vector{TensorId{id}});
  for (int step = 0; step < steps; ++step) {
    for (std::uint32_t i = 0; i < names.size(); ++i) {
      if (std::find(once.begin(), once.end(), i) == once.end())
        census.count(std::vector{TensorId{i}});
    }
  }
  return census.signature([&](TensorId id) {
    const auto& name = names[id.index()];
    return TensorTraits{.hash = hash_more(kHashStart, name), .bytes = 100 * name.size()};
  });
}

}  // namespace

TEST_CASE("the same tensors have the same signature, in any order and after any number of steps") {
  const auto one = signature({"weight", "bias"}, 10);
  CHECK(one.substr(0, 22) == "2 tensors, 1000 bytes,");
  CHECK(signature({"bias", "weight"}, 37) == one);
}

TEST_CASE("other tensors have another signature") {
  const auto one = signature({"weight", "bias"}, 10);
  CHECK(signature({"weight", "bia5"}, 10) != one);
  CHECK(signature({"weight", "bias", "more"}, 10) != one);
}

TEST_CASE("a tensor that does not come in every step is left out") {
  CHECK(signature({"weight", "bias", "start"}, 10, {2}) == signature({"weight", "bias"}, 10));
}

TEST_CASE("a broadcast of more tensors than there are gradients is left out") {
  std::vector<std::string> gradients, all;
  for (int i = 0; i < 161; ++i) gradients.push_back("gradient." + std::to_string(i));
  all = gradients;
  std::vector<std::uint32_t> once;
  for (int i = 0; i < 320; ++i) {
    once.push_back(static_cast<std::uint32_t>(all.size()));
    all.push_back("state." + std::to_string(i));
  }
  CHECK(signature(all, 100, once) == signature(gradients, 100));
}

TEST_CASE("without tensors there is no signature") {
  CHECK(TensorCensus().signature([](TensorId) { return TensorTraits{}; }).empty());
}
