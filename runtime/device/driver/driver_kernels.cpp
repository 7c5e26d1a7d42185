// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/driver/driver_kernels.hpp"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <iterator>
#include <unistd.h>

#include "runtime/device/driver/current_context.hpp"
#include "runtime/device/kernels/adasum_kernel.hpp"
#include "runtime/device/kernels/copy_kernel.hpp"
#include "runtime/device/kernels/sum_kernel.hpp"

namespace horo::runtime {

namespace {

using device_code::CopyArguments;
using device_code::kCombineTile;
using device_code::kConvertTile;
using device_code::kFew;
using device_code::kMany;
using device_code::kMoveTile;
using device_code::kSumTile;
using device_code::SumArguments;
using device_code::TensorTable;

constexpr std::uint64_t kMostDotBlocks = 256;

/// Fills the rows of one launch, and returns its tiles. `next` and `offset` go on from launch to
/// launch. Rows count units of `unit` elements' bytes.
template <int kRows>
std::uint32_t fill(TensorTable<kRows>& table, int& count, std::span<const DeviceSpan> parts,
                   std::size_t& next, std::uint64_t& offset, std::uint64_t unit,
                   std::uint64_t tile) {
  std::uint64_t tiles = 0;
  for (count = 0; next < parts.size() && count < kRows; ++next) {
    const auto elements = parts[next].elements * unit;
    if (elements == 0) continue;
    const auto row = static_cast<std::size_t>(count++);
    table.memory[row] = parts[next].memory;
    table.elements[row] = elements;
    table.offset[row] = offset;
    table.first_tile[row] = static_cast<std::uint32_t>(tiles);
    tiles += (elements + tile - 1) / tile;
    offset += elements;
  }
  return static_cast<std::uint32_t>(tiles);
}

std::size_t used(std::span<const DeviceSpan> parts) {
  return static_cast<std::size_t>(std::count_if(
      parts.begin(), parts.end(), [](const DeviceSpan& part) { return part.elements != 0; }));
}

const char* size_word(int rows) {
  return rows == kMany ? "many" : "few";
}

/// The type by which a kernel is called.
std::string_view kernel_type(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return "bool";
    case DType::u8:
      return "u8";
    case DType::i8:
      return "i8";
    case DType::u16:
      return "u16";
    case DType::i16:
      return "i16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::f16:
      return "f16";
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::bf16:
      return "bf16";
  }
  return "";
}

Status check(const DeviceReduction& what) {
  const bool logical = what.dtype == DType::boolean;
  const bool extreme = what.op == ReduceOp::min || what.op == ReduceOp::max;
  // The sum of 64-bit integers needs more bits than the kernel has.
  const bool too_wide = what.dtype == DType::i64 && what.op == ReduceOp::average;
  if (what.op == ReduceOp::adasum || (logical && !extreme) || too_wide ||
      (what.scale != 1 && !is_floating(what.dtype)))
    return fail(Errc::unsupported, "no kernel reduces {} by {} with a factor of {}",
                name(what.dtype), name(what.op), what.scale);
  if (what.in.empty() || what.in.size() > kMostReduced)
    return fail(Errc::unsupported, "no kernel reduces {} buffers; at most {}", what.in.size(),
                kMostReduced);
  return {};
}

}  // namespace

std::string DriverKernels::file(const cuda::DeviceApi& api) {
  if (const char* const named = std::getenv("HORO_GPU_KERNELS"); named != nullptr) return named;
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&kernel_type), &own) == 0) return "";
  const std::string path = own.dli_fname;
  const auto folder = path.substr(0, path.rfind('/') + 1);
  // This code is part of libhoro and of the modules in the folder beside it.
  for (const auto* const beside : {"horo/", ""}) {
    const auto found = folder + beside + std::string(api.kernels);
    if (access(found.c_str(), R_OK) == 0) return found;
  }
  return "";
}

Result<std::unique_ptr<DriverKernels>> DriverKernels::load(const cuda::Driver& driver,
                                                           cuda::Context context,
                                                           const std::string& file) {
  std::ifstream input(file, std::ios::binary);
  if (!input) {
    return fail(Errc::not_found, "there are no kernels for devices: {}; build with {}",
                file.empty() ? fmt::format("this build has no {}", driver.api->kernels)
                             : "cannot read " + file,
                driver.api->compiler);
  }
  const std::string image{std::istreambuf_iterator<char>(input), {}};
  int version = 0;
  HORO_TRY_STATUS(driver.status(driver.version(&version), driver.names().version));
  cuda::Module module = nullptr;
  auto loaded = cuda::call_in(driver, context, driver.names().load_module,
                              [&] { return driver.load_module(&module, image.c_str()); });
  if (!loaded) {
    return fail(Errc::io, "{}: {}; the driver is for {} {}", file, loaded.error().message,
                driver.api->name, cuda::version_text(*driver.api, version));
  }
  return std::unique_ptr<DriverKernels>(
      new DriverKernels(driver, context, module, version >= driver.api->many_arguments_from));
}

DriverKernels::~DriverKernels() {
  static_cast<void>(cuda::call_in(driver_, context_, driver_.names().unload_module,
                                  [&] { return driver_.unload_module(module_); }));
}

Result<cuda::Function> DriverKernels::function(const std::string& name) {
  const MutexLock lock(mutex_);
  if (const auto known = functions_.find(name); known != functions_.end()) return known->second;
  cuda::Function found = nullptr;
  HORO_TRY_STATUS(driver_.status(driver_.module_function(&found, module_, name.c_str()),
                                 fmt::format("{} of {}", driver_.names().module_function, name)));
  functions_.emplace(name, found);
  return found;
}

