/* SPDX-License-Identifier: MIT */
/* session.h - computing with a model: tokens in, logits out
 *
 * A session holds the model's memory of the tokens seen so far, in n_seq
 * independent sequences of up to n_ctx tokens each. Attention keeps keys and
 * values; recurrences keep a state, which every token changes; an encoder
 * keeps nothing, and its sequences are those in one batch, of at most n_ubatch
 * tokens each. A batch appends tokens to sequences and marks those whose
 * logits are wanted.
 *
 * Each sequence has memory of its own, and those with equally many tokens in a
 * batch are computed side by side; or, unified, all take theirs from one pool
 * of n_ctx tokens, where a token that several sequences have in common takes
 * room once, and copying a sequence copies nothing but states. Attention then
 * looks through all of the pool for each token. Layers that see a window of the
 * last tokens keep no more than that and a micro-batch, unless full_windows
 * says so.
 *
 *     struct gguf_session_params p = GGUF_SESSION_PARAMS_INIT;
 *     p.backend = cpu;                                       (gguf/cpu.h)
 *     st = gguf_session_create(&s, model, &p, &err);
 *     struct gguf_batch batch = GGUF_BATCH_INIT;
 *     batch.n = n;
 *     batch.token = ids;
 *     st = gguf_session_decode(s, &batch, &err);
 *     st = gguf_session_logits(s, 0, 1, &row, &err);   n_vocab floats
 *
 * A model of an encoder and a decoder (T5: encodes_first in model_base.h) is
 * given a
 * text of each sequence to encode, which is kept as keys and values of the
 * decoder's layers, and then decodes another, which begins with the token that
 * the model says:
 *
 *     st = gguf_session_encode(s, &text, &err);
 *     batch.token = &gguf_model_info(model)->decoder_start;
 *     batch.n = 1;
 *     st = gguf_session_decode(s, &batch, &err);
 *
 * Arithmetic is exact mode: weights decoded to f32, activations f32. On the
 * CPU backend results do not depend on the number of threads; nor, in batches
 * of 4 tokens and more, on how batches are cut (n_ubatch), on other sequences
 * in them, or on how many rows of logits are computed at once. Batches of 1 to
 * 3 tokens take a faster path that sums in another order. One thread at a
 * time.
 */
#ifndef GGUF_SESSION_H
#define GGUF_SESSION_H

#include <gguf/adapter.h>
#include <gguf/progress.h>
#include <gguf/sched.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gguf_session;

/* Called before a graph is computed: a pass through the layers, or from states
 * to logits. Its tensors have memory, its inputs are set, and sched has
 * planned it. A result other than 0 stops with GGUF_E_CANCELLED. */
typedef int gguf_session_graph_fn(void *user, struct gguf_graph *graph,
                                  struct gguf_sched *sched);

/* What positions are scaled by (rope.scaling.type). */
enum gguf_rope_scaling {
    GGUF_ROPE_SCALING_MODEL, /* as the file says */
    GGUF_ROPE_SCALING_NONE,
    GGUF_ROPE_SCALING_LINEAR,
    GGUF_ROPE_SCALING_YARN,    /* Peng et al., arXiv 2309.00071 */
    GGUF_ROPE_SCALING_LONGROPE /* by factors in the file */
};

struct gguf_session_params {
    size_t struct_size;
    const struct gguf_allocator *allocator; /* NULL: malloc; kept */
    struct gguf_backend *backend; /* computes what the preferred ones do not;
                                     in host memory; kept, used by one session
                                     at a time */
    struct gguf_backend *const *preferred; /* n_preferred backends, best first,
                                     for the operations that they support; kept
                                     likewise */
    unsigned n_preferred;                  /* 0 to 15 */
    gguf_session_graph_fn *on_graph;       /* or NULL */
    void *user;                            /* of on_graph */
    uint32_t n_ctx;       /* most tokens of a sequence; 0: as trained */
    uint32_t n_seq;       /* sequences */
    uint32_t n_ubatch;    /* most tokens computed together; 0: chosen. Raised
                           * to what the backends need for results that do not
                           * depend on it: 4 on the CPU */
    uint32_t cache_dtype; /* type of keys and values in memory, below */
    uint32_t key_dtype;   /* of keys; 0: cache_dtype */
    uint32_t value_dtype; /* of values; 0: cache_dtype */
    enum gguf_pooling pooling; /* of gguf_session_embedding (model_base.h) */
    bool unified;      /* sequences share n_ctx tokens' memory of keys and
                           * values; each has its own states, and of an encoder
                           * and a decoder what was encoded. Not where keys are
                           * of blocks of tokens (deepseek4) */
    bool full_windows; /* layers that see a window keep all tokens too: what
                           * comes last can be removed, however much it is, and
                           * positions may be any */
    const struct gguf_adapter_use *adapters; /* n_adapters that count from the
                           * beginning; borrowed, the adapters themselves are
                           * kept */
    size_t n_adapters;

