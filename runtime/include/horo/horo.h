/* SPDX-License-Identifier: Apache-2.0 */
/* horo.h: the C ABI of libhoro, collectives for distributed training.
 *
 * A process is one rank of a job. Each rank declares named tensors and submits them; an operation
 * starts when all ranks have submitted the same name, in whatever order, and completes on all.
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
 * Errors: every function returns horo_status; horo_last_error() gives the calling thread's last
 * message, which names object, value and remedy. No function prints, exits or throws.
 * Threads: any function from any thread, except horo_init and horo_shutdown, beside which no other
 * call may run. Any function that returns a status may also fail with NOT_INITIALIZED before
 * horo_init, with FORKED in a forked child, and with OUT_OF_MEMORY: comments do not repeat these.
 * Stability: numbers are never reused; structures grow at their end (see `size`).
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
  HORO_MISMATCH = 8,   /* ranks disagree about the tensor; the job goes on */
  HORO_DUPLICATE = 9,  /* the name is in flight already */
  HORO_PEER_LOST = 10, /* a rank ended or stalled too long; nothing more completes in this epoch */
  HORO_SHUT_DOWN = 11, /* this rank or a peer called horo_shutdown */
  HORO_NOT_INITIALIZED = 12,
  HORO_FORKED = 13,
  HORO_UNSUPPORTED = 14,
  HORO_PROTOCOL = 15,
  HORO_PERMISSION_DENIED = 16,
  HORO_VERSION_MISMATCH = 17,
  HORO_IN_PROGRESS = 18, /* horo_poll, horo_wait: not complete yet */
  HORO_CANCELLED = 19
} horo_status;

typedef enum horo_kind {
  HORO_ALLREDUCE = 0,
  HORO_ALLGATHER = 1, /* dimension 0 may differ between ranks, 0 allowed; the others are equal */
  HORO_BROADCAST = 2,
  HORO_BARRIER = 3, /* no data; dtype, shape and buffers are ignored */
  /* As allreduce, but each rank gets only its rows: dimension 0 is dealt out in rank order, rows
   * that are over one each to the first ranks. */
  HORO_REDUCESCATTER = 4,
  /* Each rank sends rows of dimension 0 to each rank; dimension 0 may differ between ranks, the
   * others are equal. */
  HORO_ALLTOALL = 5,
  /* This rank has no more data: until all ranks of the process set have joined, it takes part in
   * their allreduces with what changes no result (0 for a sum, 1 for a product, ...; an average is
   * still divided by the number of all ranks) and in their barriers. Other kinds end with MISMATCH
   * meanwhile, and so does a min, max or product with a prescale factor. It may submit nothing else
   * in that set until then. horo_result: one int32, the rank that joined last. The name, dtype,
   * shape and buffers are ignored. */
  HORO_JOIN = 6
} horo_kind;

