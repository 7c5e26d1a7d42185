/* SPDX-License-Identifier: Apache-2.0 */
/* horo.h: the C ABI of libhoro, collectives for distributed training.
 *
 * A process is one rank of a job. Each rank declares named tensors and submits them in any order.
 * An operation starts when all ranks have submitted the same name, and completes on all of them.
 *
 *   horo_init();
 *   horo_tensor_desc desc = HORO_TENSOR_DESC_INIT;
 *   desc.name = "grad.0"; desc.kind = HORO_ALLREDUCE; desc.op = HORO_AVERAGE;
 *   desc.dtype = HORO_FLOAT32; desc.ndim = 1; desc.shape = &count;
 *   horo_tensor t; horo_declare(&desc, &t);
 *   horo_op op; horo_submit(t, grad, grad, &op);
 *   ... compute ...
 *   horo_wait(op, -1);
 *
 * Errors: functions return horo_status. horo_last_error() returns the calling thread's last
 * message, which names object, value and remedy; horo_last_error_detail() has the same facts as
 * fields. No function prints, exits or throws. Threads: any thread may call any function, but no
 * other call may run at the same time as horo_init or horo_shutdown. Any function that returns a
 * status may also fail with NOT_INITIALIZED before horo_init, with FORKED in a forked child, and
 * with OUT_OF_MEMORY; comments do not repeat these. Stability: numbers are never reused; structures
 * grow at their end (see `size`).
 */
#ifndef HORO_HORO_H
#define HORO_HORO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(HORO_BUILD)
#define HORO_API __attribute__((visibility("default")))
#else
#define HORO_API
#endif

#define HORO_ABI_VERSION 1

typedef enum horo_status {
  HORO_OK = 0,
  HORO_INVALID_ARGUMENT = 1,
  HORO_NOT_FOUND = 2,
  HORO_UNAVAILABLE = 3,
  HORO_TIMED_OUT = 4,
  HORO_IO = 5,
  HORO_OUT_OF_MEMORY = 6,
  HORO_RESOURCE_EXHAUSTED = 7,
  HORO_MISMATCH = 8,   /* ranks disagree about the tensor; the job continues */
  HORO_DUPLICATE = 9,  /* the name is in flight already */
  HORO_PEER_LOST = 10, /* a rank ended or stalled too long; no operation completes any more */
  HORO_SHUT_DOWN = 11, /* this rank or a peer called horo_shutdown */
  HORO_NOT_INITIALIZED = 12,
  HORO_FORKED = 13,
  HORO_UNSUPPORTED = 14,
  HORO_PROTOCOL = 15,
  HORO_PERMISSION_DENIED = 16,
  HORO_VERSION_MISMATCH = 17,
  HORO_IN_PROGRESS = 18, /* horo_poll, horo_wait: not complete yet */
  HORO_CANCELLED = 19,
  HORO_REMOVED = 20 /* this process is no longer part of its elastic job, and should end */
} horo_status;

typedef enum horo_kind {
  HORO_ALLREDUCE = 0,
  HORO_ALLGATHER = 1, /* dimension 0 may differ between ranks and be 0; the others are equal */
  HORO_BROADCAST = 2,
  HORO_BARRIER = 3, /* no data; dtype, shape and buffers are ignored */
  /* Like allreduce, but each rank gets only its rows. Dimension 0 is divided in rank order; when it
   * does not divide evenly, the first ranks get one row more. */
  HORO_REDUCESCATTER = 4,
  /* Each rank sends rows of dimension 0 to each rank; dimension 0 may differ between ranks, the
   * others are equal. */
  HORO_ALLTOALL = 5,
  /* This rank has no more data. Until all ranks of the process set have joined, it takes part in
   * their barriers, and in their allreduces with values that change no result: 0 for a sum, 1 for a
   * product, and so on. An average is still divided by the number of all ranks. Other kinds end
   * with MISMATCH meanwhile, and so does a min, max or product with a prescale factor. The rank may
   * submit nothing else in that set until then. horo_result: one int32, the rank that joined last.
   * The name, dtype, shape and buffers are ignored. */
  HORO_JOIN = 6
} horo_kind;

