// SPDX-License-Identifier: Apache-2.0
#include "bindings/tensorflow/c_api.hpp"

#include <dlfcn.h>

namespace horo::tensorflow {

Api api;

namespace {

constexpr const char* kLibrary = "libtensorflow_framework.so.2";

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

std::string Api::load() {
  void* const library = dlopen(kLibrary, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return std::string("this process has not loaded ") + kLibrary;
  std::string missing;
#define HORO_TF_FIND(name, result, parameters) \
  find(library, #name, name);                  \
  if (name == nullptr && missing.empty()) missing = #name;
  HORO_TF_FUNCTIONS(HORO_TF_FIND)
#undef HORO_TF_FIND
#define HORO_TF_FIND(name, result, parameters) find(library, #name, name);
  HORO_TF_OPTIONAL_FUNCTIONS(HORO_TF_FIND)
#undef HORO_TF_FIND
  // The library stays loaded: TensorFlow itself uses it.
  dlclose(library);
  return missing.empty() ? missing : std::string(kLibrary) + " has no " + missing;
}

}  // namespace horo::tensorflow
