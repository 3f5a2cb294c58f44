/* SPDX-License-Identifier: MIT */
/* vocab_check.c - report all faults of a vocabulary
 *
 * Loading (vocab_load.c) stops at the first fault that it refuses. This goes
 * on, and also reports faults that loading tolerates. A finding is about a
 * key: the number of elements at fault, and the first of them. */
#include "config.h"
#include "vocab/vocab_int.h"

#include "base/mem.h"
#include "base/str.h"

#include <math.h>
#include <stdio.h>

#define PREFIX "tokenizer.ggml."

/* Byte of element i of an array of scalars of size bytes: the element type and
 * the count come first. */
static uint64_t elem_off(const struct gguf_kv *kv, uint64_t i, uint64_t size)
{
    return kv->off + 12 + i * size;
}

/* Report a key of the wrong type. */
static enum gguf_status report_type(const struct gg_file_checker *c,
                                    const struct gguf_kv *kv, const char *must,
                                    struct gguf_error *err)
{
    bool array = kv->type == GGUF_VAL_ARR;
    struct gg_str_esc e;
    return gg_file_report_finding(
        c, GG_CHECK_VOCAB_TYPE, kv->key, kv->off, err,
        "key '%s' is %s%s, must be %s", gg_str_esc(&e, kv->key),
        array ? "an array of " : "",
        gguf_val_type_name(array ? kv->elem_type : kv->type), must);
}

static bool is_array_of(const struct gguf_kv *kv, uint32_t elem_type)
{
    return kv->type == GGUF_VAL_ARR && kv->elem_type == elem_type;
}

/* ------------------------------------------------------------- tokens --- */

/* First token with the text of token i. */
static uint32_t find_equal_text(const struct gguf_str *text, uint32_t i)
{
    uint32_t k = 0;
    while (k < i && !gg_str_eq(text[k], text[i]))
        k++;
    return k;
}

/* Fill text, and texts unless it is NULL; report empty texts and those that
 * occur twice. */
static enum gguf_status check_texts(struct gg_vocab_check_context *s,
                                    const struct gguf_kv *kv,
                                    struct gguf_str *text,
                                    struct gg_hash_set *texts,
                                    struct gguf_error *err)
{
    uint32_t n_empty = 0, empty = 0, n_twice = 0, twice = 0;
    struct gguf_kv_iter it;
    struct gg_str_esc e;
    gguf_kv_iter_init(&it, kv);
    for (uint32_t i = 0; gguf_kv_iter_next_str(&it, &text[i]); i++) {
        if (!text[i].size)
            empty = n_empty++ ? empty : i;
        else if (texts && gg_hash_set_add(texts, text[i]))
            twice = n_twice++ ? twice : i;
    }
    if (n_empty)
        GG_TRY(gg_file_report_finding(s->c, GG_CHECK_TOKEN_EMPTY, kv->key,
                                      gg_vocab_text_off(s, text[empty]), err,
                                      PREFIX "tokens: %" PRIu32 " of %" PRIu32
                                             " have no text, first [%" PRIu32
                                             "]",
                                      n_empty, s->n, empty));
    if (n_twice)
        GG_TRY(gg_file_report_finding(
            s->c, GG_CHECK_TOKEN_TWICE, kv->key,
            gg_vocab_text_off(s, text[twice]), err,
            PREFIX "tokens: %" PRIu32 " of %" PRIu32
                   " repeat another, first [%" PRIu32
                   "], which is '%s' like [%" PRIu32 "]",
            n_twice, s->n, twice, gg_str_esc(&e, text[twice]),
            find_equal_text(text, twice)));
    return GGUF_OK;
}

/* Warn of numbers whose type is not the one to which llama.cpp casts the
 * array. */
static enum gguf_status
check_number_type(const struct gg_vocab_check_context *s,
                  const struct gguf_kv *kv, uint32_t type,
                  struct gguf_error *err)
{
    struct gg_str_esc e;
    if (kv->elem_type == type)
        return GGUF_OK;
    return gg_file_report_finding(
        s->c, GG_CHECK_VOCAB_NUMBERS, kv->key, kv->off, err,
        "key '%s' is an array of %s: programs that expect "
        "%s read other values",
        gg_str_esc(&e, kv->key), gguf_val_type_name(kv->elem_type),
        gguf_val_type_name(type));
}

/* The array under key, if it has the right type and length; else NULL, after a
 * report. */
