/* SPDX-License-Identifier: MIT */
/* converted_vocab.h - tokenizes texts with a converted folder's vocabulary */
#ifndef TESTS_CONVERT_CONVERTED_VOCAB_H
#define TESTS_CONVERT_CONVERTED_VOCAB_H

#include "gguf/convert.h"
#include "gguf/vocab.h"
#include "tests/convert/folder.h"
#include "tests/convert/roundtrip.h"
#include "tests/scratch.h"
#include "tests/tap.h"
#include "tests/vocab/ids.h"

#include <string.h>

/* A file converted from a folder, and its vocabulary. */
struct converted_vocab {
    struct gguf_file *file;
    struct gguf_vocab *vocab;
};

/* Convert the folder to the file out, which is replaced. */
static inline enum gguf_status converted_vocab_open(struct converted_vocab *m,
                                                    const char *dir,
                                                    const char *out,
                                                    struct gguf_error *e)
{
    memset(m, 0, sizeof *m);
    gguf_error_clear(e);
    folder_any = true;
    enum gguf_status st = folder_convert(dir, out, NULL, e);
    if (st == GGUF_OK)
        st = gguf_file_open(&m->file, out, NULL, e);
    if (st == GGUF_OK)
        st = gguf_vocab_create(&m->vocab, m->file, NULL, e);
    return st;
}

static inline void converted_vocab_close(struct converted_vocab *m)
{
    gguf_vocab_destroy(m->vocab);
    gguf_file_close(m->file);
}

/* Check that the file at path, converted from f, becomes a folder below top,
 * and that again the same file: one test. */
static inline void converted_vocab_roundtrip(const struct folder *f,
                                             const char *path, const char *top,
                                             const char *what)
{
    struct gguf_error e;
    gguf_error_clear(&e);
    ok(folder_roundtrip(path, strrchr(f->dir, '/') + 1,
                        scratch_path(top, "back"), &e),
       "%s: a folder of it becomes the same file %s", what, e.message);
}

/* Check that the folder is refused with this status at this byte of a file.
 * The message begins with the file's name and contains the word. One test. */
static inline void check_folder_refused(const struct folder *f,
                                        const char *file, const char *word,
                                        uint64_t off, enum gguf_status status)
{
    struct gguf_convert *c = NULL;
    struct gguf_error e;
    gguf_error_clear(&e);
    const enum gguf_status st = gguf_convert_open(&c, f->dir, NULL, &e);
    ok(st == status && !c && strstr(e.message, word) &&
           strstr(e.message, file) == e.message && e.offset == off,
       "refused at %lld: %s", (long long)e.offset, e.message);
    gguf_convert_close(c);
}

/* Does a text become these ids ("1,2,3"), with special tokens? */
static inline bool converted_vocab_gives(const struct converted_vocab *m,
                                         const char *text, const char *ids)
{
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    struct gguf_error e;
    gguf_error_clear(&e);
    const bool good =
        m->vocab &&
        gguf_vocab_tokenize(m->vocab, text, strlen(text),
                            GGUF_TOKENIZE_ADD_SPECIAL, &t, &e) == GGUF_OK &&
        same_ids(&t, ids);
    if (!good) {
        printf("# want %s\n# got %s ", ids, e.message);
        print_ids(&t);
    }
    gguf_tokens_fini(&t);
    return good;
}

/* Value of a key as a number; -1: missing. */
static inline int64_t converted_vocab_key(const struct converted_vocab *m,
                                          const char *key)
{
    const struct gguf_kv *kv = gguf_file_kv_find(m->file, key);
    uint64_t u;
    bool yes;
    if (kv && gguf_kv_get_bool(kv, &yes, NULL) == GGUF_OK)
        return yes;
    return kv && gguf_kv_get_uint(kv, &u, NULL) == GGUF_OK ? (int64_t)u : -1;
}

/* Do two vocabularies have equal tokens, kinds and scores? */
static inline bool vocab_equal(const struct gguf_vocab *a,
                               const struct gguf_vocab *b)
{
    const size_t n_tokens = gguf_vocab_n_tokens(a);
    bool good = n_tokens == gguf_vocab_n_tokens(b);
    for (size_t i = 0; good && i < n_tokens; i++) {
        const gguf_token id = (gguf_token)i;
        const struct gguf_str s = gguf_vocab_token_text(a, id),
                              t = gguf_vocab_token_text(b, id);
        good = s.size == t.size && !memcmp(s.data, t.data, s.size) &&
               gguf_vocab_token_kind(a, id) == gguf_vocab_token_kind(b, id) &&
               gguf_vocab_token_score(a, id) == gguf_vocab_token_score(b, id);
        if (!good)
            printf("# token %zu: '%.*s' of kind %d, '%.*s' of kind %d\n", i,
                   (int)s.size, s.data, (int)gguf_vocab_token_kind(a, id),
                   (int)t.size, t.data, (int)gguf_vocab_token_kind(b, id));
    }
    return good;
}

/* Compare ids for each line of a file. Returns the number of lines; -1: some
 * differ. */
static inline int vocab_same_ids(const struct gguf_vocab *a,
                                 const struct gguf_vocab *b, FILE *lines)
{
    static char line[1 << 16];
    int n = 0;
    bool good = true;
    for (; good && fgets(line, sizeof line, lines); n++) {
        struct gguf_tokens x = GGUF_TOKENS_INIT, y = GGUF_TOKENS_INIT;
        const size_t size = strcspn(line, "\n");
        good = gguf_vocab_tokenize(a, line, size, GGUF_TOKENIZE_ADD_SPECIAL,
                                   &x, NULL) == GGUF_OK &&
               gguf_vocab_tokenize(b, line, size, GGUF_TOKENIZE_ADD_SPECIAL,
                                   &y, NULL) == GGUF_OK &&
               x.n == y.n && (!x.n || !memcmp(x.id, y.id, x.n * sizeof *x.id));
        if (!good)
            printf("# line %d differs\n", n + 1);
        gguf_tokens_fini(&x);
        gguf_tokens_fini(&y);
    }
    return good ? n : -1;
}

/* A vocabulary of ../shared/golden, and its file; NULL: not on this machine. */
static inline struct gguf_vocab *golden_vocab(const char *name,
                                              struct gguf_file **file)
{
    struct gguf_vocab *v = NULL;
    struct gguf_error e;
    char path[500];
    const char *dir = shared_path("golden/tokenizer/vocabs");
    *file = NULL;
    snprintf(path, sizeof path, "%s/%s", dir ? dir : "", name);
    if (!dir || gguf_file_open(file, path, NULL, &e) != GGUF_OK ||
        gguf_vocab_create(&v, *file, NULL, &e) != GGUF_OK)
        skip("no vocabulary %s here", name);
    return v;
}

/* Compare the ids of m and v for the lines of the golden text: one test. */
static inline void check_golden_ids(const struct converted_vocab *m,
                                    const struct gguf_vocab *v)
{
    FILE *lines = fopen(shared_path("golden/tokenizer/corpus.txt"), "rb");
    const int n = m->vocab && lines ? vocab_same_ids(m->vocab, v, lines) : -1;
    ok(n > 150, "ids of %d lines, as its GGUF file has them", n);
    if (lines)
        fclose(lines);
}

#endif
