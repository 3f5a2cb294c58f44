/* SPDX-License-Identifier: MIT */
/* reader.h - runs one reader of a tokenizer on bytes in memory */
#ifndef TESTS_CONVERT_READER_H
#define TESTS_CONVERT_READER_H

#include "convert/vocab/vocab_folder.h"
#include "tests/tap.h"

#include <string.h>

typedef enum gguf_status reader_fn(struct gg_convert_vocab *v,
                                   const struct gg_mapfile *m,
                                   struct gguf_error *err);

/* A folder without files. */
struct reader_folder {
    struct gguf_convert_params p;
    struct gg_mem_arena arena;
    struct gg_folder folder;
};
static inline void reader_begin(struct reader_folder *c)
{
    memset(c, 0, sizeof *c);
    gg_mem_arena_init(&c->arena, NULL);
    c->folder.p = &c->p;
    c->folder.arena = &c->arena;
}

/* Read size bytes with fn into v, which belongs to c. Call reader_forget()
 * afterwards, also after a failure. */
static inline enum gguf_status reader_run(reader_fn *fn, const void *data,
                                          size_t size,
                                          struct gg_convert_vocab *v,
                                          struct reader_folder *c,
                                          struct gguf_error *e)
{
    struct gg_mapfile m;
    reader_begin(c);
    *v = (struct gg_convert_vocab){ .folder = &c->folder,
                                    .unk = -1,
                                    .space_prefix = -1 };
    gguf_error_clear(e);
    if (gg_mapfile_open_memory(&m, data, size, 0, size, e) != GGUF_OK)
        return GGUF_E_IO;
    enum gguf_status st = fn(v, &m, e);
    gg_mapfile_close(&m);
    return st;
}

static inline void reader_forget(struct gg_convert_vocab *v,
                                 struct reader_folder *c)
{
    gg_mem_free(NULL, v->merge);
    gg_mem_free(NULL, v->token);
    gg_mem_free(NULL, v->score);
    gg_mem_free(NULL, v->type);
    gg_mem_arena_fini(&c->arena);
}

/* Lines that a reader refuses, with a word of the message and the byte. */
struct reader_refusal {
    const char *lines, *word;
    uint64_t off;
};

static inline void reader_refuses(reader_fn *fn,
                                  const struct reader_refusal *rows, size_t n,
                                  enum gguf_status status)
{
    for (size_t i = 0; i < n; i++) {
        struct gg_convert_vocab v;
        struct reader_folder c;
        struct gguf_error e;
        const enum gguf_status st =
            reader_run(fn, rows[i].lines, strlen(rows[i].lines), &v, &c, &e);
        ok(st == status && strstr(e.message, rows[i].word) &&
               e.offset == rows[i].off,
           "refused at %lld: %s", (long long)e.offset, e.message);
        reader_forget(&v, &c);
    }
}

#endif