    /* How positions turn queries and keys, and how far windows reach: each
     * counts as if the file had its key, with the same digits. 0: the file's.
     * GGUF_E_UNSUPPORTED for a model that has no use for one. */
    enum gguf_rope_scaling rope_scaling; /* rope.scaling.type */
    float rope_freq_base;                /* rope.freq_base */
    float rope_factor;      /* rope.scaling.factor: positions are divided by
                               * it; 1 / llama.cpp's rope_freq_scale */
    uint32_t yarn_orig_ctx; /* rope.scaling.original_context_length */
    float yarn_ext_factor;  /* rope.scaling.yarn_ext_factor; < 0 means 0.
                               * This and what follows: GGUF_E_INVALID if the
                               * scaling is not yarn */
    float yarn_attn_factor; /* rope.scaling.yarn_attn_factor: the magnitude
                               * where the extrapolation is 0 */
    float yarn_beta_fast;   /* rope.scaling.yarn_beta_fast */
    float yarn_beta_slow;   /* rope.scaling.yarn_beta_slow */
    uint32_t n_window;      /* attention.sliding_window; UINT32_MAX: none */

    uint32_t n_copies; /* largest number of micro-batches of a batch that are
                        * computed at the same time, 1 to 8; 0: 1. What passes
                        * from one backend to another is copied into as many
                        * places. Devices overlap that are asynchronous and have
                        * events, memory of their own and layers of their own.
                        * Each micro-batch reads as many cells as the last one;
                        * digits stay the same. No effect without preferred
                        * backends and on batches that are pooled */
    bool no_offload_memory; /* keys, values and states stay in host memory,
                             * whatever computes their layers */
    bool no_offload_ops; /* operations stay where their weights lie: preferred
                          * backends get only those that need no copy of a
                          * weight for each graph */
};
#define GGUF_SESSION_PARAMS_INIT                                              \
    {                                                                         \
        sizeof(struct gguf_session_params), NULL, NULL, NULL, 0, NULL, NULL,  \
            0, 1, 0, 0 /* GGUF_DTYPE_F32 */, 0, 0, GGUF_POOLING_MODEL, false, \
            false, NULL, 0, GGUF_ROPE_SCALING_MODEL, 0, 0, 0, 0, 0, 0, 0, 0,  \
            0, false, false                                                   \
    }

/* Keys and values are kept as F32, F16, BF16, Q8_0, Q5_0, Q5_1, Q4_0, Q4_1 or
 * IQ4_NL; for two types of which one is F32 leave cache_dtype at F32. Rows that
 * latent attention keeps instead of both, and keys by which keys are chosen,
 * have the type of keys; states of recurrences are F32 always, and an encoder
 * keeps nothing. A token's rows are encoded once, by the type's encoder without
 * importances, and attention computes with what they decode to: on the CPU
 * exact rounds nothing else, and a single token decodes each row that it sees
 * once. A number x of a block of 32, m the greatest magnitude in it and w the
 * span from the least number to the greatest, comes back within
 *
 *     F16     2^-11 |x|, or 2^-25 where that is more, up to 65504
 *     BF16    2^-8 |x|
 *     Q8_0    m / 254         half a step, a step being m / 127
 *     Q5_0    m / 32          half a step; a whole one, m / 16, where the sign
 *                             is not the extreme number's
 *     Q4_0    m / 16          likewise; m / 8
 *     Q5_1    w / 62          half a step, w / 31
 *     Q4_1    w / 30          likewise, w / 15
 *     IQ4_NL  the squares of errors, each times x^2, have a sum that is not
 *             more than with the scale that makes the extreme number -127 of
 *             the table; 14 m / 127 is that one's error at most
 *
 * and what rounding the block's scale to F16 adds: 2^-11 of the result and, of
 * Q5_1 and Q4_1, 2^-11 of the span and of the least number; of blocks so small
 * that the scale is a subnormal number of F16, 2^-25 for each step of the code
 * (127 of Q8_0 and IQ4_NL, 31, 16, 15 and 8 of the others) instead.
 *
 * gguf_session_create refuses a type that is not one of these
 * (GGUF_E_INVALID), and one whose blocks of 32 do not divide a head's keys or
 * values, or the parts of a latent row (GGUF_E_UNSUPPORTED, with the key that
 * says how long they are). */