Status DriverKernels::launch(const Launch& launch, StreamHandle stream) {
  const cuda::Current current(driver_, context_);
  HORO_TRY_STATUS(driver_.status(current.code(), driver_.names().push_context));
  HORO_TRY(const auto kernel, function(launch.name));
  void* arguments[] = {launch.arguments};
  return driver_.status(driver_.launch(kernel, launch.blocks, 1, 1, device_code::kThreads, 1, 1, 0,
                                       stream, arguments, nullptr),
                        driver_.names().launch);
}

template <int kRows>
Status DriverKernels::copy(void* buffer, std::span<const DeviceSpan> parts, const Conversion& how,
                           bool to_tensors, StreamHandle stream) {
  const bool moves = how.from == how.to && how.scale == 1;
  const auto arguments = std::make_unique<CopyArguments<kRows>>();
  arguments->buffer = buffer;
  arguments->scale = how.scale;
  arguments->to_tensors = to_tensors ? 1 : 0;
  const auto kernel = moves ? fmt::format("horo_move_{}", size_word(kRows))
                            : fmt::format("horo_convert_{}_{}_{}", kernel_type(how.from),
                                          kernel_type(how.to), size_word(kRows));
  std::uint64_t offset = 0;
  for (std::size_t next = 0; next < parts.size();) {
    const auto tiles = fill(arguments->table, arguments->count, parts, next, offset,
                            moves ? size_of(how.from) : 1, moves ? kMoveTile : kConvertTile);
    if (arguments->count == 0) break;
    HORO_TRY_STATUS(
        launch({.name = kernel, .blocks = tiles, .arguments = arguments.get()}, stream));
  }
  return {};
}

Status DriverKernels::pack(void* buffer, std::span<const DeviceSpan> parts, const Conversion& how,
                           StreamHandle stream) {
  const bool converts = how.from != how.to || how.scale != 1;
  if (converts && !(is_floating(how.from) && is_floating(how.to)))
    return fail(Errc::unsupported, "no kernel converts {} to {} with a factor of {}",
                name(how.from), name(how.to), how.scale);
  return many_ && used(parts) > kFew ? copy<kMany>(buffer, parts, how, false, stream)
                                     : copy<kFew>(buffer, parts, how, false, stream);
}

Status DriverKernels::unpack(std::span<const DeviceSpan> parts, const void* buffer,
                             const Conversion& how, StreamHandle stream) {
  const bool converts = how.from != how.to || how.scale != 1;
  if (converts && !(is_floating(how.from) && is_floating(how.to)))
    return fail(Errc::unsupported, "no kernel converts {} to {} with a factor of {}",
                name(how.from), name(how.to), how.scale);
  auto* const from = const_cast<void*>(buffer);
  return many_ && used(parts) > kFew ? copy<kMany>(from, parts, how, true, stream)
                                     : copy<kFew>(from, parts, how, true, stream);
}

template <int kRows>
Status DriverKernels::reduce_rows(const DeviceReduction& what, std::span<const DeviceSpan> out,
                                  StreamHandle stream) {
  const auto arguments = std::make_unique<SumArguments<kRows>>();
  std::copy(what.in.begin(), what.in.end(), std::begin(arguments->in));
  const auto ranks = static_cast<int>(what.in.size());
  const bool averages = what.op == ReduceOp::average;
  arguments->scale = averages ? what.scale / ranks : what.scale;
  arguments->divisor = averages ? ranks : 1;
  arguments->inputs = ranks;
  arguments->op = static_cast<device_code::InputOp>(what.op);
  const auto kernel = fmt::format("horo_sum_{}_{}", kernel_type(what.dtype), size_word(kRows));
  std::uint64_t offset = 0;
  for (std::size_t next = 0; next < out.size();) {
    const auto tiles = fill(arguments->table, arguments->count, out, next, offset, 1, kSumTile);
    if (arguments->count == 0) break;
    HORO_TRY_STATUS(
        launch({.name = kernel, .blocks = tiles, .arguments = arguments.get()}, stream));
  }
  return {};
}

Status DriverKernels::reduce(const DeviceReduction& what, std::span<const DeviceSpan> out,
                             StreamHandle stream) {
  HORO_TRY_STATUS(check(what));
  return many_ && used(out) > kFew ? reduce_rows<kMany>(what, out, stream)
                                   : reduce_rows<kFew>(what, out, stream);
}

Status DriverKernels::add_pair(const DevicePair& pair, void* out, double scale, void* scratch,
                               StreamHandle stream) {
  if (!is_floating(pair.dtype))
    return fail(Errc::unsupported, "no kernel of Adasum for {}", name(pair.dtype));
  if (pair.elements == 0) return {};
  const auto type = kernel_type(pair.dtype);
  const auto blocks = std::min(kMostDotBlocks, (pair.elements + kConvertTile - 1) / kConvertTile);
  auto* const products = static_cast<double*>(scratch);
  auto* const partial = products + 4;
  device_code::DotsArguments dots{pair.a, pair.b, pair.elements, partial};
  HORO_TRY_STATUS(launch({.name = fmt::format("horo_dots_{}", type),
                          .blocks = static_cast<unsigned>(blocks),
                          .arguments = &dots},
                         stream));
  device_code::FinishDotsArguments finish{partial, products, static_cast<int>(blocks)};
  HORO_TRY_STATUS(launch({.name = "horo_finish_dots", .blocks = 1, .arguments = &finish}, stream));
  device_code::CombineArguments combine{pair.a, pair.b, out, pair.elements, products, scale};
  const auto tiles = (pair.elements + kCombineTile - 1) / kCombineTile;
  return launch({.name = fmt::format("horo_combine_{}", type),
                 .blocks = static_cast<unsigned>(tiles),
                 .arguments = &combine},
                stream);
}

}  // namespace horo::runtime
