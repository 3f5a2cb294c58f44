/* SPDX-License-Identifier: MIT */
/* build.h - the graph of a forward pass
 *
 * n_tok tokens of each of n_seq sequences, N = n_tok * n_seq in all, sequence
 * after sequence. Each kind of mixer has a kind of memory for what tokens take
 * from earlier ones: the pass is told where it lies, reads it, and writes what
 * later tokens will take.
 */
#ifndef GG_MODEL_BUILD_H
#define GG_MODEL_BUILD_H

#include "gguf/graph.h"
#include "model/adapter/adapter_int.h"
#include "model/block/mixer.h"

/* Keys and values of attention. Per layer k and v, [elements of a token,
 * n_cells * streams]; NULL where a layer has none. Layers that see windows may
 * have fewer cells of their own. */
struct gg_model_pass_keys {
    struct gguf_tensor **index; /* keys by which keys are chosen, likewise */
    struct gguf_tensor *pos; /* gg_model_reads_positions: i32 [n_kv, 1, 1, as
                                 * masks], positions of keys, -1: none */
    struct gguf_tensor **k, **v; /* NULL: nothing is kept, and tokens see each
                                  * other within the pass */
    int64_t n_tok, n_seq; /* tokens as attention takes them: so many of each
                           * of so many streams, N in all */
    int64_t first_stream; /* those are this and the following */
    /* of layers that see so much: */
    struct gguf_tensor
        *rows[GG_N_ATTN_TYPES]; /* i32 [N]: rows of the whole memory
                                            * that the pass writes */
    struct gguf_tensor *mask[GG_N_ATTN_TYPES]; /* f32 [n_kv, n_tok, 1, 1 or
                                            * n_seq] */
    int64_t n_kv[GG_N_ATTN_TYPES];    /* rows of each stream that are read */
    int64_t n_cells[GG_N_ATTN_TYPES]; /* rows that a stream has */
    struct gguf_tensor *buckets; /* i32 [n_kv * n_tok * (1 or n_seq)]: for each
                                  * element of the mask, how far the key is
                                  * (gg_model_position_bucket); NULL where that
                                  * is of no interest */
};

/* Keys and values of what was encoded, for a decoder. Per layer as above. */
struct gg_model_pass_cross {
    struct gguf_tensor **k, **v;
    struct gguf_tensor *rows; /* i32 [N]: rows that an encoder's pass writes */
    struct gguf_tensor *mask; /* f32 [n_kv, n_tok, 1, 1 or n_seq], of a
                               * decoder's */
    int64_t n_kv;             /* rows of each sequence that are read */
    int64_t n_cells;          /* rows that it has */
};

/* States of recurrences. Per layer, f32: what tokens were, before a convolution
 * or a shift [channels, tokens, streams], and what became of all of them, of a
 * scan [d_state, head_dim, n_head, streams]; NULL where a layer has none. */
struct gg_model_pass_states {
    struct gguf_tensor **conv, **scan;
    struct gguf_tensor *ids; /* i32 [n_seq]: 0, 1, ... */
};

/* Compressed keys of one ratio r. A pass finishes at most n blocks of r tokens
 * for each sequence, n_real / r rounded up; what is left of these has a row
 * that nobody reads. Each takes T tokens, r or 2 r, from the n_ring of the
 * memory, followed by the n_real of the pass. */
struct gg_model_pass_blocks {
    struct gguf_tensor *phase;  /* i32 [N]: positions mod r */
    struct gguf_tensor *from;   /* i32 [T n, n_seq]: tokens of blocks, among
                                * those */
    struct gguf_tensor *absent; /* f32 [1, T, n, n_seq]: minus infinity for
                                 * those before the first, else 0 */
    struct gguf_tensor *pos;    /* i32 [n n_seq]: positions of blocks */
    struct gguf_tensor *to;     /* i32 [n n_seq]: rows of the whole memory that
                               * they are written to */
    struct gguf_tensor *ring; /* i32 [n_ring, n_seq]: tokens that later passes
                               * need, among those as from */
    struct gguf_tensor *mask; /* f32 [n_rows, n_tok, 1, 1 or n_seq] */
    int64_t n, n_rows; /* of each sequence: blocks, rows that are read */
    int64_t n_all;     /* rows of a stream */
};

/* How many ratios there are, and which; 0: there is none of that number. */
enum { GG_N_RATIOS = 2 };
static inline uint32_t gg_model_compress_ratio(unsigned i)
{
    return i == 0 ? GG_RATIO_CSA : i == 1 ? GG_RATIO_HCA : 0;
}
/* Tokens that a block takes. */
static inline uint32_t gg_model_block_tokens(uint32_t ratio)
{
    return ratio == GG_RATIO_CSA ? 2 * ratio : ratio;
}

/* Compressed keys, and what they are made of. Per layer rows and keys by which
 * rows are chosen, [elements, rows of all streams], and tokens that are not yet
 * of a block, f32 [.., gg_model_block_tokens, streams]; NULL where a layer has
 * none. */