/* Keys, values and states of a layer lie in the memory of the backend that
 * computes the layer. They lie in host memory, with the session's backend, if
 * that backend cannot run an operation that writes into them, or has too little
 * memory for all layers that it computes.
 *
 * model is kept. All memory is allocated here: for keys, values, the largest
 * graphs, and what computing them on the CPU takes. Decoding allocates more
 * only for more than n_ubatch outputs in one batch, and where preferred
 * backends allocate by themselves or divide a graph into more parts than the
 * largest one. GGUF_E_NOMEM, GGUF_E_INVALID (params), GGUF_E_OP (the backends
 * lack an operation), and as opening a model whose file has such keys fails.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_create(struct gguf_session **out, const struct gguf_model *model,
                    const struct gguf_session_params *params,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* NULL is fine. Since: 0.1 */
GGUF_API void gguf_session_destroy(struct gguf_session *s);

/* From now on the session computes with these adapters, n of them in this
 * order, and with no others; 0 of them: with the model alone. What sequences
 * have kept so far was computed with the adapters of that time, and stays. The
 * list is borrowed, the adapters are kept, until they are replaced. Graphs with
 * them are planned here, and their memory is taken: decoding allocates no more
 * than before. Where only scales change, and none becomes 0 or was, nothing is
 * allocated here either. With scale 0 results are the bits of a session without
 * the adapter. A failure changes nothing. GGUF_E_INVALID (an adapter of another
 * model; a scale that is not from -1e9 to 1e9), GGUF_E_UNSUPPORTED (an adapter
 * changes a weight that counts elsewhere than in products of layers, in logits,
 * by tokens or in what becomes of a pooled vector: names it), GGUF_E_NOMEM.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_set_adapters(struct gguf_session *s,
                          const struct gguf_adapter_use *use, size_t n,
                          struct gguf_error *err) GGUF_MUST_CHECK;

/* The adapters that count now; NULL if i is out of range. Owned by the session,
 * until they are replaced. Since: 0.1 */
GGUF_API size_t gguf_session_n_adapters(const struct gguf_session *s);
GGUF_API const struct gguf_adapter_use *
gguf_session_adapter(const struct gguf_session *s, size_t i);

/* Bytes of key/value memory and of graphs that such a session would take. The
 * graphs are planned as by create; nothing of that size is allocated. Fails
 * like create. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_estimate_memory(const struct gguf_model *model,
                             const struct gguf_session_params *params,
                             uint64_t *cache_size, uint64_t *graph_size,
                             struct gguf_error *err) GGUF_MUST_CHECK;

/* The most bytes that such a session has in use at one time, of all that it
 * allocates: the above, the books of what is in the cache, plans, outputs, what
 * the CPU backend computes with, if that computed nothing before, and the
 * session itself. Creating and decoding take exactly so much, on the same
 * number of threads, where they allocate nothing more (gguf_session_create);
 * buffers of devices count as those of the host. Not counted: the model and
 * adapters, what a preferred backend keeps for itself unless it says so
 * (plan_memory in backend_impl.h), and what calls take while they last that
 * save, restore, shift, change adapters or decode layer by layer. Fails like
 * create. Since: 0.1 */
GGUF_API enum gguf_status gguf_session_estimate_peak_memory(
    const struct gguf_model *model, const struct gguf_session_params *params,
    uint64_t *size, struct gguf_error *err) GGUF_MUST_CHECK;

/* Its parameters, with the chosen values where params had 0. Since: 0.1 */
GGUF_API const struct gguf_model *
gguf_session_model(const struct gguf_session *s);
GGUF_API uint32_t gguf_session_n_ctx(const struct gguf_session *s);
GGUF_API uint32_t gguf_session_n_seq(const struct gguf_session *s);
GGUF_API uint32_t gguf_session_n_ubatch(const struct gguf_session *s);

