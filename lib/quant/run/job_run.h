/* SPDX-License-Identifier: MIT */
/* job_run.h - internals of a run: jobs that are written together
 *
 * job_run.c opens the files and output_names.c gives them their names.
 * common_tensors.c lists the tensors of all jobs, run_buffers.c cuts them into
 * chunks and allocates buffers, and matrix_scales.c computes scale tensors.
 * row_chunks.c is the work of the threads; nonfinite.c handles weights that a
 * type cannot hold. run_resume.c keeps the results of an earlier run, and
 * improve.c lets the caller replace tensors.
 */
#ifndef GG_QUANT_RUN_JOB_RUN_H
#define GG_QUANT_RUN_JOB_RUN_H

#include "quant/job/job.h"
#include "quant/run/loss.h"
#include "quant/resume/job_journal.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    GG_RUN_SLICE = 16384, /* elements decoded at once: 64 KiB, for the cache */
    GG_RUN_PIECE = 1 << 20 /* bytes copied at once */
};

/* Division of a tensor into chunks. Chunks are numbered through all tensors. */
struct gg_quant_run_cut {
    bool rows;               /* chunks are rows; false: pieces of GG_RUN_PIECE
                              * bytes */
    uint64_t n_rows;         /* rows of a matrix */
    uint64_t per_chunk;      /* rows per chunk */
    uint64_t per_mat;        /* chunks per matrix */
    uint64_t first;          /* number of the first chunk */
    uint64_t row_from;       /* bytes of a row in the input */
    bool swap;               /* swap the bytes of copied data: the input is
                              * big-endian */
    struct gg_data_rows src; /* reads the rows, if rows is set */
};

/* Progress of a tensor. */
struct gg_quant_run_state {
    bool kept;                        /* complete from an earlier run */
    atomic_uint_fast64_t left;        /* chunks that are not done */
    atomic_uint_fast64_t n_nonfinite; /* non-finite weights, and the index of
                                       * the first one */
    atomic_uint_fast64_t first_nonfinite;
    /* Largest magnitude of each matrix, as the bits of a float, which compare
     * like the float. NULL: not needed. */
    _Atomic uint32_t *largest;
};

struct gg_quant_run {
    struct gguf_quant *const *jobs;
    struct gguf_writer **writers; /* files of job 0, then of job 1 ... */
    char **paths;                 /* paths of the writers */
    size_t *first_writer;         /* first writer of each job, and the end */
    size_t n_jobs;
    struct gg_job_tensor **tensors; /* [n_jobs][n_in]: use
                                     * gg_quant_run_tensor */
    size_t n_t;                     /* tensors of the run: the union of the
                                     * jobs */
    size_t n_in;                    /* tensors of the input */
    struct gg_quant_run_cut *cuts;  /* one per tensor, and the end */
    uint8_t *buffers;
    size_t buffer_size;     /* bytes of a buffer; each thread has one */
    size_t slice_size;      /* bytes of a buffer for decoded floats */
    struct gg_loss *losses; /* losses of all chunks of job 0, then of job 1
                               * ...; NULL: not measured */
    size_t check_size;      /* bytes at the end of a buffer for scaled or
                               * decoded weights */
    size_t weight_size;     /* bytes after the floats for a row of
                               * importances, for each job; encoded bytes
                               * follow */
    struct gg_quant_resume *resume; /* journals of the jobs; NULL: no resume */
    struct gg_quant_run_state *states; /* one per tensor */
    unsigned n_threads;                /* number of threads with a buffer */
    uint64_t total;                    /* bytes of the input */
    /* 1 + number of the job with a tensor that is encoded again after the
     * files were finished (improve.c); 0: all jobs are written */
    size_t again;

