/* SPDX-License-Identifier: MIT */
/* session.h - computing with a model: tokens in, logits out
 *
 * A session computes with a model and keeps the model's memory of the tokens it
 * was given, in n_seq independent sequences of up to n_ctx tokens each. It is
 * used in these steps:
 *
 *     gguf_session_create()     allocate everything
 *     gguf_session_decode()     append a batch of tokens to sequences
 *     gguf_session_logits()     read logits of the tokens that asked for them
 *     ...                       decode and read again
 *     gguf_session_clear()      forget all tokens (session_sequence.h)
 *     gguf_session_destroy()    free everything
 *
 * The logits after a text:
 *
 *     struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
 *     struct gguf_batch batch = GGUF_BATCH_INIT;
 *     p.backend = cpu;                                       (gguf/cpu.h)
 *     st = gguf_session_create(&s, model, &p, &err);
 *     batch.n = n;
 *     batch.token = ids;
 *     st = gguf_session_decode(s, &batch, &err);
 *     st = gguf_session_logits(s, 0, 1, &row, &err);   n_vocab floats
 *
 * Model, backends, adapters and allocator must outlive the session. The
 * memory of a session is allocated by gguf_session_create(); see there.
 *
 * Layers remember tokens in different ways. Attention keeps a key and a value
 * of each token. A recurrence keeps a state that every token changes. A layer
 * with a sliding window keeps the latest tokens: it has room for the tokens of
 * its window and of one micro-batch, and forgets older ones. With full_windows
 * it keeps all tokens. An encoder remembers nothing: its sequences are
 * those of one batch, of at most n_ubatch tokens each.
 *
 * Each sequence has memory of its own, with room for n_ctx tokens. Neighbouring
 * sequences that have the same number of tokens in a batch are computed
 * together in one micro-batch. With the option unified all sequences share one
 * memory, with room for n_ctx tokens in all: a token that several sequences
 * have in common takes room once, and copying a sequence copies no keys and
 * values; but attention then looks through the whole memory for each token.
 *
 * A model of an encoder and a decoder (T5; encodes_first in model_base.h) is
 * given two texts. The first is encoded; its keys and values are kept for the
 * decoder's layers. The second is decoded; it begins with the model's start
 * token:
 *
 *     st = gguf_session_encode(s, &text, &err);
 *     batch.token = &gguf_model_info(model)->decoder_start;
 *     batch.n = 1;
 *     st = gguf_session_decode(s, &batch, &err);
 *
 * Arithmetic: weights are decoded to f32, activations are f32. On the CPU
 * backend results are bit for bit the same for any number of threads. In
 * batches of 4 tokens or more they are also the same for any n_ubatch (whatever
 * the size of the last micro-batch), for any other sequences in the batch, and
 * for any number of rows that gguf_session_logits() computes at once. Batches
 * of 1 to 3 tokens take a faster path that sums in another order.
 *
 * Threads: one thread at a time may use a session. Sessions with backends of
 * their own may be used at the same time.
 */
#ifndef GGUF_SESSION_H
#define GGUF_SESSION_H

#include <gguf/adapter.h>
#include <gguf/dtype.h>
#include <gguf/sched.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_session;

/* Called before the session computes a graph: a pass through the layers, or the
 * step from states to logits.
 *
 * graph    The graph. Its tensors have memory and its inputs are set. Valid
 *          during the call.
 * sched    Scheduler that has planned the graph. gguf_sched_set_eval()
 *          (sched.h) makes it show results of the graph's nodes.
 *
 * It is called by the thread that called the session, and must not call the
 * session. Returns true to stop: the call on the session then fails with
 * GGUF_E_CANCELLED. */
typedef bool gguf_session_graph_fn(void *user, struct gguf_graph *graph,
                                   struct gguf_sched *sched);

/* Function that is called before each graph, and its first argument. Later
 * versions add no members to this struct. */
struct gguf_session_graph_callback {
    gguf_session_graph_fn *fn; /* NULL: none */
    void *user;                /* first argument of fn */
};

/* Scaling of positions before RoPE (rope.scaling.type). */
enum gguf_rope_scaling {
    GGUF_ROPE_SCALING_MODEL,   /* scaling of the file */
    GGUF_ROPE_SCALING_NONE,    /* positions as they are */
    GGUF_ROPE_SCALING_LINEAR,  /* positions over a factor */
    GGUF_ROPE_SCALING_YARN,    /* Peng et al., arXiv 2309.00071 */
    GGUF_ROPE_SCALING_LONGROPE /* one factor per frequency, from the file */
};

