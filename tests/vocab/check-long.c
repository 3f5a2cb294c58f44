/* SPDX-License-Identifier: MIT */
/* check-long.c - long tokens, and the work for long words
 *
 * Command-R's vocabulary has tokens of 1, 2, 4, ..., 512 blanks. The longest
 * has 1024 bytes in the file. By the definition of BPE, a run of n blanks
 * becomes tokens of 512, then one token for each binary digit of the rest.
 */
#include "config.h"
#include "file/file_check.h"
#include "gguf/check.h"
#include "tests/vocab/own.h"
#include "vocab/merge.h"

enum { N_RUNS = 10, LONGEST = 1 << (N_RUNS - 1) };

#define LETTER "\xc4\xa0" /* a blank as files store it */

static char blanks[2 * LONGEST + 1];

static void on_warn(void *user, const char *message)
{
    printf("# %s\n", message);
    ++*(int *)user;
}

/* Make a vocabulary whose token k is 2^k blanks. Each merge joins two equal
 * tokens. Without merges, only the first token is used. */
static void make_vocab(struct own *o, const char *pre, bool merges)
{
    struct gguf_str token[N_RUNS], merge[N_RUNS];
    static char text[N_RUNS][2 * LONGEST + 1];
    *o = (struct own){ 0 };
    for (size_t k = 0; k < N_RUNS; k++) {
        const size_t half = k ? 1 << k : 0; /* bytes of half the blanks */
        token[k] = (struct gguf_str){ blanks, (size_t)2 << k };
        memcpy(text[k], blanks, half);
        text[k][half] = ' ';
        memcpy(text[k] + half + 1, blanks, half);
        merge[k] = (struct gguf_str){ text[k], 2 * half + 1 };
    }
    if (gguf_meta_create(&o->meta, NULL, NULL) ||
        gguf_meta_set_strz(o->meta, "tokenizer.ggml.model", "gpt2", NULL) ||
        gguf_meta_set_strz(o->meta, "tokenizer.ggml.pre", pre, NULL) ||
        gguf_meta_set_str_array(o->meta, "tokenizer.ggml.tokens", token,
                                N_RUNS, NULL) ||
        gguf_meta_set_str_array(o->meta, "tokenizer.ggml.merges", merge + 1,
                                merges ? N_RUNS - 1 : 1, NULL))
        abort();
}

static bool is_binary(const struct gguf_tokens *t, size_t n)
{
    size_t i = 0;
    for (; n >= LONGEST; n -= LONGEST)
        if (i >= t->n || t->id[i++] != N_RUNS - 1)
            return false;
    for (int k = N_RUNS - 2; k >= 0; k--)
        if (n >> k & 1 && (i >= t->n || t->id[i++] != k))
            return false;
    return i == t->n;
}

static void check_runs(void)
{
    struct gguf_vocab_params p = GGUF_VOCAB_PARAMS_INIT;
    struct own o;
    static char text[100000];
    size_t wrong = 0, n = 1;
    int n_warned = 0;
    p.warn.fn = on_warn;
    p.warn.user = &n_warned;
    memset(text, ' ', sizeof text);
    make_vocab(&o, "gpt-2", true);
    const int good = own_open(&o, &p) == GGUF_OK;
    ok(good && n_warned == 1, /* warning about bytes without a token */
       "tokens of 1024 bytes: their merges count");
    for (; good && n <= sizeof text; n += n < 2100 ? 1 : 9973) {
        struct gguf_tokens t = GGUF_TOKENS_INIT;
        wrong += gguf_vocab_tokenize(o.v, text, n, 0, &t, NULL) != GGUF_OK ||
                 !is_binary(&t, n);
        gguf_tokens_fini(&t);
    }
    ok(good && n > 2100 && !wrong, "runs of up to %zu blanks", sizeof text);
    own_close(&o);
    gguf_meta_destroy(o.meta);

    make_vocab(&o, "llama-bpe", false);
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    ok(own_open(&o, NULL) == GGUF_OK &&
           gguf_vocab_tokenize(o.v, text, LONGEST, 0, &t, NULL) == GGUF_OK &&
           t.n == 1 && t.id[0] == N_RUNS - 1,
       "a word that is a token of 1024 bytes, without merges");
    gguf_tokens_fini(&t);
    own_close(&o);
    gguf_meta_destroy(o.meta);
}

