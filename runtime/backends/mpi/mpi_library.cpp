// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends/mpi/mpi_library.hpp"

#include <array>
#include <atomic>
#include <cstdlib>
#include <dlfcn.h>
#include <functional>
#include <string>
#include <string_view>

#include "base/mutex.hpp"
#include "runtime/backends/mpi/mpi_tags.hpp"

namespace horo::runtime {

namespace {

constexpr std::string_view kName = HORO_MPI_NAME;
constexpr bool kOpenMpi = kName == "openmpi";
constexpr const char* kOwn = kOpenMpi ? "libmpi.so.40" : "libmpich.so.12";
constexpr const char* kOther = kOpenMpi ? "libmpich.so.12" : "libmpi.so.40";

std::atomic<bool> abandoned{false};

void finalise() {
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (finalised == 0 && !abandoned.load()) MPI_Finalize();
}

/// The communicator of all ranks of the job that runs. Thread: any.
class JobComm {
 public:
  void set(const std::shared_ptr<MpiComm>& comm) {
    const MutexLock lock(mutex_);
    comm_ = comm;
  }

  std::shared_ptr<MpiComm> get() {
    const MutexLock lock(mutex_);
    return comm_.lock();
  }

 private:
  Mutex mutex_;
  std::weak_ptr<MpiComm> comm_ HORO_GUARDED_BY(mutex_);
};

bool loaded(const char* library) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

}  // namespace

Status mpi_status(int code, const char* call) {
  if (code == MPI_SUCCESS) return {};
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return fail(Errc::peer_lost, "{}: {}", call,
              std::string_view(text.data(), static_cast<std::size_t>(length)));
}

Status start_mpi(bool threads) {
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (finalised != 0) return fail(Errc::unavailable, "this program has finalised MPI");
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (initialised != 0) return {};
  if (loaded(kOther)) {
    return fail(Errc::unavailable,
                "this process has loaded {}, another MPI than {}; start it with the mpirun of the "
                "MPI that it uses",
                kOther, kName);
  }
  // Open MPI's own plugins take its symbols from the process, not from the library.
  if (kOpenMpi) dlopen(kOwn, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  int provided = 0;
  const int wanted = threads ? MPI_THREAD_SERIALIZED : MPI_THREAD_SINGLE;
  HORO_TRY_STATUS(
      mpi_status(MPI_Init_thread(nullptr, nullptr, wanted, &provided), "MPI_Init_thread"));
  std::atexit(finalise);
  return {};
}

void abandon_mpi() {
  abandoned.store(true);
}

bool may_call_mpi() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  if (level >= MPI_THREAD_SERIALIZED) return true;
  int main = 0;
  MPI_Is_thread_main(&main);
  return main != 0;
}

Status check_tags() {
  // Asked once, before any other thread may use MPI.
  static const int most = [] {
    const int* bound = nullptr;
    int known = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &known);
    return known == 0 ? 0 : *bound;
  }();
  return check_tag_bound(most);
}

Result<std::shared_ptr<MpiComm>> MpiComm::make(const Communicator& communicator) {
  int size = 0;
  int rank = 0;
  HORO_TRY_STATUS(mpi_status(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size"));
  HORO_TRY_STATUS(mpi_status(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank"));
  const int mine = communicator.members[static_cast<std::size_t>(communicator.position)];
  if (mine != rank) {
    return fail(
        Errc::invalid_argument,
        "rank {} of the job is rank {} of {} in MPI_COMM_WORLD; start the job with mpirun of "
        "{}, or use another backend",
        mine, rank, size, kName);
  }
  for (const int member : communicator.members) {
    if (member >= size)
      return fail(Errc::invalid_argument, "rank {} is not in MPI_COMM_WORLD of {}", member, size);
  }
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  HORO_TRY_STATUS(mpi_status(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group"));
  HORO_TRY_STATUS(
      mpi_status(MPI_Group_incl(world, communicator.size(), communicator.members.data(), &group),
                 "MPI_Group_incl"));
  constexpr std::size_t kTags = 32767;  // The fewest that MPI promises.
  const int tag = static_cast<int>(std::hash<std::string>{}(communicator.name) % kTags);
  const auto made =
      mpi_status(MPI_Comm_create_group(MPI_COMM_WORLD, group, tag, &comm), "MPI_Comm_create_group");
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  HORO_TRY_STATUS(made);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return std::shared_ptr<MpiComm>(new MpiComm(comm));
}

MpiComm::~MpiComm() {
  int finalised = 0;
  MPI_Finalized(&finalised);
  if (finalised != 0 || abandoned.load() || kept_.load() || !may_call_mpi()) return;
  auto comm = comm_;
  MPI_Comm_free(&comm);
}

Result<MembersComm> mpi_comm_of(const Communicator& communicator) {
  static JobComm job;
  if (!communicator.starting) {
    auto comm = job.get();
    if (comm == nullptr)
      return fail(Errc::unavailable, "the ranks of this job have not connected by {}", kName);
    return MembersComm{.comm = std::move(comm), .shared = true};
  }
  HORO_TRY_STATUS(start_mpi(communicator.mpi_threads));
  HORO_TRY_STATUS(check_tags());
  HORO_TRY(auto comm, MpiComm::make(communicator));
  if (communicator.slot == 0) job.set(comm);
  return MembersComm{.comm = std::move(comm), .shared = false};
}

}  // namespace horo::runtime