/* Bytes of the key/value memory and of the graphs' memory, that of all
 * backends together. Since: 0.1 */
GGUF_API void gguf_session_memory_size(const struct gguf_session *s,
                                       uint64_t *cache_size,
                                       uint64_t *graph_size);

/* Tokens, in the order in which they are appended to their sequences. Arrays
 * of n elements; borrowed. */
struct gguf_batch {
    size_t struct_size;
    size_t n;
    const gguf_token *token;
    const int32_t *pos;    /* NULL: each sequence goes on where it ended */
    const int32_t *seq;    /* NULL: all 0 */
    const uint8_t *want;   /* not 0: logits wanted; NULL: of the last token */
    const uint32_t *n_seq; /* how many sequences each token is of, 1 and more,
                            * which seq lists token after token; NULL: one */
};
#define GGUF_BATCH_INIT GGUF_INIT(struct gguf_batch)

/* Run the batch, in as many pieces as n_ubatch asks for. A token sees the
 * tokens of its sequence at its position and before, if they were run before
 * it or in the same piece. One of several sequences is as if it were given to
 * each of them, and its output is that of the first that is listed; it is
 * computed once, unified, for those that have had no token apart from each
 * other, if there is nothing but keys and values to keep. GGUF_E_INVALID (a
 * token, a position or a sequence out of range: names the index; the struct's
 * size; nothing was encoded for a sequence that needs it), GGUF_E_FULL (more
 * than n_ctx tokens in a sequence or, unified, in all), GGUF_E_UNSUPPORTED
 * (layers that see a window have forgotten what a token would see, or positions
 * do not grow: see full_windows), GGUF_E_CANCELLED, GGUF_E_NOMEM. After the
 * first three nothing has changed; after the others there are no outputs, and
 * the sequences of the batch must be cleared. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_decode(struct gguf_session *s, const struct gguf_batch *batch,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* Run the batch through the encoder: as decode of an encoder alone. Of an
 * encoder and a decoder, the sequences that the batch has begin again: what was
 * encoded and decoded of them is forgotten, and from now on decode looks at
 * what is encoded here. All of a sequence is computed at once, whatever its
 * tokens' positions: at most n_ubatch of n_ctx tokens. Tokens that are wanted
 * give states, not logits. GGUF_E_UNSUPPORTED (the model has no encoder), and
 * as decode fails; after others than GGUF_E_INVALID, GGUF_E_FULL and
 * GGUF_E_UNSUPPORTED the sequences of the batch must be encoded again.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_encode(struct gguf_session *s, const struct gguf_batch *batch,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* --- layer by layer ------------------------------------------------------- */

/* The outputs of batch i are there, as after its decode: 0 to n_outputs - 1
 * give logits and states. A status other than GGUF_OK ends the call with it. */
typedef enum gguf_status gguf_session_outputs_fn(void *user, size_t i,
                                                 struct gguf_error *err);

/* Decode n batches that have nothing to do with each other, all of them through
 * one layer before any goes through the next: so weights that do not fit into
 * memory are read once, and not once for each batch. Each begins with empty
 * sequences, and all are empty afterwards. Outputs are the same bits as decode
 * gives, and are handed out batch by batch after the last layer. Stored
 * meanwhile is what each micro-batch leaves for the next layer
 * (gguf_session_layered_size). Layers that use keys and values of an earlier
 * one are computed together with it. on_graph is called for each part of a
 * graph that is computed, of which the scheduler's callback gets the nodes.
 * on_outputs is required. progress (or NULL) gets tokens times layers; both
 * functions get user.
 * GGUF_E_UNSUPPORTED (encoders; more than one backend), GGUF_E_CANCELLED, and
 * as decode fails. Since: 0.1 */
GGUF_API enum gguf_status gguf_session_decode_layered(
    struct gguf_session *s, const struct gguf_batch *const *batches, size_t n,
    gguf_session_outputs_fn *on_outputs, gguf_progress_fn *progress,
    void *user, struct gguf_error *err) GGUF_MUST_CHECK;

/* Bytes that are stored of such a batch. The session is cleared. Fails like
 * it. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_layered_size(struct gguf_session *s,
                          const struct gguf_batch *batch, uint64_t *size,
                          struct gguf_error *err) GGUF_MUST_CHECK;

/* Number of rows of logits of the last decode, in batch order. Since: 0.1 */
GGUF_API size_t gguf_session_n_outputs(const struct gguf_session *s);

