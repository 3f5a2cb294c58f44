/* SPDX-License-Identifier: MIT */
/* check-split.c - special tokens are found in a text before it is tokenized:
 * compared with a plain search for all of them, and time */
#include "config.h"
#include "base/compiler.h"
#include "base/mem.h"
#include "tests/failalloc.h"
#include "tests/scratch.h"
#include "tests/tap.h"
#include "vocab/vocab_int.h"

/* ---- a vocabulary that is only split off ---- */

static void vocab_init(struct gguf_vocab *v, struct gg_vocab_token *t,
                       size_t n, const struct gguf_allocator *a)
{
    *v = (struct gguf_vocab){ .allocator = a, .token = t, .n_tokens = n };
    for (size_t i = 0; i < n; i++)
        v->max_size = GG_MAX(v->max_size, t[i].text.size);
}

/* ---- plainly ---- */

enum { MAX_TEXT = 64, MAX_TOKENS = 24 };

static bool splits_token(uint8_t kind, bool parse)
{
    return kind == GGUF_TOKEN_USER || (parse && (kind == GGUF_TOKEN_CONTROL ||
                                                 kind == GGUF_TOKEN_UNKNOWN));
}

/* Does token a take precedence? The longer one does, then the smaller id. */
static bool token_precedes(const struct gguf_vocab *v, size_t a, size_t b)
{
    size_t m = v->token[a].text.size, n = v->token[b].text.size;
    return m != n ? m > n : a < b;
}

/* Mark the byte where each token begins with id + 1, and dropped bytes with
 * 255. Searches for one token after the other, each from left to right. */
static void split_plainly(const struct gguf_vocab *v, const char *text,
                          size_t size, bool parse, uint8_t *at)
{
    bool used[MAX_TEXT] = { false }, done[MAX_TOKENS] = { false };
    memset(at, 0, size);
    for (;;) {
        size_t best = v->n_tokens;
        for (size_t i = 0; i < v->n_tokens; i++)
            if (!done[i] &&
                (best == v->n_tokens || token_precedes(v, i, best)))
                best = i;
        if (best == v->n_tokens)
            return;
        done[best] = true;
        const struct gg_vocab_token *t = &v->token[best];
        size_t n = t->text.size;
        if (!n || !splits_token(t->kind, parse))
            continue;
        for (size_t off = 0; off + n <= size; off++) {
            bool is_free = !memcmp(text + off, t->text.data, n);
            for (size_t k = 0; is_free && k < n; k++)
                is_free = !used[off + k];
            if (!is_free)
                continue;
            at[off] = (uint8_t)(best + 1);
            for (size_t k = 0; k < n; k++)
                used[off + k] = true;
            for (size_t k = off + n;
                 t->rstrip && k < size && !used[k] && text[k] == ' '; k++) {
                used[k] = true;
                at[k] = 255;
            }
        }
    }
}

static bool same_pieces(const struct gguf_vocab *v, const uint8_t *at,
                        size_t size, const struct gg_vocab_piece *p, size_t n)
{
    size_t off = 0;
    for (size_t i = 0; i < n; i++) {
        while (off < size && at[off] == 255)
            off++;
        if (p[i].off != off || !p[i].size)
            return false;
        if (p[i].id != GGUF_TOKEN_NONE) {
            if (at[off] != p[i].id + 1 ||
                p[i].size != v->token[p[i].id].text.size)
                return false;
        } else {
            for (size_t k = 0; k < p[i].size; k++)
                if (at[off + k])
                    return false;
            size_t end = off + p[i].size;
            if (end < size && !at[end])
                return false;
        }
        off += p[i].size;
    }
    while (off < size && at[off] == 255)
        off++;
    return off == size;
}

/* Random tokens and texts of two letters and blanks. */
static void check_random(void)
{
    static const uint8_t kinds[] = { GGUF_TOKEN_USER, GGUF_TOKEN_USER,
                                     GGUF_TOKEN_CONTROL, GGUF_TOKEN_NORMAL,
                                     GGUF_TOKEN_UNKNOWN };
    char texts[MAX_TOKENS][12], text[MAX_TEXT];
    struct gg_vocab_token t[MAX_TOKENS];
    uint8_t at[MAX_TEXT];
    int n_wrong = 0, n_tokens = 0;
    for (int round = 0; round < 20000; round++) {
        size_t n = 1 + rnd_below(MAX_TOKENS), size = rnd_below(MAX_TEXT + 1);
        unsigned n_letters = 1 + (unsigned)rnd_below(3);
        for (size_t i = 0; i < n; i++) {
            size_t k = rnd_below(sizeof texts[i]);
            for (size_t c = 0; c < k; c++)
                texts[i][c] = " ab"[rnd_below(n_letters)];
            t[i] =
                (struct gg_vocab_token){ .text = { texts[i], k },
                                         .kind =
                                             kinds[rnd_below(GG_LEN(kinds))],
                                         .rstrip = rnd_below(4) == 0 };
            for (size_t o = 0; o < i; o++) /* texts of tokens differ */
                if (t[o].text.size == k &&
                    !memcmp(t[o].text.data, texts[i], k))
                    t[i].text.size = 0;
        }
        for (size_t c = 0; c < size; c++)
            text[c] = " ab"[rnd_below(n_letters)];
        struct gguf_vocab v;
        vocab_init(&v, t, n, NULL);
        if (gg_vocab_split_load(&v, NULL) != GGUF_OK)
            abort();
        for (int parse = 0; parse < 2; parse++) {
            struct gg_vocab_piece *p;
            size_t n_pieces;
            if (gg_vocab_split_text(&v, text, size, parse, &p, &n_pieces,
                                    NULL) != GGUF_OK)
                abort();
            split_plainly(&v, text, size, parse, at);
            n_wrong += !same_pieces(&v, at, size, p, n_pieces);
            for (size_t i = 0; i < n_pieces; i++)
                n_tokens += p[i].id != GGUF_TOKEN_NONE;
            gg_mem_free(NULL, p);
        }
        gg_vocab_split_unload(&v);
    }
    ok(!n_wrong && n_tokens > 100000, "%d tokens found; %d texts cut wrong",
       n_tokens, n_wrong);
}

