// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/flat/make_flat.hpp"

#include <utility>

namespace horo::runtime {

Mesh mesh_of(const Communicator& communicator) {
  return {.position = communicator.position,
          .size = communicator.size(),
          .shares_hosts = shares_hosts(communicator),
          .rank_order = communicator.rank_order};
}

std::unique_ptr<Backend> make_flat(std::string_view name, std::unique_ptr<Transport> transport,
                                   const Communicator& communicator, int workers,
                                   MessageMemory messages) {
  return std::make_unique<FlatBackend>(std::move(transport), mesh_of(communicator),
                                       FlatOptions{.name = name,
                                                   .segment = segment_bytes(communicator.size()),
                                                   .workers = workers,
                                                   .messages = messages,
                                                   .notify = communicator.notify});
}

}  // namespace horo::runtime
