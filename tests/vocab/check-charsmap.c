/* SPDX-License-Identifier: MIT */
/* check-charsmap.c - SentencePiece's table for rewriting a text: its effect,
 * and malformed tables */
#include "config.h"
#include "base/bytes.h"
#include "tests/ignore_status.h"
#include "tests/vocab/own.h"

#define KEY "tokenizer.ggml.precompiled_charsmap"

/* A trie of two blocks of 256 units: the root leads to the second block, where
 * A and AB have texts. */
enum { N_UNITS = 512, SIZE = 4 + 4 * N_UNITS + 6 };
enum {
    ROOT = 0,
    A = 256 ^ 'A',
    A_TEXT = 0x1f0,
    AB = A_TEXT ^ 'B',
    AB_TEXT = 0x1f8
};

static uint8_t table[SIZE];

static uint32_t get_unit(size_t i)
{
    return gg_bytes_load32le(table + 4 + 4 * i);
}

static void set_unit(size_t i, uint32_t u)
{
    for (int b = 0; b < 4; b++)
        table[4 + 4 * i + (size_t)b] = (uint8_t)(u >> 8 * b);
}

static void set_size(uint32_t size)
{
    for (int b = 0; b < 4; b++)
        table[b] = (uint8_t)(size >> 8 * b);
}

static void make_trie(void)
{
    memset(table, 0, sizeof table);
    set_size(4 * N_UNITS);
    set_unit(ROOT, 256u << 10);
    set_unit(A, 'A' | 1u << 8 | (uint32_t)(A ^ A_TEXT) << 10);
    set_unit(A_TEXT, 1u << 31 | 0);
    set_unit(AB, 'B' | 1u << 8 | (uint32_t)(AB ^ AB_TEXT) << 10);
    set_unit(AB_TEXT, 1u << 31 | 2);
    memcpy(table + 4 + 4 * N_UNITS, "b\0cab", 6);
}

static const struct own_token tokens[] = {
    { "<pad>", 0, 3 }, { "</s>", 0, 3 },
    { "<unk>", 0, 2 }, { "_", -3, 1 },
    { "a", -2, 1 },    { "b", -2, 1 },
    { "c", -2, 1 },    { "A", -2, 1 },
    { "<A>", 0, 4 },   { "\xef\xbf\xbd", -2, 1 },
};

static enum gguf_status begin_vocab(struct own *o, size_t size)
{
    *o = (struct own){ 0 };
    own_tokens(o, tokens, GG_LEN(tokens), "t5");
    if (gguf_meta_set_array(o->meta, KEY, GGUF_VAL_U8, table, size, NULL) !=
        GGUF_OK)
        abort();
    return own_open(o, NULL);
}

static void end_vocab(struct own *o)
{
    own_close(o);
    gguf_meta_destroy(o->meta);
}

static void check_rewriting(void)
{
    struct own o;
    make_trie();
    if (begin_vocab(&o, SIZE) != GGUF_OK)
        abort();
    ok(gives_ids(o.v, "AAcABA", 0, "5,5,6,6,4,5,5"),
       "the longest key each time");
    ok(gives_ids(o.v, "a<A>A", 0, "4,8,5"), "user-defined tokens stay");
    ok(gives_ids(o.v,
                 "a\xff"
                 "b\xed\xa0\x80",
                 0, "4,9,5,9,9,9"),
       "bytes that are not UTF-8 are U+FFFD");
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    ok(gguf_vocab_tokenize(o.v, "A\0A", 3, 0, &t, NULL) == GGUF_OK &&
           same_ids(&t, "5,2,5"),
       "a zero byte begins no key");
    gguf_tokens_fini(&t);
    check_nomem(&o, "charsmap");
    end_vocab(&o);
}

/* ---- refused ---- */

static void trie_long(void)
{
    set_size(4 * N_UNITS + 8);
}
static void trie_odd(void)
{
    set_size(4 * N_UNITS - 2);
}
static void trie_none(void)
{
    set_size(0);
}
static void leads_out(void)
{
    set_unit(A, get_unit(A) | 1u << 30);
}
static void unused_leads_out(void)
{
    set_unit(7, 1u << 20);
}
static void text_far(void)
{
    set_unit(A_TEXT, 1u << 31 | 6);
}
static void text_open(void)
{
    table[SIZE - 1] = 'x';
}