struct gg_model_pass_compressed {
    struct gguf_tensor **rows, **index, **ring;
    struct gguf_tensor *back; /* i32 [N]: minus positions */
    struct gg_model_pass_blocks of[GG_N_RATIOS];
};

/* What a pass reads: inputs and memory, made by the caller. */
struct gg_model_pass {
    const struct gguf_model *model;
    struct gguf_ctx *ctx;
    struct gguf_graph *graph;
    int64_t n_tok, n_seq; /* per sequence; sequences */
    int64_t n_real;       /* of n_tok: the others repeat the last one, and no
                           * memory may take them for more than that */
    int64_t n_out;        /* tokens whose result is wanted; 0: none */
    int64_t n_ctx;        /* tokens of context: chooses rotary factors */
    int64_t first_stream; /* the n_seq sequences are this and the following */
    struct gguf_tensor *tokens; /* i32 [N] */
    struct gguf_tensor *pos;    /* i32 [N] */
    struct gguf_tensor *axes;   /* i32 [4 N], axis after axis, if positions
                                 * have several: gg_model_has_mrope */
    struct gguf_tensor *chunk; /* i32 [1, n_expert]: the chunk expert that goes
                                * with each expert, if there are such */
    struct gguf_tensor
        *temperature; /* f32 [1, 1, N]: gg_model_query_temperature, if queries
                                 * have a temperature */
    struct gguf_tensor
        *out_rows; /* i32 [n_out], or NULL if all N are wanted */
    struct gg_model_pass_keys keys;
    struct gg_model_pass_states states;
    struct gg_model_pass_cross cross;
    struct gg_model_pass_compressed compressed;
    bool encodes; /* of an encoder and a decoder: by the encoder */
    const struct gg_model_adapters *added; /* adapters; NULL: none */
};

/* Is there a function for every part of the model? GGUF_E_UNSUPPORTED names
 * the first layer for which there is none. */
enum gguf_status gg_build_check(const struct gguf_model *m,
                                struct gguf_error *err);

/* Once weights are loaded: are values good that no shape says?
 * GGUF_E_TENSOR. */
enum gguf_status gg_build_check_loaded(const struct gguf_model *m,
                                       struct gguf_error *err);

/* Kinds of memory (enum gg_model_memory_kind) of a layer, or of all layers. */
unsigned gg_model_layer_memory_kinds(const struct gguf_model *m, uint32_t il);
unsigned gg_model_all_memory_kinds(const struct gguf_model *m);

/* Layers in the order in which they are computed, those of a looped model once
 * for each time: layer il is one of these wherever memory is meant. */
uint32_t gg_model_n_unrolled_layers(const struct gguf_model *m);

/* Is all of a sequence computed at once, so that nothing is kept? */
bool gg_model_needs_whole_sequence(const struct gguf_model *m);

/* Is a text encoded before another one is decoded? */
bool gg_model_encodes_first(const struct gguf_model *m);

/* Buckets of distances that scores have a bias for, or 0. */
uint32_t gg_model_n_position_buckets(const struct gguf_model *m);
/* The bucket of a key at so many positions after a query (before it, if that is
 * negative). Of both ways half of the buckets are of keys that come later; else
 * these are taken for the nearest. Near ones have buckets of their own, then
 * distances grow by equal factors, up to the last, of GG_MODEL_MAX_DISTANCE and
 * more (Raffel et al., arXiv 1910.10683, section 2.1, and their code). */
enum { GG_MODEL_MAX_DISTANCE = 128 };
int32_t gg_model_position_bucket(uint32_t n_buckets, bool both_ways,
                                 int64_t far);

/* The greatest bias for distance (ALiBi): where it is not 0, a mask says how
 * far away each key is, as a negative number. */
float gg_model_alibi_max_bias(const struct gguf_model *m);

/* Do positions have four axes (M-RoPE)? Of text the first three are a token's
 * position, the last is 0. */
static inline bool gg_model_has_mrope(const struct gguf_model *m)
{
    return m->hp.rope.kind == GGUF_ROPE_MROPE ||
           m->hp.rope.kind == GGUF_ROPE_IMROPE;
}

/* The weight that angles are divided by in a context of so many tokens, which
 * the model need not have: one set for all contexts, or one for those that are
 * longer than before scaling; and is it the one for long contexts, and there?
 */
enum gg_weight gg_model_rope_factors(const struct gguf_model *m,
                                     int64_t n_ctx);
bool gg_model_is_long_context(const struct gguf_model *m, int64_t n_ctx);

/* Do mixers take keys by their positions? */
bool gg_model_reads_positions(const struct gguf_model *m);

/* Have queries a temperature; and what those at a position are multiplied by.
 */
bool gg_model_has_query_temperature(const struct gguf_model *m);
float gg_model_query_temperature(const struct gguf_model *m, int32_t pos);

/* Elements of a sequence's two states in a layer that keeps states (struct
 * gg_model_pass_states); one that it does not have has none. */
struct gg_model_state_sizes {
    int64_t conv[2], scan[3];
};
void gg_model_layer_state_sizes(const struct gguf_model *m, uint32_t il,
                                struct gg_model_state_sizes *n);

