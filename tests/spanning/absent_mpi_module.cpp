// SPDX-License-Identifier: Apache-2.0
// A module in the place of openmpi that can be used, and fails when ranks connect by it.
#include "runtime/backends/module.hpp"

namespace horo::spanning {

namespace {

Status probe() {
  return {};
}

Result<std::unique_ptr<runtime::Backend>> make(const runtime::Communicator& /*communicator*/) {
  return fail(Errc::unsupported, "the ranks of this job have not connected by MPI");
}

}  // namespace

}  // namespace horo::spanning

HORO_BACKEND_MODULE(.name = "openmpi", .probe = &horo::spanning::probe,
                    .make = &horo::spanning::make, .exchange = nullptr, .open_device = nullptr);
