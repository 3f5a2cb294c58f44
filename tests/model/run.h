/* SPDX-License-Identifier: MIT */
/* run.h - opens models in memory and evaluates them
 *
 * Functions that return bool return false after a failure, and r->err says
 * why.
 */
#ifndef TESTS_MODEL_RUN_H
#define TESTS_MODEL_RUN_H

#include "gguf/model.h"

#include <stdbool.h>

struct run {
    struct gguf_file *file;
    const struct gg_arch *arch;             /* NULL: as the file says */
    const struct gguf_model_params *params; /* NULL: the defaults */
    const struct gguf_cpu_params *cpu;      /* NULL: the defaults */
    struct gguf_model *model;
    struct gguf_pool *pool;
    struct gguf_backend *backend;
    struct gguf_session *session;
    uint32_t n_vocab;
    struct gguf_error err; /* error of the last failure */
};

/* Open a model in memory, which must outlive r, and a session with a CPU
 * backend of n_threads threads and the session's allocator. Sets p->backend.
 * Call run_close() in any case. */
bool run_open(struct run *r, const void *data, size_t size, unsigned n_threads,
              const struct gguf_session_params *p);
/* Open with parameters of the model, on one thread. */
bool run_open_params(struct run *r, const void *data, size_t size,
                     const struct gguf_model_params *mp,
                     const struct gguf_session_params *p);
/* Open as an architecture, which need not be in the table. */
struct gg_arch;
bool run_open_arch(struct run *r, const void *data, size_t size,
                   const struct gg_arch *arch,
                   const struct gguf_session_params *p);
/* Open on a CPU backend with these parameters; pool and allocator are set by
 * this function. */
bool run_open_cpu(struct run *r, const void *data, size_t size,
                  const struct gg_arch *arch,
                  const struct gguf_cpu_params *cpu,
                  const struct gguf_session_params *p);
/* Open from a path, as gguf_file_open() takes it. */
bool run_open_path(struct run *r, const char *path, unsigned n_threads,
                   const struct gguf_session_params *p);
void run_close(struct run *r);

/* Call gguf_model_check_finite() with the backend's pool. */
bool run_scan(struct run *r);

/* Encode n tokens if the model is an encoder-decoder; else do nothing. */
bool run_encode(struct run *r, const gguf_token *tok, size_t n);

/* Logits of every token of a batch, [n][n_vocab]. If b->want is NULL, outputs
 * are requested for all. */
bool run_logits(struct run *r, const struct gguf_batch *b, float *out);

/* States of every token of a batch, [n][n_embd], encoded if the model is an
 * encoder-decoder, else decoded. */
bool run_states(struct run *r, const struct gguf_batch *b, float *out);
/* Logits of every token, or states if the model has no logits. */
bool run_outputs(struct run *r, const struct gguf_batch *b, float *out);

/* NMSE: sum (a - b)^2 / sum b^2. */
double run_nmse(const float *a, const float *b, size_t n);
/* NMSE of a against b in double precision. */
double run_nmse_double(const float *a, const double *b, size_t n);

/* A progress callback that checks its arguments and stops at call stop_at. */
struct run_watch {
    unsigned calls, stop_at; /* stop_at 0: never */
    uint64_t done, total;
    bool wrong;
};
bool run_watch(void *watch, uint64_t done, uint64_t total);

/* Open a model in memory and close it again. The file gets the allocator of
 * params, too. */
enum gguf_status run_try(const void *data, size_t size,
                         const struct gguf_model_params *params,
                         struct gguf_error *err);

#endif
