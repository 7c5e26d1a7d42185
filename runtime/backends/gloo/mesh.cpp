// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/gloo/mesh.hpp"

#include <chrono>
#include <exception>

#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>

#include "runtime/backends/gloo/store.hpp"

namespace horo::runtime {

namespace {

Result<std::shared_ptr<gloo::transport::Device>> open_device(const MeshSpec& spec) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = spec.interface;
  attributes.hostname = spec.address;
  try {
    return gloo::transport::tcp::CreateDevice(attributes);
  } catch (const std::exception& error) {
    return fail(
        Errc::invalid_argument,
        "interface '{}' address '{}' cannot be used: {}; name an interface or address of this host",
        spec.interface, spec.address, error.what());
  }
}

}  // namespace

Result<std::shared_ptr<gloo::Context>> connect_mesh(kv::Client& client, const MeshSpec& spec) {
  if (spec.size < 1 || spec.rank < 0 || spec.rank >= spec.size) {
    return fail(Errc::invalid_argument, "rank {} does not exist in a mesh of {}", spec.rank,
                spec.size);
  }
  HORO_TRY(auto device, open_device(spec));
  const auto where = fmt::format("connecting rank {} of {} over Gloo", spec.rank, spec.size);
  try {
    auto context = std::make_shared<gloo::rendezvous::Context>(spec.rank, spec.size);
    context->setTimeout(std::chrono::ceil<std::chrono::milliseconds>(spec.timeout));
    GlooStore store(client, spec.prefix, spec.timeout);
    context->connectFullMesh(store, device);
    return std::shared_ptr<gloo::Context>(std::move(context));
  } catch (const GlooStoreError& error) {
    return Failure(Error(error.error()).context(where));
  } catch (const gloo::IoException& error) {
    return fail(Errc::peer_lost, "{}: {}", where, error.what());
  } catch (const std::exception& error) {
    return fail(Errc::io, "{}: {}", where, error.what());
  }
}

}  // namespace horo::runtime
