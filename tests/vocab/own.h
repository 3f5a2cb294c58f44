/* SPDX-License-Identifier: MIT */
/* own.h - small vocabularies made by a test */
#ifndef TESTS_VOCAB_OWN_H
#define TESTS_VOCAB_OWN_H

#include "base/compiler.h"
#include "base/str.h"
#include "gguf/vocab.h"
#include "gguf/writer.h"
#include "tests/failalloc.h"
#include "tests/scratch.h"
#include "tests/tap.h"
#include "tests/vocab/ids.h"

/* ---- a vocabulary of our own ---- */

struct own {
    struct gguf_meta *meta;
    struct gguf_file *file;
    struct gguf_vocab *v;
    void *bytes;
    struct gguf_error err;
};

/* Text, score, kind. "_" stands for U+2581. */
struct own_token {
    const char *text;
    float score;
    int32_t kind;
};

static inline void own_tokens(struct own *o, const struct own_token *t,
                              size_t n, const char *model)
{
    enum { MOST = 600 };
    struct gguf_str text[MOST];
    static char buf[MOST][48];
    float score[MOST];
    int32_t kind[MOST];
    if (n > MOST)
        abort();
    if (gguf_meta_create(&o->meta, NULL, NULL) != GGUF_OK)
        abort();
    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        for (const char *p = t[i].text; *p; p++) {
            if (*p == '_')
                memcpy(buf[i] + k, "\xe2\x96\x81", 3);
            else
                buf[i][k] = *p;
            k += *p == '_' ? 3 : 1;
        }
        text[i] = (struct gguf_str){ buf[i], k };
        score[i] = t[i].score;
        kind[i] = t[i].kind;
    }
    if (gguf_meta_set_strz(o->meta, "tokenizer.ggml.model", model, NULL) ||
        gguf_meta_set_str_array(o->meta, "tokenizer.ggml.tokens", text, n,
                                NULL) ||
        gguf_meta_set_array(o->meta, "tokenizer.ggml.scores", GGUF_VAL_F32,
                            score, n, NULL) ||
        gguf_meta_set_array(o->meta, "tokenizer.ggml.token_type", GGUF_VAL_I32,
                            kind, n, NULL))
        abort();
}

/* Make the file of o->meta and open its vocabulary. */
static inline enum gguf_status own_open(struct own *o,
                                        const struct gguf_vocab_params *params)
{
    struct gguf_writer *w;
    const void *head;
    size_t size;
    if (gguf_writer_create(&w, o->meta, NULL, NULL) != GGUF_OK ||
        gguf_writer_header(w, &head, &size, NULL) != GGUF_OK)
        abort();
    o->bytes = malloc(size);
    memcpy(o->bytes, head, size);
    gguf_writer_destroy(w);
    if (gguf_file_open_memory(&o->file, o->bytes, size, NULL, &o->err) !=
        GGUF_OK)
        abort();
    return gguf_vocab_create(&o->v, o->file, params, &o->err);
}

static inline void own_close(struct own *o)
{
    gguf_vocab_destroy(o->v);
    gguf_file_close(o->file);
    free(o->bytes);
    o->v = NULL;
    o->file = NULL;
    o->bytes = NULL;
}

static inline int gives_ids(const struct gguf_vocab *v, const char *text,
                            unsigned flags, const char *want)
{
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    int good = gguf_vocab_tokenize(v, text, strlen(text), flags, &t, NULL) ==
                   GGUF_OK &&
               same_ids(&t, want);
    if (!good) {
        printf("# '%s': ", text);
        print_ids(&t);
    }
    gguf_tokens_fini(&t);
    return good;
}

static inline enum gguf_status use_vocab(const struct gguf_file *file,
                                         const char *text,
                                         const struct gguf_allocator *a)
{
    struct gguf_vocab *v;
    struct gguf_vocab_params p = GGUF_VOCAB_PARAMS_INIT;
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    p.allocator = t.allocator = a;
    enum gguf_status st = gguf_vocab_create(&v, file, &p, NULL);
    if (st == GGUF_OK)
        st = gguf_vocab_tokenize(v, text, strlen(text),
                                 GGUF_TOKENIZE_PARSE_SPECIAL, &t, NULL);
    gguf_tokens_fini(&t);
    gguf_vocab_destroy(v);
    return st;
}

static inline void check_nomem(struct own *o, const char *what)
{
    enum gguf_status st = GGUF_E_NOMEM;
    int bad = 0;
    long n;
    for (n = 0; n < 1000 && st == GGUF_E_NOMEM; n++) {
        struct failalloc f;
        const struct gguf_allocator *a = failalloc_from(&f, (unsigned)n);
        st = use_vocab(o->file, "ab <ctl> abc\xff", a);
        bad += f.live != 0;
    }
    ok(st == GGUF_OK && !bad && n > 5,
       "%s: each of %ld allocations may fail; nothing is lost", what, n - 1);
}

#endif
