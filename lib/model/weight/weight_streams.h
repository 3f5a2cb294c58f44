/* SPDX-License-Identifier: MIT */
/* weight_streams.h - rows of the table of weights (weight.h) for gated residual
 * streams and for embeddings of n-grams */
#ifndef GG_MODEL_WEIGHT_WEIGHT_STREAMS_H
#define GG_MODEL_WEIGHT_WEIGHT_STREAMS_H

#define GG_WEIGHTS_STREAMS(X)                                                 \
    X(OUTPUT_MIX_NORM, "output_hc_norm.weight", MODEL, VECTOR, NONE,          \
      z->streams * z->embd)                                                   \
    X(OUTPUT_MIX_DOWN, "output_hc_down.weight", MODEL, MATRIX, NONE,          \
      z->streams * z->embd, z->mix_rank)                                      \
    X(OUTPUT_MIX_UP, "output_hc_up.weight", MODEL, MATRIX, NONE, z->mix_rank, \
      z->streams * z->embd)                                                   \
    GG_WEIGHTS_STREAM_MIX(X, ATTN_MIX, "hc_attn_")                            \
    GG_WEIGHTS_STREAM_MIX(X, FFN_MIX, "hc_ffn_")                              \
    X(NGRAM_EMBD, "per_layer_token_embd.weight", MODEL, MATRIX, NONE,         \
      z->ngram, z->any)                                                       \
    X(NGRAM_KEY, "ple_key.weight", LAYER, MATRIX, NONE, z->embd,              \
      z->streams * z->embd)                                                   \
    X(NGRAM_VALUE, "ple_value.weight", LAYER, MATRIX, NONE, z->embd, z->embd) \
    X(NGRAM_NORM_KEY, "ple_norm_key.weight", LAYER, VECTOR, NONE,             \
      z->streams * z->embd)                                                   \
    X(NGRAM_NORM_QUERY, "ple_norm_query.weight", LAYER, VECTOR, NONE,         \
      z->streams * z->embd)                                                   \
    X(NGRAM_NORM_CONV, "ple_norm_conv.weight", LAYER, VECTOR, NONE,           \
      z->streams * z->embd)                                                   \
    X(NGRAM_CONV, "ple_conv1d.weight", LAYER, MATRIX, NONE, z->ngram_taps,    \
      z->streams * z->embd)

/* Weights of the mix of streams before a part of a layer. */
#define GG_WEIGHTS_STREAM_MIX(X, P, NAME)                                     \
    X(P##_NORM, NAME "norm.weight", LAYER, VECTOR, NONE,                      \
      z->streams * z->embd)                                                   \
    X(P##_DOWN, NAME "down.weight", LAYER, MATRIX, NONE,                      \
      z->streams * z->embd, z->mix_rank)                                      \
    X(P##_UP, NAME "up.weight", LAYER, MATRIX, NONE, z->mix_rank,             \
      z->streams * z->embd)                                                   \
    X(P##_INJECT, NAME "inject.weight", LAYER, MATRIX, NONE,                  \
      z->streams * z->embd, z->streams)

#endif
