/* SPDX-License-Identifier: MIT */
/* build.h - the graph of a forward pass
 *
 * A pass computes n_tok tokens of each of n_seq sequences, N = n_tok * n_seq in
 * all, one sequence after the other. Each kind of mixer has a kind of memory
 * that carries earlier tokens: a cache of keys and values, a recurrent state,
 * and others. The caller owns inputs and memory. The pass reads the memory and
 * writes the part that later passes need.
 *
 * Usual sequence of calls:
 * 1. gg_build_check() when a model is created, gg_build_check_loaded() after
 *    its weights are loaded
 * 2. gg_model_layer_memory_kinds() and the functions on sizes, to allocate
 *    memory
 * 3. a struct gg_model_pass with inputs, memory and a graph
 * 4. gg_build_pass(), then gg_build_logits() or gg_build_pooled()
 */
#ifndef GG_MODEL_BUILD_H
#define GG_MODEL_BUILD_H

#include "gguf/graph.h"
#include "model/adapter/adapter_int.h"
#include "model/block/mixer.h"

/* Cache of keys and values. k and v have a tensor per layer, [elements of a
 * token, n_cells * streams]; NULL: the layer has no cache. Layers with a
 * sliding window may have their own, smaller number of cells. */
struct gg_model_pass_keys {
    struct gguf_tensor *
        *index; /* keys of the indexer per layer, shaped as k */
    /* i32 [n_kv, 1, 1, as masks]: positions of keys, -1: empty. Needed if
     * gg_model_reads_positions(). */
    struct gguf_tensor *pos;
    /* NULL: no cache; the tokens of the pass attend to each other */
    struct gguf_tensor **k, **v;
    /* tokens per stream, and streams, as attention groups the N tokens */
    int64_t n_tok, n_seq;
    int64_t first_stream; /* first of the n_seq streams; the others follow */
    /* Per type of attention: */
    /* i32 [N]: rows of the whole cache that the pass writes */
    struct gguf_tensor *rows[GG_N_ATTN_TYPES];
    struct gguf_tensor *mask[GG_N_ATTN_TYPES]; /* f32 [n_kv, n_tok, 1, 1 or
                                            * n_seq] */
    int64_t n_kv[GG_N_ATTN_TYPES];    /* rows of each stream that are read */
    int64_t n_cells[GG_N_ATTN_TYPES]; /* rows of each stream */
    /* i32 [n_kv * n_tok * (1 or n_seq)]: for each element of the mask, the
     * bucket of the distance of the key (gg_model_position_bucket). NULL: the
     * model has no buckets. */
    struct gguf_tensor *buckets;
};

/* Keys and values of an encoded text, for a decoder. k and v have a tensor per
 * layer. */
struct gg_model_pass_cross {
    struct gguf_tensor **k, **v;
    struct gguf_tensor
        *rows; /* i32 [N]: rows that the encoder's pass writes */
    /* f32 [n_kv, n_tok, 1, 1 or n_seq], in a decoder's pass */
    struct gguf_tensor *mask;
    int64_t n_kv;    /* rows of each sequence that are read */
    int64_t n_cells; /* rows of each sequence */
};

/* Recurrent states, f32, with a tensor per layer; NULL: not in this layer.
 * conv: last inputs of a convolution or token shift, [channels, tokens,
 * streams]. scan: state of a scan, [d_state, head_dim, n_head, streams].
 * ngrams: last inputs of the n-grams' convolution, as conv. recent: i32
 * [tokens, 1, streams], 1 + id of the last tokens, or 0. */
struct gg_model_pass_states {
    struct gguf_tensor **conv, **scan, **ngrams, **recent;
    struct gguf_tensor *ids; /* i32 [n_seq]: 0, 1, ... */
};

/* Compressed keys of one ratio r. A pass completes at most n blocks of r tokens
 * per sequence, n_real / r rounded up; a block that is not completed goes to a
 * row that nobody reads. A block is computed from T tokens (takes of struct
 * gg_hparams_blocks). They are
 * numbered within the n_ring tokens of the memory followed by the n_real tokens
 * of the pass. */
struct gg_model_pass_blocks {
    struct gguf_tensor *phase; /* i32 [N]: positions mod r */
    struct gguf_tensor *from;  /* i32 [T n, n_seq]: tokens of each block */
    /* f32 [1, T, n, n_seq]: minus infinity for tokens before the sequence's
     * first, else 0 */
    struct gguf_tensor *absent;
    struct gguf_tensor *pos; /* i32 [n n_seq]: positions of blocks */
    /* i32 [n n_seq]: rows of the whole memory where blocks are written */
    struct gguf_tensor *to;
    /* i32 [n_ring, n_seq]: tokens that later passes need, numbered as in
     * from */
    struct gguf_tensor *ring;
    struct gguf_tensor *mask; /* f32 [n_rows, n_tok, 1, 1 or n_seq] */
    int64_t n, n_rows;        /* per sequence: blocks; rows that are read */
    int64_t n_from;           /* tokens that a block is computed from */
    int64_t n_all;            /* rows of a stream */
};

