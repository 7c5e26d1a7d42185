/* SPDX-License-Identifier: Apache-2.0
 * Stand-in for NVIDIA's libnvToolsExt.so.1, with the two functions of nvToolsExt.h that libhoro
 * calls. Each begin and end of a range becomes a line in the file NVTX_STANDIN_FILE. With
 * NVTX_STANDIN_DEAF it answers like the library without a profiler. It also is the library of a
 * profiler that NVTX_INJECTION64_PATH may name; with NVTX_STANDIN_REFUSES it does not start. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef uint64_t nvtxRangeId_t;

static atomic_ullong begun;

static void tell(const char* what, unsigned long long range, const char* text) {
  const char* const path = getenv("NVTX_STANDIN_FILE");
  if (path == NULL) return;
  char line[512];
  int size = snprintf(line, sizeof line, "%d %s %llu %s\n", (int)getpid(), what, range, text);
  if (size >= (int)sizeof line) size = (int)sizeof line - 1;
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || write(file, line, (size_t)size) != size) abort();
  close(file);
}

/* The interface of NVTX 3 to profilers. */
typedef void (*function)(void);

struct callbacks {
  size_t size;
  int (*get)(int module, function*** table, unsigned* size);
};

nvtxRangeId_t nvtxRangeStartA(const char* message) {
  if (getenv("NVTX_STANDIN_DEAF") != NULL) {
    tell("deaf", 0, message);
    return 0;
  }
  const nvtxRangeId_t range = atomic_fetch_add(&begun, 1) + 1;
  tell("begin", range, message);
  return range;
}

void nvtxRangeEnd(nvtxRangeId_t range) {
  tell("end", range, "");
}

int InitializeInjectionNvtx2(const void* (*export_table)(uint32_t)) {
  enum { CORE = 1, DOMAINS = 5, CALLBACKS = 1, RANGE_START = 5, RANGE_END = 7 };
  const struct callbacks* const callbacks = export_table(CALLBACKS);
  function** table = NULL;
  unsigned size = 0;
  if (getenv("NVTX_STANDIN_REFUSES") != NULL || callbacks == NULL) return 0;
  if (!callbacks->get(DOMAINS, &table, &size) || size != 16 || table[2] == NULL) return 0;
  if (callbacks->get(99, &table, &size)) return 0;
  if (!callbacks->get(CORE, &table, &size) || size <= RANGE_END) return 0;
  *table[RANGE_START] = (function)nvtxRangeStartA;
  *table[RANGE_END] = (function)nvtxRangeEnd;
  return 1;
}