typedef enum horo_reduce_op {
  HORO_AVERAGE = 0, /* sum divided by the number of ranks; integers: truncated toward zero */
  HORO_SUM = 1,
  /* For allreduce of floating-point tensors. Neighbouring ranks' tensors a and b combine to
   * (1 - a.b/2a.a) a + (1 - a.b/2b.b) b, then neighbouring pairs, and so on. Works for any number
   * of ranks, tensor by tensor. */
  HORO_ADASUM = 2,
  HORO_MIN = 3,
  HORO_MAX = 4,
  HORO_PRODUCT = 5
} horo_reduce_op;

typedef enum horo_dtype {
  HORO_UINT8 = 0,
  HORO_INT8 = 1,
  HORO_UINT16 = 2,
  HORO_INT16 = 3,
  HORO_INT32 = 4,
  HORO_INT64 = 5,
  HORO_FLOAT16 = 6,
  HORO_FLOAT32 = 7,
  HORO_FLOAT64 = 8,
  HORO_BOOL = 9, /* one byte, true unless 0; reduced by min (and) and max (or), giving 0 or 1 */
  HORO_BFLOAT16 = 10
} horo_dtype;

/* Where the buffers of a tensor are. Memory of horo_alloc is known by its address. */
typedef enum horo_memory {
  HORO_MEMORY_HOST = 0,
  HORO_MEMORY_DEVICE = 1 /* memory of a GPU, see horo_submission */
} horo_memory;

/* In which type the elements of a float32 sum or average travel between hosts. Inside a host
 * nothing is rounded, and a set on one host ignores it. */
typedef enum horo_wire_dtype {
  HORO_WIRE_DEFAULT = 0, /* as HORO_WIRE_DTYPE says, for tensors of 1024 elements and more */
  HORO_WIRE_NONE = 1,    /* float32 */
  HORO_WIRE_BFLOAT16 = 2,
  HORO_WIRE_FLOAT16 = 3 /* values beyond 65504 become infinite */
} horo_wire_dtype;

/* -- Life ------------------------------------------------------------------------------------- */

/* Joins the job that the environment describes, as `horo run`, mpirun, srun or torchrun set it, or
 * a job of one rank when there is none. A second call does nothing. After horo_shutdown, a further
 * call joins again, if all ranks call it.
 * Thread: any, with no other call at the same time. Blocks: until all ranks have joined, at most
 * HORO_START_TIMEOUT.
 * Fails: TIMED_OUT (names the missing ranks), PEER_LOST, VERSION_MISMATCH, MISMATCH (ranks of
 * different jobs), UNSUPPORTED and UNAVAILABLE (the hosts cannot find each other or move tensors;
 * says what was tried), OUT_OF_MEMORY, PERMISSION_DENIED (another user's process; a secret file
 * that other users can read), INVALID_ARGUMENT (names the knob or the variable). In an elastic job
 * it waits for the next generation and also fails with REMOVED (this process is no longer part of
 * the job and should end with code 0) and UNAVAILABLE (no further generation; says why). */
HORO_API horo_status horo_init(void);

/* Like horo_init, but starts a job of this process alone, whatever has started the process.
 * Thread: any, with no other call at the same time. Blocks: no.
 * Fails: OUT_OF_MEMORY, INVALID_ARGUMENT (names the knob). */
HORO_API horo_status horo_init_alone(void);

/* Leaves the job after the operations that all ranks have submitted are done. This rank's other
 * operations end with SHUT_DOWN. Peers may continue until they need this rank. Does nothing when
 * the process is not initialised. Memory: tensors and operations stay until the next horo_init,
 * memory of horo_alloc until horo_free. Thread: any, with no other call at the same time. Blocks:
 * for the operations that all ranks have submitted; never for a dead peer. Fails: never; always OK.
 */
HORO_API horo_status horo_shutdown(void);

/* 1 between horo_init and horo_shutdown, else 0. Thread: any. Blocks: no. Fails: never. */
HORO_API int horo_is_initialized(void);

/* Position and size. local: on this host; cross: among the hosts that have this local rank.
 * Thread: any. Blocks: no. Fails: with -1 before horo_init and after horo_shutdown. */
HORO_API int horo_rank(void);
HORO_API int horo_size(void);
HORO_API int horo_local_rank(void);
HORO_API int horo_local_size(void);
HORO_API int horo_cross_rank(void);
HORO_API int horo_cross_size(void);

