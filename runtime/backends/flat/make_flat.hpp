// SPDX-License-Identifier: Apache-2.0
// For modules: from a communicator to a mesh and a backend.
#pragma once

#include <memory>
#include <string_view>

#include "runtime/backends/communicator.hpp"
#include "runtime/backends/flat/flat_backend.hpp"

namespace horo::runtime {

Mesh mesh_of(const Communicator& communicator);

/// The backend `name` between the members of `communicator`, which `transport` connects.
std::unique_ptr<Backend> make_flat(std::string_view name, std::unique_ptr<Transport> transport,
                                   const Communicator& communicator,
                                   int workers = FlatOptions{}.workers,
                                   MessageMemory messages = MessageMemory::staging);

}  // namespace horo::runtime