    atomic_uint_fast64_t next_scan; /* next chunk to scan for the largest
                                     * weight */
    atomic_uint_fast64_t next;      /* next chunk to encode */
    atomic_uint_fast64_t done;      /* bytes of the input that are done */
    atomic_bool stop;               /* start no more chunks */
    atomic_bool cancel;             /* abandon the current chunk too */
    pthread_mutex_t lock;           /* protects the members below */
    enum gguf_status status;
    struct gguf_error err;
    uint64_t err_chunk; /* lowest chunk that failed */
};

/* Tensor i of the run in a job; NULL if the job leaves it out. */
static inline struct gg_job_tensor *
gg_quant_run_tensor(const struct gg_quant_run *r, size_t job, size_t i)
{
    return r->tensors[job * r->n_in + i];
}

/* Tensor i of the run in the first job that has it. Its source is the same in
 * all jobs. */
static inline const struct gg_job_tensor *
gg_quant_run_first_tensor(const struct gg_quant_run *r, size_t i)
{
    size_t k = 0;
    while (!gg_quant_run_tensor(r, k, i))
        k++;
    return gg_quant_run_tensor(r, k, i);
}

/* Rows of a group that are encoded apart and then interleaved; 0: none. */
static inline unsigned gg_quant_run_group(const struct gg_job_tensor *t)
{
    const unsigned rows = gg_interleave_rows(gg_dtype_index(t->pub.to));
    return rows > 1 && !t->moves && !t->pub.copied ? rows : 0;
}

/* Bytes of a row in a thread's buffer: of the plain type if rows are
 * interleaved later. Plain rows are at least as long. */
static inline uint64_t gg_quant_run_row_size(const struct gg_job_tensor *t)
{
    const uint64_t ne0 = (uint64_t)t->pub.ne[0];
    const struct gguf_dtype_info *dt = gg_dtype_by_index(gg_job_row_type(t));
    return gg_quant_run_group(t)
               ? dt->row_header + ne0 / dt->block_len * dt->block_size
               : t->pub.to_size / (t->pub.n_elements / ne0);
}

/* common_tensors.c: set n_t, n_in and tensors. The first job's tensors keep
 * their order unless a later job has others. GGUF_E_INVALID: the jobs have
 * different inputs. */
enum gguf_status gg_quant_run_join_tensors(struct gg_quant_run *r,
                                           struct gguf_error *err);

/* run_buffers.c: check that the jobs can run together, and set cuts, buffers
 * and losses within the memory limit. After a failure the caller frees all
 * members. */
enum gguf_status gg_quant_run_prepare(struct gg_quant_run *r,
                                      struct gguf_error *err);

/* Compute the loss of tensor i for all jobs, when all its chunks are done. */
void gg_quant_run_finish_loss(struct gg_quant_run *r, size_t i);

/* nonfinite.c: apply params.nonfinite to n elements x of tensor i from index
 * element on, which include non-finite ones. Returns false if the run fails in
 * chunk no. */
bool gg_quant_run_handle_nonfinite(struct gg_quant_run *r, size_t i,
                                   uint64_t no, uint64_t element, float *x,
                                   size_t n);
/* Blocks that a job encoded from n elements. */
struct gg_quant_run_blocks {
    size_t job, tensor;
    uint64_t chunk;
    uint64_t element; /* index of the first element in the tensor */
    size_t n;
    const float *x;       /* numbers that were encoded */
    const float *own;     /* weights: x times the scale tensor */
    const float *weights; /* importances of a row; NULL: none */
    uint8_t *blocks;
};
/* Apply params.nonfinite to finite elements that do not fit their blocks: the
 * element is not below the type's limit (gg_codec_max_magnitude), or its block
 * decodes to numbers that are not finite. Returns false if the run fails. */
bool gg_quant_run_check_blocks(struct gg_quant_run *r,
                               const struct gg_quant_run_blocks *b);

/* Count n non-finite weights of tensor i; first is the index of the first
 * one. */
void gg_quant_run_count_nonfinite(struct gg_quant_run *r, size_t i, uint64_t n,
                                  uint64_t first);

