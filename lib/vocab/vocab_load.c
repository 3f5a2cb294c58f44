/* SPDX-License-Identifier: MIT */
/* vocab_load.c - load a vocabulary from metadata, and check every value */
#include "config.h"
#include "vocab/vocab_int.h"

#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define PREFIX "tokenizer.ggml."

bool gg_vocab_is_kind(int32_t kind)
{
    return kind >= GGUF_TOKEN_NORMAL && kind <= GGUF_TOKEN_BYTE;
}

/* Find an array of one number for each token; *out is NULL without the key. */
static enum gguf_status token_array(const struct gguf_vocab *v,
                                    const char *key, uint32_t elem_type,
                                    const struct gguf_kv **out,
                                    struct gguf_error *err)
{
    switch (gg_vocab_array_find(v->file, key, elem_type, v->n_tokens, out)) {
    case GG_VOCAB_ARRAY_TYPE: return gguf_kv_check_array(*out, elem_type, err);
    case GG_VOCAB_ARRAY_LENGTH:
        return gg_error_set(err, GGUF_E_VOCAB, (*out)->off,
                            "%s has %" PRIu64
                            " elements, there are %zu tokens",
                            key, (*out)->n, v->n_tokens);
    default: return GGUF_OK;
    }
}

/* ---- tokens ---- */

static struct gguf_str token_name(const void *user, uint32_t id)
{
    return ((const struct gguf_vocab *)user)->token[id].text;
}

static enum gguf_status load_texts(struct gguf_vocab *v,
                                   struct gguf_error *err)
{
    const struct gguf_kv *kv;
    struct gguf_kv_iter it;
    GG_TRY(gguf_file_kv_get(v->file, PREFIX "tokens", &kv, err));
    GG_TRY(gguf_kv_check_array(kv, GGUF_VAL_STR, err));
    if (gg_vocab_array_find(v->file, PREFIX "tokens", GGUF_VAL_STR, 0, &kv))
        return gg_error_set(err, GGUF_E_VOCAB, kv->off,
                            PREFIX "tokens has %" PRIu64
                                   " elements, must be 1 to 2^31 - 1",
                            kv->n);
    v->token = gg_mem_alloc_zero(v->allocator, kv->n, sizeof *v->token);
    if (!v->token)
        return gg_error_set_nomem(err, (size_t)kv->n * sizeof *v->token);
    v->n_tokens = (size_t)kv->n;
    gguf_kv_iter_init(&it, kv);
    for (size_t i = 0; i < v->n_tokens; i++) {
        struct gg_vocab_token *t = &v->token[i];
        gguf_kv_iter_next_str(&it, &t->text);
        t->kind = GGUF_TOKEN_NORMAL;
        if (t->text.size > v->max_size)
            v->max_size = t->text.size;
    }
    GG_TRY(gg_index_init(&v->index, v->allocator, (uint32_t)kv->n, token_name,
                         v, err));
    v->has_index = true;
    size_t n_empty = 0;
    for (uint32_t i = 0; i < v->n_tokens; i++) {
        uint32_t other;
        struct gg_str_esc e;
        if (!v->token[i].text.size) {
            n_empty++;
            continue;
        }
        GG_TRY(gg_index_add(&v->index, i, &other, err));
        if (other != GG_INDEX_NONE)
            return gg_error_set(err, GGUF_E_VOCAB, kv->off,
                                PREFIX "tokens: %" PRIu32 " and %" PRIu32
                                       " are both '%s'",
                                other, i, gg_str_esc(&e, v->token[i].text));
    }
    if (n_empty)
        gg_vocab_warn(v, "%zu token%s no text and %s never found", n_empty,
                      n_empty == 1 ? " has" : "s have",
                      n_empty == 1 ? "is" : "are");
    return GGUF_OK;
}

static enum gguf_status load_scores(struct gguf_vocab *v,
                                    struct gguf_error *err)
{
    const struct gguf_kv *kv;
    size_t n_bad = 0;
    GG_TRY(token_array(v, PREFIX "scores", GGUF_VAL_F32, &kv, err));
    for (size_t i = 0; kv && i < v->n_tokens; i++) {
        float *s = &v->token[i].score;
        GG_TRY(gg_vocab_array_scores(kv, i, 1, s, err));
        if (isnan(*s)) {
            *s = -INFINITY;
            n_bad++;
        }
    }
    if (n_bad)
        gg_vocab_warn(v,
                      PREFIX "scores: %zu are NaN, taken as the "
                             "lowest",
                      n_bad);
    return GGUF_OK;
}

