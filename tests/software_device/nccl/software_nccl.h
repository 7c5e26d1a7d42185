/* SPDX-License-Identifier: Apache-2.0 */
/* horo-software-nccl.so stands in for NCCL on a software device, in tests only. It has the entry
 * points of NCCL that Horo uses, as NVIDIA documents them, and moves real bytes between processes.
 * Nothing loads it unless HORO_NCCL_LIBRARY names its path. These functions are its own. */
#ifndef HORO_TESTS_SOFTWARE_NCCL_H
#define HORO_TESTS_SOFTWARE_NCCL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Replaces the plan of HORO_SOFTWARE_NCCL, see plan.hpp, and starts its counts afresh. The result
 * is not 0 when a word is not known. */
int horo_software_nccl_plan(const char* text);

/* The number of findings since the last plan, and their text, a line each. */
size_t horo_software_nccl_findings(char* text, size_t room);

#ifdef __cplusplus
}
#endif

#endif /* HORO_TESTS_SOFTWARE_NCCL_H */
