/* SPDX-License-Identifier: MIT */
/* check-carried.c - ids and words of 200 awkward texts, by their digests
 *
 * texts.txt has the texts, a line each, \ff for the byte 0xff. digests.txt has
 * FNV-1a hashes:
 *
 *     ids MODE HASH     of the lines of ids, with commas, that llama.cpp
 *                       gives with the vocabulary of share/tiny-llama; of the
 *                       text that the plain ones become again: mode text
 *     words PRE HASH    of the ends of the words that a pre-tokenizer cuts, a
 *                       line for each text
 *
 *     check-carried --carry DIR    write both files, of ../shared
 *
 * Those of words are this library's own: made when check-golden found the ids
 * of every pre-tokenizer to be llama.cpp's. The digests of afmoe, deepseek-v3,
 * hunyuan-dense and joyai-llm are made by the Rust library tokenizers 0.23 of
 * the published expressions, in which "~" is a symbol.
 */
#include "config.h"
#include "base/compiler.h"
#include "base/str.h"
#include "gguf/vocab.h"
#include "tests/scratch.h"
#include "tests/slurp.h"
#include "tests/source.h"
#include "tests/tap.h"
#include "vocab/pretok.h"

#include <inttypes.h>

enum { MAX_TEXTS = 256, N_MODES = 3 };

static struct text {
    char *data;
    size_t size;
} texts[MAX_TEXTS];
static size_t n_texts;

static const struct {
    const char *name;
    unsigned flags;
} modes[N_MODES] = {
    { "plain", 0 },
    { "special", GGUF_TOKENIZE_ADD_SPECIAL },
    { "special+parse",
      GGUF_TOKENIZE_ADD_SPECIAL | GGUF_TOKENIZE_PARSE_SPECIAL },
};

#define TINY_LLAMA "share/tiny-llama/tiny-llama-f16.gguf"
#define FNV_BEGIN  UINT64_C(0xcbf29ce484222325)

static uint64_t fnv1a(uint64_t h, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const uint8_t *)p)[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* ---- the texts ---- */

static int hex(char c)
{
    return c >= 'a' ? c - 'a' + 10 : c - '0';
}

/* Of a line with escapes (from `\`), or of nothing but hexadecimal digits. */
static struct text decode(const char *p, bool escapes)
{
    struct text t = { malloc(strlen(p) + 1), 0 };
    if (!t.data)
        abort();
    while (*p) {
        if (!escapes || *p == '\\') {
            p += escapes;
            t.data[t.size++] = (char)(hex(p[0]) << 4 | hex(p[1]));
            p += 2;
        } else {
            t.data[t.size++] = *p++;
        }
    }
    return t;
}

/* Of a table the last column, and not the first line. */
static size_t read_texts(const char *path, bool table, struct text *out)
{
    size_t n = 0;
    char *all = slurp(path, NULL);
    for (char *p = all, *next; p && *p && n < MAX_TEXTS; p = next) {
        next = p + strcspn(p, "\n");
        if (*next)
            *next++ = 0;
        if (table && p == all)
            continue;
        out[n++] = decode(table ? strrchr(p, '\t') + 1 : p, !table);
    }
    free(all);
    return n;
}

static void write_texts(FILE *f, const struct text *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < t[i].size; k++) {
            const uint8_t c = (uint8_t)t[i].data[k];
            if (c >= ' ' && c < 127 && c != '\\')
                putc(c, f);
            else
                fprintf(f, "\\%02x", c);
        }
        putc('\n', f);
    }
}

/* ---- digests ---- */

