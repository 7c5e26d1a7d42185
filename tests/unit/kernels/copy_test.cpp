// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <catch2/catch.hpp>

#include "tests/unit/kernels/reference.hpp"

using horo::tests::Bytes;

TEST_CASE("copies move exactly their bytes, whatever the length and alignment") {
  std::mt19937_64 random(1);
  std::vector<horo::kernels::CopyFn> copies{horo::kernels::copy_kernel()};
  for (const auto isa : horo::tests::isas())
    copies.push_back(horo::kernels::stream_copy_kernel(isa));
  for (const auto copy : copies) {
    for (int round = 0; round < 2000; ++round) {
      const std::size_t bytes = random() % (round % 10 == 0 ? 5000 : 200);
      const std::size_t from = random() % 64;
      const std::size_t to = random() % 64;
      const Bytes source =
          horo::tests::random_elements(horo::kernels::DType::u8, bytes + 128, random);
      Bytes target(bytes + 128, 0xa5);
      Bytes expected = target;
      std::copy_n(source.begin() + static_cast<std::ptrdiff_t>(from), bytes,
                  expected.begin() + static_cast<std::ptrdiff_t>(to));
      copy(target.data() + to, source.data() + from, bytes);
      INFO(bytes << " bytes from offset " << from << " to offset " << to);
      REQUIRE(target == expected);
    }
  }
}
