// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/assignments.hpp"

namespace horo::launcher {

Status Assignments::open(Epoch epoch) {
  if (stage_ != Stage::none && stage_ != Stage::waiting)
    return fail(Errc::protocol, "the launcher gave assignment {} while {} goes on", epoch, epoch_);
  if (epoch <= epoch_) {
    return fail(Errc::protocol, "the launcher gave assignment {} after {}; the numbers must rise",
                epoch, epoch_);
  }
  epoch_ = epoch;
  return {};
}

Status Assignments::prepare(Epoch epoch) {
  HORO_TRY_STATUS(open(epoch));
  stage_ = Stage::prepared;
  return {};
}

Status Assignments::begin(Epoch epoch, Duration stay) {
  if (stage_ != Stage::prepared || epoch != epoch_) {
    HORO_TRY_STATUS(open(epoch));
  }
  stage_ = Stage::begun;
  stay_ = stay;
  return {};
}

void Assignments::finish() {
  if (stage_ != Stage::begun) return;
  const bool waits = stay_ > Duration::zero() && !released_;
  stage_ = waits ? Stage::waiting : Stage::over;
}

void Assignments::release() {
  released_ = true;
  if (stage_ == Stage::waiting) stage_ = Stage::over;
}

}  // namespace horo::launcher
