/* SPDX-License-Identifier: MIT */
/* guard.c - refusing metadata that other programs could not read */
#include "config.h"
#include "tools/common/guard.h"
#include "tools/common/ignore_status.h"

#include <gguf/edit.h>
#include <gguf/model_base.h>

#include <inttypes.h>
#include <string.h>

/* Keys that must stay, besides the hyperparameters that every reader needs. */
static const struct {
    const char *key;
    bool value; /* the value must stay, too */
    const char *why;
} keep[] = {
    { "general.architecture", true, "readers choose the model by it" },
    { "split.no", true, "it is the number of this shard" },
    { "split.count", true, "it is the number of shards" },
    { "split.tensors.count", true, "readers check the shards by it" },
    { "tokenizer.ggml.model", false, "readers need it to tokenize text" },
    { "tokenizer.ggml.tokens", false, "readers need it to tokenize text" },
    { "tokenizer.ggml.merges", false, "readers need it to tokenize text" },
};

static const struct text_limits shown = { 4, 60 };

static void report_fault(struct guard *g, const struct text *what)
{
    g->broken = true;
    if (g->force)
        msg_warn(g->name, "%s", what->s);
    else
        msg_error(g->name, "refused: %s", what->s);
}

static void add_value(struct text *t, const struct gguf_kv *kv)
{
    if (kv)
        text_add_kv(t, kv, &shown);
    else
        text_addz(t, "absent");
}

/* "key 'k': 1 would become 2: why" */
static void report_change(struct guard *g, struct gguf_str key,
                          const struct gguf_kv *old, const struct gguf_kv *new,
                          const char *why)
{
    struct text t = { NULL, 0, 0 };
    text_addz(&t, "key '");
    text_add_esc(&t, key, 200);
    text_addz(&t, "': ");
    add_value(&t, old);
    text_addz(&t, " would become ");
    add_value(&t, new);
    text_addf(&t, ": %s", why);
    report_fault(g, &t);
    text_fini(&t);
}

static void check_key(struct guard *g, const char *key, bool value,
                      const char *why)
{
    const struct gguf_kv *old = gguf_meta_find(g->before, key);
    const struct gguf_kv *now = gguf_meta_find(g->after, key);
    /* general.architecture may be added, keys of a shard may not */
    const bool added = !old && now && strncmp(key, "split.", 6) != 0;
    if (!added && !gguf_kv_equal(old, now) && (!now || value))
        report_change(g, (struct gguf_str){ key, strlen(key) }, old, now, why);
}

static void check_kept(struct guard *g)
{
    const struct gguf_kv *arch =
        gguf_meta_find(g->before, "general.architecture");
    const struct gguf_hparam *h;
    struct gguf_str a = { "", 0 };
    ignore_status(gguf_kv_get_str(arch, &a, NULL));
    for (size_t i = 0; i < sizeof keep / sizeof *keep; i++)
        check_key(g, keep[i].key, keep[i].value, keep[i].why);
    for (size_t i = 0; (h = gguf_hparam_at(i)) != NULL; i++) {
        struct text key = { NULL, 0, 0 };
        if (!(h->flags & GGUF_HPARAM_ALWAYS))
            continue;
        text_add(&key, a.data, a.size);
        text_addf(&key, ".%s", h->key);
        check_key(g, key.s, false, "readers need it");
        text_fini(&key);
    }
}

static void check_alignment(struct guard *g)
{
    static const char name[] = "general.alignment";
    const struct gguf_kv *old = gguf_meta_find(g->before, name);
    const struct gguf_kv *new = gguf_meta_find(g->after, name);
    uint64_t a = 32, b = 32;
    ignore_status(gguf_kv_get_uint(old, &a, NULL));
    ignore_status(gguf_kv_get_uint(new, &b, NULL));
    if (a != b)
        report_change(g, (struct gguf_str){ name, sizeof name - 1 }, old, new,
                      "all tensor data would move");
}

static void check_types(struct guard *g)
{
    for (size_t i = 0; i < gguf_meta_n_kv(g->before); i++) {
        const struct gguf_kv *old = gguf_meta_kv(g->before, i);
        struct text t = { NULL, 0, 0 };
        text_add(&t, old->key.data, old->key.size);
        const struct gguf_kv *new = gguf_meta_find(g->after, t.s);
        text_clear(&t);
        if (new &&
            (new->type != old->type || new->elem_type != old->elem_type)) {
            text_addf(&t, "%s, was %s: readers expect the old type",
                      gguf_val_type_name(new->elem_type),
                      gguf_val_type_name(old->elem_type));
            report_change(g, old->key, old, new, t.s);
        }
        text_fini(&t);
    }
}

