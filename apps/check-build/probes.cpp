// SPDX-License-Identifier: Apache-2.0
#include "apps/check-build/probes.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "apps/check-build/device_probes.hpp"
#include "apps/common/tools.hpp"
#include "apps/common/wheel.hpp"
#include "base/kv/cipher.hpp"
#include "discovery/topology/machine_topology.hpp"
#include "launcher/mpi/mpi_kind.hpp"
#include "launcher/plan/find_program.hpp"
#include "runtime/backends/hierarchical/backend_table.hpp"
#include "runtime/backends/hierarchical/observe.hpp"
#include "runtime/backends/module.hpp"
#include "runtime/bootstrap/identity/process_manager.hpp"
#include "runtime/bootstrap/local/local_socket.hpp"
#include "runtime/host/huge_pages.hpp"

namespace horo::apps {

namespace {

/// The output of a command on both streams, and its end.
struct Told {
  int status = -1;
  std::string text;
};

Told ask_shell(const std::string& line) {
  Told told;
  std::FILE* pipe = popen(line.c_str(), "re");
  if (pipe == nullptr) return told;
  std::array<char, 1024> block{};
  while (const auto count = std::fread(block.data(), 1, block.size(), pipe))
    told.text.append(block.data(), count);
  told.status = pclose(pipe);
  return told;
}

std::string_view last_line(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return text.substr(text.rfind('\n') + 1);
}

/// Imports a framework and returns its version or its error. The import runs in a separate process,
/// because a broken extension may end its process in any way.
Told import_module(const char* module) {
  return ask_shell(fmt::format(
      R"(timeout 60 python3 -c 'import {0}; print(getattr({0}, "__version__", ""))' 2>&1)",
      module));
}

/// A framework whose tensors Horo moves by its module `face`.
Finding probe_framework(const char* title, const char* module, const char* face) {
  Finding finding{.section = "Frameworks", .name = title, .available = false, .detail = {}};
  const auto told = import_module(module);
  finding.available = told.status == 0;
  finding.detail = last_line(told.text);
  if (finding.available) finding.detail = fmt::format("{}: by {}", finding.detail, face);
  if (finding.detail.empty()) finding.detail = "its import fails without a message";
  return finding;
}

/// A framework that starts under `horo run` but has no module in Horo.
Finding plain_framework(const char* title, const char* start) {
  return {.section = "Frameworks",
          .name = title,
          .available = false,
          .detail = fmt::format("Horo has no module for it; its own distributed training starts "
                                "under horo run, which sets {}",
                                start)};
}

Finding probe_library() {
  Finding finding{.section = "Runtime", .name = "libhoro", .available = false, .detail = {}};
  const auto here = own_directory();
  std::vector<std::string> places;
  for (const auto* folder : {"lib", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib64"})
    places.push_back(fmt::format("{}/../{}/libhoro.so", here, folder));
  for (const auto& packages : wheel_packages())
    places.push_back(fmt::format("{}/horo/libhoro.so", packages));
  for (const auto& path : places) {
    if (access(path.c_str(), R_OK) != 0) continue;
    finding.available = true;
    finding.detail = path;
    return finding;
  }
  finding.detail = fmt::format("no libhoro.so in the lib folder beside '{}'", here);
  return finding;
}

/// The extension module of the Python package.
Finding probe_fast_path(const std::string& library) {
  const auto module = library.substr(0, library.rfind('/')) + "/horo/horo-fastpath.abi3.so";
  const bool available = access(module.c_str(), R_OK) == 0;
  return {.section = "Runtime",
          .name = "fastpath",
          .available = available,
          .detail = available ? "Python makes frequent calls by an extension module"
                              : fmt::format("Python calls libhoro by ctypes, which takes longer: "
                                            "there is no {}; Python's headers were missing when "
                                            "Horo was built (Debian's libpython3-dev)",
                                            module)};
}

/// A process that encrypts loads this library by itself.
Finding probe_cipher_library() {
  const auto found = kv::cipher_library();
  return {.section = "Runtime",
          .name = "libcrypto",
          .available = found.has_value(),
          .detail = found ? fmt::format("--encrypt, by {}", *found) : found.error().message};
}

Finding probe_launcher() {
  Finding finding{.section = "Launchers", .name = "local", .available = false, .detail = {}};
  auto agent = find_tool("agent");
  finding.available = agent.has_value();
  finding.detail = agent ? std::move(agent).value() : std::move(agent).error().message;
  return finding;
}

Finding probe_ssh() {
  Finding finding{.section = "Launchers", .name = "ssh", .available = true, .detail = {}};
  const bool program = ask_shell("command -v ssh").status == 0;
  if (void* library = dlopen("libssh.so.4", RTLD_NOW | RTLD_LOCAL); library != nullptr) {
    dlclose(library);
    finding.detail = program ? "horo's own client, and the program ssh" : "horo's own client";
    return finding;
  }
  finding.available = program;
  finding.detail =
      program ? "the program ssh" : "neither libssh.so.4 nor a program ssh is installed";
  return finding;
}

/// A launcher that is there if a program is.
Finding probe_program(const char* name, const char* program, const char* what) {
  const auto found = launcher::find_program(program, std::getenv("PATH"));
  return {.section = "Launchers",
          .name = name,
          .available = found.has_value(),
          .detail = found ? fmt::format("{}, by {}", what, *found)
                          : fmt::format("there is no program {} in PATH", program)};
}

Finding probe_mpirun() {
  Finding finding{.section = "Launchers", .name = "mpirun", .available = false, .detail = {}};
  const auto program = launcher::find_program("mpirun", std::getenv("PATH"));
  if (!program) {
    finding.detail = "--mpi: there is no program mpirun in PATH";
    return finding;
  }
  const auto kind = launcher::ask_for_mpi(*program);
  finding.available = kind.has_value();
  finding.detail = kind ? fmt::format("--mpi, by {} of {}", *program, launcher::name(*kind))
                        : fmt::format("--mpi: {}", kind.error().message);
  return finding;
}

Finding probe_shared_memory() {
  Finding finding{.section = "Backends", .name = "shm", .available = false, .detail = {}};
  const int fd = memfd_create("horo-check", MFD_CLOEXEC);
  finding.available = fd >= 0;
  finding.detail = fd >= 0 ? fmt::format("shared memory between the ranks of a host, {}",
                                         runtime::describe(runtime::huge_pages()))
                           : "the system refuses memfd_create";
  if (fd >= 0) close(fd);
  return finding;
}

/// Loads the module as a rank does.
Finding probe_backend(const char* name, const char* what, const std::string& library) {
  Finding finding{.section = "Backends", .name = name, .available = false, .detail = {}};
  const auto folder = library.substr(0, library.rfind('/')) + "/horo";
  const auto module = runtime::load_usable_module(name, folder);
  finding.available = module.has_value();
  finding.detail = module ? what : module.error().message;
  return finding;
}

/// Whether an MPI that this process has loaded takes pointers to memory of CUDA devices. It says so
/// without MPI_Init, which would need a job: Open MPI by its extension, MPICH by its configuration.
bool is_cuda_aware(const char* library) {
  void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return false;
  bool aware = false;
  if (auto* const configured = dlsym(handle, "MPII_Version_configure")) {
    aware = std::string_view(static_cast<const char*>(configured)).find("--with-cuda") !=
            std::string_view::npos;
  } else if (auto* const query = dlsym(handle, "MPIX_Query_cuda_support")) {
    aware = reinterpret_cast<int (*)()>(query)() == 1;
  }
  dlclose(handle);
  return aware;
}

/// The backend `name` over the MPI of `soname`.
Finding probe_mpi(const char* name, const char* title, const char* soname,
                  const std::string& library) {
  auto finding = probe_backend(name, fmt::format("{} between any ranks", title).c_str(), library);
  if (!finding.available) return finding;
  finding.detail += is_cuda_aware(soname) ? "; it is CUDA-aware, but Horo gives it host memory only"
                                          : "; it is not CUDA-aware";
  return finding;
}

/// The backend of ranks that all run on this host, and why it is not another one.
Finding choice_on_one_host() {
  return {.section = "Chosen backends",
          .name = "one host",
          .available = true,
          .detail = runtime::BackendTable::of_one_host().describe()};
}

/// The same for ranks that this process would start on several hosts, with two ranks on each.
Finding choice_on_several_hosts(const std::string& library) {
  const auto folder = library.substr(0, library.rfind('/')) + "/horo";
  const auto mpi =
      runtime::mpi_of(runtime::observe_mpi([](const char* name) { return std::getenv(name); }));
  auto choice = runtime::choose_backend(
      {.host_of = {0, 0, 1, 1},
       .mpi = mpi,
       .candidates = runtime::observe_candidates(CpuOperations::automatic, mpi, folder)});
  Finding finding{
      .section = "Chosen backends", .name = "hosts", .available = choice.has_value(), .detail = {}};
  if (!choice) {
    finding.detail = choice.error().message;
    return finding;
  }
  const runtime::Hierarchy hierarchy{
      .hosts = 2, .ranks = 4, .local_ranks = 2, .owners = 2, .most_local = 2};
  finding.detail =
      runtime::BackendTable::of_hosts(std::move(choice).value(), hierarchy, {}).describe();
  return finding;
}

Finding probe_standalone() {
  const auto pidfd = runtime::bootstrap::own_pidfd();
  return {.section = "Without horo run",
          .name = "one host",
          .available = pidfd.has_value(),
          .detail = pidfd ? "ranks of mpirun, srun, torchrun or a shell" : pidfd.error().message};
}

Finding probe_pmix() {
  const auto usable = runtime::bootstrap::pmix_usable();
  return {
      .section = "Without horo run",
      .name = "PMIx",
      .available = usable.has_value(),
      .detail = usable ? "hosts of Open MPI's mpirun and srun --mpi=pmix" : usable.error().message};
}

Finding probe_binding() {
  const auto usable = discovery::can_read_topology();
  return {.section = "Launchers",
          .name = "binding",
          .available = usable.has_value(),
          .detail = usable ? "--bind-to, with hwloc" : usable.error().message};
}

}  // namespace

std::vector<Finding> probe_build() {
  const auto library = probe_library();
  return {library,
          probe_fast_path(library.detail),
          probe_cipher_library(),
          probe_launcher(),
          probe_binding(),
          probe_ssh(),
          probe_program("slurm", "srun", "hosts of a job of Slurm"),
          probe_program("lsf", "blaunch", "hosts of a job of LSF"),
          probe_program("jsrun", "jsrun", "--jsrun, and hosts of a job of LSF"),
          probe_mpirun(),
          probe_standalone(),
          probe_pmix(),
          {.section = "Without horo run",
           .name = "PMI",
           .available = true,
           .detail = "hosts of MPICH's mpiexec and srun --mpi=pmi2"},
          probe_shared_memory(),
          probe_backend("tcp", "TCP between any ranks", library.detail),
          probe_backend("gloo", "Gloo's TCP between any ranks", library.detail),
          probe_mpi("openmpi", "Open MPI", "libmpi.so.40", library.detail),
          probe_mpi("mpich", "MPICH", "libmpich.so.12", library.detail),
          probe_cuda(library.detail),
          probe_rocm(library.detail),
          probe_nccl(library.detail),
          probe_nvidia_driver(),
          probe_amd_driver(),
          probe_kernels("kernels", "horo-kernels.fatbin", "nvcc", library.detail),
          probe_kernels("HIP kernels", "horo-kernels.hsaco", "hipcc", library.detail),
          choice_on_one_host(),
          choice_on_several_hosts(library.detail),
          probe_framework("PyTorch", "torch", "horo.torch"),
          probe_framework("NumPy", "numpy", "horo.numpy"),
          plain_framework("TensorFlow", "TF_CONFIG"),
          probe_framework("JAX", "jax", "horo.jax")};
}

}  // namespace horo::apps
