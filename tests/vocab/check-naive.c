/* SPDX-License-Identifier: MIT */
/* check-naive.c - each algorithm agrees with a plain program by its
 * definition, on random vocabularies and texts */
#include "config.h"
#include "tests/ignore_status.h"
#include "tests/vocab/own.h"

#include <math.h>

enum { MOST = 40, TEXT = 60 };

/* A random vocabulary. */
struct drawn {
    struct own_token t[600];
    char text[600][12];
    size_t n;
};

static void add_token(struct drawn *d, const char *text, float score,
                      int32_t kind)
{
    if (strlen(text) >= sizeof d->text[0])
        return;
    for (size_t i = 0; i < d->n; i++)
        if (!strcmp(d->text[i], text))
            return;
    strcpy(d->text[d->n], text);
    d->t[d->n] = (struct own_token){ d->text[d->n], score, kind };
    d->n++;
}

/* A random word of at most n of these letters. */
static const char *draw_text(char *out, size_t n, const char *letters)
{
    size_t k = 1 + rnd_below(n);
    for (size_t i = 0; i < k; i++)
        out[i] = letters[rnd_below(strlen(letters))];
    out[k] = 0;
    return out;
}

static void open_drawn(struct own *o, struct drawn *d, const char *model,
                       const struct gguf_str *merges, size_t n_merges)
{
    *o = (struct own){ 0 };
    own_tokens(o, d->t, d->n, model);
    if (merges &&
        (gguf_meta_set_str_array(o->meta, "tokenizer.ggml.merges", merges,
                                 n_merges, NULL) != GGUF_OK ||
         gguf_meta_set_strz(o->meta, "tokenizer.ggml.pre", "gpt-2", NULL) !=
             GGUF_OK))
        abort();
    ignore_status(gguf_meta_set_u32(o->meta, "tokenizer.ggml.unknown_token_id",
                                    0, NULL));
    if (own_open(o, NULL) != GGUF_OK) {
        printf("# %s\n", o->err.message);
        abort();
    }
}

static void close_drawn(struct own *o)
{
    own_close(o);
    gguf_meta_destroy(o->meta);
}

static gguf_token find_token(const struct drawn *d, const char *p, size_t n)
{
    for (size_t i = 0; i < d->n; i++)
        if (strlen(d->text[i]) == n && !memcmp(d->text[i], p, n))
            return (gguf_token)i;
    return GGUF_TOKEN_NONE;
}

/* ---- byte-pair encoding: join the best pair, the leftmost, repeatedly ---- */

static size_t naive_bpe(const struct drawn *d, char (*rule)[24],
                        size_t n_rules, const char *text, gguf_token *out)
{
    char sym[TEXT + 1][12];
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        sprintf(sym[i], "%c", text[i]);
    for (;;) {
        size_t best = n_rules, at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            char joined[28];
            snprintf(joined, sizeof joined, "%s %s", sym[i], sym[i + 1]);
            for (size_t r = 0; r < best; r++)
                if (!strcmp(rule[r], joined)) {
                    best = r;
                    at = i;
                }
        }
        if (best == n_rules)
            break;
        memcpy(sym[at] + strlen(sym[at]), sym[at + 1],
               strlen(sym[at + 1]) + 1);
        for (size_t i = at + 1; i + 1 < n; i++)
            strcpy(sym[i], sym[i + 1]);
        n--;
    }
    for (size_t i = 0; i < n; i++)
        out[i] = find_token(d, sym[i], strlen(sym[i]));
    return n;
}

static bool same_tokens(const struct gguf_tokens *t, const gguf_token *id,
                        size_t n)
{
    return t->n == n && (!n || !memcmp(t->id, id, n * sizeof *id));
}