/* Number of a ratio in hp->blocks, which has it. */
static inline unsigned gg_model_find_ratio(const struct gguf_model *m,
                                           uint32_t ratio)
{
    unsigned i = 0;
    while (i < GG_N_RATIOS - 1 && m->hp.blocks[i].ratio != ratio)
        i++;
    return i;
}

/* Compressed keys, with a tensor per layer; NULL: not in this layer. rows and
 * index (keys of the indexer): [elements, rows of all streams]. ring: tokens
 * that do not yet belong to a completed block, f32 [.., T, streams]. */
struct gg_model_pass_compressed {
    struct gguf_tensor **rows, **index, **ring;
    struct gguf_tensor *back; /* i32 [N]: negated positions */
    struct gg_model_pass_blocks of[GG_N_RATIOS];
};

/* Inputs and memory of a pass, which the caller creates. */
struct gg_model_pass {
    const struct gguf_model *model;
    struct gguf_ctx *ctx;
    struct gguf_graph *graph;
    int64_t n_tok, n_seq; /* tokens per sequence, sequences */
    /* real tokens of n_tok. The others are padding: they repeat the last one,
     * and the memory must not change by them. */
    int64_t n_real;
    int64_t n_out; /* tokens whose result is wanted; 0: none */
    /* tokens of context; decides which rotary factors apply */
    int64_t n_ctx;
    int64_t first_stream; /* first of the n_seq streams; the others follow */
    struct gguf_tensor *tokens; /* i32 [N]: token ids */
    struct gguf_tensor *pos;    /* i32 [N]: positions */
    /* i32 [N]: types of tokens, if the model has more than one; else NULL */
    struct gguf_tensor *types;
    /* i32 [4 N], axis after axis: positions of M-RoPE (gg_model_has_mrope) */
    struct gguf_tensor *axes;
    /* i32 [1, n_expert]: the chunk expert of each expert, if the model has
     * chunk experts */
    struct gguf_tensor *chunk;
    /* i32 [1, N]: adapter of each token, 0 for none, if the model switches
     * adapters */
    struct gguf_tensor *adapter_ids;
    /* f32 [1, 1, N]: gg_model_query_temperature, if queries have a
     * temperature */
    struct gguf_tensor *temperature;
    /* i32 [n_out]: tokens whose result is wanted; NULL: all N */
    struct gguf_tensor *out_rows;
    struct gg_model_pass_keys keys;
    struct gg_model_pass_states states;
    struct gg_model_pass_cross cross;
    struct gg_model_pass_compressed compressed;
    /* model with encoder and decoder: this is the encoder's pass */
    bool encodes;
    const struct gg_model_adapters *added; /* adapters; NULL: none */
};

/* Can every part of the model be built? GGUF_E_UNSUPPORTED names the first
 * layer with a part that cannot. */
enum gguf_status gg_build_check(const struct gguf_model *m,
                                struct gguf_error *err);

/* Check values of loaded weights that their shapes do not ensure.
 * GGUF_E_TENSOR. */
enum gguf_status gg_build_check_loaded(const struct gguf_model *m,
                                       struct gguf_error *err);

/* Kinds of memory (bits of enum gg_model_memory_kind) of a layer, or of all
 * layers. */
unsigned gg_model_layer_memory_kinds(const struct gguf_model *m, uint32_t il);
unsigned gg_model_all_memory_kinds(const struct gguf_model *m);

/* Number of layers in order of computation: a layer counts as often as it is
 * computed. Memory is indexed by this number. */
uint32_t gg_model_n_unrolled_layers(const struct gguf_model *m);
/* Largest number of times that a layer is computed in a pass. */
uint32_t gg_model_n_uses(const struct gguf_model *m);
/* Layer of the file that computed layer il is. */
uint32_t gg_model_stored_layer(const struct gguf_model *m, uint32_t il);

/* Must a sequence be computed as a whole, without a cache? */
bool gg_model_needs_whole_sequence(const struct gguf_model *m);

/* Is a text encoded before another one is decoded (encoder-decoder model)? */
bool gg_model_encodes_first(const struct gguf_model *m);

