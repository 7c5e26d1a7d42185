// SPDX-License-Identifier: Apache-2.0
#include "bindings/python/fastpath/method.hpp"

namespace horo::fastpath {

bool Method::find(PyObject* sample, PyObject* name) {
  if (name == nullptr) return false;
  const Ref bound(PyObject_GetAttr(sample, name));
  no_arguments_ = bound ? PyTuple_New(0) : nullptr;
  if (no_arguments_ == nullptr) return false;
  name_ = Ref::share(name).release();
  if (!PyObject_TypeCheck(bound.get(), &PyCFunction_Type)) return true;
  const int flags = PyCFunction_GetFlags(bound.get());
  const auto function = PyCFunction_GetFunction(bound.get());
  if (flags == METH_NOARGS) without_arguments_ = function;
  if (flags == (METH_VARARGS | METH_KEYWORDS))
    with_keywords_ = reinterpret_cast<PyCFunctionWithKeywords>(reinterpret_cast<void*>(function));
  return true;
}

}  // namespace horo::fastpath
