// SPDX-License-Identifier: Apache-2.0
// Sums rank + 1 over the ranks, and checks the other collectives of the installed horo.hpp.
#include <algorithm>
#include <exception>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <horo/horo.hpp>

namespace {

bool fails(horo_status status, auto&& function) {
  try {
    function();
  } catch (const horo::Error& error) {
    return error.status() == status;
  }
  return false;
}

/// A set without the last rank works with all functions.
bool sets_work(const horo::Job& job) {
  std::vector<int> ranks;
  for (int r = 0; r < std::max(1, job.size() - 1); ++r) ranks.push_back(r);
  // A single rank is the same set as the world.
  if (job.size() == 1) return fails(HORO_DUPLICATE, [&] { horo::ProcessSet::add(ranks); });
  const auto first = horo::ProcessSet::add(ranks);
  const auto n = ranks.size();
  bool good = first.size() == static_cast<int>(n) && first.ranks() == ranks &&
              first.included() == (job.rank() + 1 < job.size()) && first != horo::ProcessSet();
  std::vector<double> values(n, 1.0);
  if (first.included()) {
    job.allreduce<double>("set", values, {.op = horo::ReduceOp::sum}, first);
    good = good && values == std::vector<double>(n, static_cast<double>(n));
    job.broadcast<double>("set", values, ranks.back(), first);
    good = good && job.allgather<double>("set", values, 1, first).rows ==
                       std::vector<std::int64_t>(n, static_cast<std::int64_t>(n));
    good = good && job.reducescatter<double>("set", values, 1, {}, first).size() == 1;
    good = good && job.alltoall<double>("set", values, {}, 1, first).data.size() == n;
    job.barrier(first);
    good = good && job.join(first) >= 0;
    job.barrier(first);
  } else {
    good = good && fails(HORO_INVALID_ARGUMENT, [&] { job.barrier(first); });
  }
  first.remove();
  return good && first.size() == -1 && fails(HORO_NOT_FOUND, [&] { first.ranks(); });
}

/// Rank r has r + 1 values, one after the other, and joins then.
bool join_works(const horo::Job& job) {
  bool good = true;
  for (int round = 0; round <= job.rank(); ++round) {
    std::vector<float> value{1};
    job.allreduce<float>("uneven", value, {.op = horo::ReduceOp::sum});
    good = good && value[0] == static_cast<float>(job.size() - round);
    job.barrier();
  }
  good = good && job.join() == job.size() - 1;
  job.barrier();
  return good;
}

bool groups_work(const horo::Job& job) {
  const horo::Where where{.group = "group", .group_size = 2};
  std::vector<float> a{1, 2};
  std::vector<float> b{3};
  const auto first = horo::Tensor<float>::allreduce("group.a", a.size(), {}, where);
  const auto second = horo::Tensor<float>::allreduce("group.b", b.size(), {}, where);
  const std::vector<horo::Part> twice{first.part(a), first.part(a)};
  bool good = fails(HORO_DUPLICATE, [&] { static_cast<void>(horo::submit_all(twice)); });
  const std::vector<horo::Part> parts{first.part(a), second.part(b)};
  auto ops = horo::submit_all(parts);
  horo::wait_all(ops);
  job.barrier();
  return good && a == std::vector<float>{1, 2} && b == std::vector<float>{3};
}

/// An error's facts as fields, and the same facts from horo.h; copies of it share them.
bool errors_have_details(const horo::Job& job) {
  const auto tensor = horo::Tensor<float>::allreduce("detailed", 1);
  std::vector<float> value{1};
  const std::vector<horo::Part> twice{tensor.part(value), tensor.part(value)};
  bool good = false;
  try {
    static_cast<void>(horo::submit_all(twice));
  } catch (const horo::Error& error) {
    const horo::Error copy = error;
    horo_error_detail detail{};
    detail.size = sizeof(detail);
    good = copy.status() == HORO_DUPLICATE && copy.detail().tensor == "detailed" &&
           copy.detail().subject == HORO_SUBJECT_NONE && copy.detail().ranks.empty() &&
           horo_last_error_detail(&detail) == HORO_OK && detail.status == HORO_DUPLICATE &&
           std::string(detail.tensor) == "detailed" && detail.rank_count == 0;
    detail.size = sizeof(detail.size);
    good = good && horo_last_error_detail(&detail) == HORO_INVALID_ARGUMENT;
  }
  job.barrier();
  return good;
}

/// One row for many ranks: a rank that gets none still leaves nothing behind.
bool ends_without_rows(const horo::Job& job) {
  const std::vector<float> row{1};
  const auto tensor = horo::Tensor<float>::reducescatter("row", row.size());
  std::vector<float> mine(tensor.out_size());
  const auto gone = [](horo_op op) {
    return horo_wait(op, -1) == HORO_OK && horo_wait(op, -1) == HORO_NOT_FOUND;
  };
  bool good = gone(tensor.submit(row, mine).release());
  const std::vector<horo::Part> parts{tensor.part(row, mine)};
  good = gone(horo::submit_all(parts).front().release()) && good;
  return job.reducescatter<float>("row", row).size() == mine.size() && good;
}

bool barriers_work(const horo::Job& job) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&job] {
      for (int i = 0; i < 20; ++i) job.barrier();
    });
  }
  for (auto& thread : threads) thread.join();
  return true;
}

}  // namespace

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
                      job.allgather<float>("all", value).data == std::vector<float>(n, value[0]) &&
                      sets_work(job) && join_works(job) && groups_work(job) &&
                      ends_without_rows(job) && barriers_work(job) && errors_have_details(job);
    if (!good) {
      std::cerr << "a collective gave a wrong result\n";
      return 1;
    }
    std::cout << "sum over " << job.size() << " rank(s): " << value[0] << '\n';
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