/* 1 if every host of the job runs the same number of ranks, else 0; the same on all ranks.
 * Thread: any. Blocks: no. Fails: with -1 before horo_init and after horo_shutdown. */
HORO_API int horo_is_homogeneous(void);

/* 1 if the runtime begins what is submitted while its callers compute. 0 if it leaves that to the
 * first caller that waits or polls, for 200 ms at least: on one host, where two threads per rank
 * outnumber the cores that the ranks may use, unless wake.delay is set.
 * Thread: any. Blocks: no. Fails: with -1 before horo_init and after horo_shutdown. */
HORO_API int horo_overlaps(void);

/* -- Elastic jobs: ranks come and go while the job runs -------------------------------------------
 *
 * A job with --min-np or --max-np goes through generations: within one, the ranks are fixed. When a
 * rank is lost, operations end with PEER_LOST (or SHUT_DOWN, where another rank has left first);
 * when hosts come or go, horo_pending_change says so. Then every rank calls horo_shutdown and
 * horo_init, in the same process: horo_init waits for the next generation, in which ranks and sizes
 * may differ. Names, process sets, tensors and operations of earlier generations are gone; memory
 * of horo_alloc stays until it is freed. */

/* 1 in an elastic job, also before horo_init and after horo_shutdown, else 0.
 * Thread: any. Blocks: no. Fails: never. */
HORO_API int horo_is_elastic(void);

/* The generation, from 1; 0 in a job that is not elastic.
 * Thread: any. Blocks: no. Fails: with -1 before horo_init and after horo_shutdown. */
HORO_API int64_t horo_generation(void);

/* Ranks below this number were members of the generation before; the others are new. 0 in the first
 * generation and in a job that is not elastic.
 * Thread: any. Blocks: no. Fails: with -1 before horo_init and after horo_shutdown. */
HORO_API int horo_survivors(void);

/* Flags of horo_pending_change. */
#define HORO_CHANGE_REMOVED 1u /* hosts or ranks are to go */
#define HORO_CHANGE_ADDED 2u   /* hosts or ranks are there to be added */

/* Whether the launcher wants to change the ranks: the number of its latest notice that this
 * generation does not include, and its flags; 0 and 0 when there is none. Ranks see a notice at
 * different times, so they have to agree before they leave, for example by a maximum of the
 * numbers. Memory: the caller's. Thread: any. Blocks: no; it makes no system call. Fails:
 * INVALID_ARGUMENT (null pointer). */
HORO_API horo_status horo_pending_change(uint64_t* sequence, uint32_t* flags);

/* Tells the launcher that the training goes on in this generation, for its report: `stood_still`
 * seconds after the last step that was complete, with `repeated` steps that are done again (-1:
 * unknown). Rank 0 calls it after each change; on other ranks it has no effect. In a job that is
 * not elastic it does nothing. Thread: any. Blocks: until the launcher has it, at most a second.
 * Fails: NOT_INITIALIZED, FORKED, INVALID_ARGUMENT (a number out of range), TIMED_OUT, UNAVAILABLE
 * (the launcher is gone): the training may go on then. */
HORO_API horo_status horo_resumed(double stood_still, int64_t repeated);

/* A digest of `bytes` bytes, by which ranks find out whether they have the same data without
 * sending it. It reads as fast as memory allows. It finds accidents, not forgeries, and another
 * version of the library may give other digests. Memory: the caller's. Thread: any. Blocks: no.
 * Fails: INVALID_ARGUMENT (null pointer). */
HORO_API horo_status horo_digest(const void* data, size_t bytes, unsigned char digest[16]);

/* "0.1.0", and HORO_ABI_VERSION of the library, which may be newer than the header's.
 * Memory: static. Thread: any. Blocks: no. Fails: never. */
HORO_API const char* horo_version(void);
HORO_API int horo_abi_version(void);

/* Message of the last failure in the calling thread; empty before the first.
 * Memory: the library's, valid until the thread's next failing call. Thread: any. Blocks: no.
 * Fails: never. */
HORO_API const char* horo_last_error(void);