static uint64_t hash_ids(const struct gguf_vocab *v, unsigned flags,
                         uint64_t *text)
{
    uint64_t h = FNV_BEGIN;
    *text = FNV_BEGIN;
    for (size_t i = 0; i < n_texts; i++) {
        struct gguf_tokens t = GGUF_TOKENS_INIT;
        char number[16], back[8192];
        if (gguf_vocab_tokenize(v, texts[i].data, texts[i].size, flags, &t,
                                NULL) != GGUF_OK)
            return 0;
        for (size_t k = 0; k < t.n; k++) {
            const int n =
                snprintf(number, sizeof number, "%s%d", k ? "," : "", t.id[k]);
            h = fnv1a(h, number, (size_t)n);
        }
        h = fnv1a(h, "\n", 1);
        const size_t n = gguf_vocab_detokenize(
            v, t.id, t.n, GGUF_DETOKENIZE_SPECIAL, back, sizeof back);
        *text = fnv1a(*text, back, GG_MIN(n, sizeof back));
        gguf_tokens_fini(&t);
    }
    return h;
}

static enum gguf_status add_word(void *user, size_t off, size_t size,
                                 struct gguf_error *err)
{
    char number[32];
    const int n = snprintf(number, sizeof number, "%zu,", off + size);
    (void)err;
    *(uint64_t *)user = fnv1a(*(uint64_t *)user, number, (size_t)n);
    return GGUF_OK;
}

static uint64_t hash_words(const char *pre)
{
    struct gg_pretok *p;
    uint64_t h = FNV_BEGIN;
    if (gg_pretok_create(&p, gg_str_z(pre), NULL, NULL) != GGUF_OK)
        return 0;
    for (size_t i = 0; i < n_texts; i++) {
        /* what is not UTF-8 is made so before words are cut */
        if (gg_str_utf8_valid(texts[i].data, texts[i].size) &&
            gg_pretok_split(p, texts[i].data, texts[i].size, add_word, &h,
                            NULL) != GGUF_OK)
            h = 0;
        h = fnv1a(h, "\n", 1);
    }
    gg_pretok_destroy(p);
    return h;
}

/* Of a mode, what llama.cpp gave; 0 where that is not there. */
static uint64_t golden_ids(const char *mode, uint64_t *text)
{
    uint64_t h = FNV_BEGIN;
    size_t n = 0;
    char *all =
        slurp(shared_path("golden/tokenizer/ids-trained-llama.tsv"), NULL);
    *text = FNV_BEGIN;
    for (char *p = all, *next; p && *p; p = next) {
        char *col[4] = { p };
        next = p + strcspn(p, "\n");
        if (*next)
            *next++ = 0;
        for (int i = 1; i < 4 && col[i - 1]; i++)
            if ((col[i] = strchr(col[i - 1], '\t')) != NULL)
                *col[i]++ = 0;
        if (*p == '#' || !col[3] || strcmp(col[1], mode))
            continue;
        h = fnv1a(fnv1a(h, col[2], strlen(col[2])), "\n", 1);
        const bool same = !strcmp(col[3], "="), none = *col[3] == '-';
        struct text t = same || none ? texts[n] : decode(col[3], false);
        *text = fnv1a(*text, t.data, none ? 0 : t.size);
        if (!same && !none)
            free(t.data);
        n++;
    }
    free(all);
    return n ? h : 0;
}

/* ---- the tests ---- */

static void check_ids(const struct gguf_vocab *v, const char *mode,
                      uint64_t want)
{
    uint64_t text, theirs, their_text;
    for (int m = 0; m < N_MODES; m++) {
        if (strcmp(mode, modes[m].name))
            continue;
        ok(hash_ids(v, modes[m].flags, &text) == want, "ids, %s", mode);
        theirs = golden_ids(mode, &their_text);
        if (theirs)
            ok(theirs == want, "ids, %s: llama.cpp's", mode);
        return;
    }
    hash_ids(v, 0, &text);
    ok(text == want, "text of ids");
    if (golden_ids("plain", &their_text))
        ok(their_text == want, "text of ids: llama.cpp's");
}

static void check_digests(const struct gguf_vocab *v)
{
    char kind[16], name[64], hash[32];
    FILE *f = fopen(source_path("tests/vocab/digests.txt"), "r");
    unsigned n = 0;
    for (; f && fscanf(f, "%15s %63s %31s", kind, name, hash) == 3; n++) {
        const uint64_t want = strtoull(hash, NULL, 16);
        if (!strcmp(kind, "ids"))
            check_ids(v, name, want);
        else
            ok(hash_words(name) == want, "words of %s", name);
    }
    if (f)
        fclose(f);
    ok(n == 90, "%u digests", n);
}

