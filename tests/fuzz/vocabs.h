/* SPDX-License-Identifier: MIT */
/* vocabs.h - runs readers of tokenizers on bytes, and checks the result */
#ifndef TESTS_FUZZ_VOCABS_H
#define TESTS_FUZZ_VOCABS_H

#include "convert/vocab/vocab_folder.h"
#include "tests/fuzz/fuzz.h"

struct vocab {
    struct gguf_convert_params params;
    struct gg_mem_arena arena;
    struct gg_folder folder;
    struct gg_convert_vocab v;
    struct gguf_error err;
};

void vocab_begin(struct vocab *t);

/* Check the result of reading, whose status is st, and free it. whole: every
 * id has a text. */
void vocab_end(struct vocab *t, enum gguf_status st, bool whole);

/* A reader of tokenizers. vocab_try() runs it and checks the result. */
typedef enum gguf_status vocab_reader(struct gg_convert_vocab *v,
                                      const struct gg_mapfile *m,
                                      struct gguf_error *err);
void vocab_try(vocab_reader *read, const uint8_t *data, size_t size);

#endif
