/* SPDX-License-Identifier: MIT */
/* fuzz_text.c - short texts: sizes, names of shards, limits and types,
 * patterns, escaping */
#include "config.h"
#include "base/compiler.h"
#include "base/str.h"
#include "gguf/dtype.h"
#include "gguf/split.h"
#include "gguf/text.h"
#include "recipe/pattern.h"
#include "tests/fuzz/fuzz.h"
#include "tests/ignore_status.h"

#include <string.h>

/* The escaped text is one line that a terminal can show. */
static void check_escape(struct gguf_str s)
{
    size_t room = 8 * s.size + 1;
    char *all = malloc(room), small[16];
    MUST(all);
    size_t n = gguf_text_escape(all, room, s);
    MUST(n < room && strlen(all) == n);
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t k = gguf_text_decode_utf8(all + i, n - i, &cp);
        MUST(k && cp >= 0x20 && (cp < 0x7f || cp > 0x9f));
        MUST(cp < 0x202a || cp > 0x202e); /* direction marks */
        i += k;
    }
    n = gguf_text_escape(small, sizeof small, s);
    MUST(n < sizeof small && strlen(small) == n);
    for (size_t i = 0; i < n;) {
        size_t k = gguf_text_decode_utf8(small + i, n - i, NULL);
        MUST(k);
        i += k;
    }
    free(all);
}

static void check_pattern(struct gguf_str s)
{
    static const char as[] =
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab";
    static const char *const names[] = {
        "",
        "blk.0.attn_v.weight",
        "token_embd.weight",
        "blk.12.ffn_gate_exps.weight",
        as,
    };
    struct gg_pattern *p;
    struct gguf_error err;
    bool found;
    if (gg_pattern_create(&p, s, NULL, &err) != GGUF_OK) {
        MUST(!p && err.message[0]);
        return;
    }
    for (size_t i = 0; i < GG_LEN(names); i++)
        if (gg_pattern_match(p, names[i], &found, &err) != GGUF_OK)
            MUST(err.status == GGUF_E_LIMIT);
    gg_pattern_destroy(p);
}

/* A name that was parsed is printed the same. */
static void check_shard_name(const char *z)
{
    size_t n;
    unsigned no, count;
    if (!gguf_split_name_parse(z, &n, &no, &count))
        return;
    char *prefix = malloc(n + 1), *out = malloc(n + 32);
    MUST(prefix && out && no > 0 && no <= count);
    memcpy(prefix, z, n);
    prefix[n] = '\0';
    MUST(gguf_split_name_format(out, n + 32, prefix, no, count, NULL) ==
         GGUF_OK);
    MUST(!strcmp(out, z));
    free(prefix);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gguf_str s = { (const char *)data, size };
    struct gguf_limits limits = GGUF_INIT(struct gguf_limits);
    uint64_t bytes;
    char *z = malloc(size + 1);
    MUST(z);
    if (size)
        memcpy(z, data, size);
    z[size] = '\0';
    check_escape(s);
    check_pattern(s);
    check_shard_name(z);
    if (gguf_size_parse(z, &bytes, NULL) == GGUF_OK)
        MUST(bytes <= INT64_MAX);
    ignore_status(gguf_limits_set(&limits, z, size, NULL));
    const struct gguf_dtype_info *t = gguf_dtype_find_name(z);
    MUST(!t || strlen(t->name) == strlen(z));
    free(z);
    return 0;
}

void fuzz_make_seeds(void)
{
    static const char *const texts[] = {
        "",
        "1.5GiB",
        "9223372036854775807",
        ".5k",
        "8388607.9999999Ti",
        "m-00001-of-00002.gguf",
        "-65535-of-65535.gguf",
        "array-items",
        "Q4_K",
        "iq2_xxs",
        "blk\\.(\\d+)\\.ffn_(gate|up)_exps",
        "^[^a-c\\]x]+$",
        "(a|ab)*{2,3}[[:alpha:]]\\w\\S",
        "a\xc2\x9b\xe2\x80\xae\xff\x1b[0m\\",
        "\xf0\x9f\x98\x80 \xed\xa0\x80",
        "(a*)*b",
        "\\",
        "[",
        "a{1,2}{3}",
        "....49+++++++++++++++++++++9i", /* needs more memory than the machine
                                          * has */
        "(?:a|(?=b))\\b(?!c)",
        "((a{99}){99}){99}",
        "(a*)*(a*)*(a*)*b",
    };
    for (size_t i = 0; i < GG_LEN(texts); i++)
        seed_text(texts[i]);
}