/* The most rows that gguf_session_logits gives at once, at least 1: the memory
 * for logits is bounded, whatever the batch. Since: 0.1 */
GGUF_API size_t gguf_session_max_logits(const struct gguf_session *s);

/* Compute rows first to first + n - 1 of the last decode's outputs: *logits is
 * n rows of n_vocab floats, valid until the next call on the session.
 * GGUF_E_INVALID, GGUF_E_UNSUPPORTED (of an encoder), GGUF_E_CANCELLED,
 * GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_logits(struct gguf_session *s, size_t first, size_t n,
                    const float **logits,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* States of rows first to first + n - 1 of the last call's outputs, after the
 * last norm and before the output matrix: n rows of n_embd floats
 * (model_base.h),
 * valid until the next one. They are the result of an encoder, which has no
 * logits. GGUF_E_INVALID. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_states(const struct gguf_session *s, size_t first, size_t n,
                    const float **states,
                    struct gguf_error *err) GGUF_MUST_CHECK;

/* One vector for all tokens that the last decode or encode had of a sequence,
 * whether they were wanted or not: their states, pooled as pooling says, then
 * through the classifier (RANK), dense_2 and dense_3, where the model has
 * those, which are layers of a pooled vector: states of tokens (NONE) do not go
 * through them. *row is *n floats, valid until the next call on the session;
 * they are not normalised. Sums of MEAN are double precision in the order of
 * the sequence's tokens; no digit depends on other sequences or on n_ubatch.
 * GGUF_E_UNSUPPORTED (pooling is NONE), GGUF_E_INVALID (the last batch had no
 * token of the sequence), GGUF_E_CANCELLED, GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_embedding(struct gguf_session *s, uint32_t seq, const float **row,
                       size_t *n, struct gguf_error *err) GGUF_MUST_CHECK;

/* How it pools: the file's pooling where the parameters had MODEL.
 * Since: 0.1 */
GGUF_API enum gguf_pooling gguf_session_pooling(const struct gguf_session *s);

/* ---- saved states --------------------------------------------------------
 *
 * What a session keeps of one sequence, or of all, as bytes that another
 * session takes over: on another number of threads, in another process, with
 * another n_ubatch, n_ctx and n_seq. It goes on with the same digits, unless
 * the state of one sequence has to lie beside others that share cells with it
 * (unified), or windows lie otherwise in the other session (full_windows),
 * which may change last bits. The model must have the same
 * hyperparameters and weights of the same types and shapes, positions must turn
 * in the same way, keys and values have the same types and, where keys are
 * compressed, n_ctx is the same; else it is refused.
 * Whether weights have the same values, and which adapters there were, is not
 * known. Outputs of the last batch are no part of it. Bytes have the same order
 * on every machine, and any machine goes on from what another one saved; the
 * numbers in them are as they were computed, so that their last bits may differ
 * between instruction sets (<gguf/cpu.h>). A checksum (XXH3) is in them.
 *
 *     st = gguf_session_save_state(s, 0, "prompt.state", 0, &err);
 *     st = gguf_session_load_state(other, 3, "prompt.state", &err);
 */
#define GGUF_ALL_SEQUENCES UINT32_MAX /* for seq */

/* Bytes of the state of a sequence, or of all. GGUF_E_INVALID (seq),
 * GGUF_E_UNSUPPORTED (an encoder keeps nothing). Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_state_size(struct gguf_session *s, uint32_t seq, uint64_t *size,
                        struct gguf_error *err) GGUF_MUST_CHECK;
/* Write it to state, of so many bytes: GGUF_E_INVALID if these are not as many
 * as there are. GGUF_E_NOMEM. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_state_get(struct gguf_session *s, uint32_t seq, void *state,
                       uint64_t size, struct gguf_error *err) GGUF_MUST_CHECK;
/* Put the state of a sequence, which may have had another number, in the place
 * of what seq has; or that of all sequences, in the place of everything. All is
 * checked before anything changes. Errors have the byte of the state.
 *
 * GGUF_E_FORMAT      it is no state, or its parts contradict each other
 * GGUF_E_TRUNCATED   it ends too early
 * GGUF_E_VERSION     it is of a later version
 * GGUF_E_MISMATCH    it was altered (the checksum); it is of another model, of
 *                    other types of keys and values, of one sequence instead
 *                    of all, of a unified session or not; of more sequences
 * GGUF_E_FULL        it has more tokens than there is room for
 * GGUF_E_UNSUPPORTED layers that see a window have forgotten tokens that this
 *                    session would keep; as state_size
 * GGUF_E_INVALID, GGUF_E_NOMEM
 * After a failure of a device the sequences are to be cleared. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_state_set(struct gguf_session *s, uint32_t seq, const void *state,
                       uint64_t size, struct gguf_error *err) GGUF_MUST_CHECK;

/* The same to a file, which appears complete or not at all (outfile.h). Without
 * force one that is there is kept: GGUF_E_EXIST. GGUF_E_IO, GGUF_E_NOSPACE, and
 * as state_get. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_save_state(struct gguf_session *s, uint32_t seq, const char *path,
                        int force, struct gguf_error *err) GGUF_MUST_CHECK;
/* The same from one, which must not change meanwhile. GGUF_E_IO, and as
 * state_set. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_load_state(struct gguf_session *s, uint32_t seq, const char *path,
                        struct gguf_error *err) GGUF_MUST_CHECK;

/* ---- what it keeps ---- */

