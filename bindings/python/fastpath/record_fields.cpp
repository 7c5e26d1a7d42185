// SPDX-License-Identifier: Apache-2.0
#include "bindings/python/fastpath/record_fields.hpp"

#include <array>
#include <cstddef>

namespace horo::fastpath {

namespace {

PyTypeObject* record_type = nullptr;

RecordFields& fields(PyObject* self) {
  return *reinterpret_cast<RecordFields*>(self);
}

std::array<PyObject**, 5> objects(PyObject* self) {
  auto& record = fields(self);
  return {&record.name, &record.slot, &record.description, &record.signature, &record.rows};
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  for (PyObject** object : objects(self)) Py_VISIT(*object);
  return 0;
}

int clear(PyObject* self) {
  for (PyObject** object : objects(self)) Py_CLEAR(*object);
  return 0;
}

void deallocate(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  const auto free = reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free));
  free(self);
  Py_DECREF(type);
}

PyMemberDef field(const char* name, int type, std::size_t offset) {
  return {name, type, static_cast<Py_ssize_t>(offset), 0, nullptr};
}

}  // namespace

PyObject* make_record_type() {
  static std::array<PyMemberDef, 10> members{
      field("name", T_OBJECT_EX, offsetof(RecordFields, name)),
      field("slot", T_OBJECT_EX, offsetof(RecordFields, slot)),
      field("description", T_OBJECT_EX, offsetof(RecordFields, description)),
      field("signature", T_OBJECT_EX, offsetof(RecordFields, signature)),
      field("rows", T_OBJECT_EX, offsetof(RecordFields, rows)),
      field("tensor", T_ULONGLONG, offsetof(RecordFields, tensor)),
      field("address", T_ULONGLONG, offsetof(RecordFields, address)),
      field("handle", T_ULONGLONG, offsetof(RecordFields, handle)),
      field("set", T_UINT, offsetof(RecordFields, set)),
      PyMemberDef{}};
  static std::array<PyType_Slot, 5> slots{
      PyType_Slot{Py_tp_members, members.data()},
      PyType_Slot{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
      PyType_Slot{Py_tp_clear, reinterpret_cast<void*>(clear)},
      PyType_Slot{Py_tp_dealloc, reinterpret_cast<void*>(deallocate)}, PyType_Slot{}};
  static PyType_Spec spec{"horo._fastpath.Record", sizeof(RecordFields), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                          slots.data()};
  PyObject* type = PyType_FromSpec(&spec);
  if (type == nullptr) return nullptr;
  record_type = reinterpret_cast<PyTypeObject*>(type);
  Py_INCREF(type);  // as_record() uses it as long as the process lives
  return type;
}

RecordFields* as_record(PyObject* object) {
  return PyObject_TypeCheck(object, record_type) ? &fields(object) : nullptr;
}

}  // namespace horo::fastpath