static void check_bpe(void)
{
    int n_bad = 0;
    size_t n_joined = 0;
    for (int round = 0; round < 300; round++) {
        static struct drawn d;
        char rule[MOST][24], text[TEXT + 1];
        struct gguf_str merges[MOST];
        size_t n_rules = 0;
        d.n = 0;
        add_token(&d, "<unk>", 0, 2);
        for (const char *c = "abc"; *c; c++)
            add_token(&d, (char[]){ *c, 0 }, 0, 1);
        while (n_rules < 20) {
            size_t l = 1 + rnd_below(d.n - 1), r = 1 + rnd_below(d.n - 1);
            char joined[24];
            if (strlen(d.text[l]) + strlen(d.text[r]) > 8)
                continue;
            snprintf(joined, sizeof joined, "%s%s", d.text[l], d.text[r]);
            add_token(&d, joined, 0, 1);
            snprintf(rule[n_rules], sizeof *rule, "%s %s", d.text[l],
                     d.text[r]);
            merges[n_rules] = gg_str_z(rule[n_rules]);
            n_rules++;
        }
        struct own o;
        open_drawn(&o, &d, "gpt2", merges, n_rules);
        for (int k = 0; k < 20; k++) {
            struct gguf_tokens t = GGUF_TOKENS_INIT;
            gguf_token want[TEXT];
            size_t n = naive_bpe(&d, rule, n_rules,
                                 draw_text(text, TEXT, "abc"), want);
            if (gguf_vocab_tokenize(o.v, text, strlen(text), 0, &t, NULL) !=
                GGUF_OK)
                abort();
            n_bad += !same_tokens(&t, want, n);
            n_joined += strlen(text) - n;
            gguf_tokens_fini(&t);
        }
        close_drawn(&o);
    }
    ok(!n_bad && n_joined > 10000,
       "merges by rank: %zu joined, %d texts wrong", n_joined, n_bad);
}

/* ---- unigram: of all ways the best ---- */

/* Best sum of scores from each place to the end. */
static void naive_sums(const struct drawn *d, const char *text, double unknown,
                       double *best)
{
    size_t size = strlen(text);
    best[size] = 0;
    for (size_t i = size; i-- > 0;) {
        best[i] = find_token(d, text + i, 1) == GGUF_TOKEN_NONE
                      ? unknown + best[i + 1]
                      : -HUGE_VAL;
        for (size_t k = 1; i + k <= size && k < sizeof d->text[0]; k++) {
            gguf_token id = find_token(d, text + i, k);
            if (id == GGUF_TOKEN_NONE || id == 0)
                continue;
            double s = (double)d->t[id].score + best[i + k];
            best[i] = s > best[i] ? s : best[i];
        }
    }
}

/* Sum of the tokens' scores; NaN: the tokens do not make up the text. */
static double sum_of(const struct drawn *d, const struct gguf_tokens *t,
                     const char *text, double unknown)
{
    double sum = 0;
    for (size_t i = 0; i < t->n; i++) {
        const char *p = d->text[t->id[i]];
        if (t->id[i]) {
            if (strncmp(text, p, strlen(p)) != 0)
                return NAN;
            text += strlen(p);
            sum += (double)d->t[t->id[i]].score;
            continue;
        }
        if (*text != 'x')
            return NAN;
        for (; *text == 'x'; text++)
            sum += unknown;
    }
    return *text ? NAN : sum;
}

static void check_ugm(void)
{
    enum { LONG = 5000 };
    int n_bad = 0, n_unknown = 0;
    char *text = malloc(LONG + 1);
    double *best = malloc((LONG + 1) * sizeof *best);
    for (int round = 0; round < 200; round++) {
        static struct drawn d;
        char word[12];
        d.n = 0;
        add_token(&d, "<unk>", 0, 2);
        for (const char *c = "ab"; *c; c++) /* no token has an x */
            add_token(&d, (char[]){ *c, 0 }, -(float)(1 + rnd_below(9)), 1);
        for (int i = 0; i < 20; i++)
            add_token(&d, draw_text(word, 6, "ab"),
                      -(float)(1 + rnd_below(20)), 1);
        double low = 0;
        for (size_t i = 1; i < d.n; i++)
            low = fmin(low, (double)d.t[i].score);
        struct own o;
        open_drawn(&o, &d, "t5", NULL, 0);
        for (int k = 0; k < 20; k++) {
            struct gguf_tokens t = GGUF_TOKENS_INIT;
            /* sometimes longer than the window */
            draw_text(text, k ? TEXT : LONG, "ababababx");
            naive_sums(&d, text, low - 10, best);
            if (gguf_vocab_tokenize(o.v, text, strlen(text), 0, &t, NULL) !=
                GGUF_OK)
                abort();
            n_bad += sum_of(&d, &t, text, low - 10) != best[0];
            for (size_t i = 0; i < t.n; i++)
                n_unknown += t.id[i] == 0;
            gguf_tokens_fini(&t);
        }
        close_drawn(&o);
    }
    ok(!n_bad && n_unknown > 1000, "unigram: %d unknown, %d texts wrong",
       n_unknown, n_bad);
    free(text);
    free(best);
}