static void check_texts(void)
{
    static struct text theirs[MAX_TEXTS];
    const char *path = shared_path("golden/tokenizer/corpus.tsv");
    size_t n = path ? read_texts(path, true, theirs) : 0, n_same = 0;
    for (size_t i = 0; i < n; i++) {
        n_same += i < n_texts && theirs[i].size == texts[i].size &&
                  !memcmp(theirs[i].data, texts[i].data, texts[i].size);
        free(theirs[i].data);
    }
    ok(n_texts == 200 && n_same == n, "%zu texts%s", n_texts,
       n ? " of ../shared" : "");
}

/* Time per byte of a text and of one sixteen times as long, of one word and
 * of many: no more than log-linear. */
static double time_text(const struct gguf_vocab *v, const char *text, size_t n)
{
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        double begin = scratch_cpu_time();
        t.n = 0;
        if (gguf_vocab_tokenize(v, text, n, 0, &t, NULL) != GGUF_OK)
            return 1e9;
        double s = scratch_cpu_time() - begin;
        best = s < best ? s : best;
    }
    gguf_tokens_fini(&t);
    return best;
}

static void check_time(const struct gguf_vocab *v)
{
    enum { SHORT = 16384, LONG = 16 * SHORT };
    static const char *const kinds[] = { "one word", "words", "blanks" };
    char *text = malloc(LONG);
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < LONG; i++)
            text[i] = k == 2 || (k == 1 && i % 6 == 5)
                          ? ' '
                          : (char)('a' + rnd_below(26));
        double a = time_text(v, text, SHORT), b = time_text(v, text, LONG);
        ok(b < 64 * a, "%s: %.1f and %.1f ns a byte", kinds[k],
           1e9 * a / SHORT, 1e9 * b / LONG);
    }
    free(text);
}

/* ---- making them ---- */

static FILE *create(const char *dir, const char *name)
{
    char path[4400];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    if (!f)
        perror(path);
    return f;
}

static int carry(const char *dir)
{
    uint64_t text = 0, h;
    char pre[64];
    const char *path = shared_path("golden/tokenizer/corpus.tsv");
    n_texts = path ? read_texts(path, true, texts) : 0;
    FILE *f = create(dir, "texts.txt"), *g = create(dir, "digests.txt");
    path = shared_path("golden/tokenizer/pre/names.tsv");
    FILE *names = path ? fopen(path, "r") : NULL;
    if (!n_texts || !f || !g || !names)
        return 1;
    write_texts(f, texts, n_texts);
    for (int m = N_MODES - 1; m >= 0; m--) {
        h = golden_ids(modes[m].name, &text);
        fprintf(g, "ids %s 0x%016" PRIx64 "\n", modes[m].name, h);
    }
    fprintf(g, "ids text 0x%016" PRIx64 "\n", text);
    for (int i = 0; fscanf(names, "%63s %*s", pre) == 1; i++)
        if (i) /* headings */
            fprintf(g, "words %s 0x%016" PRIx64 "\n", pre, hash_words(pre));
    fclose(names);
    return fclose(f) | fclose(g);
}

int main(int argc, char **argv)
{
    struct gguf_file *file;
    struct gguf_vocab *v;
    if (argc > 2 && !strcmp(argv[1], "--carry"))
        return carry(argv[2]);
    n_texts = read_texts(source_path("tests/vocab/texts.txt"), false, texts);
    if (gguf_file_open(&file, source_path(TINY_LLAMA), NULL, NULL) ||
        gguf_vocab_create(&v, file, NULL, NULL)) {
        ok(0, TINY_LLAMA);
        return done_testing();
    }
    check_texts();
    check_digests(v);
    check_time(v);
    gguf_vocab_destroy(v);
    gguf_file_close(file);
    for (size_t i = 0; i < n_texts; i++)
        free(texts[i].data);
    return done_testing();
}
