// SPDX-License-Identifier: Apache-2.0
// Horovod's choice of controller, which says whether mpirun starts the ranks. It is not a knob.
#pragma once

#include <array>
#include <functional>
#include <string_view>

#include "base/result.hpp"

namespace horo {

/// The variables that name a controller; ours first.
inline constexpr std::array kControllerVariables{"HORO_CONTROLLER", "HOROVOD_CONTROLLER"};

/// Whether `word` is mpi, in any case of letters.
bool is_mpi_controller(std::string_view word);

/// `origin` is for the message. Fails: invalid_argument (`word` is neither gloo nor mpi).
Status check_controller(std::string_view word, std::string_view origin);

/// Checks the variables, except in a rank, where the launcher has set them. `lookup` works like
/// getenv. Fails: as check_controller.
Status check_controllers(const std::function<const char*(const char*)>& lookup);

}  // namespace horo
