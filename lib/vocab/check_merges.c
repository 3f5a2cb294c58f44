/* SPDX-License-Identifier: MIT */
/* check_merges.c - report faults of tokenizer.ggml.merges
 *
 * Each entry must be two texts with one blank between; the texts, and the
 * joined text, must be tokens; no pair should come twice, as only the first
 * counts. */
#include "config.h"
#include "vocab/pretok.h"
#include "vocab/vocab_int.h"

#include "base/compiler.h"
#include "base/mem.h"
#include "base/str.h"

#define KEY "tokenizer.ggml.merges"
#define PRE "tokenizer.ggml.pre"

/* Number of entries of one kind, and the first of them. */
struct kind {
    uint64_t n, first;
    struct gguf_str text;
};

static void count_merge(struct kind *k, uint64_t i, struct gguf_str text)
{
    if (k->n++ == 0) {
        k->first = i;
        k->text = text;
    }
}

static enum gguf_status report_kind(const struct gg_vocab_check_context *s,
                                    const struct gguf_kv *kv,
                                    const struct kind *k,
                                    enum gg_file_check_code code,
                                    const char *what, struct gguf_error *err)
{
    struct gg_str_esc e;
    if (!k->n)
        return GGUF_OK;
    return gg_file_report_finding(
        s->c, code, kv->key, gg_vocab_text_off(s, k->text), err,
        KEY ": %" PRIu64 " of %" PRIu64 " %s, first [%" PRIu64 "] '%s'", k->n,
        kv->n, what, k->first, gg_str_esc(&e, k->text));
}

/* Memory of one check: hashes of entries, and room for the longest token. */
struct scratch {
    struct gg_hash_set seen;
    char *joined;
    size_t room;
};

static bool is_known(const struct gg_vocab_check_context *s, struct gguf_str l,
                     struct gguf_str r, const struct scratch *x)
{
    return gg_hash_set_has(s->texts, l) && gg_hash_set_has(s->texts, r) &&
           gg_hash_set_has(s->texts, gg_bpe_join(l, r, x->joined, x->room));
}

static enum gguf_status check_all(const struct gg_vocab_check_context *s,
                                  const struct gguf_kv *kv, struct scratch *x,
                                  struct gguf_error *err)
{
    struct kind malformed = { 0 }, blanks = { 0 }, unknown = { 0 },
                twice = { 0 };
    struct gguf_kv_iter it;
    struct gguf_str text, l, r;
    gguf_kv_iter_init(&it, kv);
    while (gguf_kv_iter_next_str(&it, &text)) {
        if (!gg_bpe_parse_merge(text, &l, &r)) {
            count_merge(&malformed, it.i - 1, text);
            continue;
        }
        if (memchr(r.data, ' ', r.size))
            count_merge(&blanks, it.i - 1, text);
        if (!s->texts)
            continue;
        if (!is_known(s, l, r, x))
            count_merge(&unknown, it.i - 1, text);
        if (gg_hash_set_add(&x->seen, text))
            count_merge(&twice, it.i - 1, text);
    }
    GG_TRY(report_kind(s, kv, &malformed, GG_CHECK_MERGE,
                       "are not two texts with a blank between", err));
    GG_TRY(report_kind(s, kv, &blanks, GG_CHECK_MERGE_BLANKS,
                       "have more than one blank", err));
    GG_TRY(report_kind(s, kv, &unknown, GG_CHECK_MERGE_UNKNOWN,
                       "join or make texts that are not tokens", err));
    return report_kind(s, kv, &twice, GG_CHECK_MERGE_TWICE, "are there before",
                       err);
}

static enum gguf_status check_pre(const struct gg_vocab_check_context *s,
                                  struct gguf_error *err)
{
    const struct gguf_kv *kv = gguf_file_kv_find(s->c->file, PRE);
    struct gguf_str name;
    struct gg_pretok_suggestions near;
    struct gg_str_esc e;
    if (s->algo
            /* the algorithm has one pre-tokenizer, whatever a key says */
            ->pre)
        return GGUF_OK;
    if (!kv)
        return gg_file_report_finding(
            s->c, GG_CHECK_NO_PRE, GG_STR(PRE), GGUF_NO_OFFSET, err,
            "key '" PRE "' is missing: programs guess how "
            "texts are cut into words");
    if (gguf_kv_get_str(kv, &name, NULL) != GGUF_OK ||
        gg_pretok_is_known(name))
        return GGUF_OK;
    gg_pretok_suggest(&near, name);
    return gg_file_report_finding(
        s->c, GG_CHECK_PRE_UNKNOWN, kv->key, kv->off, err,
        "key '" PRE "' is '%s', which is not a way to cut texts "
        "into words that is known; like it are '%.*s' and "
        "'%.*s'",
        gg_str_esc(&e, name), (int)near.name[0].size, near.name[0].data,
        (int)near.name[1].size, near.name[1].data);
}

enum gguf_status gg_bpe_check(const struct gg_vocab_check_context *s,
                              struct gguf_error *err)
{
    const struct gguf_file *file = s->c->file;
    const struct gguf_allocator *a = s->c->params.allocator;
    const struct gguf_kv *kv = gguf_file_kv_find(file, KEY);
    GG_TRY(check_pre(s, err));
    if (!kv || kv->type != GGUF_VAL_ARR || kv->elem_type != GGUF_VAL_STR ||
        kv->n > UINT32_MAX)
        return gg_file_report_finding(s->c, GG_CHECK_NO_MERGES, GG_STR(KEY),
                                      kv ? kv->off : GGUF_NO_OFFSET, err,
                                      "key '" KEY "' is %s",
                                      kv ? "no array of str" : "missing");
    struct scratch x = { .joined = NULL };
    for (uint32_t i = 0; i < s->n; i++)
        x.room = GG_MAX(x.room, s->text[i].size);
    x.joined = gg_mem_alloc(a, x.room);
    if (!x.joined)
        return gg_error_set_nomem(err, x.room);
    enum gguf_status st =
        s->texts ? gg_hash_set_init(&x.seen, a, kv->n, err) : GGUF_OK;
    if (st == GGUF_OK)
        st = check_all(s, kv, &x, err);
    gg_hash_set_fini(&x.seen);
    gg_mem_free(a, x.joined);
    return st;
}
