/* SPDX-License-Identifier: MIT */
/* check-text-digests.c - ids and words of 200 awkward texts agree with digests
 *
 * texts.txt has a text per line, with \ff for the byte 0xff. digests.txt has
 * FNV-1a hashes:
 *
 *     ids MODE HASH     of the lines of ids, with commas, that llama.cpp
 *                       gives with the vocabulary of share/tiny-llama; mode
 *                       text: of the texts detokenized from the plain ids
 *     words PRE HASH    of the ends of the words that a pre-tokenizer cuts, a
 *                       line for each text
 *
 * generate.py makes both files from ../shared, except for the hashes of words,
 * which this test prints. They are the library's own, made when check-golden
 * found llama.cpp's ids for every pre-tokenizer. For afmoe, deepseek-v3,
 * hunyuan-dense and joyai-llm they come from the Rust library tokenizers 0.23
 * with the published expressions, in which "~" is a symbol. Those of
 * spark2_5 and ufakzeka come from Python's module regex with the expressions of
 * llama.cpp 0.5.
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

static int hex_digit(char c)
{
    return c >= 'a' ? c - 'a' + 10 : c - '0';
}

/* Decode a line with escapes. */
static struct text decode_line(const char *p)
{
    struct text t = { malloc(strlen(p) + 1), 0 };
    if (!t.data)
        abort();
    while (*p) {
        if (*p == '\\') {
            t.data[t.size++] = (char)(hex_digit(p[1]) << 4 | hex_digit(p[2]));
            p += 3;
        } else {
            t.data[t.size++] = *p++;
        }
    }
    return t;
}

static size_t read_texts(const char *path, struct text *out)
{
    size_t n = 0;
    char *all = slurp(path, NULL);
    for (char *p = all, *next; p && *p && n < MAX_TEXTS; p = next) {
        next = p + strcspn(p, "\n");
        if (*next)
            *next++ = 0;
        out[n++] = decode_line(p);
    }
    free(all);
    return n;
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
        /* words are cut after invalid UTF-8 was replaced */
        if (gg_str_utf8_valid(texts[i].data, texts[i].size) &&
            gg_pretok_split(p, texts[i].data, texts[i].size, add_word, &h,
                            NULL) != GGUF_OK)
            h = 0;
        h = fnv1a(h, "\n", 1);
    }
    gg_pretok_destroy(p);
    return h;
}

/* ---- the tests ---- */

static void check_ids(const struct gguf_vocab *v, const char *mode,
                      uint64_t want)
{
    uint64_t text, h = hash_ids(v, 0, &text);
    for (int m = 0; m < N_MODES; m++)
        if (!strcmp(mode, modes[m].name))
            ok((h = hash_ids(v, modes[m].flags, &text)) == want,
               "ids, %s: 0x%016" PRIx64, mode, h);
    if (!strcmp(mode, "text"))
        ok(text == want, "text of ids: 0x%016" PRIx64, text);
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
            ok(hash_words(name) == want, "words of %s: 0x%016" PRIx64, name,
               hash_words(name));
    }
    if (f)
        fclose(f);
    ok(n == 93, "%u digests", n);
}

/* Time per byte of a text and of one sixteen times as long, of one word and of
 * many words, grows at most logarithmically. */
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

int main(void)
{
    struct gguf_file *file;
    struct gguf_vocab *v;
    n_texts = read_texts(source_path("tests/vocab/texts.txt"), texts);
    ok(n_texts == 200, "%zu texts", n_texts);
    if (gguf_file_open(&file, source_path(TINY_LLAMA), NULL, NULL) ||
        gguf_vocab_create(&v, file, NULL, NULL)) {
        ok(0, TINY_LLAMA);
        return done_testing();
    }
    check_digests(v);
    check_time(v);
    gguf_vocab_destroy(v);
    gguf_file_close(file);
    for (size_t i = 0; i < n_texts; i++)
        free(texts[i].data);
    return done_testing();
}
