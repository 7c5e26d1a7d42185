// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "timeline/analysis/model.hpp"
#include "timeline/chrome/chrome_reader.hpp"

namespace horo::timeline {

/// Converts the events of PyTorch's profiler to steps, computation and communication. Thread:
/// owner.
class ProfilerEvents {
 public:
  void take(const ChromeEvent& event, OperationSink& sink);

 private:
  int rank_ = -1;  ///< The rank of the last event.
};

}  // namespace horo::timeline
