// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/gloo/gloo_mesh.hpp"

#include <chrono>
#include <exception>

#include <gloo/common/error.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>

#include "base/signals_blocked.hpp"
#include "runtime/backends/gloo/gloo_descriptors.hpp"
#include "runtime/backends/gloo/gloo_store.hpp"
#include "runtime/backends/reachable_address.hpp"

namespace horo::runtime {

namespace {

Result<std::shared_ptr<gloo::transport::Device>> open_device(const std::string& interface,
                                                             const std::string& address) {
  gloo::transport::tcp::attr attributes;
  attributes.iface = interface;
  attributes.hostname = address;
  const SignalsBlocked blocked;  // The device's thread may write to a peer that has ended.
  try {
    return gloo::transport::tcp::CreateDevice(attributes);
  } catch (const std::exception& error) {
    return fail(
        Errc::invalid_argument,
        "interface '{}' address '{}' cannot be used: {}; name an interface or address of this host",
        interface, address, error.what());
  }
}

}  // namespace

Result<std::shared_ptr<gloo::Context>> connect_mesh(const Communicator& communicator) {
  HORO_TRY_STATUS(check(communicator));
  auto address = communicator.address;
  if (address.empty() && communicator.interface.empty()) {
    HORO_TRY(address, reachable_address(communicator));
  }
  const CloseOnExec sockets;
  // Gloo takes one interface.
  const auto interface = communicator.interface.substr(0, communicator.interface.find(','));
  HORO_TRY(auto device, open_device(interface, address));
  const auto where =
      fmt::format("connecting rank {} of {} over Gloo", communicator.position, communicator.size());
  const SignalsBlocked blocked(SignalsBlocked::Which::pipe);
  try {
    auto context =
        std::make_shared<gloo::rendezvous::Context>(communicator.position, communicator.size());
    context->setTimeout(std::chrono::ceil<std::chrono::milliseconds>(communicator.start_timeout));
    GlooStore store(*communicator.meeting, communicator.name, communicator.start_timeout);
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