/* Source of the extrapolation factor of YaRN. */
enum gguf_yarn_ext {
    GGUF_YARN_EXT_MODEL, /* rope.scaling.yarn_ext_factor of the file */
    GGUF_YARN_EXT_FACTOR /* yarn_ext_factor of the parameters */
};

/* Width of the layers' sliding window. */
enum gguf_sliding_window {
    GGUF_SLIDING_WINDOW_MODEL, /* attention.sliding_window of the file */
    GGUF_SLIDING_WINDOW_NONE,  /* no window: layers see all tokens */
    GGUF_SLIDING_WINDOW_TOKENS /* n_window of the parameters */
};

/* Options of gguf_session_create(). Only backend is required. */
struct gguf_session_params {
    size_t struct_size;

    /* Allocator of the session. It must outlive the session. NULL: malloc. */
    const struct gguf_allocator *allocator;

    /* Backend that works in host memory, such as the CPU's. It computes every
     * operation that no backend of preferred computes. It must outlive the
     * session, and only one session at a time may use it. */
    struct gguf_backend *backend;

    /* Further backends, best first. An operation goes to the first of them that
     * supports it and can reach its weights (sched.h). They must outlive the
     * session, and only one session at a time may use them; the array is
     * borrowed during the call. */
    struct gguf_backend *const *preferred;
    unsigned n_preferred; /* number of preferred backends, up to 15 */

    /* Sees each graph before it is computed. */
    struct gguf_session_graph_callback on_graph;

    /* Most tokens of a sequence; if unified, of all sequences together. 0:
     * n_ctx_train of the model. */
    uint32_t n_ctx;
    uint32_t n_seq; /* number of sequences; 0: 1 */

    /* Most tokens that are computed together, a micro-batch. 0: 512. Values
     * below 4 on the CPU, or below gguf_device_min_invariant_batch() of
     * another backend's device (device.h), are raised to it; from there on
     * results do not depend on n_ubatch. */
    uint32_t n_ubatch;

    /* Types of keys and of values in memory; session_memory.h has the types
     * that are allowed and their errors. NULL: F32. */
    const struct gguf_dtype_info *key_dtype, *value_dtype;

    enum gguf_pooling pooling; /* pooling of gguf_session_embedding() */

    /* Sequences share the memory of n_ctx tokens for keys and values. States of
     * recurrences, and texts encoded for a decoder, stay separate. Models that
     * keep one key for each block of tokens (deepseek4) refuse it with
     * GGUF_E_UNSUPPORTED. */
    bool unified;

    /* Layers with a sliding window keep all tokens. Without this option, and
     * with such layers, some calls fail with GGUF_E_UNSUPPORTED: a call that
     * removes a sequence's last tokens, if the next token would then see
     * forgotten ones, and a batch with a position that is not above all
     * earlier positions of its sequence. */
    bool full_windows;

    /* Adapters from the start. They are checked, and fail, as in
     * gguf_session_set_adapters(). The list is borrowed during the call; the
     * adapters must not be destroyed while the session uses them. */
    const struct gguf_adapter_use *adapters;
    size_t n_adapters; /* number of adapters */

    /* The members from here to n_window replace keys of the file. Results are
     * bit for bit those of a file with these values. A model that has no use
     * for one refuses it with GGUF_E_UNSUPPORTED. */

    enum gguf_rope_scaling rope_scaling; /* rope.scaling.type */
    float rope_freq_base;                /* rope.freq_base; 0: the file's */

    /* rope.scaling.factor: positions are divided by it. (llama.cpp's
     * rope_freq_scale is 1 / rope_factor.) 0: the file's. */
    float rope_factor;

    /* rope.scaling.original_context_length, in tokens. 0: the file's. */
    uint32_t yarn_orig_ctx;

    /* Unless the scaling is YaRN, by rope_scaling or by the file, the members
     * from here to yarn_beta_slow must be 0, else gguf_session_create() fails
     * with GGUF_E_INVALID. (yarn_orig_ctx, above, may be given.) */

    enum gguf_yarn_ext yarn_ext; /* source of the extrapolation factor */
    float yarn_ext_factor;       /* extrapolation factor, 0 or more */

    /* rope.scaling.yarn_attn_factor: factor of queries and keys. It is used
     * only if the extrapolation factor is 0; otherwise YaRN's formula gives
     * that factor. 0: the file's. */
    float yarn_attn_factor;
    float yarn_beta_fast; /* rope.scaling.yarn_beta_fast; 0: the file's */
    float yarn_beta_slow; /* rope.scaling.yarn_beta_slow; 0: the file's */

