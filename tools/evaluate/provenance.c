/* SPDX-License-Identifier: MIT */
/* provenance.c - digests, tokenizer and options in JSON documents
 *
 * They identify the model and the text of a figure. A model's digest is that of
 * gguf-info --hash. It takes one reading of the file by one thread (0.1 s per
 * GB in memory, EPYC with AVX-512), before all other readings, which then find
 * the file in memory if it fits. For comparison, an evaluation reads the
 * weights once for each batch. Digests are computed only for JSON documents,
 * pages and parts, and not with --no-digest.
 */
#include "config.h"
#include "tools/common/ignore_status.h"
#include "tools/evaluate/run.h"
#include "tools/common/msg.h"
#include "tools/common/text.h"

#include <stdlib.h>
#include <string.h>

#define ALGO GGUF_DIGEST_XXH64 /* default of gguf-info --hash */

/* ---- digests ---- */

bool ev_digest_text(struct ev_run *r, const char *text, size_t size)
{
    struct gguf_error err;
    r->has_digest =
        r->wants_digest &&
        gguf_digest_bytes(&r->digest, ALGO, text, size, &err) == GGUF_OK;
    return r->has_digest || !r->wants_digest ||
           progress_fail(NULL, r->text, &err);
}

const char *ev_format_digest(char out[96], const struct gguf_digest *d)
{
    char hex[65];
    if (!d)
        return "-";
    gguf_digest_format(d, hex);
    snprintf(out, 96, "%s:%s", gguf_digest_algo_name(d->algo), hex);
    return out;
}

bool ev_parse_digest(const char *text, struct gguf_digest *d)
{
    const char *hex = strchr(text, ':');
    char name[32];
    if (!hex || (size_t)(hex - text) >= sizeof name)
        return false;
    memcpy(name, text, (size_t)(hex - text));
    name[hex - text] = '\0';
    enum gguf_digest_algo algo;
    const bool known = gguf_digest_algo_find(name, &algo);
    const size_t n = strlen(++hex);
    if (!known || n % 2 || n > 2 * sizeof d->bytes ||
        strspn(hex, "0123456789abcdef") != n)
        return false;
    *d = (struct gguf_digest){ .algo = algo };
    for (size_t i = 0; hex[2 * i] && hex[2 * i + 1]; i++) {
        unsigned byte;
        if (sscanf(hex + 2 * i, "%2x", &byte) != 1)
            return false;
        d->bytes[i] = (uint8_t)byte;
    }
    return true;
}

void ev_json_digest(struct json *j, const char *key,
                    const struct gguf_digest *d)
{
    char text[96];
    if (d)
        json_strz(j, key, ev_format_digest(text, d));
    else
        json_null(j, key);
}

/* ---- the tokenizer ---- */

/* Add the elements of an array, as a little-endian file stores them. */
static void add_array(struct text *t, const struct gguf_kv *kv)
{
    const size_t size = gguf_val_type_size(kv->elem_type);
    if (!kv->big_endian) {
        text_add(t, kv->data, kv->size);
        return;
    }
    struct gguf_kv_iter it;
    struct gguf_kv e;
    gguf_kv_iter_init(&it, kv);
    while (gguf_kv_iter_next(&it, &e)) {
        const char *p = e.data;
        for (unsigned i = 0; !size && i < 8; i++) /* length of a string */
            text_add(t, &(char){ (char)((uint64_t)e.size >> (8 * i)) }, 1);
        if (!size)
            text_add(t, p, e.size);
        for (size_t i = size; i-- > 0;)
            text_add(t, p + i, 1);
    }
}

void ev_json_tokenizer(struct json *j, const struct ev_options *o,
                       const struct ev_model *m)
{
    static const char *const keys[] = {
        "tokenizer.ggml.tokens", "tokenizer.ggml.scores",
        "tokenizer.ggml.token_type", "tokenizer.ggml.merges",
        "tokenizer.ggml.precompiled_charsmap"
    };
    const struct gguf_file *file = m->file;
    const struct gguf_vocab *v = gguf_model_vocab(m->model);
    struct text t = { NULL, 0, 0 };
    struct gguf_digest d;
    struct gguf_str pre;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct gguf_kv *kv = gguf_file_kv_find(file, keys[i]);
        if (kv && kv->type == GGUF_VAL_ARR)
            add_array(&t, kv);
    }
    const bool good = gguf_digest_bytes(&d, ALGO, t.s, t.n, NULL) == GGUF_OK;
    json_open(j, "tokenizer", '{');
    json_str(j, "model", gguf_vocab_model(v));
    const struct gguf_kv *kv = NULL;
    if (m->meta)
        kv = gguf_meta_find(m->meta, "tokenizer.ggml.pre");
    if (!kv)
        kv = gguf_file_kv_find(file, "tokenizer.ggml.pre");
    if (o->pre)
        json_strz(j, "pre", o->pre);
    else if (gguf_kv_get_str(kv, &pre, NULL) == GGUF_OK)
        json_str(j, "pre", pre);
    else
        json_null(j, "pre");
    json_u64(j, "tokens", gguf_vocab_n_tokens(v));
    ev_json_digest(j, "digest", good ? &d : NULL);
    json_close(j);
    text_fini(&t);
}

struct gguf_str ev_model_name(const struct ev_model *m)
{
    struct gguf_str s = { "", 0 };
    const struct gguf_kv *kv = NULL;
    if (m->part_name)
        return (struct gguf_str){ m->part_name, strlen(m->part_name) };
    if (m->meta)
        kv = gguf_meta_find(m->meta, "general.name");
    if (!kv)
        kv = gguf_file_kv_find(m->file, "general.name");
    ignore_status(gguf_kv_get_str(kv, &s, NULL)); /* s may stay empty */
    return s;
}

/* ---- options that override the file ---- */

static void json_given(struct json *j, const char *key, double v, double unset)
{
    if (v < unset || v > unset)
        json_f64(j, key, v);
}

static void json_positions(struct json *j, const struct ev_positions *p)
{
    json_open(j, "positions", '{');
    json_given(j, "rope_freq_base", p->base, 0);
    json_given(j, "rope_scale", p->scale, 0);
    json_given(j, "rope_freq_scale", p->freq_scale, 0);
    if (p->scaling)
        json_strz(j, "rope_scaling", ev_scaling_name(p->scaling));
    json_given(j, "yarn_orig_ctx", p->yarn_ctx, 0);
    json_given(j, "yarn_ext_factor", p->yarn_ext, -1);
    json_given(j, "yarn_attn_factor", p->yarn_attn, 0);
    json_given(j, "yarn_beta_fast", p->yarn_fast, 0);
    json_given(j, "yarn_beta_slow", p->yarn_slow, 0);
    json_given(j, "window", p->window, UINT32_MAX);
    json_close(j);
}

void ev_json_overrides(struct json *j, const struct ev_options *o)
{
    json_positions(j, &o->pos);
    json_open(j, "override_kv", '[');
    for (size_t i = 0; i < o->kv_texts.n; i++)
        json_strz(j, NULL, o->kv_texts.arg[i]);
    json_close(j);
    if (o->control_last) {
        json_open(j, "control_vector_layers", '(');
        json_u64(j, NULL, o->control_first);
        json_u64(j, NULL, o->control_last);
        json_close(j);
    }
}
