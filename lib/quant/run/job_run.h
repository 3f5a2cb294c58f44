/* SPDX-License-Identifier: MIT */
/* job_run.h - jobs that run together, as they lie in memory
 *
 * job_run.c opens the files, output_names.c gives them their names,
 * common_tensors.c puts the jobs' tensors side by side, run_buffers.c cuts them
 * and sizes the buffers, matrix_scales.c looks for the scales that tensors have
 * outside of their blocks, row_chunks.c is what the threads do, nonfinite.c is
 * asked what a type cannot hold, run_resume.c keeps what an earlier run has
 * done.
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

/* How a tensor is cut. */
struct gg_quant_run_cut {
    bool rows;          /* else bytes, GG_RUN_PIECE at a time */
    uint64_t n_rows;    /* of a matrix */
    uint64_t per_chunk; /* rows */
    uint64_t per_mat;   /* chunks */
    uint64_t first;     /* number of the first chunk */
    uint64_t row_from;  /* bytes */
    bool swap;          /* big-endian: bytes that are copied are swapped */
    struct gg_data_rows src; /* if rows */
};

/* What is known of a tensor while it is made. */
struct gg_quant_run_state {
    bool kept;                        /* it is complete, from an earlier run */
    atomic_uint_fast64_t left;        /* chunks to come */
    atomic_uint_fast64_t n_nonfinite; /* weights, and the first of them */
    atomic_uint_fast64_t first_nonfinite;
    _Atomic uint32_t *largest; /* weight of each matrix: the bits of its size,
                                * which compare like it; NULL: not wanted */
};

struct gg_quant_run {
    struct gguf_quant *const *jobs;
    struct gguf_writer **writers; /* all files of job 0, of job 1 ... */
    char **paths;                 /* of the writers */
    size_t *first_writer;         /* of the jobs, and one after the end */
    size_t n_jobs;
    struct gg_job_tensor **tensors; /* [n_jobs][n_in]: gg_quant_run_tensor */
    size_t n_t;                     /* tensors that a job has */
    size_t n_in;                    /* of the input: room in a row of them */
    struct gg_quant_run_cut *cuts;  /* of the tensors, and one after the end */
    uint8_t *buffers;
    size_t buffer_size;             /* of one thread */
    size_t slice_size;              /* of it for the floats */
    struct gg_loss *losses;         /* of all chunks of job 0, of job 1 ...;
                                   * NULL: not asked for */
    size_t check_size;              /* of a buffer for what is scaled before it
                                   * is encoded, or read back; at the end of a
                                   * thread's */
    size_t weight_size;             /* then for a row of weights for each job;
                                   * then what the jobs encode */
    struct gg_quant_resume *resume; /* of the jobs; NULL: not asked for */
    struct gg_quant_run_state *states; /* of the tensors */
    unsigned n_threads;                /* that have a buffer */
    uint64_t total;                    /* bytes of input */

    atomic_uint_fast64_t next_scan; /* chunk of the look for the largest */
    atomic_uint_fast64_t next;      /* chunk */
    atomic_uint_fast64_t done;      /* bytes of input */
    atomic_bool stop;               /* take no more chunks */
    atomic_bool cancel;             /* leave the chunk too */
    pthread_mutex_t lock;           /* for what follows */
    enum gguf_status status;
    struct gguf_error err;
    uint64_t err_chunk; /* the lowest that failed */
};

/* Tensor i of the run as a job has it; NULL: it leaves it out. */
static inline struct gg_job_tensor *
gg_quant_run_tensor(const struct gg_quant_run *r, size_t job, size_t i)
{
    return r->tensors[job * r->n_in + i];
}

/* As the first job has it that does: what it is in the input is the same in
 * all of them. */
static inline const struct gg_job_tensor *
gg_quant_run_first_tensor(const struct gg_quant_run *r, size_t i)
{
    size_t k = 0;
    while (!gg_quant_run_tensor(r, k, i))
        k++;
    return gg_quant_run_tensor(r, k, i);
}

/* common_tensors.c: set n_t, n_in and tensors; without a job after the first
 * that leaves any out, tensor i is the first job's, and the order is its own.
 * GGUF_E_INVALID: the jobs do not have the same input. */
enum gguf_status gg_quant_run_join_tensors(struct gg_quant_run *r,
                                           struct gguf_error *err);

/* run_buffers.c: look whether the jobs can run (together); set cuts, buffers,
 * losses and their sizes, within the memory that is allowed. After a
 * failure what was allocated is the caller's to free. */
