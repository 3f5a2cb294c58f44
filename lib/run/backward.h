/* SPDX-License-Identifier: MIT */
/* backward.h - gradients of a batch, from the logits back to the embeddings
 *
 * A batch is computed forwards, and the results that are carried between its
 * layers are kept. Then the layers are taken in reverse order: each is computed
 * again from its inputs and extended backwards (gguf/gradient.h). The program
 * gives the gradient of any number by the logits, and receives the gradient of
 * this number by the result of each product of a weight, and by each row that
 * is looked up in a weight.
 *
 *     gg_backward_create(&b, session, &err);
 *     gg_backward_check(b, &batch, &err);    can its operations be derived?
 *     gg_backward_run(b, &batch, &calls, &err);
 *     gg_backward_destroy(b);
 *
 * Memory: that of one layer with its gradients, and the inputs of all layers of
 * one batch. Weights of products are copied transposed, one at a time. Results
 * do not depend on the number of threads. One thread at a time may use the
 * object and its session. */
#ifndef GG_RUN_BACKWARD_H
#define GG_RUN_BACKWARD_H

#include "gguf/session.h"

struct gg_backward;

/* Gradient by the result of a node that reads a weight, or by a vector. */
struct gg_backward_gradient {
    const struct gguf_tensor *weight; /* whole weight; never a view */
    size_t first_row; /* row of the weight that gives the first element of a
                       * column. 0 for rows that are looked up */
    bool is_lookup; /* columns are rows of the weight (GET_ROWS); else products
                       * with it */
    bool has_ids;   /* products with selected matrices (MATMUL_ID) */
    bool is_vector; /* the gradient by the weight itself, a vector that
                         * results are multiplied by or that is added to them: a
                         * norm, a bias. g has one column */
    const float *g; /* [n_columns][n] */
    size_t n, n_columns;
    /* With gg_backward_want_inputs(): inputs of the products, or ids of the
     * rows; and the selected matrices, NULL without has_ids. Valid during the
     * call. The inputs may have more rows than n_columns. NULL: not wanted. */
    const struct gguf_tensor *x, *ids;
};

/* Receives gradients in the reverse order of the nodes, those of the output
 * matrix first. A status other than GGUF_OK ends the run. */
typedef enum gguf_status
gg_backward_gradient_fn(void *user, const struct gg_backward_gradient *g,
                        struct gguf_error *err);

/* Gives the gradient by the logits of n tokens of the batch, from `first` on.
 *
 * logits   [n][n_vocab]
 * seed     [n][n_vocab], to be filled in */
typedef enum gguf_status gg_backward_logits_fn(void *user, size_t first,
                                               size_t n, size_t n_vocab,
                                               const float *logits,
                                               float *seed,
                                               struct gguf_error *err);

struct gg_backward_calls {
    gg_backward_logits_fn *on_logits;
    gg_backward_gradient_fn *on_gradient;
    void *user;
};

/* Create the object for a session, which must outlive it.
 *
 * GGUF_E_UNSUPPORTED: the model has no logits, encodes, or the session has
 * several backends. GGUF_E_NOMEM. */
enum gguf_status gg_backward_create(struct gg_backward **out,
                                    struct gguf_session *s,
                                    struct gguf_error *err);
/* Free the object, and clear the session. NULL is allowed. */
void gg_backward_destroy(struct gg_backward *b);

/* Compute gradients by vectors, too: F32 weights of one dimension that are the
 * second source of an addition or a product of elements. A vector that several
 * parts of the pass read has a gradient of each part. */
void gg_backward_want_vectors(struct gg_backward *b);

/* Keep the inputs of products, and give them with their gradients. */
void gg_backward_want_inputs(struct gg_backward *b);

/* Build the backward graphs of all layers for a batch and compute nothing.
 *
 * GGUF_E_UNSUPPORTED: an operation has no gradient, which the message names; or
 * the batch is more than one micro-batch, or of several sequences, or not all
 * of its tokens are wanted. Fails otherwise as gguf_session_decode() does. */
enum gguf_status gg_backward_check(struct gg_backward *b,
                                   const struct gguf_batch *batch,
                                   struct gguf_error *err);

/* Compute a batch, and its gradients. Fails as gg_backward_check() and
 * gguf_session_decode() do, or with the status of a function of calls. */
enum gguf_status gg_backward_run(struct gg_backward *b,
                                 const struct gguf_batch *batch,
                                 const struct gg_backward_calls *calls,
                                 struct gguf_error *err);

#endif