/* HORO_MISMATCH: the property about which the ranks disagree. */
typedef enum horo_subject {
  HORO_SUBJECT_NONE = 0,
  HORO_SUBJECT_OPERATION = 1,
  HORO_SUBJECT_DTYPE = 2,
  HORO_SUBJECT_SHAPE = 3,
  HORO_SUBJECT_ROOT_RANK = 4,
  HORO_SUBJECT_REDUCE_OP = 5,
  HORO_SUBJECT_PRESCALE = 6,
  HORO_SUBJECT_POSTSCALE = 7,
  HORO_SUBJECT_GROUP = 8,  /* name or size of the group; its other members may never complete */
  HORO_SUBJECT_JOINED = 9, /* a rank has joined, and the operation is not possible without it */
  HORO_SUBJECT_WIRE_DTYPE = 10, /* wire_dtype or wire_feedback */
  HORO_SUBJECT_MEMORY = 11      /* host memory on one rank, device memory on another */
} horo_subject;

/* The facts of an error as fields, for code that must decide. Fields that do not apply are
 * HORO_SUBJECT_NONE, "" or 0 ranks. */
typedef struct horo_error_detail {
  size_t size;          /* sizeof(horo_error_detail) of the caller */
  horo_status status;   /* of the failure; HORO_OK before the first */
  horo_subject subject; /* MISMATCH of a tensor */
  const char* tensor;   /* MISMATCH, DUPLICATE: the name of the tensor */
  const char* host;     /* PEER_LOST: the host of the lost rank, where it is known */
  const int* ranks;     /* PEER_LOST: the lost rank. SHUT_DOWN: the rank that has left */
  size_t rank_count;
  /* New fields come here; a caller's `size` says which it knows. */
} horo_error_detail;

/* Detail of the last failure in the calling thread, the one that horo_last_error describes; `size`
 * is set by the caller. Memory: the structure is the caller's; the strings and `ranks` are the
 * library's, valid until the thread's next failing call. Thread: any. Blocks: no.
 * Fails: INVALID_ARGUMENT (not given, or its size is not set). */
HORO_API horo_status horo_last_error_detail(horo_error_detail* detail);

/* A status in words: "peer_lost". Memory: static. Thread: any. Blocks: no.
 * Fails: never; "unknown" for what is no status. */
HORO_API const char* horo_status_name(horo_status status);

/* -- Process sets --------------------------------------------------------------------------------
 *
 * A process set is a communicator: it holds some ranks of the job. Operations of different sets run
 * at the same time and do not wait for each other. Set 0 is the world: all ranks. */

typedef uint32_t horo_set;
#define HORO_WORLD ((horo_set)0)

/* Adds the set of these `n` ranks, given in any order. All ranks of the job, members or not, call
 * it with the same ranks, and add and remove sets in the same order. The set gets the lowest free
 * number, which is therefore the same on all ranks.
 * Memory: `ranks` is copied. Thread: any. Blocks: until all ranks have called it.
 * Fails: INVALID_ARGUMENT (no such rank, a rank twice, no rank), DUPLICATE (these ranks are a set
 * already), MISMATCH (ranks asked for different sets; names them), RESOURCE_EXHAUSTED (256 sets),
 * PEER_LOST, SHUT_DOWN. */
HORO_API horo_status horo_add_process_set(const int* ranks, size_t n, horo_set* set);

/* Removes a set. All ranks of the job call it. Operations that not all members have submitted end
 * with SHUT_DOWN. No thread may use the set's tensors any more.
 * Thread: any. Blocks: until all ranks have called it.
 * Fails: NOT_FOUND, INVALID_ARGUMENT (the world), MISMATCH, PEER_LOST, SHUT_DOWN. */
HORO_API horo_status horo_remove_process_set(horo_set set);

/* The calling rank's position in the set. Thread: any. Blocks: no.
 * Fails: with -1: not a member, no such set, or not initialised. */
HORO_API int horo_process_set_rank(horo_set set);

/* Number of its ranks. Thread: any. Blocks: no. Fails: with -1: no such set, or not initialised. */
HORO_API int horo_process_set_size(horo_set set);

/* Its ranks, ascending. Memory: the caller's `ranks`, with room for horo_process_set_size.
 * Thread: any. Blocks: no. Fails: NOT_FOUND, INVALID_ARGUMENT (null pointer). */
