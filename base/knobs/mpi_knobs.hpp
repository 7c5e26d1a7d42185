// SPDX-License-Identifier: Apache-2.0
// The rows of the knobs for `horo run --mpi`; the others are in knobs.hpp.
#pragma once

#include <string_view>

#include "base/knobs/choices.hpp"
#include "base/knobs/knob.hpp"

namespace horo::knobs {

inline constexpr Knob<std::string_view> kMpirun{
    .text = {.key = "mpirun",
             .group = kMpi,
             .help = "program that starts the ranks under --mpi: mpirun of Open MPI, Spectrum MPI, "
                     "MPICH or Intel MPI",
             .unit = "path",
             .reader = KnobReader::launcher,
             .scope = KnobScope::mpirun},
    .fallback = "mpirun"};

inline constexpr Knob<std::string_view> kMpiArgs{
    .text =
        {.key = "mpi.args",
         .group = kMpi,
         .help =
             "further arguments of mpirun, split like a shell does; placed last before the command",
         .reader = KnobReader::launcher,
         .scope = KnobScope::mpirun_or_jsrun},
    .fallback = ""};

inline constexpr Knob<std::string_view> kBindingArgs{
    .text = {.key = "binding.args",
             .group = kMpi,
             .help = "arguments of mpirun that replace those about binding and mapping",
             .reader = KnobReader::launcher,
             .scope = KnobScope::mpirun_or_jsrun},
    .fallback = ""};

inline constexpr Knob<bool> kTcp{.text = {.key = "tcp",
                                          .group = kMpi,
                                          .help = "make MPI and NCCL use only TCP between hosts",
                                          .reader = KnobReader::launcher}};

}  // namespace horo::knobs
