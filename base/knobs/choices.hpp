// SPDX-License-Identifier: Apache-2.0
// The values of knobs that are choices, and the groups of knobs in help and manual.
#pragma once

#include <cstdint>
#include <string_view>

namespace horo {

enum class TagMode : std::uint8_t { automatic, rank, off };
enum class FoldMode : std::uint8_t { automatic, on, off };
enum class StdinMode : std::uint8_t { automatic, none, rank0 };
enum class MapBy : std::uint8_t { pack, spread, host };
enum class BindTo : std::uint8_t { automatic, core, numa, gpu, none };
enum class GpuMode : std::uint8_t { off, automatic };
enum class StarterChoice : std::uint8_t { automatic, ssh, slurm, lsf };
enum class NoticeSignal : std::uint8_t { off, usr1, usr2, term };
enum class WireDTypeChoice : std::uint8_t { none, bfloat16, float16 };
enum class CpuOperations : std::uint8_t { automatic, shm, tcp, gloo, mpi };
enum class TorchBackend : std::uint8_t { unchanged, horo };
enum class GpuOperations : std::uint8_t { automatic, nccl, ipc, staged };

}  // namespace horo

namespace horo::knobs {

inline constexpr std::string_view kAgreement = "Fusion and agreement";
inline constexpr std::string_view kMemory = "Shared memory";
inline constexpr std::string_view kOutput = "Output";
inline constexpr std::string_view kPlaces = "Placement";
inline constexpr std::string_view kTimes = "Times and failures";
inline constexpr std::string_view kOtherHosts = "Other hosts";
inline constexpr std::string_view kElastic = "Elastic jobs";
inline constexpr std::string_view kLogs = "Logging";
inline constexpr std::string_view kAutotuning = "Autotuning";
inline constexpr std::string_view kTimelines = "Timeline";
inline constexpr std::string_view kStalls = "Stall check";
inline constexpr std::string_view kLibraries = "Libraries";
inline constexpr std::string_view kMpi = "mpirun";

}  // namespace horo::knobs