static enum gguf_status token_array(const struct gg_vocab_check_context *s,
                                    const char *key, uint32_t elem_type,
                                    const struct gguf_kv **out,
                                    struct gguf_error *err)
{
    const struct gguf_kv *kv;
    char must[32];
    *out = NULL;
    switch (gg_vocab_array_find(s->c->file, key, elem_type, s->n, &kv)) {
    case GG_VOCAB_ARRAY_TYPE:
        snprintf(must, sizeof must, "an array of %s",
                 gguf_val_type_name(elem_type));
        return report_type(s->c, kv, must, err);
    case GG_VOCAB_ARRAY_LENGTH:
        return gg_file_report_finding(
            s->c, GG_CHECK_VOCAB_LENGTH, kv->key, kv->off, err,
            "key '%s' has %" PRIu64 " elements, there are "
            "%" PRIu32 " tokens",
            key, kv->n, s->n);
    case GG_VOCAB_ARRAY_GOOD:
        *out = kv;
        return check_number_type(s, kv, elem_type, err);
    default: return GGUF_OK;
    }
}

/* Report a value that opening refuses: with why if its type is wrong. */
static enum gguf_status report_number(const struct gg_vocab_check_context *s,
                                      const struct gguf_kv *kv,
                                      const struct gguf_error *why,
                                      struct gguf_error *err)
{
    return gg_file_report_finding(s->c, GG_CHECK_VOCAB_TYPE, kv->key,
                                  why->offset, err, "%s", why->message);
}

enum { CHUNK = 512 }; /* elements that are read at once */

static enum gguf_status check_scores(const struct gg_vocab_check_context *s,
                                     struct gguf_error *err)
{
    const struct gguf_kv *kv;
    struct gguf_error why;
    uint32_t n_bad = 0, first = 0;
    float v[CHUNK];
    GG_TRY(token_array(s, PREFIX "scores", GGUF_VAL_F32, &kv, err));
    for (uint32_t i = 0; kv && i < s->n; i += CHUNK) {
        uint32_t n = GG_MIN(s->n - i, (uint32_t)CHUNK);
        if (gg_vocab_array_scores(kv, i, n, v, &why) != GGUF_OK)
            return report_number(s, kv, &why, err);
        for (uint32_t k = 0; k < n; k++)
            if (!isfinite(v[k]))
                first = n_bad++ ? first : i + k;
    }
    if (!n_bad)
        return GGUF_OK;
    return gg_file_report_finding(
        s->c, GG_CHECK_SCORE, kv->key,
        elem_off(kv, first, gguf_val_type_size(kv->elem_type)), err,
        PREFIX "scores: %" PRIu32 " of %" PRIu32
               " are not finite, first [%" PRIu32 "]",
        n_bad, s->n, first);
}

static enum gguf_status check_kinds(const struct gg_vocab_check_context *s,
                                    struct gguf_error *err)
{
    const struct gguf_kv *kv;
    uint32_t n_bad = 0, bad = 0, n_byte = 0, byte = 0;
    int32_t v[CHUNK];
    struct gguf_error why;
    struct gg_str_esc e;
    GG_TRY(token_array(s, PREFIX "token_type", GGUF_VAL_I32, &kv, err));
    for (uint32_t i = 0; kv && i < s->n; i += CHUNK) {
        uint32_t n = GG_MIN(s->n - i, (uint32_t)CHUNK);
        if (gguf_kv_get_elems_i32(kv, i, n, v, &why) != GGUF_OK)
            return report_number(s, kv, &why, err);
        for (uint32_t k = 0; k < n; k++) {
            if (!gg_vocab_is_kind(v[k]))
                bad = n_bad++ ? bad : i + k;
            if (v[k] == GGUF_TOKEN_BYTE &&
                gg_vocab_byte_text(s->text[i + k]) < 0)
                byte = n_byte++ ? byte : i + k;
        }
    }
    if (n_bad)
        GG_TRY(gg_file_report_finding(
            s->c, GG_CHECK_TOKEN_KIND, kv->key,
            elem_off(kv, bad, gguf_val_type_size(kv->elem_type)), err,
            PREFIX "token_type: %" PRIu32 " of %" PRIu32
                   " are not 1 to 6, first [%" PRIu32 "]",
            n_bad, s->n, bad));
    if (n_byte)
        GG_TRY(gg_file_report_finding(
            s->c, GG_CHECK_BYTE_TOKEN, GG_STR(PREFIX "tokens"),
            gg_vocab_text_off(s, s->text[byte]), err,
            PREFIX "tokens: %" PRIu32 " that are to be bytes are "
                   "not of the form <0xHH>, first [%" PRIu32 "] '%s'",
            n_byte, byte, gg_str_esc(&e, s->text[byte])));
    return GGUF_OK;
}

static bool has_byte(const struct gg_vocab_check_context *s,
                     const struct gg_vocab_algo *algo, unsigned b)
{
    char text[8];
    size_t size;
    for (unsigned i = 0; (size = algo->byte_text(b, i, text)); i++)
        if (gg_hash_set_has(s->texts, (struct gguf_str){ text, size }))
            return true;
    return false;
}