HORO_API horo_status horo_process_set_ranks(horo_set set, int* ranks);

/* Number of sets, and their numbers, ascending, into `sets` if it is not NULL; at most `room`.
 * Memory: the caller's `sets`. Thread: any. Blocks: no. Fails: with 0 when not initialised. */
HORO_API size_t horo_process_sets(horo_set* sets, size_t room);

/* The backend that moves the set's tensors: "shm" inside one host, between hosts "tcp", "gloo",
 * "openmpi" or "mpich"; "other" for a backend that this version has no name for. Memory: static.
 * Thread: any. Blocks: no. Fails: with NULL: not a member, no such set, or not initialised. */
HORO_API const char* horo_process_set_backend(horo_set set);

/* A key that only this job's ranks know, the same on all of them, to sign what they send each other
 * through untrusted networks. Each `purpose` gives another key. Memory: the caller's `key`, 32
 * bytes. Thread: any. Blocks: no. Fails: NOT_FOUND (the job has one host and therefore no secret),
 * INVALID_ARGUMENT (null pointer), NOT_INITIALIZED (also after horo_shutdown). */
HORO_API horo_status horo_job_key(const char* purpose, unsigned char* key);

/* -- Tensors and operations -------------------------------------------------------------------- */

typedef uint64_t horo_tensor; /* a declared name; valid until it is evicted, see horo_declare */
typedef uint64_t horo_op;     /* one submission; 0 is no operation */

typedef struct horo_tensor_desc {
  size_t size;      /* sizeof(horo_tensor_desc) of the caller */
  const char* name; /* unique among tensors in flight; NULL: a number by order of declaration */
  horo_kind kind;
  horo_reduce_op op; /* allreduce, reducescatter */
  horo_dtype dtype;
  int ndim;             /* 0: one element */
  const int64_t* shape; /* ndim extents */
  int root_rank;        /* broadcast: a rank of the job that is in the process set */
  double prescale;      /* each rank's input is multiplied by it; 1.0: no scaling */
  double postscale;     /* the result is multiplied by it */
  horo_set process_set; /* the ranks that take part; HORO_WORLD: all */
  /* Tensors of a group become ready together: none runs before all ranks have submitted all of
   * them. The name and the number of members must be the same on all ranks, else MISMATCH. NULL: no
   * group. */
  const char* group;
  uint32_t group_size;
  uint32_t unused;            /* never read: callers that know no later field have not set it */
  horo_wire_dtype wire_dtype; /* allreduce, reducescatter: sum or average of float32 */
  /* The rounding to wire_dtype leaves something, which the next submission of this name adds.
   * 1: yes, -1: no, 0: as HORO_WIRE_ERROR_FEEDBACK says. */
  int wire_feedback;
  horo_memory memory; /* of the buffers and of the result; the same on all ranks */
  uint32_t unused2;   /* never read */
  /* New fields come here; a caller's `size` says which it knows. */
} horo_tensor_desc;

#define HORO_TENSOR_DESC_INIT                                                               \
  {                                                                                         \
    sizeof(horo_tensor_desc), 0, HORO_ALLREDUCE, HORO_SUM, HORO_FLOAT32, 0, 0, 0, 1.0, 1.0, \
        HORO_WORLD, 0, 0, 0, HORO_WIRE_DEFAULT, 0, HORO_MEMORY_HOST, 0                      \
  }

/* Declares a name, or changes the signature of a name that is not in flight. The ranks' descriptors
 * are compared when the tensor is submitted; a difference ends that submission with MISMATCH on all
 * ranks. A process set has room for HORO_CACHE_CAPACITY names. A further name evicts one that is
 * not in flight and has not been used for a long time: the tensor of the evicted name may be
 * NOT_FOUND until it is declared again. Units: extents count elements. Memory: the descriptor, with
 * name, shape and group, is copied. Thread: any. Blocks: no. Fails: INVALID_ARGUMENT (names what is
 * wrong; also: this rank is not in the set), NOT_FOUND (no such set), DUPLICATE (in flight),
 * RESOURCE_EXHAUSTED (HORO_CACHE_CAPACITY names are in flight), UNSUPPORTED (what this library
 * cannot do), UNAVAILABLE (HORO_MEMORY_DEVICE, and
 * CUDA's driver cannot be used; says why). */
