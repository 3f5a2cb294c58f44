/* SPDX-License-Identifier: MIT */
/* run.h - a model from bytes, and its logits: what the tests here share */
#ifndef TESTS_MODEL_RUN_H
#define TESTS_MODEL_RUN_H

#include "gguf/gguf.h"

#include <stdbool.h>

struct run {
    struct gguf_file *file;
    const struct gg_arch *arch;             /* or NULL: the file's */
    const struct gguf_model_params *params; /* or NULL */
    const struct gguf_cpu_params *cpu;      /* or NULL */
    struct gguf_model *model;
    struct gguf_pool *pool;
    struct gguf_backend *backend;
    struct gguf_session *session;
    uint32_t n_vocab;
    struct gguf_error err; /* of what failed last */
};

/* Open a model in memory (kept) or from a path, and a session on it with a CPU
 * backend of n_threads and the session's allocator. p->backend is set here.
 * false: err says why; close all the same. */
bool run_open(struct run *r, const void *data, size_t size, unsigned n_threads,
              const struct gguf_session_params *p);
/* The same with parameters of the model, on one thread. */
bool run_open_params(struct run *r, const void *data, size_t size,
                     const struct gguf_model_params *mp,
                     const struct gguf_session_params *p);
/* The same as an architecture that need not be in the table. */
struct gg_arch;
bool run_open_arch(struct run *r, const void *data, size_t size,
                   const struct gg_arch *arch,
                   const struct gguf_session_params *p);
/* The same on a CPU backend of these parameters; pool and allocator are set
 * here. */
bool run_open_cpu(struct run *r, const void *data, size_t size,
                  const struct gg_arch *arch,
                  const struct gguf_cpu_params *cpu,
                  const struct gguf_session_params *p);
/* path: all that gguf_file_open takes. */
bool run_open_path(struct run *r, const char *path, unsigned n_threads,
                   const struct gguf_session_params *p);
void run_close(struct run *r);

/* gguf_model_scan_finite on its threads. */
bool run_scan(struct run *r);

/* Of an encoder and a decoder n tokens encoded; else nothing. false: err says
 * why. */
bool run_encode(struct run *r, const gguf_token *tok, size_t n);

/* Logits of every token of a batch, [n][n_vocab]; want, if the batch has none,
 * is set to all. false: err says why. */
bool run_logits(struct run *r, const struct gguf_batch *b, float *out);

/* States of every token of a batch, [n][n_embd]: encoded where a model encodes
 * first, else decoded. false: err says why. */
bool run_states(struct run *r, const struct gguf_batch *b, float *out);
/* Logits, or states where a model has none. */
bool run_outputs(struct run *r, const struct gguf_batch *b, float *out);

/* sum (a - b)^2 / sum b^2 */
double run_nmse(const float *a, const float *b, size_t n);
/* The same, of b in double precision. */
double run_far(const float *a, const double *b, size_t n);

/* A progress that looks at what it is told, and stops at a call. */
struct run_watch {
    unsigned calls, stop_at; /* 0: never */
    uint64_t done, total;
    bool wrong;
};
int run_watch(void *watch, uint64_t done, uint64_t total);

/* Open a model of bytes and close it again; the allocator of params is the
 * file's, too. */
enum gguf_status run_try(const void *data, size_t size,
                         const struct gguf_model_params *params,
                         struct gguf_error *err);

#endif