/* Bytes that are in no UTF-8 need no token. */
static enum gguf_status check_bytes(const struct gg_vocab_check_context *s,
                                    const struct gg_vocab_algo *algo,
                                    struct gguf_error *err)
{
    unsigned n_missing = 0, first = 0;
    for (unsigned b = 0; b < 0xf5; b++)
        if (b != 0xc0 && b != 0xc1 && !has_byte(s, algo, b))
            first = n_missing++ ? first : b;
    if (!n_missing)
        return GGUF_OK;
    return gg_file_report_finding(
        s->c, GG_CHECK_BYTES, GG_STR(PREFIX "tokens"), GGUF_NO_OFFSET, err,
        "no token stands for %u bytes that texts can have, "
        "first 0x%02X",
        n_missing, first);
}

/* -------------------------------------------------------- single keys --- */

static const struct {
    const char *key;
    uint32_t type;
} typed_keys[] = {
    { PREFIX "pre", GGUF_VAL_STR },
    { PREFIX "add_bos_token", GGUF_VAL_BOOL },
    { PREFIX "add_eos_token", GGUF_VAL_BOOL },
    { PREFIX "add_sep_token", GGUF_VAL_BOOL },
    { PREFIX "add_space_prefix", GGUF_VAL_BOOL },
    { PREFIX "remove_extra_whitespaces", GGUF_VAL_BOOL },
    { "tokenizer.chat_template", GGUF_VAL_STR },
};

static enum gguf_status check_types(const struct gg_vocab_check_context *s,
                                    struct gguf_error *err)
{
    for (size_t i = 0; i < GG_LEN(typed_keys); i++) {
        const struct gguf_kv *kv =
            gguf_file_kv_find(s->c->file, typed_keys[i].key);
        if (kv && kv->type != typed_keys[i].type)
            GG_TRY(report_type(s->c, kv,
                               gguf_val_type_name(typed_keys[i].type), err));
    }
    return GGUF_OK;
}

/* Check one id, or an element of a list of ids. */
static enum gguf_status check_id(const struct gg_vocab_check_context *s,
                                 const struct gguf_kv *kv, uint64_t off,
                                 bool *stop, struct gguf_error *err)
{
    int64_t id;
    struct gg_str_esc e;
    enum gguf_status st = gguf_kv_get_int(kv, &id, NULL);
    *stop = true;
    if (st != GGUF_OK && st != GGUF_E_OVERFLOW)
        return report_type(s->c, kv, "an integer", err);
    if (st == GGUF_OK && id >= 0 && (uint64_t)id < s->n) {
        *stop = false;
        return GGUF_OK;
    }
    char value[24] = "too large", place[24] = "";
    if (st == GGUF_OK)
        snprintf(value, sizeof value, "%" PRId64, id);
    if (kv->index != GGUF_NO_INDEX)
        snprintf(place, sizeof place, "[%" PRIu64 "]", kv->index);
    return gg_file_report_finding(
        s->c,
        gg_vocab_refuses_id(kv) ? GG_CHECK_TOKEN_ID_PUT : GG_CHECK_TOKEN_ID,
        kv->key, off, err, "key '%s'%s is %s, there are %" PRIu32 " tokens",
        gg_str_esc(&e, kv->key), place, value, s->n);
}

/* Check every key that names tokens: tokenizer.ggml.*_token_id and lists of
 * ids. Only the first wrong element of a list is reported. */
static enum gguf_status check_ids(const struct gg_vocab_check_context *s,
                                  struct gguf_error *err)
{
    for (size_t i = 0; i < gguf_file_n_kv(s->c->file); i++) {
        const struct gguf_kv *kv = gguf_file_kv(s->c->file, i);
        bool stop = false;
        if (!gg_str_starts(kv->key, PREFIX))
            continue;
        if (gg_str_ends(kv->key, "_token_id"))
            GG_TRY(check_id(s, kv, kv->off, &stop, err));
        if (!gg_str_ends(kv->key, "_token_ids") &&
            !gg_str_eqz(kv->key, PREFIX "suppress_tokens"))
            continue;
        struct gguf_kv_iter it;
        struct gguf_kv e;
        if (kv->type != GGUF_VAL_ARR)
            GG_TRY(report_type(s->c, kv, "an array", err));
        gguf_kv_iter_init(&it, kv);
        while (!stop && gguf_kv_iter_next(&it, &e))
            GG_TRY(
                check_id(s, &e, elem_off(kv, it.i - 1, e.size), &stop, err));
    }
    return GGUF_OK;
}

