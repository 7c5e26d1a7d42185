// SPDX-License-Identifier: Apache-2.0
// horo._fastpath: the frequent calls of libhoro without ctypes. horo/_extension.py loads it;
// without it, the package does the same in Python.
#include <array>

#include "bindings/python/fastpath/arrays.hpp"
#include "bindings/python/fastpath/declarations.hpp"
#include "bindings/python/fastpath/library.hpp"
#include "bindings/python/fastpath/operations.hpp"
#include "bindings/python/fastpath/record_fields.hpp"
#include "bindings/python/fastpath/submissions.hpp"
#include "bindings/python/fastpath/tensors.hpp"

namespace horo::fastpath {

namespace {

/// The package refuses a module with another number. A change of a function's arguments or meaning
/// raises it, here and in horo/_extension.py.
constexpr int kInterface = 5;

PyMethodDef fast(const char* name, FastFunction function) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function)), kFastCall,
          nullptr};
}

PyMethodDef keywords(const char* name, FastKeywordFunction function, const char* help) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function)),
          kFastCall | METH_KEYWORDS, help};
}

/// Adds a function that users import from horo._handles, where pickle finds it in every process,
/// with this module or without. False with an exception.
bool add_public(PyObject* module, PyMethodDef& method) {
  const Ref home(PyUnicode_FromString("horo._handles"));
  Ref function(home ? PyCFunction_NewEx(&method, nullptr, home.get()) : nullptr);
  if (!function || PyModule_AddObject(module, method.ml_name, function.get()) < 0) return false;
  function.release();  // the module owns it now
  return true;
}

bool add_type(PyObject* module, const char* name, Ref type) {
  if (!type || PyModule_AddObject(module, name, type.get()) < 0) return false;
  type.release();  // the module owns it now
  return true;
}

PyObject* make_module() {
  static std::array<PyMethodDef, 15> methods{
      fast("connect", connect),
      PyMethodDef{"declare", declare, METH_O, nullptr},
      PyMethodDef{"array_address", array_address, METH_O, nullptr},
      PyMethodDef{"read_capsule", read_capsule, METH_O, nullptr},
      fast("submit", submit),
      fast("submit_at", submit_at),
      fast("submit_parts", submit_parts),
      PyMethodDef{"wait", wait, METH_O, nullptr},
      fast("wait_all", wait_all),
      fast("wait_stream", wait_stream),
      PyMethodDef{"waiting_threads", waiting_threads, METH_NOARGS, nullptr},
      fast("read_tensors", read_tensors),
      fast("read_device", read_device),
      fast("start_allreduce", start_allreduce),
      PyMethodDef{}};
  static PyMethodDef public_synchronize = keywords("synchronize", synchronize,
                                                   "synchronize(handle)\n--\n\nWaits for "
                                                   "an operation and returns its result; None when "
                                                   "the handle was waited for before.");
  static PyMethodDef public_poll =
      keywords("poll", poll, "poll(handle)\n--\n\nTrue when synchronize() would return at once.");
  static PyModuleDef definition{PyModuleDef_HEAD_INIT,
                                "horo._fastpath",
                                nullptr,
                                -1,
                                methods.data(),
                                nullptr,
                                nullptr,
                                nullptr,
                                nullptr};
  Ref module(PyModule_Create(&definition));
  if (!module || !add_public(module.get(), public_synchronize) ||
      !add_public(module.get(), public_poll) ||
      !add_type(module.get(), "Record", Ref(make_record_type())) ||
      PyModule_AddIntConstant(module.get(), "INTERFACE", kInterface) < 0)
    return nullptr;
  return module.release();
}

}  // namespace

}  // namespace horo::fastpath

PyMODINIT_FUNC PyInit__fastpath() {
  return horo::fastpath::make_module();
}
