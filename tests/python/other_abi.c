/* SPDX-License-Identifier: Apache-2.0 */
/* A libhoro of another ABI, as far as the Python package looks before it refuses. */
int horo_abi_version(void);
const char* horo_version(void);

int horo_abi_version(void) {
  return 4242;
}

const char* horo_version(void) {
  return "9.9.9";
}