static void check_refused(void)
{
    static const struct {
        void (*change)(void);
        size_t size;
        const char *says;
    } cases[] = {
        { trie_long, SIZE, "its trie has 2056," },
        { trie_odd, SIZE, "its trie has 2046," },
        { trie_none, SIZE, "its trie has 0," },
        { make_trie, 3, "has 3 bytes" },
        { make_trie, 1000, "has 1000 bytes; its trie" },
        { make_trie, SIZE - 6, "unit 321 of 512 has its text after the end" },
        { make_trie, SIZE - 1, "unit 434 of 512 has a text without end" },
        { leads_out, SIZE, "unit 321 of 512 leads out of the trie" },
        { unused_leads_out, SIZE, "unit 7 of 512 leads out of the trie" },
        { text_far, SIZE, "unit 321 of 512 has its text after the end" },
        { text_open, SIZE, "unit 434 of 512 has a text without end" },
    };
    for (size_t i = 0; i < GG_LEN(cases); i++) {
        struct own o;
        make_trie();
        cases[i].change();
        enum gguf_status st = begin_vocab(&o, cases[i].size);
        ok(st == GGUF_E_VOCAB && strstr(o.err.message, KEY) &&
               strstr(o.err.message, cases[i].says),
           "%s", o.err.message);
        end_vocab(&o);
    }
    struct own o;
    own_tokens(&o, tokens, GG_LEN(tokens), "t5");
    ignore_status(gguf_meta_set_strz(o.meta, KEY, "text", NULL));
    ok(own_open(&o, NULL) == GGUF_E_TYPE && strstr(o.err.message, KEY), "%s",
       o.err.message);
    end_vocab(&o);
}

/* ---- a trie that leads back into itself ---- */

static void check_cycle(void)
{
    enum { LONG = 200000 };
    struct own o;
    struct gguf_tokens t = GGUF_TOKENS_INIT;
    char *text = malloc(LONG);
    make_trie();
    set_unit(A,
             'A' | (uint32_t)'A' << 10); /* after A comes A, without a text */
    if (begin_vocab(&o, SIZE) != GGUF_OK)
        abort();
    memset(text, 'A', LONG);
    double start = scratch_cpu_time();
    ok(gguf_vocab_tokenize(o.v, text, LONG, 0, &t, NULL) == GGUF_OK &&
           t.n == LONG && t.id[0] == 7,
       "a cycle gives no text");
    double took = scratch_cpu_time() - start;
    ok(took < 5, "nor takes time: %.2f s", took);
    gguf_tokens_fini(&t);
    free(text);
    end_vocab(&o);
}

/* A table with random bytes is refused or used without harm. */
static void check_any(void)
{
    int n_taken = 0, n_refused = 0;
    for (int round = 0; round < 3000; round++) {
        struct own o;
        struct gguf_tokens t = GGUF_TOKENS_INIT;
        make_trie();
        for (size_t k = 1 + rnd_below(4); k; k--) {
            size_t at = rnd_below(2) ? rnd_below(SIZE)
                                     : 4 + 4 * (A_TEXT - rnd_below(180));
            table[at] = (uint8_t)rnd_below(256);
        }
        if (begin_vocab(&o, SIZE - rnd_below(3)) == GGUF_OK) {
            n_taken++;
            if (gguf_vocab_tokenize(o.v, "ABABAABA BA", 11, 0, &t, &o.err) ==
                GGUF_OK)
                for (size_t i = 0; i < t.n; i++)
                    if (t.id[i] < 0 || (size_t)t.id[i] >= GG_LEN(tokens))
                        abort();
        } else {
            n_refused += o.err.message[0] != 0;
        }
        gguf_tokens_fini(&t);
        end_vocab(&o);
    }
    ok(n_taken + n_refused == 3000 && n_taken > 100 && n_refused > 100,
       "changed at random: %d taken, %d refused", n_taken, n_refused);
}

int main(void)
{
    check_rewriting();
    check_refused();
    check_cycle();
    check_any();
    return done_testing();
}