HORO_API horo_status horo_declare(const horo_tensor_desc* desc, horo_tensor* tensor);

/* Submits this rank's part and returns at once. Each element is summed in rank order, whichever
 * tensors are fused.
 *   allreduce, broadcast   `in` and `out` hold the declared elements and may be equal.
 *   reducescatter          `out` holds this rank's rows; in place, it points to these rows in `in`.
 *                          NULL: the operation owns the result, see horo_result.
 *   allgather, alltoall    `out` is ignored, see horo_result; alltoall: equal splits.
 * Memory: the runtime uses the caller's buffers until the operation completes: until then `in` must
 * not change, and `out` is undefined. The caller waits for the operation or releases it.
 * Thread: any. Blocks: no.
 * Fails: DUPLICATE (tensor in flight), INVALID_ARGUMENT, NOT_FOUND (no such set; the name was
 * evicted), PEER_LOST, SHUT_DOWN (also after horo_shutdown). */
HORO_API horo_status horo_submit(horo_tensor tensor, const void* in, void* out, horo_op* op);

typedef struct horo_submission {
  size_t size; /* sizeof(horo_submission) of the caller */
  horo_tensor tensor;
  const void* in;
  void* out;
  /* allgather, alltoall: bytes at `out`. A result that fits is written there; a larger one is
   * written to memory that the operation owns. horo_result returns the address. 0: the operation
   * owns it. */
  size_t out_bytes;
  /* alltoall: the number of rows for each rank of the process set, in rank order. Their sum is at
   * most dimension 0. They may differ from one submission to the next. NULL: equal splits. The call
   * copies them. */
  const int64_t* splits;
  size_t split_count;
  /* As declared. HORO_MEMORY_DEVICE: `in` and `out` are memory of the device number `device` in
   * this process, or managed memory (cudaMallocManaged), and become valid and free when all work is
   * done that is now on `stream`: a CUstream or cudaStream_t; NULL: the device's default stream. No
   * thread waits for it. A rank uses one device in a process set, or any number where all tensors
   * pass through host memory (HORO_GPU_OPERATIONS=staged). */
  horo_memory memory;
  int device;
  void* stream;
  /* New fields come here; a caller's `size` says which it knows. */
} horo_submission;

#define HORO_SUBMISSION_INIT \
  { sizeof(horo_submission), 0, 0, 0, 0, 0, 0, HORO_MEMORY_HOST, 0, 0 }

/* Like horo_submit, with all options of a submission. Memory: as horo_submit; the structure and its
 * splits are copied. Thread: any. Blocks: no.
 * Fails: as horo_submit, and UNSUPPORTED (a field that this library does not know; a stream that is
 * being captured to a graph; a second device in a process set), IO (the device). */
HORO_API horo_status horo_submit_with(const horo_submission* submission, horo_op* op);

/* Submits all of them in order; when one fails, none is submitted. Memory: as horo_submit_with;
 * `ops` has room for n. Thread: any. Blocks: no. Fails: as horo_submit_with, and DUPLICATE when a
 * tensor is there twice. */
HORO_API horo_status horo_submit_all(const horo_submission* submissions, size_t n, horo_op* ops);

/* Calls horo_submit for each i < n in order and stops at the first failure. *submitted, if it is
 * not NULL, receives the number of submitted operations. Memory: as horo_submit; `ops` has room for
 * n. Thread: any. Blocks: no. Fails: as horo_submit. */
HORO_API horo_status horo_submit_many(const horo_tensor* tensors, const void* const* in,
                                      void* const* out, size_t n, horo_op* ops, size_t* submitted);

/* Returns OK or the operation's error once it has completed, else IN_PROGRESS. The operation stays
 * valid until it is waited for or released. Thread: any. Blocks: no.
 * Fails: NOT_FOUND (released, or never there), and with the operation's error. */
HORO_API horo_status horo_poll(horo_op op);