/* Elements of a token's key and value in a layer that keeps keys: of all heads
 * together. Values may be a part of keys, and are not kept then. */
struct gg_model_key_part {
    int64_t n;
    enum gg_model_hparam key; /* says so */
};
enum gg_model_key_parts {
    GG_KEY_PART_K,
    GG_KEY_PART_K_REST, /* of a key that begins with the value */
    GG_KEY_PART_V,
    GG_KEY_PART_INDEX,
    GG_N_KEY_PARTS
};
struct gg_model_key_sizes {
    int64_t k, v;  /* v 0: it is not kept */
    int64_t index; /* of the key by which keys are chosen; 0: it has none */
    int64_t head, turned; /* of the key of a head, and the first of them that
                           * positions turn, if they do */
    /* Elements that are read by themselves, of a head or for a purpose: whole
     * blocks in any type that tokens are kept as. n 0: there is no such part.
     */
    struct gg_model_key_part part[GG_N_KEY_PARTS];
};
void gg_model_layer_key_sizes(const struct gguf_model *m, uint32_t il,
                              struct gg_model_key_sizes *n);

/* Elements of a layer with compressed keys: of a row, of the key by which rows
 * are chosen (0: all are read), and of what is kept of a token until its block
 * is finished. */
struct gg_model_compressed_sizes {
    int64_t row, index, token;
};
void gg_model_layer_compressed_sizes(const struct gguf_model *m, uint32_t il,
                                     struct gg_model_compressed_sizes *n);

/* Can keys that are kept be turned on to other positions, so that they are as
 * if tokens had come there? GGUF_E_UNSUPPORTED: positions are added to
 * embeddings, keys are normed with weights after they were turned, or
 * compressed. */
enum gguf_status gg_model_check_key_shift(const struct gguf_model *m,
                                          struct gguf_error *err);
/* Do positions turn what is kept of layer il? */
bool gg_model_rotates_cache(const struct gguf_model *m, uint32_t il);

/* Keys of a layer that are to turn on. */
struct gg_model_key_shift {
    struct gguf_tensor *k, *index; /* as in a pass; index or NULL */
    struct gguf_tensor *rows;      /* i32 [n] which of them */
    struct gguf_tensor *by; /* i32 [n], of axes [4 n]: by so many positions */
    int64_t n_ctx;          /* as in a pass */
};
/* The nodes that do it, added to a graph; GG_KEY_SHIFT_NODES at most. They are
 * turned by the angles of the difference, as by a rotary embedding of their
 * layer without its scaling, in f32, and kept again (gguf/session.h has what
 * that takes from them). */
enum { GG_KEY_SHIFT_NODES = 12 };
void gg_build_key_shift(const struct gguf_model *m, struct gguf_ctx *c,
                        struct gguf_graph *g, uint32_t il,
                        const struct gg_model_key_shift *t);

/* The states after the last norm, f32 [n_embd, n_out] in the order of
 * out_rows, an output of the graph; NULL with n_out 0, and after a failure,
 * which is sticky in ctx. The graph holds everything. */
struct gguf_tensor *gg_build_pass(const struct gg_model_pass *p);

/* Has the model an output matrix? An encoder's states are its result. */
bool gg_model_has_logits(const struct gguf_model *m);

/* Logits of states f32 [n_embd, n]: [n_vocab, n]. added may be NULL. */
struct gguf_tensor *gg_build_logits(const struct gguf_model *m,
                                    const struct gg_model_adapters *added,
                                    struct gguf_ctx *ctx,
                                    struct gguf_tensor *states);

/* ---- one vector of a sequence (pooling.c) ---- */

/* Which tokens' states it is made of: MEAN, CLS, LAST or NONE, for a kind, of
 * which MODEL is the file's. */
enum gguf_pooling gg_model_resolve_pooling(const struct gguf_model *m,
                                           enum gguf_pooling kind);
enum gguf_pooling gg_model_token_pooling(const struct gguf_model *m,
                                         enum gguf_pooling kind);

/* Is a kind's vector more than the pooled states? */
bool gg_model_has_pooled_head(const struct gguf_model *m,
                              enum gguf_pooling kind);

/* Do the matrices that make it fit each other, and the labels? GGUF_E_TENSOR,
 * GGUF_E_HPARAM. */
enum gguf_status gg_model_check_pooled(const struct gguf_model *m,
                                       enum gguf_pooling kind,
                                       struct gguf_error *err);

/* Vectors of pooled states f32 [n_embd, n]: [numbers of one, n]. */
struct gguf_tensor *gg_build_pooled(const struct gguf_model *m,
                                    const struct gg_model_adapters *added,
                                    struct gguf_ctx *ctx,
                                    enum gguf_pooling kind,
                                    struct gguf_tensor *states);

/* Nodes of logits, and of a pass, at most; with adapters there are more
 * (gg_model_n_adapter_nodes). */
enum { GG_BUILD_HEAD_NODES = 24 };
size_t gg_build_n_nodes(const struct gguf_model *m);

#endif
