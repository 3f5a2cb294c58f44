/* SPDX-License-Identifier: MIT */
/* feedback.h - encoding rows so that later columns make up for the errors of
 * earlier ones
 *
 * The error of a row is e' S e, where e is its target minus its decoded
 * elements and S, n by n, are the damped second moments of the inputs. With
 * S = R R', R upper triangular, and G[i][j] = R[i][j] / R[j][j],
 *
 *     e' S e = sum over j of R[j][j]^2 r[j]^2
 *     r[j] = e[j] + sum over i < j of e[i] G[i][j]
 *
 * Columns are encoded from 0 on. Column j is rounded to its target plus the
 * sum over i < j, so that the errors before it are made up for as far as they
 * can be (LDLQ: Chee et al., QuIP, arXiv 2307.13304, section 3; the same
 * result as GPTQ: Frantar et al., arXiv 2210.17323). Within a sub-block, codes
 * of the scale and of the minimum move by single steps to the least error with
 * the feedback in effect.
 *
 * Usual sequence: factorize S, encode the target by the type's plain encoder,
 * then gg_feedback_encode(). Threads: any; a pool runs one call at a time.
 */
#ifndef GG_FIT_FEEDBACK_H
#define GG_FIT_FEEDBACK_H

#include "fit/form.h"
#include "gguf/memory.h"
#include "gguf/pool.h"

#include <stddef.h>

/* Metric of the errors of a row. The arrays are borrowed. */
struct gg_feedback_metric {
    size_t n; /* columns */
    const float
        *g; /* [n][n], row i: G[i][j] for j > i; the rest is not read */
    const float *d; /* [n], R[j][j]^2 */
    const float *s; /* [n][n] symmetric: S. NULL: allowed up to SEARCHED */
};

enum gg_feedback_effort {
    GG_FEEDBACK_FIXED,    /* scales and minima of the given bytes */
    GG_FEEDBACK_SEARCHED, /* scales and minima of sub-blocks are searched */
    /* SEARCHED, then a pass of coordinate descent over sub-blocks, with the
     * scales of blocks fitted again: most of what descent gains */
    GG_FEEDBACK_ONE_DESCENT,
    /* passes of descent until nothing changes, at most three */
    GG_FEEDBACK_DESCENT
};

/* Encode rows with error feedback.
 *
 * f        form of the type
 * m        metric of all rows; m->n is a multiple of f->block_len
 * target   [n_rows][n] wanted elements
 * n_rows   number of rows; 0: nothing to do
 * bytes    n_rows rows of blocks, without a gap. On entry those of the plain
 *          encoder, from which the search begins. On return the new ones.
 * effort   extent of the search
 * pool     threads to use. NULL: the calling thread alone
 * a        allocator of the scratch memory, about 600 n + 3 million bytes a
 *          thread. NULL: malloc
 *
 * A row keeps its bytes unless the new ones have a smaller error e' S e. It
 * also keeps them if a target, a decoded element or the error is not finite.
 * Rows are independent: any division into calls, any number of threads and any
 * vector units give the same bytes.
 *
 * GGUF_OK          bytes are the new ones.
 * GGUF_E_INVALID   n is 0 or no multiple of the block's length, or m->s is
 *                  missing.
 * GGUF_E_NOMEM     Out of memory; bytes are as they were. */
enum gguf_status
gg_feedback_encode(const struct gg_form *f, const struct gg_feedback_metric *m,
                   const float *target, size_t n_rows, void *bytes,
                   enum gg_feedback_effort effort, struct gguf_pool *pool,
                   const struct gguf_allocator *a, struct gguf_error *err);

/* gg_feedback_encode() with the kernels of given levels, for tests.
 *
 * cpu   GG_CPU_..., levels that the machine has. 0: the kernels in C */
enum gguf_status gg_feedback_encode_level(
    uint32_t cpu, const struct gg_form *f, const struct gg_feedback_metric *m,
    const float *target, size_t n_rows, void *bytes,
    enum gg_feedback_effort effort, struct gguf_pool *pool,
    const struct gguf_allocator *a, struct gguf_error *err);

#endif