    enum gguf_sliding_window window; /* source of the sliding window's width */
    uint32_t n_window; /* width in tokens, for GGUF_SLIDING_WINDOW_TOKENS */

    /* Most micro-batches of a batch that are computed at the same time, up to
     * 8. 0: 1. A tensor that passes from one backend to another gets one copy
     * for each of these micro-batches. Backends overlap if they are
     * asynchronous, have events, and each has its own memory and its own
     * layers of the model. Attention of every micro-batch then reads the places
     * in memory that the batch's last micro-batch needs, which costs time;
     * results are the same bits. No effect without preferred backends, or on
     * batches that are pooled. */
    uint32_t n_copies;

    bool no_offload_memory; /* keys, values and states stay in host memory */

    /* Operations stay where their weights lie: a preferred backend gets no
     * operation whose weight would have to be copied to it for each graph. */
    bool no_offload_ops;
};
#define GGUF_SESSION_PARAMS_INIT GGUF_INIT(struct gguf_session_params)

/* Make a session and allocate its memory.
 *
 * out      Receives the session. NULL after a failure.
 * model    Model to compute with. It must outlive the session.
 * params   Options. A backend is required.
 *
 * Destroy *out with gguf_session_destroy().
 *
 * The call allocates the memory for keys, values and states, the largest
 * graphs, and the CPU backend's scratch memory. Later calls allocate only if a
 * batch has more than n_ubatch outputs, if a preferred backend allocates by
 * itself, or if a graph is divided among the backends into more parts than the
 * largest graph.
 *
 * Keys, values and states of a layer lie in the memory of the backend that
 * computes the layer. If that backend cannot run every operation that writes
 * them, they lie in host memory. If it has too little memory for those of all
 * its layers, those of all its layers lie in host memory.
 *
 * GGUF_E_INVALID       A member of params is out of range, or a type of keys or
 *                      values is not allowed.
 * GGUF_E_UNSUPPORTED   The model has no use for an option, or does not allow
 *                      it; or the length of a layer's keys or values is not a
 *                      multiple of a type's block size. The message has the
 *                      option or the key.
 * GGUF_E_OP            The backends lack an operation of the model.
 * GGUF_E_NOMEM         An allocation failed.
 * Other                A status of gguf_session_set_adapters() for adapters; or
 *                      of gguf_model_create() for a file with the keys that
 *                      options replace.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_create(struct gguf_session **out, const struct gguf_model *model,
                    const struct gguf_session_params *params,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Free a session. NULL is allowed. Since: 0.1 */
GGUF_API void gguf_session_destroy(struct gguf_session *s);

/* Model of the session. Since: 0.1 */
GGUF_API const struct gguf_model *
gguf_session_model(const struct gguf_session *s);

/* Most tokens of a sequence; of all sequences if they are unified.
 * Since: 0.1 */
GGUF_API uint32_t gguf_session_n_ctx(const struct gguf_session *s);

/* Number of sequences. Since: 0.1 */
GGUF_API uint32_t gguf_session_n_seq(const struct gguf_session *s);

/* Most tokens that are computed together. Since: 0.1 */
GGUF_API uint32_t gguf_session_n_ubatch(const struct gguf_session *s);

/* ---- adapters ---- */

/* Compute with these adapters from now on, and with no others.
 *
 * use      Adapters and their scales, in the order in which they add. Borrowed
 *          during the call; may be NULL if n is 0. The adapters must not be
 *          destroyed while the session uses them.
 * n        Number of adapters. 0: the model alone.
 *
 * Keys, values and states that are in memory stay as they are. Outputs of the
 * last batch can still be read: states are as they were computed, and logits of
 * them are computed with the new adapters. The call plans the graphs and
 * allocates the memory that they need, so that decoding allocates no more than
 * before. It allocates nothing if only scales change and no scale changes from
 * or to 0. A failure changes nothing.
 *
 * GGUF_E_INVALID       An adapter belongs to another model, or a scale is not
 *                      between -1e9 and 1e9.
 * GGUF_E_UNSUPPORTED   An adapter changes a weight at a place where adapters
 *                      have no effect. The message names the weight.
 * GGUF_E_NOMEM         An allocation failed.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_set_adapters(struct gguf_session *s,
                          const struct gguf_adapter_use *use, size_t n,
                          struct gguf_error *err) GGUF_MUST_CHECK;

/* Number of adapters in use. Since: 0.1 */
GGUF_API size_t gguf_session_n_adapters(const struct gguf_session *s);