/* Waits until the operation completes and releases it, unless the wait timed out (IN_PROGRESS) or
 * the operation owns a result, see horo_result. Afterwards the caller may use the buffers again,
 * also when the operation failed; device memory of one that failed only on a stream that has waited
 * for it by horo_wait_stream. Units: milliseconds; less than 0: no limit. Thread: any; one
 * thread waits for an operation. Blocks: until it completes, at most `timeout_ms`; not for a dead
 * peer. Fails: MISMATCH (ranks disagree; the message has both values), PEER_LOST, SHUT_DOWN,
 * PROTOCOL (a peer sent invalid data), NOT_FOUND (released, or never there). */
HORO_API horo_status horo_wait(horo_op op, int64_t timeout_ms);

/* Waits for all of them like horo_wait, and returns the first error in the order of `ops`. When not
 * all have completed in time, it returns IN_PROGRESS and releases none.
 * Units: milliseconds; less than 0: no limit. Thread: any. Blocks: until all complete, at most
 * `timeout_ms`. Fails: as horo_wait. */
HORO_API horo_status horo_wait_all(const horo_op* ops, size_t n, int64_t timeout_ms);

/* Like horo_wait and horo_wait_all, but they release nothing, so that a caller that has lost the
 * return value can call again. This happens in languages whose signal handlers raise exceptions.
 * Units: milliseconds; less than 0: no limit. Thread: any; one thread waits for an operation.
 * Blocks: until all complete, at most `timeout_ms`; not for a dead peer. Fails: as horo_wait. */
HORO_API horo_status horo_await(horo_op op, int64_t timeout_ms);
HORO_API horo_status horo_await_all(const horo_op* ops, size_t n, int64_t timeout_ms);

/* Makes a stream wait for operations on device memory: work that is put on `stream` afterwards
 * comes behind them and finds their results. The caller waits only until all ranks have submitted
 * them and their last work has been handed to the device; with HORO_GPU_ASYNC_COMPLETION=0, until
 * they are complete. Nothing is released, and buffers belong
 * to the runtime until horo_poll or horo_wait says that the operation is complete. An error of the
 * device that comes later is the operation's, and says which device of which host. After the loss
 * of a rank, a busy device may still have work for an operation that has failed: the stream comes
 * behind that, too, and may use the buffers again. For operations
 * on host memory it is horo_await. Units: milliseconds; less than 0: no limit. Memory: `stream`
 * belongs to the caller; NULL: the default stream. Thread: any; one thread waits for an operation.
 * Blocks: see above; not for a dead peer. Fails: as horo_await, and IO (the device). */
HORO_API horo_status horo_wait_stream(const horo_op* ops, size_t n, void* stream,
                                      int64_t timeout_ms);

/* Whether tensors in device memory move here: by any way for "cuda" (CUDA's driver) and "rocm"
 * (HIP's runtime), of which a process uses one, and by NCCL, or RCCL with HIP, for "nccl". It says
 * what this process has, and what HORO_GPU_OPERATIONS allows; which way a process set takes also
 * depends on its other ranks. It does not start CUDA's driver, because the process could then fork
 * no children that use CUDA: unless the driver runs in this process already, a child process asks
 * it. A HIP runtime that the program has loaded is started. Loads NCCL or RCCL for "nccl". Thread:
 * any. Blocks: while a driver starts. Fails: UNAVAILABLE (says what is missing), UNSUPPORTED
 * (HORO_GPU_OPERATIONS names another way), INVALID_ARGUMENT (another word, or the knob's
 * value). */
HORO_API horo_status horo_device_support(const char* what);

/* The file of CUDA's driver ("cuda"), of HIP's runtime ("rocm"), or of NCCL or RCCL ("nccl"): the
 * one that HORO_GPU_DRIVER or HORO_GPU_NCCL names, or else the one that this process has loaded.
 * It loads nothing. Memory: valid until the calling thread calls it again. Thread: any. Blocks: no.
 * Fails: with NULL (there is none, or `what` is another word). */
HORO_API const char* horo_device_library(const char* what);

/* The result of a completed allgather, alltoall, join, or reducescatter without `out`: its address
 * and size. `rows` receives the number of rows that came from each rank; for a reducescatter, the
 * number that each rank got; nothing for a join. bytes and rows may be NULL. For a tensor in device
 * memory data is device memory too, horo_wait_stream is enough, and work on that stream may use it
 * until horo_release, which does not wait for that work.
 * Units: bytes; rows of dimension 0. Memory: the operation owns data, which is valid until
 * horo_release; rows is the caller's, with room for all ranks of the set. Thread: any. Blocks: no.
 * Fails: NOT_FOUND (released, or never there), IN_PROGRESS, INVALID_ARGUMENT (it has no result),
 * and with the operation's error. */
