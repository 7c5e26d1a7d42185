// SPDX-License-Identifier: Apache-2.0
#include "tests/software_device/torch_device/torch_launch.hpp"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "tests/software_device/torch_device/torch_driver.hpp"

namespace horo::torch_device {

namespace {

/// The shape of a tensor, which may be dead when its work runs.
struct Layout {
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
  c10::ScalarType type;
};

struct Launched {
  std::vector<Layout> layouts;
  std::vector<horo_software_device_span> spans;
  std::function<void(std::vector<at::Tensor>&)> run;

  at::Tensor host_tensor(std::size_t index) const {
    const auto& layout = layouts[index];
    const auto options = at::TensorOptions().dtype(layout.type).device(at::kCPU);
    if (spans[index].bytes == 0) return at::empty_strided(layout.sizes, layout.strides, options);
    return at::from_blob(spans[index].alias, layout.sizes, layout.strides, options);
  }
};

/// Bytes from the first element to the end of the last one.
std::size_t extent(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  std::int64_t last = 0;
  for (std::int64_t d = 0; d < tensor.dim(); ++d) last += (tensor.size(d) - 1) * tensor.stride(d);
  return static_cast<std::size_t>(last + 1) * tensor.element_size();
}

void run_launched(void* argument, int broken) {
  const std::unique_ptr<Launched> work(static_cast<Launched*>(argument));
  if (broken != 0) return;
  try {
    const at::AutoDispatchBelowADInplaceOrView plain;
    std::vector<at::Tensor> tensors;
    for (std::size_t t = 0; t < work->layouts.size(); ++t) tensors.push_back(work->host_tensor(t));
    work->run(tensors);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "the software device cannot run an operation of torch: %s\n",
                 error.what());
    std::_Exit(1);
  }
}

}  // namespace

bool is_here(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == c10::DeviceType::PrivateUse1;
}

void launch(const std::vector<Used>& used, std::function<void(std::vector<at::Tensor>&)> run) {
  auto work = std::make_unique<Launched>();
  work->run = std::move(run);
  const int device = used.front().tensor.device().index();
  for (const auto& [tensor, writes] : used) {
    TORCH_CHECK(tensor.device().index() == device, "tensors on two devices of software");
    work->layouts.push_back({tensor.sizes().vec(), tensor.strides().vec(), tensor.scalar_type()});
    work->spans.push_back({tensor.data_ptr(), extent(tensor), writes ? 1 : 0, nullptr});
  }
  const InContext context(device);
  check(driver().launch(Current::stream(device), work->spans.data(), work->spans.size(),
                        &run_launched, work.get()),
        "a kernel of torch");
  static_cast<void>(work.release());
}

}  // namespace horo::torch_device