/* Adapter i in use, and its scale; NULL if i is out of range. Owned by the
 * session; valid until gguf_session_set_adapters() succeeds. Since: 0.1 */
GGUF_API const struct gguf_adapter_use *
gguf_session_adapter(const struct gguf_session *s, size_t i);

/* ---- batches ---- */

/* Tokens that are appended to sequences, in this order. Arrays have n elements,
 * but for seq if n_seq is given. They are borrowed during the call. */
struct gguf_batch {
    size_t struct_size;
    size_t n;                /* number of tokens, 1 or more */
    const gguf_token *token; /* the tokens */

    /* Positions of the tokens. A sequence may have several tokens at one
     * position; a later one does not replace an earlier one. NULL: each
     * sequence continues after its highest position. */
    const int32_t *pos;

    /* Sequence of each token. NULL: sequence 0 for all. If n_seq of this struct
     * is given, it is required and lists the sequences of the first token, then
     * those of the second, and so on: the number of its elements is the sum of
     * n_seq. */
    const int32_t *seq;

    /* True for a token whose logits or states are wanted as an output. NULL:
     * the last token only. */
    const bool *want;

    /* Number of sequences of each token, 1 or more. NULL: 1 for all. */
    const uint32_t *n_seq;

    /* Type of each token: the segment of a text that it belongs to (BERT: 1 for
     * the second text of a pair), below token_type_count of the model. NULL: 0
     * for all. */
    const uint32_t *type;
};
#define GGUF_BATCH_INIT GGUF_INIT(struct gguf_batch)

/* Append a batch to its sequences and compute its outputs.
 *
 * batch    Tokens, positions, sequences and wanted outputs.
 *
 * Read the outputs with gguf_session_logits(), gguf_session_states() or
 * gguf_session_embedding(), before the next decode or encode.
 *
 * The batch is computed in micro-batches of at most n_ubatch tokens. A token
 * sees tokens of its sequence at its position or before, if they were computed
 * earlier or in the same micro-batch.
 *
 * A token of several sequences is appended to each of them: it is computed, and
 * takes room in n_ubatch and n_ctx, once for each sequence. It has one output,
 * that of the first sequence in the list. In a unified session of a model that
 * keeps nothing but keys and values, it is computed and takes room once for all
 * of its sequences that share all their earlier tokens, because these were
 * given to all of them or copied (gguf_session_copy_tokens()).
 *
 * The following failures leave the session as it was, with the outputs of the
 * earlier batch:
 *
 * GGUF_E_INVALID       The batch is empty, or a token, position or sequence is
 *                      out of range (the message has the index); or, in a model
 *                      of an encoder and a decoder, a sequence has no encoded
 *                      text.
 * GGUF_E_FULL          A sequence would have more than n_ctx tokens; or, if
 *                      unified, all sequences together.
 * GGUF_E_UNSUPPORTED   A layer with a sliding window has forgotten tokens that
 *                      a token would see, or a position is not above all
 *                      earlier ones of its sequence. Set full_windows to allow
 *                      both.
 *
 * The following failures leave no outputs, and the sequences of the batch must
 * be cleared (session_sequence.h):
 *
 * GGUF_E_CANCELLED     on_graph returned true.
 * GGUF_E_NONFINITE     A result is not finite (session_check.h).
 * GGUF_E_NOMEM         An allocation failed.
 * Other                A status of a backend.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_decode(struct gguf_session *s, const struct gguf_batch *batch,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Run a batch through the encoder.
 *
 * batch    Tokens, positions, sequences and wanted outputs.
 *
 * For a model that is an encoder alone it is the same as gguf_session_decode().
 * For an encoder and a decoder, the sequences of the batch begin again: texts
 * that were encoded and decoded for them are forgotten, and later calls of
 * gguf_session_decode() look at the text that is encoded here.
 *
 * All tokens of a sequence are computed at once, and each sees all others,
 * before or after it (in layers without a window). A sequence may have at most
 * n_ubatch and at most n_ctx tokens, also if the session is unified. Outputs
 * are states; read them with gguf_session_states() or gguf_session_embedding().
 *
 * The following failures leave the session as it was, with the outputs of the
 * earlier batch:
 *
 * GGUF_E_INVALID       The batch is empty, or a token, position or sequence is
 *                      out of range. The message has the index.
 * GGUF_E_FULL          A sequence has more than n_ubatch or n_ctx tokens.
 * GGUF_E_UNSUPPORTED   The model has no encoder.
 *
 * The following failures leave no outputs, and the sequences of the batch must
 * be encoded again:
 *
 * GGUF_E_CANCELLED     on_graph returned true.
 * GGUF_E_NONFINITE     A result is not finite (session_check.h).
 * GGUF_E_NOMEM         An allocation failed.
 * Other                A status of a backend.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_encode(struct gguf_session *s, const struct gguf_batch *batch,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* ---- outputs ---- */

