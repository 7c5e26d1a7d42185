// SPDX-License-Identifier: Apache-2.0
// NVIDIA's management library, found at run time: as much of its interface as is used here, as
// NVIDIA documents it.
#pragma once

#include <string>

#include "base/result.hpp"

namespace horo::discovery::nvml {

using Code = int;
using Device = void*;
using EventSet = void*;

inline constexpr Code kSuccess = 0;
inline constexpr Code kTimeout = 10;
inline constexpr Code kLost = 15;
inline constexpr unsigned long long kXidEvent = 8;
inline constexpr int kOfTheChip = 0;  ///< The sensor of the temperature that all GPUs have.

struct Pci {
  char legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_id;
  unsigned subsystem_id;
  char address[32];
};

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

struct Use {
  unsigned processor;
  unsigned memory;
};

/// A process that computes on a GPU.
struct ComputeProcess {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance;
  unsigned compute_instance;
};

struct Event {
  Device device;
  unsigned long long type;
  unsigned long long data;
  unsigned gpu_instance;
  unsigned compute_instance;
};

/// Functions of versions that are too old to have them are null; those of the first group are
/// always there.
struct NvmlFunctions {
  Code (*init)();
  Code (*shut_down)();
  const char* (*error_text)(Code code);
  Code (*driver_version)(char* text, unsigned room);
  Code (*cuda_version)(int* version);
  Code (*count)(unsigned* count);
  Code (*device)(unsigned index, Device* device);
  Code (*name)(Device device, char* text, unsigned room);
  Code (*uuid)(Device device, char* text, unsigned room);
  Code (*pci)(Device device, Pci* pci);
  Code (*memory)(Device device, Memory* memory);

  Code (*use)(Device device, Use* use);
  /// A bit for each hardware thread in `words` words.
  Code (*cpu_affinity)(Device device, unsigned words, unsigned long* set);
  Code (*temperature)(Device device, int sensor, unsigned* celsius);
  /// Takes the room in `processes` as their count.
  Code (*processes)(Device device, unsigned* count, ComputeProcess* processes);
  Code (*mig_mode)(Device device, unsigned* now, unsigned* pending);
  Code (*mig_count)(Device device, unsigned* most);
  Code (*mig_device)(Device device, unsigned index, Device* slice);
  Code (*link_state)(Device device, unsigned link, int* active);
  Code (*link_peer)(Device device, unsigned link, Pci* pci);
  Code (*ecc_errors)(Device device, int kind, int counter, unsigned long long* count);
  Code (*make_events)(EventSet* set);
  Code (*watch)(Device device, unsigned long long types, EventSet set);
  Code (*await)(EventSet set, Event* event, unsigned timeout_ms);
  Code (*free_events)(EventSet set);

  /// Fails: unavailable, with the library's words.
  Status status(Code code, const char* call) const;
};

/// The library's file; HORO_NVML_LIBRARY names another one, for tests.
std::string library_file();

/// Loads and initialises it, once per process. Thread: any. Blocks: while the driver starts. Fails:
/// unavailable (no such library, no driver, a driver of another version; says which).
Result<const NvmlFunctions*> load();

}  // namespace horo::discovery::nvml
