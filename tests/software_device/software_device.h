/* SPDX-License-Identifier: Apache-2.0 */
/* horo-software-device.so stands in for the driver of a GPU, in tests only. It has the entry points
 * of CUDA's driver that Horo uses, as NVIDIA documents them, and moves real bytes in host memory.
 * Nothing loads it unless HORO_GPU_DRIVER names its path. These functions are its own. */
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

/* Operations that are on a stream and have not run. */
size_t horo_software_device_pending(void);

/* Bytes of device memory and of pinned memory that are allocated now. */
size_t horo_software_device_allocated(void);

#ifdef __cplusplus
}
#endif

#endif /* HORO_TESTS_SOFTWARE_DEVICE_H */