/* ---- PLaMo-2: the same from the end, and the longer token first ---- */

enum { FIRST_BYTE = 1, N_BYTES = 256 };

static size_t naive_plamo2(const struct drawn *d, const char *text,
                           gguf_token *out)
{
    int64_t best[TEXT + 1];
    size_t size = strlen(text), step[TEXT + 1], n = 0;
    gguf_token id[TEXT + 1];
    best[size] = 0;
    for (size_t i = size; i-- > 0;) {
        best[i] = INT64_MAX;
        for (size_t k = size - i; k; k--) {
            gguf_token t = find_token(d, text + i, k);
            if (t == GGUF_TOKEN_NONE || d->t[t].kind == 6)
                continue;
            int64_t c = best[i + k] - (int64_t)round(d->t[t].score * 1e4);
            if (c < best[i]) {
                best[i] = c;
                step[i] = k;
                id[i] = t;
            }
        }
        if (best[i + 1] + 10000000 < best[i]) {
            best[i] = best[i + 1] + 10000000;
            step[i] = 1;
            id[i] = FIRST_BYTE + (unsigned char)text[i];
        }
    }
    for (size_t i = 0; i < size; i += step[i])
        out[n++] = id[i];
    return n;
}

static void check_plamo2(void)
{
    int n_bad = 0, n_bytes = 0;
    for (int round = 0; round < 200; round++) {
        static struct drawn d;
        char word[12], text[TEXT + 1];
        d.n = 0;
        add_token(&d, "<unk>", -1, 2);
        for (unsigned b = 0; b < N_BYTES; b++) {
            snprintf(word, sizeof word, "<0x%02X>", b);
            add_token(&d, word, 0, 6);
        }
        for (int i = 0; i < 20;
             i++) /* few scores: many ways have equal sums */
            add_token(&d, draw_text(word, 6, "abc"),
                      -(float)(1 + rnd_below(3)), 1);
        struct own o;
        open_drawn(&o, &d, "plamo2", NULL, 0);
        for (int k = 0; k < 20; k++) {
            struct gguf_tokens t = GGUF_TOKENS_INIT;
            gguf_token want[TEXT];
            size_t n =
                naive_plamo2(&d, draw_text(text, TEXT, "abcabcabcabcx"), want);
            if (gguf_vocab_tokenize(o.v, text, strlen(text), 0, &t, NULL) !=
                GGUF_OK)
                abort();
            n_bad += !same_tokens(&t, want, n);
            for (size_t i = 0; i < n; i++)
                n_bytes += want[i] > 0 && want[i] <= N_BYTES;
            gguf_tokens_fini(&t);
        }
        if (!round)
            check_nomem(&o, "PLaMo-2");
        close_drawn(&o);
    }
    ok(!n_bad && n_bytes > 100, "PLaMo-2: %d bytes, %d texts wrong", n_bytes,
       n_bad);
}

/* ---- RWKV and WordPiece: the longest each time ---- */

static size_t naive_longest(const struct drawn *d, const char *text,
                            gguf_token *out, bool stuck)
{
    size_t n = 0, size = strlen(text);
    for (size_t i = 0; i < size;) {
        size_t k = size - i;
        gguf_token id = GGUF_TOKEN_NONE;
        for (; k && id == GGUF_TOKEN_NONE; k -= id == GGUF_TOKEN_NONE)
            id = find_token(d, text + i, k);
        if (id == GGUF_TOKEN_NONE && stuck) {
            out[0] = 0;
            return 1;
        }
        out[n++] = id == GGUF_TOKEN_NONE ? 0 : id;
        i += k ? k : 1;
    }
    return n;
}