static enum gguf_status load_kinds(struct gguf_vocab *v,
                                   struct gguf_error *err)
{
    const struct gguf_kv *kv;
    size_t n_bad = 0;
    GG_TRY(token_array(v, PREFIX "token_type", GGUF_VAL_I32, &kv, err));
    for (size_t i = 0; kv && i < v->n_tokens; i++) {
        int32_t kind;
        struct gg_vocab_token *t = &v->token[i];
        struct gg_str_esc e;
        GG_TRY(gguf_kv_get_elems_i32(kv, i, 1, &kind, err));
        if (!gg_vocab_is_kind(kind)) {
            kind = GGUF_TOKEN_UNDEFINED;
            n_bad++;
        }
        if (kind == GGUF_TOKEN_BYTE && gg_vocab_byte_text(t->text) < 0)
            return gg_error_set(
                err, GGUF_E_VOCAB, kv->off,
                "token %zu is a byte token, but its text '%s' is "
                "not of the form <0xHH>",
                i, gg_str_esc(&e, t->text));
        t->kind = (uint8_t)kind;
    }
    if (n_bad)
        gg_vocab_warn(v,
                      PREFIX "token_type: %zu value%s not 1 to 6, taken "
                             "as undefined",
                      n_bad, n_bad == 1 ? " is" : "s are");
    return GGUF_OK;
}

/* ---- special tokens and switches ---- */

static const struct {
    const char *key;
    enum gguf_special_token which;
} special_keys[] = {
    { PREFIX "bos_token_id", GGUF_SPECIAL_BOS },
    { PREFIX "eos_token_id", GGUF_SPECIAL_EOS },
    { PREFIX "unknown_token_id", GGUF_SPECIAL_UNK },
    /* llama.cpp's spelling */
    { PREFIX "seperator_token_id", GGUF_SPECIAL_SEP },
    { PREFIX "padding_token_id", GGUF_SPECIAL_PAD },
    { PREFIX "mask_token_id", GGUF_SPECIAL_MASK },
    { PREFIX "eot_token_id", GGUF_SPECIAL_EOT },
    { PREFIX "eom_token_id", GGUF_SPECIAL_EOM },
    { PREFIX "fim_pre_token_id", GGUF_SPECIAL_FIM_PRE },
    { PREFIX "fim_suf_token_id", GGUF_SPECIAL_FIM_SUF },
    { PREFIX "fim_mid_token_id", GGUF_SPECIAL_FIM_MID },
    { PREFIX "fim_pad_token_id", GGUF_SPECIAL_FIM_PAD },
    { PREFIX "fim_rep_token_id", GGUF_SPECIAL_FIM_REP },
    { PREFIX "fim_sep_token_id", GGUF_SPECIAL_FIM_SEP },
    { PREFIX "prefix_token_id", GGUF_SPECIAL_FIM_PRE }, /* former names */
    { PREFIX "suffix_token_id", GGUF_SPECIAL_FIM_SUF },
    { PREFIX "middle_token_id", GGUF_SPECIAL_FIM_MID },
};

bool gg_vocab_refuses_id(const struct gguf_kv *kv)
{
    int64_t i = 0;
    uint64_t u = 0;
    bool is_put = false;
    for (size_t k = 0; k < GG_LEN(special_keys); k++)
        is_put |= special_keys[k].which <= GGUF_SPECIAL_SEP &&
                  gg_str_eqz(kv->key, special_keys[k].key);
    if (!is_put)
        return false;
    if (gguf_kv_get_int(kv, &i, NULL) == GGUF_E_OVERFLOW)
        return gguf_kv_get_uint(kv, &u, NULL) || u != UINT64_MAX;
    return i != -1 && i != UINT32_MAX;
}

