/* SPDX-License-Identifier: Apache-2.0 */
/* Sums rank + 1 over the ranks, to test the installed horo.h from C. */
#include <stdio.h>

#include <horo/horo.h>

static int fail(const char* what) {
  fprintf(stderr, "%s: %s\n", what, horo_last_error());
  return 1;
}

int main(void) {
  if (horo_abi_version() != HORO_ABI_VERSION) {
    fprintf(stderr, "header has ABI %d, library %d\n", HORO_ABI_VERSION, horo_abi_version());
    return 1;
  }
  if (horo_init() != HORO_OK) return fail("horo_init");

  float value = (float)(horo_rank() + 1);
  const int64_t shape[] = {1};
  horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
  desc.name = "value";
  desc.ndim = 1;
  desc.shape = shape;
  horo_tensor tensor;
  horo_op op;
  if (horo_declare(&desc, &tensor) != HORO_OK) return fail("horo_declare");
  if (horo_submit(tensor, &value, &value, &op) != HORO_OK) return fail("horo_submit");
  if (horo_wait(op, -1) != HORO_OK) return fail("horo_wait");

  printf("sum over %d rank(s): %g\n", horo_size(), (double)value);
  return horo_shutdown() == HORO_OK ? 0 : fail("horo_shutdown");
}