HORO_API horo_status horo_result(horo_op op, const void** data, size_t* bytes, int64_t* rows);

/* Releases a completed operation and its result. Memory: the memory of large results is kept for
 * later ones. Thread: any. Blocks: no.
 * Fails: NOT_FOUND (released, or never there), IN_PROGRESS (not complete; it stays). */
HORO_API horo_status horo_release(horo_op op);

/* horo_on_complete calls such a function. It must not block; it may submit. */
typedef void (*horo_callback)(void* user, horo_op op, horo_status status);

/* Runs `callback` once when the operation completes, on a thread of the runtime or of a waiting
 * caller, with no lock held; at once if it has completed. The caller must still wait for the
 * operation or release it. Memory: `user` is the caller's until the callback has run. Thread: any.
 * Blocks: no. Fails: NOT_FOUND (released, or never there), INVALID_ARGUMENT (no callback),
 * DUPLICATE (it has one already). */
HORO_API horo_status horo_on_complete(horo_op op, horo_callback callback, void* user);

/* -- Memory shared with the ranks of this host ---------------------------------------------------
 */

/* Allocates memory in this rank's arena. Tensors that all ranks of the host have in their arenas
 * are reduced in place without a copy. Contents are undefined. Units: bytes; aligned to 64. Memory:
 * the caller's until horo_free. After horo_shutdown and another horo_init it is ordinary memory. A
 * forked child does not inherit it. Thread: any. Blocks: no. Fails: OUT_OF_MEMORY,
 * RESOURCE_EXHAUSTED (HORO_ARENA_SIZE), INVALID_ARGUMENT (null pointer). */
HORO_API horo_status horo_alloc(size_t bytes, void** memory);

/* Frees memory of horo_alloc; NULL is allowed. Memory: no operation may use it any more.
 * Thread: any. Blocks: no. Fails: INVALID_ARGUMENT (not from horo_alloc, or already freed). */
HORO_API horo_status horo_free(void* memory);

/* -- Counters and traces -------------------------------------------------------------------------
 */

/* Counters since horo_init, of this rank. Monotonic. */
typedef struct horo_counters {
  size_t size;           /* sizeof(horo_counters) of the caller */
  uint64_t tensors;      /* tensors completed */
  uint64_t entries;      /* log entries executed: buckets of fused tensors */
  uint64_t bytes;        /* bytes of this rank's inputs in completed tensors */
  uint64_t fused_bytes;  /* bytes of tensors that shared an entry with another tensor */
  uint64_t direct_bytes; /* bytes reduced in place in shared memory, without a copy */
  uint64_t sleeps;       /* times a thread slept waiting for a peer */
  uint64_t wakes;        /* system calls made to wake a peer or the runtime's thread */
  /* bytes of this rank's inputs in tensors that were rounded between hosts (wire_dtype) */
  uint64_t rounded_bytes;
} horo_counters;

/* Reads the counters; the caller sets `size`. Memory: the caller's. Thread: any. Blocks: no.
 * Fails: INVALID_ARGUMENT (not given, or its size is not set). */
HORO_API horo_status horo_get_counters(horo_counters* counters);

/* Starts a trace of all operations in `path`, in the JSON format of Chrome's trace viewers. The
 * file is valid at every moment. `mark_cycles` not 0: adds a mark for each log entry. Rank 0
 * writes; on other ranks the call does nothing. A running trace to another file ends; one to the
 * same file continues. Thread: any. Blocks: for the disk. Fails: INVALID_ARGUMENT (no path),
 * NOT_FOUND, PERMISSION_DENIED, IO (the file). */
HORO_API horo_status horo_start_timeline(const char* path, int mark_cycles);

/* Ends the trace. Afterwards the file holds all recorded operations. OK when there is no trace.
 * Thread: any. Blocks: for the disk. Fails: as every function. */
HORO_API horo_status horo_stop_timeline(void);

#ifdef __cplusplus
}
#endif

#endif /* HORO_HORO_H */
