/* SPDX-License-Identifier: Apache-2.0 */
/* horo-software-device.so stands in for the driver of a GPU, in tests only. It has the entry points
 * of CUDA's driver that Horo uses, as NVIDIA documents them, and moves real bytes in host memory.
 * Nothing loads it unless HORO_GPU_DRIVER names its path. horo-software-hip.so has the entry points
 * of HIP's runtime as well. These functions are their own. */
#ifndef HORO_TESTS_SOFTWARE_DEVICE_H
#define HORO_TESTS_SOFTWARE_DEVICE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces the plan of HORO_SOFTWARE_DEVICE, see fault_plan.hpp, and starts its counts afresh. A
 * device that is broken works again. The text of a word that is not known is written to standard
 * error, and the result is not 0. */
int horo_software_device_plan(const char* text);

/* The number of findings since the last plan, and their text, a line each. */
size_t horo_software_device_findings(char* text, size_t room);

/* How often an entry point of the driver, such as "cuStreamSynchronize", was called since the last
 * plan. */
size_t horo_software_device_calls(const char* name);

/* Operations that are on a stream and have not run. */
size_t horo_software_device_pending(void);

/* Bytes of device memory and of pinned memory that are allocated now. */
size_t horo_software_device_allocated(void);

/* Memory that a kernel uses. The device's threads reach it at `alias`, not at `address`. */
struct horo_software_device_span {
  const void* address;
  size_t bytes;
  int writes;
  void* alias;
};

/* Puts a kernel on a stream of the calling thread's device, 0 for its default stream: `run` is
 * called with `argument` by the stream's thread, behind all work that comes before it. The spans
 * are all that it uses. They and the argument stay valid until then. `broken` is not 0 when the
 * device has broken before: the kernel only frees what it owns. The result is 0 or an error of
 * CUDA. */
int horo_software_device_launch(void* stream, struct horo_software_device_span* spans, size_t count,
                                void (*run)(void* argument, int broken), void* argument);

/* The calling thread's device, and its number on the host; -1: the thread has no context. */
int horo_software_device_current(int* on_host);

/* The device of a stream, 0 for the calling thread's; -1: no such stream. */
int horo_software_device_of_stream(void* stream);

/* The error that has broken the device; 0: it works. */
int horo_software_device_broken(void);

#ifdef __cplusplus
}
#endif

#endif /* HORO_TESTS_SOFTWARE_DEVICE_H */
