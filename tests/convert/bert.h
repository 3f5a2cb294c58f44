/* SPDX-License-Identifier: MIT */
/* bert.h - tensors of a small BERT: 32 wide, 260 tokens, 64 positions */
#ifndef TESTS_CONVERT_BERT_H
#define TESTS_CONVERT_BERT_H

/* Lines of folder_tensors(): a norm, a matrix with a bias, the encoder. */
#define BERT_NORM(NAME) NAME ".weight 32\n" NAME ".bias 32\n"
#define BERT_DENSE(NAME, ROWS, COLS)                                          \
    NAME ".weight " #ROWS " " #COLS "\n" NAME ".bias " #ROWS "\n"
/* clang-format off */
#define BERT_TENSORS                                                          \
    "embeddings.word_embeddings.weight 260 32\n"                              \
    "embeddings.token_type_embeddings.weight 2 32\n"                          \
    "embeddings.position_embeddings.weight 64 32\n"                           \
    BERT_NORM("embeddings.LayerNorm")                                         \
    BERT_DENSE("encoder.layer.%.attention.self.query", 32, 32)                \
    BERT_DENSE("encoder.layer.%.attention.self.key", 32, 32)                  \
    BERT_DENSE("encoder.layer.%.attention.self.value", 32, 32)                \
    BERT_DENSE("encoder.layer.%.attention.output.dense", 32, 32)              \
    BERT_NORM("encoder.layer.%.attention.output.LayerNorm")                   \
    BERT_DENSE("encoder.layer.%.intermediate.dense", 48, 32)                  \
    BERT_DENSE("encoder.layer.%.output.dense", 32, 48)                        \
    BERT_NORM("encoder.layer.%.output.LayerNorm")
/* clang-format on */

#endif
