// SPDX-License-Identifier: Apache-2.0
// Sums rank + 1 over the ranks; exercises the installed horo.hpp.
#include <exception>
#include <iostream>
#include <vector>

#include <horo/horo.hpp>

int main() {
  try {
    horo::Job job;
    std::vector<float> value{static_cast<float>(job.rank() + 1)};
    job.allreduce<float>("value", value, {.op = horo::ReduceOp::sum});
    std::cout << "sum over " << job.size() << " rank(s): " << value[0] << '\n';
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
