// SPDX-License-Identifier: Apache-2.0
// Handles of a device's streams and events: the driver's own (cudaStream_t, cudaEvent_t) as
// pointers, so that a framework can pass its own.
#pragma once

namespace horo::runtime {

using StreamHandle = void*;
using EventHandle = void*;

}  // namespace horo::runtime