/* Number of outputs of the last decode or encode: one for each wanted token, in
 * the order of the batch. 0 after gguf_session_clear(), and after a failure
 * that leaves no outputs. Since: 0.1 */
GGUF_API size_t gguf_session_n_outputs(const struct gguf_session *s);

/* Most rows that one call of gguf_session_logits() can compute, 1 or more. The
 * memory for logits is bounded, whatever the batch. Since: 0.1 */
GGUF_API size_t gguf_session_max_logits(const struct gguf_session *s);

/* Compute logits of some outputs of the last decode.
 *
 * first    Number of the first output.
 * n        Number of outputs, 1 to gguf_session_max_logits().
 * logits   Receives n rows of n_vocab floats; NULL after a failure. Owned by
 *          the session; valid until a function is called that takes the session
 *          without const.
 *
 * A failure does not change the outputs: they can still be read.
 *
 * GGUF_E_INVALID       The outputs are out of range, or n is too large.
 * GGUF_E_UNSUPPORTED   The model has no output matrix, or the last batch was
 *                      encoded for a decoder. Read states instead.
 * GGUF_E_CANCELLED     on_graph returned true.
 * GGUF_E_NONFINITE     A result is not finite (session_check.h).
 * GGUF_E_NOMEM         An allocation failed.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_logits(struct gguf_session *s, size_t first, size_t n,
                    const float **logits,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Read states of some outputs of the last decode or encode: after the last
 * norm, before the output matrix.
 *
 * first    Number of the first output.
 * n        Number of outputs, 1 or more.
 * states   Receives n rows of n_embd floats. Owned by the session; valid until
 *          the next decode, encode or gguf_session_clear().
 *
 * GGUF_E_INVALID   The outputs are out of range.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_states(const struct gguf_session *s, size_t first, size_t n,
                    const float **states,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Compute one vector for all tokens of a sequence in the last batch, wanted or
 * not.
 *
 * seq      The sequence.
 * row      Receives *n floats; NULL after a failure. Owned by the session;
 *          valid until a function is called that takes the session without
 *          const.
 * n        Receives the length of the vector.
 *
 * The states of the tokens are pooled as gguf_session_pooling() says. The
 * pooled state then passes the classifier (RANK) and the layers dense_2 and
 * dense_3, if the model has them. The vector is not normalised. MEAN sums in
 * double precision, in the order of the sequence's tokens: pooling itself gives
 * the same bits for any n_ubatch and any other sequences in the batch.
 *
 * GGUF_E_UNSUPPORTED   The pooling is NONE.
 * GGUF_E_INVALID       The last batch had no token of the sequence.
 * GGUF_E_CANCELLED     on_graph returned true.
 * GGUF_E_NONFINITE     A result is not finite (session_check.h).
 * GGUF_E_NOMEM         An allocation failed.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_embedding(struct gguf_session *s, uint32_t seq, const float **row,
                       size_t *n, struct gguf_error *err) GGUF_MUST_CHECK;

/* Compute the vector of one token in the last batch: its state, which passes
 * the layers dense_2 and dense_3, if the model has them. Models for late
 * interaction compare such vectors (ColBERT, arXiv:2004.12832).
 *
 * output   Number of the output of the last decode or encode.
 * row      Receives *n floats; NULL after a failure. Owned by the session;
 *          valid until a function is called that takes the session without
 *          const.
 * n        Receives the length of the vector.
 *
 * The vector is not normalised.
 *
 * GGUF_E_UNSUPPORTED   The pooling is not NONE.
 * GGUF_E_INVALID       The output is out of range.
 * GGUF_E_CANCELLED     on_graph returned true.
 * GGUF_E_NONFINITE     A result is not finite (session_check.h).
 * GGUF_E_NOMEM         An allocation failed.
 *
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_token_embedding(struct gguf_session *s, size_t output,
                             const float **row, size_t *n,
                             struct gguf_error *err) GGUF_MUST_CHECK;

/* Pooling of the session: that of the parameters, or of the file if that was
 * GGUF_POOLING_MODEL. Since: 0.1 */
GGUF_API enum gguf_pooling gguf_session_pooling(const struct gguf_session *s);

#ifdef __cplusplus
}
#endif
#endif