/* Refuse or ignore an id that is out of range. GGUF_E_VOCAB. */
static enum gguf_status refuse_id(const struct gguf_vocab *v,
                                  const struct gguf_kv *kv, const char *key,
                                  struct gguf_error *err)
{
    uint64_t u = 0;
    int64_t i = 0;
    const bool above = gguf_kv_get_int(kv, &i, NULL) == GGUF_E_OVERFLOW;
    char value[24];
    if (above)
        GG_TRY(gguf_kv_get_uint(kv, &u, err));
    if (above)
        snprintf(value, sizeof value, "%" PRIu64, u);
    else
        snprintf(value, sizeof value, "%" PRId64, i);
    if (gg_vocab_refuses_id(kv))
        return gg_error_set(err, GGUF_E_VOCAB, kv->off,
                            "%s is %s, there are %zu tokens", key, value,
                            v->n_tokens);
    gg_vocab_warn(v, "%s is %s, there are %zu tokens: not used", key, value,
                  v->n_tokens);
    return GGUF_OK;
}

static enum gguf_status load_special(struct gguf_vocab *v,
                                     struct gguf_error *err)
{
    for (size_t i = 0; i < GG_VOCAB_N_DEFAULTS; i++)
        v->special[i] = v->algo->special[i];
    for (size_t i = 0; i < GG_LEN(special_keys); i++) {
        const char *key = special_keys[i].key;
        const struct gguf_kv *kv = gguf_file_kv_find(v->file, key);
        gguf_token *id = &v->special[special_keys[i].which];
        if (!kv)
            continue;
        int64_t value;
        enum gguf_status st = gguf_kv_get_int(kv, &value, err);
        if (st == GGUF_E_OVERFLOW)
            value = -1; /* a u64 above all ids */
        else if (st != GGUF_OK)
            return st;
        if (value >= 0 && (uint64_t)value < v->n_tokens) {
            *id = (gguf_token)value;
            continue;
        }
        GG_TRY(refuse_id(v, kv, key, err));
        *id = GGUF_TOKEN_NONE;
    }
    for (size_t i = 0; i < GGUF_N_SPECIAL; i++)
        if (v->special[i] != GGUF_TOKEN_NONE &&
            (size_t)v->special[i] >= v->n_tokens)
            v->special[i] = GGUF_TOKEN_NONE; /* the algorithm's default */
    return GGUF_OK;
}

enum gguf_status gg_vocab_load(struct gguf_vocab *v, struct gguf_error *err)
{
    const struct gguf_kv *kv;
    struct gguf_str model;
    struct gg_str_esc e;
    GG_TRY(gguf_file_kv_get(v->file, PREFIX "model", &kv, err));
    GG_TRY(gguf_kv_get_str(kv, &model, err));
    v->algo = gg_vocab_algo_find(model);
    if (!v->algo)
        return gg_error_set(err, GGUF_E_UNSUPPORTED, kv->off,
                            PREFIX "model '%s' is not supported yet",
                            gg_str_esc(&e, model));
    for (int b = 0; b < 256; b++)
        v->byte[b] = GGUF_TOKEN_NONE;
    for (size_t i = 0; i < GGUF_N_SPECIAL; i++)
        v->special[i] = GGUF_TOKEN_NONE;
    if (!v->algo->encode)
        return GGUF_OK;
    GG_TRY(load_texts(v, err));
    GG_TRY(load_scores(v, err));
    GG_TRY(load_kinds(v, err));
    GG_TRY(load_special(v, err));
    GG_TRY(gg_vocab_load_bool(v, PREFIX "add_bos_token", v->algo->add_bos,
                              &v->add_bos, err));
    GG_TRY(gg_vocab_load_bool(v, PREFIX "add_eos_token", v->algo->add_eos,
                              &v->add_eos, err));
    GG_TRY(gg_vocab_load_bool(v, PREFIX "add_sep_token", v->algo->add_sep,
                              &v->add_sep, err));
    GG_TRY(gg_vocab_load_bool(v, PREFIX "add_space_prefix",
                              v->algo->add_space_prefix, &v->add_space_prefix,
                              err));
    /* load() sees the kinds of the file, before roles change some of them */
    v->lowercase = true;
    if (v->algo->load)
        GG_TRY(v->algo->load(v, v->file, err));
    gg_vocab_load_roles(v);
    gg_vocab_load_strip(v);
    GG_TRY(gg_vocab_load_newline(v, err));
    return gg_vocab_split_load(v, err);
}
