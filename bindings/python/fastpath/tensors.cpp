// SPDX-License-Identifier: Apache-2.0
#include "bindings/python/fastpath/tensors.hpp"

#include <array>
#include <cstddef>

#include "bindings/python/fastpath/library.hpp"
#include "bindings/python/fastpath/method.hpp"
#include "bindings/python/fastpath/operations.hpp"

namespace horo::fastpath {

namespace {

/// A type of device; read_device() says what the fields are.
struct DeviceReader {
  PyObject *attribute = nullptr, *stream = nullptr, *places = nullptr, *word = nullptr;
};

/// read_tensors() and read_device() store here how to read this torch's tensors. The references
/// live as long as the process.
struct TensorReader {
  PyTypeObject* type = nullptr;
  Method is_contiguous, is_neg, data_ptr, storage, get_device;
  std::array<DeviceReader, 4> devices;
  std::size_t device_count = 0;
  PyObject *is_cpu = nullptr, *dtype = nullptr, *shape = nullptr;  ///< names
  PyObject *records = nullptr, *unnamed = nullptr, *record = nullptr;
  PyObject *dtypes = nullptr, *declare = nullptr;
};

TensorReader& reader() {
  static TensorReader reader;
  return reader;
}

/// A tensor's attributes, read once.
struct Plain {
  Ref dtype;
  Ref shape;
  Ref memory;
  void* address = nullptr;
  Ref place;  ///< Empty: in the host's memory.
  PyObject* word = nullptr;
  int device = -1;
  void* stream = nullptr;
};

enum class Read { plain, unusual, raised };

/// The arguments of start_allreduce() that decide what is reduced, and how.
struct Call {
  PyObject* names;
  PyObject* source;
  PyObject* target;
  PyObject* name;
  PyObject* op;
  PyObject* prescale;
  PyObject* postscale;
};

/// Tensors without memory, and those of other layouts, raise such errors when they are read.
Read unusual_unless_raised() {
  if (PyErr_ExceptionMatches(PyExc_RuntimeError) == 0 &&
      PyErr_ExceptionMatches(PyExc_AttributeError) == 0)
    return Read::raised;
  PyErr_Clear();
  return Read::unusual;
}

/// Reads the address and the memory of a tensor of the plain type.
Read read_memory(PyObject* tensor, Plain& plain) {
  const auto& torch = reader();
  const Ref address(torch.data_ptr.call(tensor));
  if (!address) return unusual_unless_raised();
  plain.address = PyLong_AsVoidPtr(address.get());
  if (plain.address == nullptr && PyErr_Occurred() != nullptr) return Read::raised;
  plain.memory = Ref(torch.storage.call(tensor));
  return plain.memory ? Read::plain : unusual_unless_raised();
}

/// Compares what an attribute or a method returned with True or False. -1: it raised.
int is(const Ref& found, PyObject* wanted) {
  return found ? found.get() == wanted : -1;
}

/// Reads where a tensor is that is on the device of `device`.
Read read_place(PyObject* tensor, const DeviceReader& device, Plain& plain) {
  const Ref index(reader().get_device.call(tensor));
  if (!index) return unusual_unless_raised();
  const Ref stream(PyObject_CallFunctionObjArgs(device.stream, index.get(), nullptr));
  const Ref key(stream ? PyTuple_Pack(2, index.get(), stream.get()) : nullptr);
  if (!key) return Read::raised;
  plain.place = Ref::share(PyDict_GetItemWithError(device.places, key.get()));
  if (!plain.place) return PyErr_Occurred() == nullptr ? Read::unusual : Read::raised;
  plain.word = device.word;
  plain.device = static_cast<int>(PyLong_AsLong(index.get()));
  plain.stream = as_pointer(stream.get());
  return PyErr_Occurred() == nullptr ? Read::plain : Read::raised;
}

/// Finds out whether a tensor is in the host's memory or on a device.
Read locate(PyObject* tensor, Plain& plain) {
  const auto& torch = reader();
  const int hosted = is(Ref(PyObject_GetAttr(tensor, torch.is_cpu)), Py_True);
  if (hosted != 0) return hosted < 0 ? unusual_unless_raised() : Read::plain;
  for (std::size_t d = 0; d < torch.device_count; ++d) {
    const auto& device = torch.devices[d];
    const int here = is(Ref(PyObject_GetAttr(tensor, device.attribute)), Py_True);
    if (here != 0) return here < 0 ? unusual_unless_raised() : read_place(tensor, device, plain);
  }
  return Read::unusual;
}

Read read(PyObject* tensor, Plain& plain) {
  const auto& torch = reader();
  if (Py_TYPE(tensor) != torch.type) return Read::unusual;
  if (const auto found = locate(tensor, plain); found != Read::plain) return found;
  int good = is(Ref(torch.is_contiguous.call(tensor)), Py_True);
  // The memory of such a tensor holds its negative.
  if (good > 0) good = is(Ref(torch.is_neg.call(tensor)), Py_False);
  if (good <= 0) return good < 0 ? unusual_unless_raised() : Read::unusual;
  plain.dtype = Ref(PyObject_GetAttr(tensor, torch.dtype));
  if (!plain.dtype) return unusual_unless_raised();
  const int known = PyDict_Contains(torch.dtypes, plain.dtype.get());
  if (known <= 0) return known < 0 ? Read::raised : Read::unusual;
  plain.shape = Ref(PyObject_GetAttr(tensor, torch.shape));
  return plain.shape ? read_memory(tensor, plain) : unusual_unless_raised();
}

/// The record of a user's name, or the next unnamed one.
Ref find_record(const Call& call) {
  const auto& torch = reader();
  const Ref table(
      PyObject_GetAttr(call.names, call.name == Py_None ? torch.unnamed : torch.records));
  if (!table) return {};
  const Ref of_kind(PySequence_GetItem(table.get(), HORO_ALLREDUCE));
  if (!of_kind) return {};
  if (call.name == Py_None) return Ref(PyObject_CallFunctionObjArgs(of_kind.get(), nullptr));
  PyObject* const known = PyDict_GetItemWithError(of_kind.get(), call.name);
  if (known != nullptr || PyErr_Occurred() != nullptr) return Ref::share(known);
  const Ref kind(PyLong_FromLong(HORO_ALLREDUCE));
  if (!kind) return {};
  return Ref(PyObject_CallMethodObjArgs(call.names, torch.record, kind.get(), call.name, nullptr));
}

bool equal(PyObject* tuple, Py_ssize_t index, PyObject* wanted) {
  const int equal = PyObject_RichCompareBool(PyTuple_GetItem(tuple, index), wanted, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal > 0;
}

/// Whether the record has been declared with just this signature, as horo/_operations.py writes it.
bool matches(const RecordFields& record, const Call& call, const Plain& plain) {
  PyObject* const signature = record.signature;
  const Py_ssize_t items = plain.place ? 7 : 6;
  if (signature == nullptr || !PyTuple_Check(signature) || PyTuple_Size(signature) != items)
    return false;
  if (plain.place && !equal(signature, 6, plain.word)) return false;
  return PyTuple_GetItem(signature, 0) == plain.dtype.get() &&
         equal(signature, 1, plain.shape.get()) && equal(signature, 2, call.op) &&
         equal(signature, 3, call.prescale) && equal(signature, 4, call.postscale) &&
         PyTuple_GetItem(signature, 5) == package().by_knobs;
}

/// Declares the record again unless its signature is this one. False with an exception.
bool declared(PyObject* record, const RecordFields& fields, const Call& call, const Plain& plain) {
  if (matches(fields, call, plain)) return true;
  return static_cast<bool>(Ref(PyObject_CallFunctionObjArgs(
      reader().declare, record, call.source, call.op, call.prescale, call.postscale, nullptr)));
}

/// Submits a plain tensor and puts its entry into PENDING. Returns the handle, or nullptr with an
/// exception.
PyObject* start(const Call& call, Plain source, Plain target) {
  const Ref record = find_record(call);
  RecordFields* const fields = record ? as_record(record.get()) : nullptr;
  if (fields == nullptr) {
    if (record) PyErr_SetString(PyExc_TypeError, "a name's record is not a Record");
    return nullptr;
  }
  if (!declared(record.get(), *fields, call, source)) return nullptr;
  const bool in_place = call.source == call.target;
  // All that can fail for lack of memory comes before the submission, except for one place in
  // PENDING.
  const Ref kept = in_place ? std::move(source.memory)
                            : Ref(PyTuple_Pack(2, source.memory.get(), target.memory.get()));
  PyObject* const finish = source.place ? source.place.get() : Py_None;
  Ref entry(kept ? PyTuple_Pack(3, call.target, kept.get(), finish) : nullptr);
  if (!entry) return nullptr;
  Ref handle(submit_record(record.get(), *fields,
                           {.source = source.address,
                            .target = in_place ? source.address : target.address,
                            .device = source.device,
                            .stream = source.stream}));
  if (!handle) {
    // The number of an operation in flight found no memory: the runtime still uses the buffers.
    if (PyErr_ExceptionMatches(PyExc_MemoryError) != 0) entry.release();
    return nullptr;
  }
  if (PyDict_SetItem(package().pending, handle.get(), entry.get()) < 0) {
    entry.release();  // the runtime still uses the buffers, so they are never freed
    return nullptr;
  }
  return handle.release();
}

/// The number of a reduce operation as a new reference; empty for what is not simply one.
Ref resolve_op(PyObject* op) {
  if (op == Py_None) return Ref(PyLong_FromLong(HORO_AVERAGE));
  if (!PyLong_CheckExact(op)) return {};
  const auto number = PyLong_AsLong(op);
  if (number < HORO_AVERAGE || number > HORO_PRODUCT) {
    PyErr_Clear();
    return {};
  }
  return Ref::share(op);
}

}  // namespace

PyObject* read_tensors(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (!need(4, count, "read_tensors")) return nullptr;
  PyObject* const sample = arguments[0];
  if (!PyDict_Check(arguments[1])) {
    PyErr_SetString(PyExc_TypeError, "read_tensors() takes a dictionary of dtypes");
    return nullptr;
  }
  TensorReader made;
  made.type = Py_TYPE(sample);
  made.is_cpu = PyUnicode_InternFromString("is_cpu");
  made.dtype = PyUnicode_InternFromString("dtype");
  made.shape = PyUnicode_InternFromString("shape");
  made.records = PyUnicode_InternFromString("records");
  made.unnamed = PyUnicode_InternFromString("unnamed");
  made.record = PyUnicode_InternFromString("record");
  if (PyErr_Occurred() != nullptr) return nullptr;
  const Ref is_contiguous(PyUnicode_FromString("is_contiguous"));
  const Ref is_neg(PyUnicode_FromString("is_neg"));
  const Ref data_ptr(PyUnicode_FromString("data_ptr"));
  const Ref get_device(PyUnicode_FromString("get_device"));
  if (!made.is_contiguous.find(sample, is_contiguous.get()) ||
      !made.is_neg.find(sample, is_neg.get()) || !made.data_ptr.find(sample, data_ptr.get()) ||
      !made.storage.find(sample, arguments[2]) || !made.get_device.find(sample, get_device.get()))
    return nullptr;
  made.devices = reader().devices;
  made.device_count = reader().device_count;
  made.dtypes = Ref::share(arguments[1]).release();
  made.declare = Ref::share(arguments[3]).release();
  Py_INCREF(reinterpret_cast<PyObject*>(made.type));
  reader() = made;
  return none();
}

PyObject* read_device(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (!need(4, count, "read_device")) return nullptr;
  auto& torch = reader();
  if (!PyUnicode_Check(arguments[0]) || !PyDict_Check(arguments[2]) ||
      torch.device_count == torch.devices.size()) {
    PyErr_SetString(PyExc_TypeError, "read_device() takes a name and a dictionary, four times");
    return nullptr;
  }
  for (int held = 0; held < 4; ++held) Py_INCREF(arguments[held]);
  torch.devices[torch.device_count++] = {arguments[0], arguments[1], arguments[2], arguments[3]};
  return none();
}

PyObject* start_allreduce(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (!need(10, count, "start_allreduce")) return nullptr;
  for (const int unusual : {7, 8, 9}) {
    if (arguments[unusual] != Py_None) return none();
  }
  if (arguments[3] != Py_None && !PyUnicode_CheckExact(arguments[3])) return none();
  const Ref op = resolve_op(arguments[4]);
  if (!op) return PyErr_Occurred() == nullptr ? none() : nullptr;
  const Call call{.names = arguments[0],
                  .source = arguments[1],
                  .target = arguments[2],
                  .name = arguments[3],
                  .op = op.get(),
                  .prescale = arguments[5],
                  .postscale = arguments[6]};
  Plain source, target;
  auto found = read(call.source, source);
  if (found == Read::plain && call.source != call.target) found = read(call.target, target);
  if (found != Read::plain) return found == Read::raised ? nullptr : none();
  // The tensors are on one device, or Python says that they are not.
  if (call.source != call.target && source.device != target.device) return none();
  return start(call, std::move(source), std::move(target));
}

}  // namespace horo::fastpath