typedef enum horo_reduce_op {
  HORO_AVERAGE = 0, /* sum divided by the number of ranks; integers: truncated toward zero */
  HORO_SUM = 1,
  /* Allreduce of floating point: neighbours a and b combine to (1 - a.b/2a.a) a + (1 - a.b/2b.b) b,
   * then neighbouring pairs, and so on; any number of ranks, tensor by tensor. */
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

/* -- Life ------------------------------------------------------------------------------------- */

/* Joins the job that the environment describes, as `horo run`, mpirun, srun or torchrun set it, or
 * a job of one rank when there is none. A second call does nothing; after horo_shutdown it joins
 * again, if all ranks do.
 * Thread: any, with no other call beside it. Blocks: until all ranks have come, at most
 * HORO_START_TIMEOUT.
 * Fails: TIMED_OUT (names the missing ranks), PEER_LOST, VERSION_MISMATCH, MISMATCH (ranks of
 * different jobs), UNSUPPORTED and UNAVAILABLE (nothing by which the hosts could find each other
 * or move tensors; says what was tried), OUT_OF_MEMORY, PERMISSION_DENIED
 * (another user's process; a secret file that others can read), INVALID_ARGUMENT (a knob or
 * variable; names it). */
HORO_API horo_status horo_init(void);

/* Leaves the job after the operations that all ranks have agreed on are done; operations of this
 * rank that are not agreed end with SHUT_DOWN. Peers may go on until they need this rank.
 * Does nothing when not initialised.
 * Memory: tensors and operations stay until the next horo_init, what horo_alloc gave until it is
 * given back.
 * Thread: any, with no other call beside it. Blocks: for what is agreed on; never for a dead peer.
 * Fails: never; always OK. */
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

/* 1 if every host of the job runs as many ranks as every other, else 0; the same on all ranks.
 * Thread: any. Blocks: no. Fails: with -1 before horo_init and after horo_shutdown. */
HORO_API int horo_is_homogeneous(void);

/* "0.1.0", and HORO_ABI_VERSION of the library, which may be newer than the header's.
 * Memory: static. Thread: any. Blocks: no. Fails: never. */
HORO_API const char* horo_version(void);
HORO_API int horo_abi_version(void);

/* Message of the last failure in the calling thread; empty before the first.
 * Memory: the library's, valid until the thread's next failing call. Thread: any. Blocks: no.
 * Fails: never. */
HORO_API const char* horo_last_error(void);

/* A status in words: "peer_lost". Memory: static. Thread: any. Blocks: no.
 * Fails: never; "unknown" for what is no status. */
HORO_API const char* horo_status_name(horo_status status);

/* -- Process sets --------------------------------------------------------------------------------
 *
 * A process set is a communicator: some ranks of the job. Operations of different sets run at the
 * same time, and none waits for another's. Set 0 is the world. */

typedef uint32_t horo_set;
#define HORO_WORLD ((horo_set)0)

/* Adds the set of these `n` ranks (any order). All ranks of the job call it, members or not, with
 * the same ranks, and add and remove in the same order. The lowest free number is taken, so it is
 * the same everywhere.
 * Memory: `ranks` is copied. Thread: any. Blocks: until all ranks have called it.
 * Fails: INVALID_ARGUMENT (no such rank, one named twice, none), DUPLICATE (these ranks are a set
 * already), MISMATCH (ranks asked for different sets; names them), RESOURCE_EXHAUSTED (256 sets),
 * PEER_LOST, SHUT_DOWN. */
HORO_API horo_status horo_add_process_set(const int* ranks, size_t n, horo_set* set);

/* Removes a set; all ranks of the job call it. Operations that not all members have submitted end
 * with SHUT_DOWN; its tensors must not be used any more, by no thread.
 * Thread: any. Blocks: until all ranks have called it.
 * Fails: NOT_FOUND, INVALID_ARGUMENT (the world), MISMATCH, PEER_LOST, SHUT_DOWN. */
HORO_API horo_status horo_remove_process_set(horo_set set);

/* The calling rank's position in the set. Thread: any. Blocks: no.
 * Fails: with -1: not a member, no such set, or not initialised. */
HORO_API int horo_process_set_rank(horo_set set);

/* Number of its ranks. Thread: any. Blocks: no. Fails: with -1: no such set, or not initialised. */
HORO_API int horo_process_set_size(horo_set set);

/* Its ranks, ascending. Memory: the caller's `ranks`, with room for horo_process_set_size.
 * Thread: any. Blocks: no. Fails: NOT_FOUND, INVALID_ARGUMENT (no place). */
HORO_API horo_status horo_process_set_ranks(horo_set set, int* ranks);

/* Number of sets, and their numbers, ascending, into `sets` if it is not NULL; at most `room`.
 * Memory: the caller's `sets`. Thread: any. Blocks: no. Fails: with 0 when not initialised. */
HORO_API size_t horo_process_sets(horo_set* sets, size_t room);

/* -- Tensors and operations -------------------------------------------------------------------- */

typedef uint64_t horo_tensor; /* a declared name; valid until it gives way, see horo_declare */
typedef uint64_t horo_op;     /* one submission; 0 is no operation */

typedef struct horo_tensor_desc {
  size_t size;      /* sizeof(horo_tensor_desc) of the caller */
  const char* name; /* unique among tensors in flight; NULL: numbered by order of declaration */
  horo_kind kind;
  horo_reduce_op op; /* allreduce, reducescatter */
  horo_dtype dtype;
  int ndim;             /* 0: one element */
  const int64_t* shape; /* ndim extents */
  int root_rank;        /* broadcast: a rank of the job that is in the process set */
  double prescale;      /* each rank's input is multiplied by it; 1.0: no scaling */
  double postscale;     /* the result is multiplied by it */
  horo_set process_set; /* the ranks that take part; HORO_WORLD: all */
  /* Tensors of a group become ready together: none before all ranks have submitted all. Same name
   * and number of members on all ranks, else MISMATCH. NULL: no group. */
  const char* group;
  uint32_t group_size;
  /* New fields come here; a caller's `size` says which it knows. */
} horo_tensor_desc;

#define HORO_TENSOR_DESC_INIT                                                               \
  {                                                                                         \
    sizeof(horo_tensor_desc), 0, HORO_ALLREDUCE, HORO_SUM, HORO_FLOAT32, 0, 0, 0, 1.0, 1.0, \
        HORO_WORLD, 0, 0                                                                    \
  }

/* Declares a name, or changes its signature; not while it is in flight. The ranks' descriptors are
 * compared when the tensor is submitted; a difference ends that submission with MISMATCH on all
 * ranks. A process set has room for HORO_CACHE_CAPACITY names. One more takes the place of a name
 * that is not in flight and was not used for long: its tensor may be NOT_FOUND from then on, until
 * it is declared again.
 * Units: extents count elements. Memory: the descriptor, with name, shape and group, is copied.
 * Thread: any. Blocks: no.
 * Fails: INVALID_ARGUMENT (names what is wrong; also: this rank is not in the set), NOT_FOUND (no
 * such set), DUPLICATE (in flight), RESOURCE_EXHAUSTED (HORO_CACHE_CAPACITY names are in flight),
 * UNSUPPORTED (what this library cannot do). */
HORO_API horo_status horo_declare(const horo_tensor_desc* desc, horo_tensor* tensor);

/* Offers this rank's part and returns at once. Sum order: each element is added in rank order,
 * whatever is fused with what.
 *   allreduce, broadcast   `in` and `out` hold the declared elements and may be equal.
 *   reducescatter          `out` holds this rank's rows; in place it is where they begin in `in`.
 *                          NULL: the operation owns the result, see horo_result.
 *   allgather, alltoall    `out` is ignored, see horo_result; alltoall: equal splits.
 * Memory: the buffers are the caller's and belong to the runtime until the operation completes:
 * `in` must not change, `out` holds nothing until then. The operation is the caller's to wait for
 * or to release. Thread: any. Blocks: no. Fails: DUPLICATE (tensor in flight), INVALID_ARGUMENT,
 * NOT_FOUND (no such set; the name gave way to others), PEER_LOST, SHUT_DOWN (also after
 * horo_shutdown). */
HORO_API horo_status horo_submit(horo_tensor tensor, const void* in, void* out, horo_op* op);

typedef struct horo_submission {
  size_t size; /* sizeof(horo_submission) of the caller */
  horo_tensor tensor;
  const void* in;
  void* out;
  /* allgather, alltoall: bytes at `out`. A result that fits lies there, a larger one in memory that
   * the operation owns; horo_result says which. 0: the operation owns it. */
  size_t out_bytes;
  /* alltoall: rows for each rank of the process set, in rank order, together at most dimension 0;
   * they may differ from one submission to the next. NULL: equal splits. Copied by the call. */
  const int64_t* splits;
  size_t split_count;
} horo_submission;

#define HORO_SUBMISSION_INIT \
  { sizeof(horo_submission), 0, 0, 0, 0, 0, 0 }

/* As horo_submit, with all that a submission may say. Memory: as horo_submit; the structure and its
 * splits are copied. Thread: any. Blocks: no.
 * Fails: as horo_submit, and UNSUPPORTED (a field that this library does not know). */
HORO_API horo_status horo_submit_with(const horo_submission* submission, horo_op* op);

/* All of them, in order, or, when one fails, none: as a group is submitted. Memory: as
 * horo_submit_with; `ops` has room for n. Thread: any. Blocks: no.
 * Fails: as horo_submit_with, and DUPLICATE when one is there twice. */
HORO_API horo_status horo_submit_all(const horo_submission* submissions, size_t n, horo_op* ops);

/* As horo_submit for each i < n, in order; stops at the first failure, and *submitted, if it is not
 * NULL, says how many are under way. Memory: as horo_submit; `ops` has room for n. Thread: any.
 * Blocks: no. Fails: as horo_submit. */
HORO_API horo_status horo_submit_many(const horo_tensor* tensors, const void* const* in,
                                      void* const* out, size_t n, horo_op* ops, size_t* submitted);

/* OK or the operation's error once complete, else IN_PROGRESS. The operation stays valid until it
 * is waited for or released. Thread: any. Blocks: no.
 * Fails: NOT_FOUND (released, or never there), and with what the operation failed with. */
HORO_API horo_status horo_poll(horo_op op);

/* Waits until the operation completes and releases it, unless it timed out (IN_PROGRESS) or has a
 * result, see horo_result. The buffers are the caller's again, also when it failed.
 * Units: milliseconds; less than 0: for ever. Thread: any; one waits for an operation.
 * Blocks: until it completes, at most `timeout_ms`; never for ever on a dead peer.
 * Fails: MISMATCH (ranks disagree; the message has both values), PEER_LOST, SHUT_DOWN, PROTOCOL
 * (what a peer wrote makes no sense), NOT_FOUND (released, or never there). */
HORO_API horo_status horo_wait(horo_op op, int64_t timeout_ms);

/* As horo_wait for each; returns the first error in order of `ops` after all have completed, and
 * IN_PROGRESS, releasing none, when not all have. Units: milliseconds; less than 0: for ever.
 * Thread: any. Blocks: until all complete, at most `timeout_ms`. Fails: as horo_wait. */
HORO_API horo_status horo_wait_all(const horo_op* ops, size_t n, int64_t timeout_ms);

/* As horo_wait and horo_wait_all, and release nothing: what they return may get lost, as in a
 * language whose signal handlers leave the call by an exception, and the next call tells it again.
 * Units: milliseconds; less than 0: for ever. Thread: any; one waits for an operation. Blocks:
 * until all complete, at most `timeout_ms`; never for ever on a dead peer. Fails: as horo_wait. */
HORO_API horo_status horo_await(horo_op op, int64_t timeout_ms);
HORO_API horo_status horo_await_all(const horo_op* ops, size_t n, int64_t timeout_ms);

/* Result of a completed allgather, alltoall, join, or reducescatter without `out`: `data`, its
 * size, and in `rows` the rows that came from each rank, of a reducescatter the rows that each rank
 * got, none for a join. bytes and rows may be NULL. Units: bytes; rows of dimension 0. Memory: data
 * is the operation's, valid until horo_release; rows the caller's, with room for as many as the set
 * has ranks. Thread: any. Blocks: no. Fails: NOT_FOUND (released, or never there), IN_PROGRESS,
 * INVALID_ARGUMENT (it has no result), and with what the operation failed with. */
HORO_API horo_status horo_result(horo_op op, const void** data, size_t* bytes, int64_t* rows);

/* Forgets a completed operation and its result. Memory: that of large results is kept for later
 * ones. Thread: any. Blocks: no.
 * Fails: NOT_FOUND (released, or never there), IN_PROGRESS (not complete; it stays). */
HORO_API horo_status horo_release(horo_op op);

/* What horo_on_complete calls. It must not block and may submit. */
typedef void (*horo_callback)(void* user, horo_op op, horo_status status);

/* Runs `callback` once when the operation completes, on a thread of the runtime or of a waiting
 * caller, with no lock held; at once if it has completed. The operation is still to be waited for
 * or released. Memory: `user` is the caller's until the callback has run. Thread: any. Blocks: no.
 * Fails: NOT_FOUND (released, or never there), INVALID_ARGUMENT (no callback), DUPLICATE (it has
 * one already). */
HORO_API horo_status horo_on_complete(horo_op op, horo_callback callback, void* user);

/* -- Memory shared with the ranks of this host ---------------------------------------------------
 */

/* Memory in this rank's arena: tensors that all ranks of the host have there are reduced in place
 * without a copy. Contents are undefined.
 * Units: bytes; aligned to 64. Memory: the caller's, for horo_free, also after horo_shutdown and
 * another horo_init, where it is memory like any other; not inherited across fork.
 * Thread: any. Blocks: no.
 * Fails: OUT_OF_MEMORY, RESOURCE_EXHAUSTED (HORO_ARENA_SIZE), INVALID_ARGUMENT (no place). */
HORO_API horo_status horo_alloc(size_t bytes, void** memory);

/* Gives memory of horo_alloc back; NULL is allowed. Memory: no operation may use it any more.
 * Thread: any. Blocks: no. Fails: INVALID_ARGUMENT (not from horo_alloc, or given back). */
HORO_API horo_status horo_free(void* memory);

/* -- What the runtime did ------------------------------------------------------------------------
 */

/* Counters since horo_init, of this rank. Monotonic. */
typedef struct horo_counters {
  size_t size;           /* sizeof(horo_counters) of the caller */
  uint64_t tensors;      /* tensors completed */
  uint64_t entries;      /* log entries executed: buckets of fused tensors */
  uint64_t bytes;        /* bytes of this rank's inputs in completed tensors */
  uint64_t fused_bytes;  /* those that shared an entry with another tensor */
  uint64_t direct_bytes; /* those reduced in place in shared memory, without a copy */
  uint64_t sleeps;       /* times a thread slept waiting for a peer */
  uint64_t wakes;        /* system calls made to wake a peer or the runtime's thread */
} horo_counters;

/* The counters now; `size` is set by the caller. Memory: the caller's. Thread: any. Blocks: no.
 * Fails: INVALID_ARGUMENT (not given, or its size is not set). */
HORO_API horo_status horo_get_counters(horo_counters* counters);

/* Writes a trace of all operations to `path` from now on, in the JSON format of Chrome's viewers;
 * the file is whole at every moment. `mark_cycles` not 0: with a mark at each log entry. Rank 0
 * writes, on others it does nothing. A trace to another file ends, one to the same goes on.
 * Thread: any. Blocks: for the disk.
 * Fails: INVALID_ARGUMENT (no path), NOT_FOUND, PERMISSION_DENIED, IO (the file). */
HORO_API horo_status horo_start_timeline(const char* path, int mark_cycles);

/* Ends the trace: all that was recorded is in the file then. No trace: OK.
 * Thread: any. Blocks: for the disk. Fails: as every function. */
HORO_API horo_status horo_stop_timeline(void);

#ifdef __cplusplus
}
#endif

#endif /* HORO_HORO_H */