/* ---- time and memory ---- */

static size_t n_live, n_most;

static void *count_alloc(void *user, size_t size)
{
    size_t *p = malloc(size + 16);
    (void)user;
    if (!p)
        abort();
    *p = size;
    n_live += size;
    n_most = GG_MAX(n_most, n_live);
    return (char *)p + 16;
}

static void count_free(void *user, void *p)
{
    (void)user;
    if (!p)
        return;
    n_live -= *(size_t *)(void *)((char *)p - 16);
    free((char *)p - 16);
}

/* Split size bytes of text, with and without control tokens. Returns the
 * processor time; -1: failed. */
static double time_of_cuts(const struct gguf_vocab *v, const char *text,
                           size_t size, struct gg_vocab_piece **p, size_t *n)
{
    const double start = scratch_cpu_time();
    for (int parse = 0; parse < 2; parse++) {
        gg_mem_free(v->allocator, *p);
        if (gg_vocab_split_text(v, text, size, parse, p, n, NULL) != GGUF_OK)
            return -1;
    }
    return scratch_cpu_time() - start;
}

/* 2000 tokens: each begins with every shorter one. All of them begin at every
 * byte of the text. Memory and time are proportional to the text, not to the
 * product: four times the text takes four times the time. */
static void check_chain(const char *what, char last)
{
    enum { N = 2000, SIZE = 60000 };
    static const struct gguf_allocator a = { .struct_size =
                                                 sizeof(struct gguf_allocator),
                                             .alloc = count_alloc,
                                             .free = count_free };
    struct gg_vocab_token *t = calloc(N, sizeof *t);
    char *blanks = malloc(SIZE), *text = malloc(SIZE), *end = malloc(N);
    struct gguf_vocab v;
    struct gg_vocab_piece *p = NULL;
    size_t n = 0;
    memset(blanks, ' ', SIZE);
    memset(text, ' ', SIZE);
    memset(end, ' ', N);
    end[N - 1] = last;
    text[SIZE - 1] = last;
    for (size_t i = 0; i < N; i++)
        t[i] = (struct gg_vocab_token){
            .text = { i + 1 < N ? blanks : end, i + 1 },
            .kind = i % 2 ? GGUF_TOKEN_USER : GGUF_TOKEN_CONTROL
        };
    vocab_init(&v, t, N, &a);
    if (gg_vocab_split_load(&v, NULL) != GGUF_OK)
        abort();
    const double part =
        time_of_cuts(&v, text + SIZE / 4 * 3, SIZE / 4, &p, &n);
    n_most = 0;
    const double all = time_of_cuts(&v, text, SIZE, &p, &n);
    /* 30 of 2000; or one with the last byte, 29 of 1999 and a rest */
    ok(part >= 0 && all >= 0 && n == (last == ' ' ? 30 : 31) &&
           p[0].size == (last == ' ' ? N : N - 1) && n_most < 100 * SIZE &&
           all < 8 * part + 0.2,
       "%s: %zu pieces, %zu bytes, %.2f s, of a quarter %.2f s", what, n,
       n_most, all, part);
    gg_mem_free(&a, p);
    gg_vocab_split_unload(&v);
    ok(n_live == 0, "and all of it is given back");
    free(t);
    free(blanks);
    free(text);
    free(end);
}

static void check_nomem(void)
{
    struct gg_vocab_token t[2] = {
        { .text = { "ab", 2 }, .kind = GGUF_TOKEN_USER },
        { .text = { "b", 1 }, .kind = GGUF_TOKEN_CONTROL }
    };
    struct failalloc fa;
    struct gguf_vocab v;
    struct gg_vocab_piece *p;
    size_t n_pieces;
    unsigned n = 0, n_failed = 0;
    bool good = true;
    for (;; n++) {
        vocab_init(&v, t, 2, failalloc_init(&fa, n));
        enum gguf_status st = gg_vocab_split_load(&v, NULL);
        if (st == GGUF_OK) {
            st = gg_vocab_split_text(&v, "xabb", 4, true, &p, &n_pieces, NULL);
            gg_mem_free(&fa.a, p);
            good &= (st == GGUF_OK) == (p != NULL);
        }
        gg_vocab_split_unload(&v);
        good &= fa.live == 0 && (st == GGUF_OK || st == GGUF_E_NOMEM);
        n_failed += st != GGUF_OK;
        if (fa.calls <= n)
            break;
    }
    ok(good && n == n_failed && n >= 6, "each of %u allocations fails", n);
}

int main(void)
{
    check_random();
    check_chain("blanks", ' ');
    check_chain("blanks and a letter", 'x');
    check_nomem();
    return done_testing();
}
