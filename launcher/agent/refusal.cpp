// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/refusal.hpp"

#include <string>
#include <unistd.h>
#include <utility>

#include "launcher/protocol/protocol.hpp"

namespace horo::launcher {

void refuse_to_start(int out, const Error& reason, protocol::SealedBytes* seals) {
  std::string bytes;
  static_cast<void>(protocol::encode(protocol::Hello::ours(), bytes));
  static_cast<void>(protocol::encode(protocol::Failed{reason}, bytes));
  if (seals != nullptr) seals->wrap(std::exchange(bytes, {}), bytes);
  [[maybe_unused]] const auto put = write(out, bytes.data(), bytes.size());
}

}  // namespace horo::launcher