static void check_longest(void)
{
    int n_bad = 0, n_unknown = 0;
    for (int round = 0; round < 200; round++) {
        static struct drawn d, w; /* w: d with tokens that begin words, too */
        char word[12], text[TEXT + 1];
        d.n = w.n = 0;
        add_token(&d, "<unk>", 0, 2);
        add_token(&w, "<unk>", 0, 2);
        for (int i = 0; i < 20; i++)
            add_token(&d, draw_text(word, 6, "abc"), 0, 1);
        for (size_t i = 1; i < d.n; i++) {
            char start[12];
            snprintf(start, sizeof start, "_%.8s", d.text[i]);
            add_token(&w, d.text[i], 0, 1);
            add_token(&w, start, 0, 1);
        }
        struct own o, p;
        open_drawn(&o, &d, "rwkv", NULL, 0);
        open_drawn(&p, &w, "bert", NULL, 0);
        for (int k = 0; k < 20; k++) {
            struct gguf_tokens t = GGUF_TOKENS_INIT;
            gguf_token want[TEXT + 1];
            draw_text(text + 1, TEXT - 1, "abc");
            *text = '_';
            size_t n = naive_longest(&d, text + 1, want, false);
            if (gguf_vocab_tokenize(o.v, text + 1, strlen(text + 1), 0, &t,
                                    NULL) != GGUF_OK)
                abort();
            n_bad += !same_tokens(&t, want, n);
            n = naive_longest(&w, text, want, true);
            t.n = 0;
            if (gguf_vocab_tokenize(p.v, text + 1, strlen(text + 1), 0, &t,
                                    NULL) != GGUF_OK)
                abort();
            n_bad += !same_tokens(&t, want, n);
            n_unknown += n == 1 && !want[0];
            gguf_tokens_fini(&t);
        }
        close_drawn(&o);
        close_drawn(&p);
    }
    ok(!n_bad && n_unknown > 100, "RWKV, WordPiece: %d unknown, %d wrong",
       n_unknown, n_bad);
}

/* ---- how long it takes ---- */

static double time_of(const struct gguf_vocab *v, const char *text, size_t n)
{
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        struct gguf_tokens t = GGUF_TOKENS_INIT;
        double begin = scratch_cpu_time();
        if (gguf_vocab_tokenize(v, text, n, 0, &t, NULL) != GGUF_OK)
            abort();
        best = fmin(best, scratch_cpu_time() - begin);
        gguf_tokens_fini(&t);
    }
    return best;
}

/* Time for a word, and for one sixteen times as long, of letters that all
 * join. */
static void check_time(void)
{
    enum { SHORT = 20000, LONG = 16 * SHORT };
    static const char *const models[] = { "llama", "gpt2", "gemma4", "bert",
                                          "t5",    "rwkv", "plamo2" };
    static struct drawn d;
    const struct gguf_str merges[] = { GG_STR("a a"), GG_STR("aa aa"),
                                       GG_STR("a b"), GG_STR("b aa") };
    char *text = malloc(LONG), word[12];
    for (size_t i = 0; i < LONG; i++)
        text[i] = rnd_below(50) ? 'a' : 'b';
    add_token(&d, "<unk>", 0, 2);
    for (unsigned b = 0; b < N_BYTES; b++) {
        snprintf(word, sizeof word, "<0x%02X>", b);
        add_token(&d, word, 0, 6);
    }
    for (const char *t = "a\0b\0aa\0aaaa\0ab\0baa\0_\0_a\0"; *t;
         t += strlen(t) + 1)
        add_token(&d, t, -(float)strlen(t), 1);
    for (size_t i = 0; i < GG_LEN(models); i++) {
        struct own o;
        open_drawn(&o, &d, models[i], merges, GG_LEN(merges));
        double a = time_of(o.v, text, SHORT), b = time_of(o.v, text, LONG);
        ok(b < 64 * a, "%s: a word, %.1f and %.1f ns a byte", models[i],
           1e9 * a / SHORT, 1e9 * b / LONG);
        close_drawn(&o);
    }
    free(text);
}

int main(void)
{
    check_bpe();
    check_ugm();
    check_plamo2();
    check_longest();
    check_time();
    return done_testing();
}