enum gguf_status gg_quant_run_prepare(struct gg_quant_run *r,
                                      struct gguf_error *err);

/* The loss of tensor i, all of whose chunks are done, for all jobs. */
void gg_quant_run_finish_loss(struct gg_quant_run *r, size_t i);

/* nonfinite.c: some of the n elements x of tensor i, from element on, are not
 * finite: do about it what is asked for. False: the run, in chunk no, ends. */
bool gg_quant_run_handle_nonfinite(struct gg_quant_run *r, size_t i,
                                   uint64_t no, uint64_t element, float *x,
                                   size_t n);
/* Blocks that a job made of n elements. */
struct gg_quant_run_blocks {
    size_t job, tensor;
    uint64_t chunk;
    uint64_t element; /* index of the first one in the tensor */
    size_t n;
    const float *x;   /* the numbers that were encoded */
    const float *own; /* the weights: x times the scale outside of blocks */
    const float *weights; /* importances of a row, or NULL */
    uint8_t *blocks;
};
/* Do the same about finite elements that their blocks do not hold: an element
 * is not below the type's limit (gg_codec_max_magnitude), or the block decodes
 * to numbers that are not finite. */
bool gg_quant_run_check_blocks(struct gg_quant_run *r,
                               const struct gg_quant_run_blocks *b);

/* n weights of tensor i are not finite, the first of them is this one. */
void gg_quant_run_count_nonfinite(struct gg_quant_run *r, size_t i, uint64_t n,
                                  uint64_t first);

/* Chunk no failed; the run stops, and says why the lowest did. */
void gg_quant_run_fail(struct gg_quant_run *r, uint64_t no,
                       const struct gguf_error *err);

/* matrix_scales.c: find the scales of the tensors that have their own, and
 * write them. */
enum gguf_status gg_quant_run_write_scales(struct gg_quant_run *r,
                                           struct gguf_error *err);
void gg_quant_run_free_scales(struct gg_quant_run *r);

/* run_resume.c: open the journals of the jobs, before their files; make the
 * writers, and the files that they will take up. */
enum gguf_status gg_quant_run_open_journals(struct gg_quant_run *r,
                                            const char *const *paths,
                                            bool sync, struct gguf_error *err);
/* Look which tensors are complete, in the files that are open now. */
enum gguf_status gg_quant_run_find_complete(struct gg_quant_run *r,
                                            struct gguf_error *err);
/* A chunk of tensor i is done: note the tensor if it was the last. */
void gg_quant_run_record_chunk(struct gg_quant_run *r, size_t i, uint64_t no,
                               unsigned ith);
/* Before the files get their names. */
enum gguf_status gg_quant_run_record_names(struct gg_quant_run *r, bool sync,
                                           struct gguf_error *err);
/* Close the journals. They go away if the run is done, and with the files
 * beside the outputs if no tensor is complete. GGUF_E_IO: the run is done, and
 * one stays. */
enum gguf_status gg_quant_run_close_journals(struct gg_quant_run *r, bool done,
                                             struct gguf_error *err);

/* output_names.c: are all files of the run different files, and not the
 * caller's? GGUF_E_INVALID. */
enum gguf_status gg_quant_run_check_paths(
    const struct gg_quant_run *r, const char *const *paths,
    const struct gguf_quant_output *output, struct gguf_error *err);
/* Of several outputs, say in err which one it was. */
enum gguf_status gg_quant_run_name_output(const struct gg_quant_run *r,
                                          const char *path,
                                          enum gguf_status st,
                                          struct gguf_error *err);
/* The files are complete: give all of them their names, or none. */
enum gguf_status gg_quant_run_commit(struct gg_quant_run *r,
                                     const struct gguf_quant_output *output,
                                     struct gguf_error *err);

/* row_chunks.c: what each thread of the pool does with user, a struct
 * gg_quant_run. */
void gg_quant_run_process_chunks(void *user, unsigned ith, unsigned nth);

/* Hold bytes off to off + size of tensor i for chunk no (gg_job_hold). False:
 * the run ends. */
bool gg_quant_run_hold_bytes(struct gg_quant_run *r, size_t i, uint64_t no,
                             uint64_t off, uint64_t size);

/* Report progress; true: the job is to stop, and r->err says so. Thread 0 is
 * the calling one, and reports; the others look only. */
bool gg_quant_run_poll_progress(struct gg_quant_run *r, unsigned ith);

#endif