/* Check SentencePiece's table for rewriting text, as opening does. */
static enum gguf_status check_charsmap(const struct gg_vocab_check_context *s,
                                       struct gguf_error *err)
{
    const struct gguf_kv *kv =
        gguf_file_kv_find(s->c->file, PREFIX "precompiled_charsmap");
    struct gg_vocab_charsmap m;
    struct gguf_error why;
    if (!kv)
        return GGUF_OK;
    if (!is_array_of(kv, GGUF_VAL_U8) && !is_array_of(kv, GGUF_VAL_I8))
        return report_type(s->c, kv, "an array of u8", err);
    if (gg_vocab_charsmap_load(&m, s->c->file, &why) == GGUF_OK)
        return GGUF_OK;
    return gg_file_report_finding(s->c, GG_CHECK_CHARSMAP, kv->key,
                                  elem_off(kv, 0, 1), err, "%s", why.message);
}

/* --------------------------------------------------------- everything --- */

static enum gguf_status check_all(struct gg_vocab_check_context *s,
                                  const struct gguf_kv *tokens,
                                  struct gguf_str *text,
                                  struct gg_hash_set *texts,
                                  struct gguf_error *err)
{
    const struct gg_vocab_algo *algo = s->algo;
    GG_TRY(check_texts(s, tokens, text, texts, err));
    GG_TRY(check_scores(s, err));
    GG_TRY(check_kinds(s, err));
    GG_TRY(check_types(s, err));
    GG_TRY(check_ids(s, err));
    GG_TRY(check_charsmap(s, err));
    if (s->texts && algo && algo->byte_text)
        GG_TRY(check_bytes(s, algo, err));
    return algo && algo->check ? algo->check(s, err) : GGUF_OK;
}

static enum gguf_status check_model(const struct gg_file_checker *c,
                                    const struct gguf_kv *kv,
                                    const struct gg_vocab_algo **algo,
                                    struct gguf_error *err)
{
    struct gguf_str model;
    struct gg_str_esc e;
    *algo = NULL;
    if (gguf_kv_get_str(kv, &model, NULL) != GGUF_OK)
        return gg_file_report_finding(
            c, GG_CHECK_VOCAB_MODEL, GG_STR(PREFIX "model"),
            kv ? kv->off : GGUF_NO_OFFSET, err, "key '" PREFIX "model' is %s",
            kv ? "no text" : "missing");
    *algo = gg_vocab_algo_find(model);
    if (gg_vocab_is_known_model(model))
        return GGUF_OK;
    return gg_file_report_finding(
        c, GG_CHECK_VOCAB_UNKNOWN, kv->key, kv->off, err,
        "key '" PREFIX "model' is '%s', which is not a tokenizer "
        "that is known",
        gg_str_esc(&e, model));
}

enum gguf_status gg_vocab_check(const struct gg_file_checker *c,
                                struct gguf_error *err)
{
    const struct gguf_kv *model = gguf_file_kv_find(c->file, PREFIX "model");
    const struct gguf_kv *tokens;
    const enum gg_vocab_array found = gg_vocab_array_find(
        c->file, PREFIX "tokens", GGUF_VAL_STR, 0, &tokens);
    const struct gguf_allocator *a = c->params.allocator;
    const struct gg_vocab_algo *algo;
    if (!model && !tokens)
        return GGUF_OK;
    GG_TRY(check_model(c, model, &algo, err));
    if (algo && !algo->encode && !tokens)
        return GGUF_OK;
    if (found == GG_VOCAB_ARRAY_TYPE)
        return report_type(c, tokens, "an array of str", err);
    if (found != GG_VOCAB_ARRAY_GOOD)
        return gg_file_report_finding(
            c, GG_CHECK_NO_TOKENS, GG_STR(PREFIX "tokens"),
            tokens ? tokens->off : GGUF_NO_OFFSET, err,
            "key '" PREFIX "tokens' has %" PRIu64
            " elements, must be 1 to 2^31 - 1",
            tokens ? tokens->n : 0);
    struct gg_hash_set texts = { .slot = NULL };
    bool compare = !c->params.quick || tokens->n <= GGUF_CHECK_QUICK_TOKENS;
    struct gguf_str *text = gg_mem_alloc_zero(a, tokens->n + 1, sizeof *text);
    if (!text)
        return gg_error_set_nomem(err, (size_t)tokens->n * sizeof *text);
    struct gg_vocab_check_context s = { c, algo, text, (uint32_t)tokens->n,
                                        compare ? &texts : NULL };
    enum gguf_status st =
        compare ? gg_hash_set_init(&texts, a, s.n, err) : GGUF_OK;
    if (st == GGUF_OK)
        st = check_all(&s, tokens, text, compare ? &texts : NULL, err);
    gg_hash_set_fini(&texts);
    gg_mem_free(a, text);
    return st;
}
