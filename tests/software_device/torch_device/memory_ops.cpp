// SPDX-License-Identifier: Apache-2.0
// The operations of torch that make tensors of the device, views of them, and copies.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/InferSize.h>
#include <ATen/TensorUtils.h>
#include <c10/core/DeviceGuard.h>
#include <torch/library.h>

#include "tests/software_device/torch_device/torch_allocator.hpp"
#include "tests/software_device/torch_device/torch_driver.hpp"
#include "tests/software_device/torch_device/torch_launch.hpp"

namespace horo::torch_device {

namespace {

using at::Tensor;

constexpr c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

c10::Device device_or_current(std::optional<c10::Device> device) {
  if (device && device->has_index()) return *device;
  return {c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(Current::of_thread().device)};
}

c10::Allocator* allocator() {
  return c10::GetAllocator(c10::DeviceType::PrivateUse1);
}

Tensor make_empty(c10::IntArrayRef size, std::optional<at::ScalarType> type,
                  std::optional<at::Layout>, std::optional<c10::Device> device, std::optional<bool>,
                  std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(device_or_current(device));
  return at::detail::empty_generic(size, allocator(), kKeys,
                                   type.value_or(at::typeMetaToScalarType(at::get_default_dtype())),
                                   format);
}

Tensor make_empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride,
                          std::optional<at::ScalarType> type, std::optional<at::Layout>,
                          std::optional<c10::Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard(device_or_current(device));
  return at::detail::empty_strided_generic(
      size, stride, allocator(), kKeys,
      type.value_or(at::typeMetaToScalarType(at::get_default_dtype())));
}

/// Its elements are not kept.
const Tensor& resize(const Tensor& self, c10::IntArrayRef size, std::optional<at::MemoryFormat>) {
  auto* const tensor = self.unsafeGetTensorImpl();
  tensor->set_sizes_contiguous(size);
  const auto bytes =
      static_cast<std::size_t>(self.numel() + self.storage_offset()) * self.element_size();
  auto* const storage = tensor->unsafe_storage().unsafeGetStorageImpl();
  if (bytes > storage->nbytes()) {
    const c10::DeviceGuard guard(self.device());
    storage->set_data_ptr(allocator()->allocate(bytes));
    storage->set_nbytes(bytes);
  }
  return self;
}

Tensor& set_storage(Tensor& self, at::Storage storage, std::int64_t offset, c10::IntArrayRef size,
                    c10::IntArrayRef stride) {
  auto* const tensor = self.unsafeGetTensorImpl();
  tensor->set_storage_keep_dtype(std::move(storage));
  if (stride.data() == nullptr || stride.size() != size.size()) {
    tensor->set_sizes_contiguous(size);
  } else {
    tensor->set_sizes_and_strides(size, stride);
  }
  tensor->set_storage_offset(offset);
  return self;
}

Tensor& set_whole_storage(Tensor& self, at::Storage storage) {
  const auto count = static_cast<std::int64_t>(storage.nbytes() / self.element_size());
  return set_storage(self, std::move(storage), 0, {count}, {1});
}

Tensor& set_tensor(Tensor& self, const Tensor& source) {
  return set_storage(self, source.storage(), source.storage_offset(), source.sizes(),
                     source.strides());
}

Tensor& set_nothing(Tensor& self) {
  const c10::DeviceGuard guard(self.device());
  return set_storage(self, make_empty({0}, self.scalar_type(), {}, self.device(), {}, {}).storage(),
                     0, {0}, {1});
}

// -- Views ----------------------------------------------------------------------------------------

Tensor make_as_strided(const Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride,
                       std::optional<std::int64_t> offset) {
  auto view = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(self.storage()), self.key_set(), self.dtype());
  view.unsafeGetTensorImpl()->set_storage_offset(offset.value_or(self.storage_offset()));
  view.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride);
  return view;
}

Tensor make_view(const Tensor& self, c10::IntArrayRef size) {
  const auto sizes = at::infer_size_dv(size, self.numel());
  const auto strides = at::detail::computeStride(self.sizes(), self.strides(), sizes);
  TORCH_CHECK(strides.has_value(), "view size is not compatible with the tensor's strides");
  return make_as_strided(self, sizes, *strides, self.storage_offset());
}

