/* SPDX-License-Identifier: MIT */
/* folder.h - small Hugging Face folders, made on the spot
 *
 * Weights are numbers that tell where they come from; the tokenizer is of
 * bytes, in either form, or one of those below.
 */
#ifndef TESTS_CONVERT_FOLDER_H
#define TESTS_CONVERT_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Tokens; what % and @ in names of tensors stand for, where a class does not
 * need another number. */
enum { FOLDER_VOCAB = 260, FOLDER_LAYERS = 2, FOLDER_EXPERTS = 3 };

/* The number that element i of the tensor of that name has: exact in BF16,
 * above 0 in a gain. */
float folder_value(const char *name, uint64_t i);

/* One tensor: name, shape as JSON has it (slowest dimension first). */
struct folder_tensor {
    char name[128];
    unsigned n_dims;
    uint64_t shape[6];
    uint64_t n;
};

struct folder {
    char dir[256];
    struct folder_tensor tensor[1024];
    size_t n_tensors;
    bool sparse; /* all numbers are 0, of a file that takes no room */
};

/* An empty folder at dir, which is made. */
void folder_begin(struct folder *f, const char *dir);
void folder_text(const struct folder *f, const char *name, const char *text);

/* Add tensors: lines "NAME SIZE SIZE ...", where % in a name stands for each of
 * n_layers, @ for each of n_experts. */
void folder_tensors(struct folder *f, const char *lines, int n_layers,
                    int n_experts);
/* The one of this name; NULL. */
const struct folder_tensor *folder_find(const struct folder *f,
                                        const char *name);

/* Write model.safetensors, or n_files of them with an index. dtype: "F32" or
 * "BF16". */
void folder_weights(const struct folder *f, const char *dtype, int n_files);

/* tokenizer.json of bytes, with the merges "a b" and "ab c", as texts or as
 * pairs; and <|end|>, the last but one, which is bos and eos. */
void folder_bpe(const struct folder *f, bool pairs);

/* folder_vocab.c: other tokenizers, each of FOLDER_VOCAB tokens.
 *
 * WordPiece, as tokenizer.json or as vocab.txt: the special ones of BERT first,
 * then letters and digits, at the beginning of words and within, punctuation, a
 * few words. buf is for a text that is made. */
void folder_ranked(const struct folder *f);
void folder_wordpiece(const struct folder *f, bool json);
const char *folder_wordpiece_token(int id, char buf[32]);

/* Unigram, with the ids of T5: <pad>, </s>, <unk>, then "_" for a blank
 * (U+2581), letters and digits, and words. Upper case becomes lower case by a
 * compiled table, of folder_charsmap. */
enum folder_unigrams { FOLDER_UGM_JSON, FOLDER_UGM_SPIECE };
void folder_unigram(const struct folder *f, enum folder_unigrams form);
const char *folder_unigram_piece(int id, char buf[32], float *score);
enum { FOLDER_CHARSMAP = 4 + 4 * 1024 + 52 };
void folder_charsmap(uint8_t out[FOLDER_CHARSMAP]);
/* Parts of a protocol buffer: a field of bytes, of a number. */
void folder_proto(FILE *o, unsigned no, const void *data, size_t n);
size_t folder_number(uint8_t *out, unsigned no, uint64_t value);
/* A piece of SentencePiece's. */
void folder_proto_piece(FILE *o, const char *text, float score, int kind);
void folder_base64(FILE *o, const uint8_t *p, size_t n);

/* RWKV's: bytes, and three words; a token is n bytes. */
void folder_rwkv(const struct folder *f);
const char *folder_rwkv_token(int id, char buf[8], size_t *n);

/* PLaMo 2's: a blank, <|plamo:unk|> and its kin, bytes, a few words. */
void folder_plamo2(const struct folder *f);

/* A file of the folder, open; a text as JSON has it. */
FILE *folder_create(const struct folder *f, const char *name);
void folder_json_text(FILE *o, const char *s);

#endif