/* Stop the run because chunk no failed. The error of the lowest chunk is
 * kept. */
void gg_quant_run_fail(struct gg_quant_run *r, uint64_t no,
                       const struct gguf_error *err);

/* matrix_scales.c: compute and write the scale tensors of the outputs. */
enum gguf_status gg_quant_run_write_scales(struct gg_quant_run *r,
                                           struct gguf_error *err);
void gg_quant_run_free_scales(struct gg_quant_run *r);

/* run_resume.c: open the journals of the jobs, before their files, create the
 * writers, and open the unfinished files to continue. improve: see
 * gg_quant_resume_digest_plan(). */
enum gguf_status gg_quant_run_open_journals(struct gg_quant_run *r,
                                            const char *const *paths,
                                            const uint8_t *improve, bool sync,
                                            struct gguf_error *err);
/* Find the tensors that are complete in the open files. */
enum gguf_status gg_quant_run_find_complete(struct gg_quant_run *r,
                                            struct gguf_error *err);
/* Count a finished chunk of tensor i, and record the tensor if it was the
 * last. */
void gg_quant_run_record_chunk(struct gg_quant_run *r, size_t i, uint64_t no,
                               unsigned ith);
/* Record that the files are about to get their names. */
enum gguf_status gg_quant_run_record_names(struct gg_quant_run *r, bool sync,
                                           struct gguf_error *err);
/* Close the journals. They are removed if the run is done; if no tensor is
 * complete, the unfinished files are removed too. GGUF_E_IO: the run is done,
 * but a journal cannot be removed. */
enum gguf_status gg_quant_run_close_journals(struct gg_quant_run *r, bool done,
                                             struct gguf_error *err);

/* improve.c: let output->improve replace tensors of the finished files of all
 * jobs. Does nothing without that callback. */
enum gguf_status gg_quant_run_improve(struct gg_quant_run *r,
                                      const struct gguf_quant_output *output,
                                      struct gguf_error *err);

/* output_names.c: open the finished files of job k, which have no names yet.
 * Close *out with gguf_file_close(). */
enum gguf_status gg_quant_run_open_outputs(const struct gg_quant_run *r,
                                           size_t k, struct gguf_file **out,
                                           struct gguf_error *err);

/* output_names.c: check that all files of the run differ from each other and
 * from the caller's files. GGUF_E_INVALID. */
enum gguf_status gg_quant_run_check_paths(
    const struct gg_quant_run *r, const char *const *paths,
    const struct gguf_quant_output *output, struct gguf_error *err);
/* With several outputs, put the path of one before the message of err. Returns
 * st. */
enum gguf_status gg_quant_run_name_output(const struct gg_quant_run *r,
                                          const char *path,
                                          enum gguf_status st,
                                          struct gguf_error *err);
/* Give all complete files their names, or none. */
enum gguf_status gg_quant_run_commit(struct gg_quant_run *r,
                                     const struct gguf_quant_output *output,
                                     struct gguf_error *err);

/* row_chunks.c: the work of one thread of the pool. user is a struct
 * gg_quant_run. */
void gg_quant_run_process_chunks(void *user, unsigned ith, unsigned nth);

/* Encode and write chunk no of tensor i, with the buffer of thread ith, for the
 * jobs that r->again says. A failure is in r->status. */
void gg_quant_run_do_chunk(struct gg_quant_run *r, unsigned ith, size_t i,
                           uint64_t no);

/* Hold bytes off to off + size of tensor i for chunk no (gg_job_hold). Returns
 * false if the run fails. */
bool gg_quant_run_hold_bytes(struct gg_quant_run *r, size_t i, uint64_t no,
                             uint64_t off, uint64_t size);

/* Report progress from thread 0, the calling one; other threads only check for
 * a stop. Returns true if the run must stop; r->err has the reason. */
bool gg_quant_run_poll_progress(struct gg_quant_run *r, unsigned ith);

#endif
