/* SPDX-License-Identifier: MIT */
/* session_layered.h - decode many batches, one layer after another
 *
 * If the weights of a model do not fit into memory, decoding reads all of them
 * from disk for each batch. gguf_session_decode_layered() takes many batches
 * through the first layer, then all of them through the second, and so on: the
 * weights are read once for all batches.
 *
 *     gguf_session_layered_size(s, batch, &size, &err);
 *     n = memory / size;
 *     gguf_session_decode_layered(s, batches, n, on_outputs, progress, &err);
 *
 * The batches must be independent. Each begins with empty sequences, and all
 * sequences are empty afterwards. Outputs are the same bits as those of
 * gguf_session_decode().
 *
 * Threads: one thread at a time for each session.
 */
#ifndef GGUF_SESSION_LAYERED_H
#define GGUF_SESSION_LAYERED_H

#include <gguf/progress.h>
#include <gguf/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Called when the outputs of a batch are there: gguf_session_logits() and
 * gguf_session_states() give those of this batch until the function returns.
 *
 * i        Number of the batch.
 * err      Where to put a message; never NULL.
 *
 * A status other than GGUF_OK ends gguf_session_decode_layered() with it. */
typedef enum gguf_status gguf_session_outputs_fn(void *user, size_t i,
                                                 struct gguf_error *err);

/* Function that takes the outputs of batches. Later versions add no members to
 * this struct. */
struct gguf_session_outputs_callback {
    gguf_session_outputs_fn *fn; /* required */
    void *user;                  /* first argument of fn */
};

/* Decode batches layer by layer.
 *
 * batches      The batches; borrowed during the call.
 * n            Number of batches, 1 or more.
 * on_outputs   Called for each batch, in order, after the last layer. Required.
 * progress     Called with tokens times layers.
 *
 * The results of a layer are stored for every token of all batches
 * (gguf_session_layered_size()). A layer that uses keys and values of an
 * earlier one is computed together with it. on_graph of the session is called
 * for each part of a graph that is computed, and the scheduler's callback for
 * the nodes of that part.
 *
 * GGUF_E_UNSUPPORTED   The model encodes, or the session has more than one
 *                      backend.
 * GGUF_E_CANCELLED     The progress callback or on_graph returned true.
 *
 * Fails otherwise as gguf_session_decode() does, or as on_outputs.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_decode_layered(struct gguf_session *s,
                            const struct gguf_batch *const *batches, size_t n,
                            struct gguf_session_outputs_callback on_outputs,
                            struct gguf_progress_callback progress,
                            struct gguf_error *err) GGUF_MUST_CHECK;

/* Size of the results of one layer that gguf_session_decode_layered() stores
 * for a batch.
 *
 * batch    The batch.
 * size     Receives the bytes.
 *
 * The session's sequences are cleared.
 *
 * Fails as gguf_session_decode_layered() does. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_layered_size(struct gguf_session *s,
                          const struct gguf_batch *batch, uint64_t *size,
                          struct gguf_error *err) GGUF_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