/* ---- findings ---- */

static bool on_finding(void *user, const struct gguf_finding *f)
{
    printf("# %s: %s\n", f->code, f->message);
    *(int *)user += strcmp(f->code, "unknown-merge") == 0;
    return 0;
}

static void check_found(void)
{
    struct gg_file_checker c;
    struct own o;
    int n_unknown = 0;
    make_vocab(&o, "gpt-2", true);
    ok(own_open(&o, NULL) == GGUF_OK &&
           gg_file_checker_init(
               &c, NULL,
               (struct gguf_finding_callback){ on_finding, &n_unknown },
               NULL) == GGUF_OK,
       "a file of long merges");
    c.file = o.file;
    ok(gg_vocab_check(&c, NULL) == GGUF_OK && !n_unknown,
       "no finding says that they are not of tokens");
    own_close(&o);
    gguf_meta_destroy(o.meta);
}

/* ---- work ---- */

static unsigned long n_asked;

/* Join two runs of the same length. */
static bool merge_pair(const void *user, const struct gg_vocab_symbol *l,
                       const struct gg_vocab_symbol *r, double *score,
                       gguf_token *id)
{
    (void)user;
    n_asked++;
    *id = l->id + 1;
    *score = -(double)l->id;
    return l->id == r->id;
}

/* For a word of n symbols, merges are looked up once for each pair of
 * neighbours, and twice after each of at most n - 1 joins, whatever the length
 * of tokens. */
static void check_work(void)
{
    struct gg_merge m;
    unsigned long wrong = 0;
    gg_merge_init(&m, NULL, merge_pair, NULL);
    for (uint32_t n = 1; n < 300000; n = 3 * n + 1) {
        m.n = 0;
        n_asked = 0;
        for (uint32_t i = 0; i < n; i++)
            if (gg_merge_add(&m, i, 1, 0, NULL))
                abort();
        wrong += gg_merge_run(&m, NULL) != GGUF_OK || n_asked > 3ul * n;
    }
    gg_merge_fini(&m);
    ok(!wrong, "n symbols: at most 3 n pairs are looked at");
}

/* Memory for tokenizing n blanks. */
static size_t memory_for(const struct gguf_file *file, const char *text,
                         size_t n)
{
    struct failalloc f;
    struct gguf_vocab_params p = GGUF_VOCAB_PARAMS_INIT;
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    struct gguf_vocab *v;
    p.allocator = failalloc_init(&f, UINT_MAX);
    if (gguf_vocab_create(&v, file, &p, NULL))
        abort();
    const size_t before = f.now;
    f.most = before;
    if (gguf_vocab_tokenize(v, text, n, 0, &t, NULL))
        abort();
    gguf_tokens_fini(&t);
    gguf_vocab_destroy(v);
    return f.most - before;
}

static void check_memory(void)
{
    enum { N = 1 << 20 };
    struct own o;
    char *text = malloc(N);
    memset(text, ' ', N);
    make_vocab(&o, "llama-bpe", true);
    if (own_open(&o, NULL))
        abort();
    const size_t part = memory_for(o.file, text, N / 16),
                 all = memory_for(o.file, text, N);
    ok(all < 20 * part, "memory grows with the text: %zu, %zu bytes", part,
       all);
    check_nomem(&o, "long tokens");
    own_close(&o);
    gguf_meta_destroy(o.meta);
    free(text);
}

int main(void)
{
    for (size_t i = 0; i < LONGEST; i++)
        memcpy(blanks + 2 * i, LETTER, 2);
    check_runs();
    check_found();
    check_work();
    check_memory();
    return done_testing();
}