/* Tokens that a sequence keeps, encoded ones not counted; 0 if seq is out of
 * range. Since: 0.1 */
GGUF_API uint32_t gguf_session_n_tokens(const struct gguf_session *s,
                                        uint32_t seq);

/* The position that the next token of a sequence gets, if none is given: after
 * its highest; 0 if it has none or is out of range. Since: 0.1 */
GGUF_API int32_t gguf_session_next_pos(const struct gguf_session *s,
                                       uint32_t seq);

/* Forget the tokens of a sequence at positions begin to end - 1 (end < 0: to
 * the last), not what was encoded. Positions out of range are ignored.
 * GGUF_E_UNSUPPORTED: the model has a state that every token changes, so that
 * only the whole sequence can be forgotten; or layers that see a window have
 * forgotten tokens that the next one would see again (see full_windows).
 * Nothing is forgotten then. What removing leaves in the middle is moved
 * together when a batch comes and fewer cells are read for it then.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_remove_tokens(struct gguf_session *s, uint32_t seq, int32_t begin,
                           int32_t end,
                           struct gguf_error *err) GGUF_MUST_CHECK;

/* Forget all of the other sequences. GGUF_E_INVALID (seq is out of range); else
 * fails as clear does. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_remove_others(struct gguf_session *s, uint32_t seq,
                           struct gguf_error *err) GGUF_MUST_CHECK;

/* Give a sequence the tokens of another at positions begin to end - 1 (end < 0:
 * to the last), instead of what it has there, and of an encoder and a decoder
 * what was encoded. Both go on by themselves afterwards. Unified, keys and
 * values are not copied: both have the same. GGUF_E_INVALID (a sequence is out
 * of range), GGUF_E_FULL, GGUF_E_UNSUPPORTED: a state is of all tokens, so that
 * all are copied, to a sequence that has no others, and what was encoded goes
 * with all tokens of a sequence; or windows, as with remove. Nothing is copied
 * then. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_copy_tokens(struct gguf_session *s, uint32_t from, uint32_t to,
                         int32_t begin, int32_t end,
                         struct gguf_error *err) GGUF_MUST_CHECK;

/* Move tokens of a sequence at positions begin to end - 1 (end < 0: to the
 * last) by delta positions, or to position / divisor. Keys that positions
 * turned are turned on by the difference, so that the sequence is, for tokens
 * to come, as if they had come there, and what they took from each other stays.
 * A key that is kept in a shorter type is rounded to it again.
 *
 * A turn multiplies both numbers of a pair of length r by a cosine and a sine
 * that are rounded, and rounds two products and a sum: each number is off by at
 * most 3 u r, u = 2^-24. So a number of a key that was turned twice differs
 * from that of a token that came to the new position by less than 11 u r: 3 and
 * 3 sqrt(2), since the second turn turns the first one's error, and 3 of the
 * other; and by what its type rounds, twice.
 *
 * GGUF_E_INVALID (the sequence is out of range; a position would be negative
 * or too large; divisor < 1), GGUF_E_UNSUPPORTED (a state is of all tokens:
 * all move or none; positions are a part of what is kept otherwise; with
 * windows two tokens would come to one position, or as with remove),
 * GGUF_E_FULL (unified, tokens of other sequences too, which stay, need cells
 * of their own), GGUF_E_NOMEM before anything has changed. After what computing
 * on a device fails with, or GGUF_E_CANCELLED, the sequence must be cleared.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_shift_positions(struct gguf_session *s, uint32_t seq,
                             int32_t begin, int32_t end, int32_t delta,
                             struct gguf_error *err) GGUF_MUST_CHECK;
GGUF_API enum gguf_status
gguf_session_divide_positions(struct gguf_session *s, uint32_t seq,
                              int32_t begin, int32_t end, int32_t divisor,
                              struct gguf_error *err) GGUF_MUST_CHECK;

/* Forget everything. Fails as the device does whose memory has to be cleared:
 * nothing is known to be forgotten then, and it may be tried again.
 * Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_clear(struct gguf_session *s,
                   struct gguf_error *err) GGUF_MUST_CHECK;

/* ---- how long it takes ---- */

