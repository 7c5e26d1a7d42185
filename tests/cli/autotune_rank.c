/* SPDX-License-Identifier: Apache-2.0
 * A rank of a training: in each step it sums some tensors and checks every sum.
 * usage: autotune_rank MOST_STEPS [LOG [LINES [TENSORS]]]: runs until the autotuner has written its
 * last line to LOG, or LINES lines, or for MOST_STEPS steps. Each step sums TENSORS tensors (12).
 * With 0 steps it declares none.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <horo/horo.h>

enum { kTensors = 12, kElements = 3000 };

static void need(horo_status status) {
  if (status == HORO_OK) return;
  fprintf(stderr, "rank %d: %s: %s\n", horo_rank(), horo_status_name(status), horo_last_error());
  _exit(10 + (int)status);
}

static horo_tensor declare(const char* name, int64_t count) {
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  horo_tensor tensor;
  desc.name = name;
  desc.ndim = 1;
  desc.shape = &count;
  need(horo_declare(&desc, &tensor));
  return tensor;
}

static void reduce(horo_tensor tensor, float* value) {
  horo_op op;
  need(horo_submit(tensor, value, value, &op));
  need(horo_wait(op, -1));
}

/* Whether the autotuner's log has its last line, or `most` lines. */
static int has_ended(const char* path, int most) {
  char line[512];
  int ended = 0;
  int lines = 0;
  FILE* const file = path == NULL ? NULL : fopen(path, "re");
  if (file == NULL) return 0;
  while (fgets(line, sizeof line, file) != NULL)
    ended = ended || ++lines >= most || strstr(line, "default is best") != NULL ||
            strstr(line, "default stays") != NULL || strstr(line, "challenger won") != NULL ||
            strstr(line, "known holds") != NULL;
  fclose(file);
  return ended;
}

static void step(const horo_tensor* tensors, int count, int number) {
  static float values[kTensors][kElements];
  horo_op ops[kTensors];
  for (int t = 0; t < count; ++t) {
    for (int i = 0; i < kElements; ++i)
      values[t][i] = (float)(horo_rank() + 1) * (float)(t + number % 7);
    need(horo_submit(tensors[t], values[t], values[t], ops + t));
  }
  const float ranks = (float)(horo_size() * (horo_size() + 1) / 2);
  for (int t = 0; t < count; ++t) {
    need(horo_wait(ops[t], -1));
    for (int i = 0; i < kElements; ++i) {
      if (values[t][i] == ranks * (float)(t + number % 7)) continue;
      fprintf(stderr, "rank %d: step %d, tensor %d: %g\n", horo_rank(), number, t,
              (double)values[t][i]);
      _exit(9);
    }
  }
}

int main(int argc, char** argv) {
  const int most = argc > 1 ? atoi(argv[1]) : 100;
  const char* const log = argc > 2 ? argv[2] : NULL;
  const int lines = argc > 3 ? atoi(argv[3]) : 1000000;
  const int count = argc > 4 && atoi(argv[4]) < kTensors ? atoi(argv[4]) : kTensors;
  const int period = argc > 3 ? 5 : 50; /* Steps between two looks at the log. */
  horo_tensor tensors[kTensors];
  char name[32];
  need(horo_init());
  if (most == 0) { /* A declaration would fail where the other rank has shut down already. */
    need(horo_shutdown());
    return 0;
  }
  for (int t = 0; t < count; ++t) {
    snprintf(name, sizeof name, "gradient.%d", t);
    tensors[t] = declare(name, kElements);
  }
  const horo_tensor stop = declare("stop", 1);
  for (int i = 0; i < most; ++i) {
    step(tensors, count, i);
    if (i % period != period - 1) continue;
    float stops = horo_rank() == 0 ? (float)has_ended(log, lines) : 0;
    reduce(stop, &stops);
    if (stops > 0) {
      if (horo_rank() == 0) printf("settled\n");
      break;
    }
  }
  need(horo_shutdown());
  return 0;
}