/* Number of buckets of relative positions, each with a bias of scores; 0:
 * none. */
uint32_t gg_model_n_position_buckets(const struct gguf_model *m);
/* Bucket of a relative position (Raffel et al., arXiv 1910.10683, section 2.1,
 * and their code).
 *
 * n_buckets   gg_model_n_position_buckets()
 * both_ways   true: half of the buckets are for keys after the query. false:
 *             later keys count as the nearest.
 * far         positions from the query back to the key; negative: the key is
 *             later
 *
 * Small distances have a bucket each. Larger ones grow by equal factors; the
 * last bucket is for GG_MODEL_MAX_DISTANCE and more. */
enum { GG_MODEL_MAX_DISTANCE = 128 };
int32_t gg_model_position_bucket(uint32_t n_buckets, bool both_ways,
                                 int64_t far);

/* Maximum bias of ALiBi. If it is not 0, masks hold the distance of each key as
 * a negative number. */
float gg_model_alibi_max_bias(const struct gguf_model *m);

/* Number of types of tokens; 1: tokens have no types. */
static inline uint32_t gg_model_n_token_types(const struct gguf_model *m)
{
    const struct gguf_tensor *t = m->top.w[GG_W_TOKEN_TYPES];
    return t ? (uint32_t)t->ne[1] : 1;
}
/* Do positions have four axes (M-RoPE)? For text, the first three are a token's
 * position, the last is 0. */
static inline bool gg_model_has_mrope(const struct gguf_model *m)
{
    return m->hp.rope.kind == GGUF_ROPE_MROPE ||
           m->hp.rope.kind == GGUF_ROPE_IMROPE;
}

/* Weight with the rotary factors, which divide angles, in a context of n_ctx
 * tokens; GG_W_NONE: none. A model has one set for all contexts (rope_freqs),
 * or one for short and one for contexts longer than the original one
 * (LongRoPE). gg_model_is_long_context(): is it the set for long contexts, and
 * does the model have it?
 */
enum gg_weight gg_model_rope_factors(const struct gguf_model *m,
                                     int64_t n_ctx);
bool gg_model_is_long_context(const struct gguf_model *m, int64_t n_ctx);

/* Does a mixer choose keys by their positions (pass->keys.pos)? */
bool gg_model_reads_positions(const struct gguf_model *m);

/* Do queries have a temperature? And the factor of queries at position pos.
 */
bool gg_model_has_query_temperature(const struct gguf_model *m);
float gg_model_query_temperature(const struct gguf_model *m, int32_t pos);

/* Switched adapters (adapter_switch.c). Some tokens activate an adapter of the
 * model for the tokens after them. gg_model_activated_adapter() returns the
 * number of a token's adapter, 1 or more; 0: it activates none.
 * gg_model_embedded_token() returns the token whose embedding stands for a
 * token: a token that activates an adapter has a substitute. */
int32_t gg_model_activated_adapter(const struct gguf_model *m, int32_t token);
int32_t gg_model_embedded_token(const struct gguf_model *m, int32_t token);
/* Adapter of a token that sees n_seen tokens, itself included. n_active of
 * these activate an adapter, and sum is the sum of the adapters' numbers.
 *
 * The result is that of one attention head: tokens that activate an adapter
 * have the score switch_gain and the adapter's number as value, all others have
 * -switch_gain and 0. The result of attention is rounded half away from zero,
 * so that several active adapters give the mean of their numbers. */
int32_t gg_model_choose_adapter(const struct gguf_model *m, uint64_t n_seen,
                                uint64_t n_active, uint64_t sum);

/* Elements of a sequence's states (struct gg_model_pass_states) in a layer with
 * states. 0 elements: the layer lacks that state. */
struct gg_model_state_sizes {
    int64_t conv[2], scan[3], ngrams[2], recent;
};
void gg_model_layer_state_sizes(const struct gguf_model *m, uint32_t il,
                                struct gg_model_state_sizes *n);

/* Elements of a token's key and value in a layer with a cache, all heads
 * together. Values that are a part of keys are not stored. */
struct gg_model_key_part {
    int64_t n;
    enum gg_model_hparam key; /* hyperparameter that determines n */
};
enum gg_model_key_parts {
    GG_KEY_PART_K,
    GG_KEY_PART_K_REST, /* rest of a key that begins with the value */
    GG_KEY_PART_V,
    GG_KEY_PART_INDEX,
    GG_N_KEY_PARTS
};
struct gg_model_key_sizes {
    int64_t k, v;  /* v 0: values are not stored */
    int64_t index; /* key of the indexer; 0: no indexer */
    /* elements of a head's key; the first of them that have a rotary
     * embedding */
    int64_t head, turned;
    /* Parts that are read by themselves: a head's, or for one purpose. The
     * cache's type must hold each in whole blocks. n 0: no such part.
     */
    struct gg_model_key_part part[GG_N_KEY_PARTS];
};
void gg_model_layer_key_sizes(const struct gguf_model *m, uint32_t il,
                              struct gg_model_key_sizes *n);