Tensor reshape_alias(const Tensor& self, c10::IntArrayRef size, c10::IntArrayRef stride) {
  return make_as_strided(self, size, stride, self.storage_offset());
}

// -- Copies ---------------------------------------------------------------------------------------

void copy_bytes(void* to, const void* from, std::size_t bytes, int device) {
  if (bytes == 0) return;
  const InContext context(device);
  check(driver().copy(reinterpret_cast<std::uint64_t>(to), reinterpret_cast<std::uint64_t>(from),
                      bytes, Current::stream(device)),
        "cuMemcpyAsync");
}

void copy_here(const Tensor& from, const Tensor& to) {
  if (to.numel() == 0) return;
  launch({{from, false}, {to, true}},
         [](std::vector<Tensor>& tensors) { tensors[1].copy_(tensors[0]); });
}

/// From the host. Its memory may be used again when this returns.
void copy_in(const Tensor& from, const Tensor& to) {
  const auto plain = from.to(to.scalar_type()).expand(to.sizes()).contiguous();
  auto landing = to.is_contiguous() ? to : at::empty(to.sizes(), to.options());
  copy_bytes(landing.data_ptr(), plain.data_ptr(), plain.nbytes(), to.device().index());
  if (!landing.is_same(to)) copy_here(landing, to);
}

/// Copies to the host, and waits for the copy.
void copy_out(const Tensor& from, const Tensor& to) {
  const auto dense = from.contiguous();
  auto landing = at::empty(from.sizes(), from.options().device(at::kCPU));
  copy_bytes(landing.data_ptr(), dense.data_ptr(), dense.nbytes(), from.device().index());
  to.copy_(landing);
}

Tensor copy_from(const Tensor& self, const Tensor& to, bool) {
  if (is_here(self) && is_here(to)) {
    TORCH_CHECK(self.device() == to.device(), "no copies between devices of software");
    copy_here(self, to);
  } else if (is_here(to)) {
    copy_in(self, to);
  } else {
    copy_out(self, to);
  }
  return to;
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& to) {
  if (to.sizes() != self.sizes()) to.resize_(self.sizes());
  return copy_from(self, to, false);
}

at::Scalar read_item(const Tensor& self) {
  return self.cpu().item();
}

void record_stream(Tensor& self, at::Stream stream) {
  CachingAllocator::instance().record(self.storage().mutable_data(),
                                      reinterpret_cast<void*>(stream.id()));
}

/// A tensor over memory of the device that is owned elsewhere.
Tensor make_alias(std::int64_t address, c10::IntArrayRef size, const Tensor& like) {
  std::size_t bytes = like.element_size();
  for (const auto extent : size) bytes *= static_cast<std::size_t>(extent);
  auto storage = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t(), bytes,
      c10::DataPtr(reinterpret_cast<void*>(address), like.device()), nullptr, false);
  auto made = at::detail::make_tensor<c10::TensorImpl>(c10::Storage(std::move(storage)), kKeys,
                                                       like.dtype());
  made.unsafeGetTensorImpl()->set_sizes_contiguous(size);
  return made;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &make_empty);
  library.impl("empty_strided", &make_empty_strided);
  library.impl("resize_", &resize);
  library.impl("set_.source_Storage_storage_offset", &set_storage);
  library.impl("set_.source_Storage", &set_whole_storage);
  library.impl("set_.source_Tensor", &set_tensor);
  library.impl("set_", &set_nothing);
  library.impl("as_strided", &make_as_strided);
  library.impl("view", &make_view);
  library.impl("_reshape_alias", &reshape_alias);
  library.impl("_copy_from", &copy_from);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
  library.impl("_local_scalar_dense", &read_item);
  library.impl("record_stream", &record_stream);
}

TORCH_LIBRARY(horo_software, library) {
  library.def("alias(int address, int[] size, Tensor like) -> Tensor");
}

TORCH_LIBRARY_IMPL(horo_software, PrivateUse1, library) {
  library.impl("alias", &make_alias);
}

}  // namespace

}  // namespace horo::torch_device
