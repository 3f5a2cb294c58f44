/* SPDX-License-Identifier: MIT */
/* folder.h - makes small Hugging Face folders
 *
 * Each weight is a function of its tensor's name and its index. The tokenizer
 * is BPE on bytes in two forms, or one of those below.
 */
#ifndef TESTS_CONVERT_FOLDER_H
#define TESTS_CONVERT_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Tokens; layers and experts that % and @ in tensor names count to by default.
 */
enum { FOLDER_VOCAB = 260, FOLDER_LAYERS = 2, FOLDER_EXPERTS = 3 };

/* Element i of the tensor of this name: exact in BF16, positive in a norm. */
float folder_value(const char *name, uint64_t i);

/* A tensor: name, and shape in JSON, slowest dimension first. */
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
    bool sparse; /* all elements are 0, and the file is sparse */
};

/* Make an empty folder at dir. */
void folder_begin(struct folder *f, const char *dir);
void folder_text(const struct folder *f, const char *name, const char *text);

/* Add tensors: lines "NAME SIZE SIZE ...". % in a name stands for each of
 * n_layers, @ for each of n_experts. */
void folder_tensors(struct folder *f, const char *lines, int n_layers,
                    int n_experts);
/* Find a tensor by its name; NULL: missing. */
const struct folder_tensor *folder_find(const struct folder *f,
                                        const char *name);

/* Write model.safetensors, or n_files files with an index. dtype: "F32" or
 * "BF16". */
void folder_weights(const struct folder *f, const char *dtype, int n_files);

/* Write tokenizer.json: bytes, and the merges "a b" and "ab c", as texts or as
 * pairs. <|end|>, the last token but one, is BOS and EOS. */
void folder_bpe(const struct folder *f, bool pairs);

/* folder_vocab.c: other tokenizers, each with FOLDER_VOCAB tokens.
 *
 * WordPiece, as tokenizer.json or vocab.txt: BERT's special tokens, then
 * letters and digits at the start of words and inside, punctuation, a few
 * words. buf: room for the text.
 */
void folder_ranked(const struct folder *f);
void folder_wordpiece(const struct folder *f, bool json);
const char *folder_wordpiece_token(int id, char buf[32]);

/* Unigram with the ids of T5: <pad>, </s>, <unk>, then "_" for a blank
 * (U+2581), letters and digits, and words. The compiled table of
 * folder_charsmap() makes upper case lower case. */
enum folder_unigrams { FOLDER_UGM_JSON, FOLDER_UGM_SPIECE };
void folder_unigram(const struct folder *f, enum folder_unigrams form);
const char *folder_unigram_piece(int id, char buf[32], float *score);
enum { FOLDER_CHARSMAP = 4 + 4 * 1024 + 52 };
void folder_charsmap(uint8_t out[FOLDER_CHARSMAP]);
/* Fields of a protocol buffer: bytes, or a number. */
void folder_proto(FILE *o, unsigned no, const void *data, size_t n);
size_t folder_number(uint8_t *out, unsigned no, uint64_t value);
/* A piece of a SentencePiece model. */
void folder_proto_piece(FILE *o, const char *text, float score, int kind);
void folder_base64(FILE *o, const uint8_t *p, size_t n);

/* RWKV: bytes, and three words. A token has n bytes. */
void folder_rwkv(const struct folder *f);
const char *folder_rwkv_token(int id, char buf[8], size_t *n);

/* PLaMo 2: a blank, <|plamo:unk|> and other special tokens, bytes, a few
 * words. */
void folder_plamo2(const struct folder *f);

/* Create a file of the folder; write a text in JSON. */
FILE *folder_create(const struct folder *f, const char *name);
void folder_json_text(FILE *o, const char *s);

#endif