/* Elements of a layer with compressed keys: of a row; of a key of the indexer
 * (0: all rows are read); of a token that is stored until its block is
 * complete. */
struct gg_model_compressed_sizes {
    int64_t row, index, token;
};
void gg_model_layer_compressed_sizes(const struct gguf_model *m, uint32_t il,
                                     struct gg_model_compressed_sizes *n);

/* Can cached keys be rotated to other positions, as if their tokens had come
 * there? GGUF_E_UNSUPPORTED: positions are added to embeddings, keys have a
 * norm with weights after the rotary embedding, or keys are compressed. */
enum gguf_status gg_model_check_key_shift(const struct gguf_model *m,
                                          struct gguf_error *err);
/* Does the cache of layer il hold elements with a rotary embedding? */
bool gg_model_rotates_cache(const struct gguf_model *m, uint32_t il);

/* Cached keys of a layer that are to be rotated. */
struct gg_model_key_shift {
    /* keys and indexer keys of the layer, as in a pass; index NULL: no
     * indexer */
    struct gguf_tensor *k, *index;
    struct gguf_tensor *rows; /* i32 [n]: rows to rotate */
    /* i32 [n], with M-RoPE [4 n]: number of positions to move by */
    struct gguf_tensor *by;
    int64_t n_ctx; /* tokens of context, as in a pass */
};
/* Add the nodes that rotate the keys to a graph, at most GG_KEY_SHIFT_NODES.
 * Keys are decoded to f32, rotated by the angle of the difference without
 * scaling, and stored again. gguf/session.h says how precise that is. */
enum { GG_KEY_SHIFT_NODES = 20 };
void gg_build_key_shift(const struct gguf_model *m, struct gguf_ctx *c,
                        struct gguf_graph *g, uint32_t il,
                        const struct gg_model_key_shift *t);

/* Build a pass. Returns the states after the last norm, f32 [n_embd, n_out] in
 * the order of out_rows, as an output of the graph. NULL if n_out is 0, or
 * after a failure, which is sticky in ctx. The graph holds all nodes. */
struct gguf_tensor *gg_build_pass(const struct gg_model_pass *p);

/* Does the model have an output matrix? If not, its states are the result
 * (encoder). */
bool gg_model_has_logits(const struct gguf_model *m);

/* Build the logits [n_vocab, n] of states f32 [n_embd, n]. added: adapters, or
 * NULL. */
struct gguf_tensor *gg_build_logits(const struct gguf_model *m,
                                    const struct gg_model_adapters *added,
                                    struct gguf_ctx *ctx,
                                    struct gguf_tensor *states);

/* ---- one vector of a sequence (pooling.c) ---- */

/* gg_model_resolve_pooling() returns kind, and for MODEL the kind that the file
 * names. gg_model_token_pooling() returns the tokens whose states that kind
 * uses: MEAN, CLS, LAST or NONE. */
enum gguf_pooling gg_model_resolve_pooling(const struct gguf_model *m,
                                           enum gguf_pooling kind);
enum gguf_pooling gg_model_token_pooling(const struct gguf_model *m,
                                         enum gguf_pooling kind);

/* Does this kind of vector need matrices after pooling the states? */
bool gg_model_has_pooled_head(const struct gguf_model *m,
                              enum gguf_pooling kind);

/* Check that the matrices of this kind fit each other and the number of labels.
 * GGUF_E_TENSOR, GGUF_E_HPARAM. */
enum gguf_status gg_model_check_pooled(const struct gguf_model *m,
                                       enum gguf_pooling kind,
                                       struct gguf_error *err);

/* Build the vectors [elements of one, n] of pooled states f32 [n_embd, n]. */
struct gguf_tensor *gg_build_pooled(const struct gguf_model *m,
                                    const struct gg_model_adapters *added,
                                    struct gguf_ctx *ctx,
                                    enum gguf_pooling kind,
                                    struct gguf_tensor *states);

/* Most nodes of logits, and of a pass. With adapters add
 * gg_model_n_adapter_nodes(). */
enum { GG_BUILD_HEAD_NODES = 24 };
size_t gg_build_n_nodes(const struct gguf_model *m);

#endif