/* A stage: n things in n_calls calls of the library's own took so many seconds,
 * of a clock that only goes forward. Calls that failed do not count. It never
 * grows. */
struct gguf_session_stage {
    uint64_t n, n_calls;
    double seconds;
};

/* Stages of a session since it was created, or since the last reset. On
 * backends that compute by themselves time is where it is waited for. Made by
 * the library: it may grow at its end. */
struct gguf_session_timings {
    double create;                     /* seconds that making the session took:
                                       * memory and plans; reset leaves it */
    struct gguf_session_stage plan;    /* graphs that were built and laid out,
                                       * which counts for the pass, too */
    struct gguf_session_stage prompt;  /* tokens of batches of several, in so
                                       * many micro-batches, or layers of
                                       * them (decode_layered) */
    struct gguf_session_stage single;  /* batches of one token: generation */
    struct gguf_session_stage logits;  /* rows of logits */
    struct gguf_session_stage encode;  /* tokens that were encoded, in so many
                                       * micro-batches; of an encoder all */
    struct gguf_session_stage warm_up; /* bytes of weights */
};
/* Owned by the session, and changed by its calls. Since: 0.1 */
GGUF_API const struct gguf_session_timings *
gguf_session_timings(const struct gguf_session *s);
/* Begin to count again. Since: 0.1 */
GGUF_API void gguf_session_reset_timings(struct gguf_session *s);

/* Have the first decode take no longer than others: read every page of weights
 * that lie in host memory, and plan the passes that create plans again, as
 * after adapters changed. Changes nothing that is remembered and no digit: the
 * last decode's logits can be asked for again. Fails as gguf_session_create
 * does when it plans. Since: 0.1 */
GGUF_API enum gguf_status
gguf_session_warm_up(struct gguf_session *s,
                     struct gguf_error *err) GGUF_MUST_CHECK;

/* --- results that are not finite ------------------------------------------ */

/* First result of an operation that is NaN or infinite other than by a mask.
 * Made by the library: it may grow at its end. */
struct gguf_session_fault {
    const char *op;    /* name of the operation; static */
    char tensor[64];   /* of the result; "" where it has none */
    char sources[120]; /* 'NAME', 'NAME': what it was made from */
    int32_t layer;     /* from 0; -1: before or after all layers */
    int32_t seq, pos;  /* whose it is; -1: not known, or row is */
    int64_t row;       /* of the last decode's outputs, for logits; else -1 */
    float value;       /* the element */
};

/* Check each operation's result, or stop: decoding and logits end with
 * GGUF_E_NONFINITE and the name of the first that is not finite. Digits do not
 * change; operations are computed one at a time. Since: 0.1 */
GGUF_API void gguf_session_set_finite_check(struct gguf_session *s,
                                            bool check);

/* Operation that ended the last call, or NULL; the session's. Since: 0.1 */
GGUF_API const struct gguf_session_fault *
gguf_session_fault(const struct gguf_session *s);

/* As one line, cut to size bytes, of which GGUF_SESSION_FAULT_TEXT are enough:
 * "layer 3: matmul 'blk.3.attn_q' of 'blk.3.attn_q.weight', 'blk.3.attn_norm'
 * is infinite at position 17 of sequence 0". Returns out. Since: 0.1 */
enum { GGUF_SESSION_FAULT_TEXT = 400 };
GGUF_API const char *
gguf_session_fault_text(const struct gguf_session_fault *f, char *out,
                        size_t size);

#ifdef __cplusplus
}
#endif
#endif
