// SPDX-License-Identifier: Apache-2.0
// Sums rank + 1 over the ranks, and checks the other collectives of the installed horo.hpp.
#include <exception>
#include <iostream>
#include <vector>

#include <horo/horo.hpp>

int main() {
  try {
    horo::Job job;
    std::vector<float> value{static_cast<float>(job.rank() + 1)};
    job.allreduce<float>("value", value, {.op = horo::ReduceOp::sum});
    const auto n = static_cast<std::size_t>(job.size());
    // Rank r sends one row of two to each; row i of the sum is 2 i n.
    std::vector<float> rows(2 * n);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i / 2 * 2);
    const auto mine = job.reducescatter<float>("mine", rows, 2, {.op = horo::ReduceOp::sum});
    const std::vector<std::int64_t> splits(n, 1);
    const auto sent = job.alltoall<float>("sent", rows, splits, 2);
    const auto me = static_cast<float>(job.rank());
    const bool good = mine == std::vector<float>(2, 2 * me * static_cast<float>(n)) &&
                      sent.data == std::vector<float>(2 * n, 2 * me) && sent.rows == splits &&
                      job.allgather<float>("all", value).data == std::vector<float>(n, value[0]);
    if (!good) {
      std::cerr << "a collective went wrong\n";
      return 1;
    }
    std::cout << "sum over " << job.size() << " rank(s): " << value[0] << '\n';
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
