/* SPDX-License-Identifier: MIT */
/* stages.h - many batches, computed up to each stage of products
 *
 * A stage is a set of products of weights that read the same input, such as
 * queries, keys and values of a layer. Stages are in the order of their first
 * product. The object takes batches from stage to stage: weights of a stage may
 * be changed once the inputs of all batches there were read.
 *
 *     gg_stages_create(&r, &params, &err);
 *     for (i = 0; i < gg_stages_count(r); i++) {
 *         for (b = 0; b < n_batches; b++) {
 *             gg_stages_run(r, i, b, &err);
 *             ... read gg_stages_input(r, i)
 *         }
 *         ... change the weights of the stage
 *     }
 *     gg_stages_finish(r, b, &err);   outputs of batch b are in the session
 *     gg_stages_destroy(r);
 *
 * Between stages the results that a batch carries over a cut of the graph are
 * stored, in memory or in a file without a name. A cut lies after the products
 * of earlier stages, where the fewest bytes are carried and no memory of the
 * session is in use. Failing that it lies earlier, and nodes after it are
 * computed more than once.
 *
 * Results are the same bits as those of gguf_session_decode(). One thread at a
 * time may use the object and its session. */
#ifndef GG_RUN_STAGES_H
#define GG_RUN_STAGES_H

#include "gguf/session.h"

/* A product of a weight, or of rows of it, with the input of a stage. */
struct gg_stages_product {
    const struct gguf_tensor *weight; /* whole weight; never a view */
    size_t node;                      /* number of the product in the graph */
    /* Result to which the product, after its bias, is added; computed before
     * the stage. NULL: none. */
    const struct gguf_tensor *residual;
    float factor; /* factor of the product in that sum */
};

struct gg_stages_stage {
    struct gg_stages_product *product;
    size_t n_products;
    bool has_ids; /* the products select matrices: MATMUL_ID */
    size_t node;  /* number of the first product */
    size_t cut;   /* first node after the cut of the stage; 0: none yet */
};

struct gg_stages_params {
    struct gguf_session *session; /* kept */
    /* Batches of the same number of tokens, one sequence each; kept. */
    const struct gguf_batch *batches;
    size_t n_batches;    /* 1 or more */
    uint64_t max_memory; /* bytes of results in memory; more go to a file */
    /* Path of a file that does not exist: the file without a name is in its
     * folder. Borrowed. */
    const char *spill_path;
};

struct gg_stages;

/* Find the stages of the session's graph for the batches. Nothing is computed.
 *
 * GGUF_E_INVALID: the batches differ in their number of tokens.
 * GGUF_E_UNSUPPORTED: a batch is not one micro-batch, the session has several
 * backends, or the model encodes one text and decodes another. GGUF_E_NOMEM,
 * GGUF_E_IO. Fails otherwise as gguf_session_decode() does. */
enum gguf_status gg_stages_create(struct gg_stages **out,
                                  const struct gg_stages_params *params,
                                  struct gguf_error *err);
/* Free the object, and clear the session. NULL is allowed. */
void gg_stages_destroy(struct gg_stages *r);

size_t gg_stages_count(const struct gg_stages *r);
const struct gg_stages_stage *gg_stages_at(const struct gg_stages *r,
                                           size_t i);

/* Bytes that are stored for each batch. */
uint64_t gg_stages_stored_size(const struct gg_stages *r);

/* Compute a batch up to the inputs of stage i. Stages may be left out, and run
 * again, but not after a later one. Fails as gguf_session_decode() does. */
enum gguf_status gg_stages_run(struct gg_stages *r, size_t i, size_t batch,
                               struct gguf_error *err);

/* After gg_stages_run(): the input of the stage, rows of columns:
 * [n, n_tok]; with ids [n, 1 or n_used, n_tok]. Then: the selected matrices,
 * [n_used, n_tok]; NULL without ids. Residuals of the stage's products have
 * their values, too. */
const struct gguf_tensor *gg_stages_input(const struct gg_stages *r, size_t i);
const struct gguf_tensor *gg_stages_ids(const struct gg_stages *r, size_t i);

/* Compute a batch to its end. Its outputs are those of the session until the
 * next call. May be called again. Fails as gguf_session_decode() does. */
enum gguf_status gg_stages_finish(struct gg_stages *r, size_t batch,
                                  struct gguf_error *err);

#endif