/* Does the file have this key with this value already? */
static bool is_unchanged(const struct guard *g, const struct gguf_kv *kv)
{
    struct text key = { NULL, 0, 0 };
    text_add(&key, kv->key.data, kv->key.size);
    bool yes = gguf_kv_equal(kv, gguf_meta_find(g->before, key.s));
    text_fini(&key);
    return yes;
}

/* The specification allows arrays of arrays, but readers fail on them: ggml's
 * gguf.cpp refuses an array whose elements are arrays. */
static void check_nested(struct guard *g)
{
    for (size_t i = 0; i < gguf_meta_n_kv(g->after); i++) {
        const struct gguf_kv *kv = gguf_meta_kv(g->after, i);
        struct text t = { NULL, 0, 0 };
        if (kv->type != GGUF_VAL_ARR || kv->elem_type != GGUF_VAL_ARR ||
            is_unchanged(g, kv))
            continue;
        text_addz(&t, "key '");
        text_add_esc(&t, kv->key, 200);
        text_addz(&t, "' would be an array of arrays: other readers, such as "
                      "llama.cpp, refuse files with one");
        report_fault(g, &t);
        text_fini(&t);
    }
}

/* ----------------------------------------------------------- vocabulary --- */

/* Set *n to the number of tokens in the vocabulary. Returns false without a
 * list of tokens. */
static bool count_tokens(const struct gguf_meta *m, uint64_t *n)
{
    const struct gguf_kv *kv = gguf_meta_find(m, "tokenizer.ggml.tokens");
    if (!kv || kv->type != GGUF_VAL_ARR)
        return false;
    *n = kv->n;
    return true;
}

static bool is_token_id(struct gguf_str key)
{
    static const char begin[] = "tokenizer.ggml.", end[] = "_token_id";
    return key.size >= sizeof begin + sizeof end - 2 &&
           !memcmp(key.data, begin, sizeof begin - 1) &&
           !memcmp(key.data + key.size - sizeof end + 1, end, sizeof end - 1);
}

static void check_vocab(struct guard *g)
{
    uint64_t n, n_before = 0, id;
    if (!count_tokens(g->after, &n))
        return;
    bool same_count = count_tokens(g->before, &n_before) && n == n_before;
    for (size_t i = 0; i < gguf_meta_n_kv(g->after); i++) {
        const struct gguf_kv *kv = gguf_meta_kv(g->after, i);
        struct text t = { NULL, 0, 0 };
        bool list = text_is(kv->key, "tokenizer.ggml.scores") ||
                    text_is(kv->key, "tokenizer.ggml.token_type");
        if ((!list && !is_token_id(kv->key)) ||
            (same_count && is_unchanged(g, kv)))
            continue;
        text_addz(&t, "key '");
        text_add_esc(&t, kv->key, 200);
        text_addz(&t, "' ");
        if (list && (kv->type != GGUF_VAL_ARR || kv->n != n)) {
            text_addf(&t,
                      "has %" PRIu64 " elements, expected %" PRIu64 ", one "
                      "for each token",
                      kv->n, n);
            report_fault(g, &t);
        } else if (!list &&
                   (gguf_kv_get_uint(kv, &id, NULL) != GGUF_OK || id >= n)) {
            text_addz(&t, "is ");
            add_value(&t, kv);
            text_addf(&t, ", expected a token from 0 to %" PRIu64,
                      n ? n - 1 : 0);
            report_fault(g, &t);
        }
        text_fini(&t);
    }
}

static void report_error(struct guard *g, const char *message)
{
    struct text t = { NULL, 0, 0 };
    text_addz(&t, message);
    report_fault(g, &t);
    text_fini(&t);
}

bool guard_check_key(const char *name, const char *key)
{
    if (strcmp(key, GGUF_EDIT_PADDING_KEY) != 0)
        return true;
    return msg_error(name,
                     "key '%s' cannot be set: it is padding, which edits add "
                     "and remove as needed",
                     key);
}

bool guard_check(struct guard *g)
{
    g->broken = false;
    check_kept(g);
    check_alignment(g);
    check_types(g);
    check_nested(g);
    check_vocab(g);
    if (!g->broken) /* otherwise a fault would be reported twice */
        guard_verify(g, report_error);
    if (g->broken && !g->force)
        msg_error(g->name, "%s; --force does it anyway",
                  g->verdict ? g->verdict : "nothing was written");
    return !g->broken || g->force;
}
