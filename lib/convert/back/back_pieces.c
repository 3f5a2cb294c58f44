/* SPDX-License-Identifier: MIT */
/* back_pieces.c - write WordPiece and Unigram as folders have them
 *
 * A file that says which tokens are added around a text was made from
 * tokenizer.json and becomes one. Others become vocab.txt or T5's spiece.model,
 * whose readers add these tokens without being told.
 */
#include "config.h"
#include "convert/back/back_vocab.h"

#include "base/compiler.h"
#include "base/str.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEY(NAME) "tokenizer.ggml." NAME
#define MARK      "\xe2\x96\x81" /* U+2581 */

/* ---- tokens around a text ---- */

static void add_token(json_t *list, struct gguf_str s)
{
    json_array_append_new(list, json_pack("{s:{s:s%, s:i}}", "SpecialToken",
                                          "id", s.data, s.size, "type_id", 0));
}

static void add_text(json_t *list, const char *which)
{
    json_array_append_new(list, json_pack("{s:{s:s, s:i}}", "Sequence", "id",
                                          which, "type_id", 0));
}

static void add_special(json_t *all, const struct gg_back_tokens *t,
                        int64_t id)
{
    const struct gguf_str s = t->text[id];
    char name[256];
    if (gg_str_join(name, sizeof name, s, ""))
        json_object_set_new(all, name,
                            json_pack("{s:s, s:[I], s:[s]}", "id", name, "ids",
                                      (json_int_t)id, "tokens", name));
}

json_t *gg_back_vocab_make_post(const struct gg_back_tokens *t)
{
    const int64_t bos = gg_back_vocab_get_flag(t->b, KEY("add_bos_token"), 0)
                            ? gg_back_vocab_find_role(t, KEY("bos_token_id"))
                            : -1,
                  eos = gg_back_vocab_get_flag(t->b, KEY("add_eos_token"), 0)
                            ? gg_back_vocab_find_role(t, KEY("eos_token_id"))
                            : -1;
    const bool more = gg_back_vocab_get_flag(t->b, KEY("add_sep_token"), 0);
    if (bos < 0 && eos < 0)
        return json_null();
    json_t *single = json_array(), *pair = json_array(), *all = json_object();
    if (bos >= 0) {
        add_token(single, t->text[bos]);
        add_token(pair, t->text[bos]);
        add_special(all, t, bos);
    }
    add_text(single, "A");
    add_text(pair, "A");
    for (int i = 0; eos >= 0 && i < 1 + more; i++)
        add_token(pair, t->text[eos]);
    add_text(pair, "B");
    if (eos >= 0) {
        add_token(single, t->text[eos]);
        add_token(pair, t->text[eos]);
        add_special(all, t, eos);
    }
    return json_pack("{s:s, s:o, s:o, s:o}", "type", "TemplateProcessing",
                     "single", single, "pair", pair, "special_tokens", all);
}

static bool says_ends(const struct gg_back_tokens *t)
{
    return gg_back_vocab_get_flag(t->b, KEY("add_bos_token"), -1) >= 0 ||
           gg_back_vocab_get_flag(t->b, KEY("add_eos_token"), -1) >= 0;
}

/* All that tokenizer.json has; every part is taken. */
static enum gguf_status give_tokenizer(const struct gg_back_tokens *t,
                                       json_t *normalizer, json_t *cut,
                                       json_t *decoder, json_t *model,
                                       struct gg_back_text *out,
                                       struct gguf_error *err)
{
    return gg_back_vocab_set_text(
        out, "tokenizer.json",
        json_pack("{s:s, s:n, s:n, s:o, s:o, s:o, s:o, s:o, s:o}", "version",
                  "1.0", "truncation", "padding", "added_tokens",
                  gg_back_vocab_make_added(t), "normalizer", normalizer,
                  "pre_tokenizer", cut, "post_processor",
                  gg_back_vocab_make_post(t), "decoder", decoder, "model",
                  model),
        err);
}

/* ---- WordPiece ---- */

/* Prefix of a token in vocab.txt. Removes the mark of the token's text. */
static const char *piece_of(const struct gg_back_tokens *t, size_t i,
                            struct gguf_str *s)
{
    *s = t->text[i];
    if (t->types[i] == GG_CONVERT_CONTROL || t->types[i] == GG_CONVERT_USER)
        return "";
    if (gg_str_starts(*s, MARK)) {
        s->data += sizeof MARK - 1;
        s->size -= sizeof MARK - 1;
        return "";
    }
    /* unused tokens of older files */
    return gg_str_starts(*s, "[") && gg_str_ends(*s, "]") ? "" : "##";
}

static json_t *case_of(const struct gg_back_tokens *t, int *lower)
{
    *lower = gg_back_vocab_get_flag(t->b, KEY("normalizer.lowercase"), 1);
    const int strip =
        gg_back_vocab_get_flag(t->b, KEY("normalizer.strip_accents"), *lower);
    return strip == *lower ? json_null() : json_boolean(strip);
}

/* List the tokens of vocab.txt that are not normal in tokenizer_config.json. */
static void put_decoder(const struct gg_back_tokens *t, json_t *config)
{
    json_t *all = json_object();
    char id[24];
    for (size_t i = 0; i < t->n_used; i++) {
        const bool special = t->types[i] == GG_CONVERT_CONTROL;
        if (!special && t->types[i] != GG_CONVERT_USER)
            continue;
        snprintf(id, sizeof id, "%zu", i);
        json_object_set_new(all, id,
                            json_pack("{s:s%, s:b}", "content",
                                      t->text[i].data, t->text[i].size,
                                      "special", special));
    }
    json_object_set_new(config, "added_tokens_decoder", all);
}

static enum gguf_status put_txt(const struct gg_back_tokens *t, json_t *config,
                                struct gg_back_text *out,
                                struct gguf_error *err)
{
    size_t size = 1, n = 0;
    struct gguf_str s;
    int lower;
    json_t *strip = case_of(t, &lower);
    json_object_set_new(config, "do_lower_case", json_boolean(lower));
    json_object_set_new(config, "strip_accents", strip);
    put_decoder(t, config);
    for (size_t i = 0; i < t->n_used; i++)
        size += t->text[i].size + 3;
    char *text = malloc(size);
    if (!text)
        return gg_error_set_nomem(err, size);
    for (size_t i = 0; i < t->n_used; i++) {
        const char *before = piece_of(t, i, &s);
        if (!s.size || memchr(s.data, '\n', s.size) ||
            memchr(s.data, '\r', s.size)) {
            free(text);
            return gg_back_vocab_fail(
                "a token's text is empty or has several lines", err);
        }
        n += (size_t)snprintf(text + n, size - n, "%s", before);
        memcpy(text + n, s.data, s.size);
        n += s.size;
        text[n++] = '\n';
    }
    *out = (struct gg_back_text){ "vocab.txt", text, n };
    return GGUF_OK;
}

enum gguf_status gg_back_put_wordpiece(const struct gg_back_tokens *t,
                                       json_t *config,
                                       struct gg_back_text *out,
                                       struct gguf_error *err)
{
    json_t *vocab = json_object();
    enum gguf_status st = GGUF_OK;
    int lower;
    const int64_t unk = gg_back_vocab_find_role(t, KEY("unknown_token_id"));
    for (size_t i = 0; i < t->n_used && st == GGUF_OK; i++) {
        struct gguf_str s;
        const char *before = piece_of(t, i, &s);
        st = gg_back_vocab_put_token(t, vocab, before, s, i, err);
    }
    if (st != GGUF_OK || !says_ends(t)) {
        json_decref(vocab);
        return st != GGUF_OK ? st : put_txt(t, config, out, err);
    }
    json_t *strip = case_of(t, &lower);
    return give_tokenizer(
        t,
        json_pack("{s:s, s:b, s:b, s:o, s:b}", "type", "BertNormalizer",
                  "clean_text", 1, "handle_chinese_chars", 1, "strip_accents",
                  strip, "lowercase", lower),
        json_pack("{s:s}", "type", "BertPreTokenizer"),
        json_pack("{s:s, s:s, s:b}", "type", "WordPiece", "prefix", "##",
                  "cleanup", 1),
        json_pack("{s:s, s:s%, s:s, s:i, s:o}", "type", "WordPiece",
                  "unk_token", unk < 0 ? "[UNK]" : t->text[unk].data,
                  unk < 0 ? (size_t)5 : t->text[unk].size,
                  "continuing_subword_prefix", "##",
                  "max_input_chars_per_word", 100, "vocab", vocab),
        out, err);
}

/* ---- Unigram ---- */

static void encode64(char *out, const uint8_t *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        const uint32_t x = (uint32_t)p[i] << 16 |
                           (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) |
                           (i + 2 < n ? p[i + 2] : 0);
        for (unsigned k = 0; k < 4; k++)
            *out++ = i + k > n ? '=' : digits[x >> (18 - 6 * k) & 63];
    }
    *out = 0;
}

/* The step Precompiled, or null. NULL: no memory. */
static json_t *table_of(const struct gg_back_tokens *t)
{
    const struct gguf_kv *map =
        gguf_file_kv_find(t->b->meta, KEY("precompiled_charsmap"));
    if (!map || map->type != GGUF_VAL_ARR || !map->n ||
        (map->elem_type != GGUF_VAL_U8 && map->elem_type != GGUF_VAL_I8))
        return json_null();
    char *text = malloc((size_t)map->n / 3 * 4 + 5);
    if (!text)
        return NULL;
    encode64(text, map->data, (size_t)map->n);
    json_t *step = json_pack("{s:s, s:s}", "type", "Precompiled",
                             "precompiled_charsmap", text);
    free(text);
    return step;
}

static json_t *make_metaspace(bool prefix)
{
    return json_pack("{s:s, s:s, s:s, s:b}", "type", "Metaspace",
                     "replacement", MARK, "prepend_scheme",
                     prefix ? "always" : "never", "split", 1);
}

static enum gguf_status put_unigram_vocab(const struct gg_back_tokens *t,
                                          json_t *vocab, int64_t *unk,
                                          bool *bytes, struct gguf_error *err)
{
    for (size_t i = 0; i < t->n_used; i++) {
        const struct gguf_str s = t->text[i];
        json_t *score = json_real((double)t->scores[i]);
        *bytes |= t->types[i] == GG_CONVERT_BYTE;
        if (t->types[i] == GG_CONVERT_UNKNOWN && *unk < 0)
            *unk = (int64_t)i;
        if (t->types[i] == GG_CONVERT_UNUSED || memchr(s.data, 0, s.size) ||
            !score || !gg_str_utf8_valid(s.data, s.size)) {
            json_decref(score);
            return gg_back_vocab_fail(
                "a token is unused, not UTF-8, or has no "
                "finite score",
                err);
        }
        json_array_append_new(vocab,
                              json_pack("[s%, o]", s.data, s.size, score));
    }
    return GGUF_OK;
}

enum gguf_status gg_back_put_unigram(const struct gg_back_tokens *t,
                                     json_t *config, struct gg_back_text *out,
                                     struct gguf_error *err)
{
    const bool prefix =
                   gg_back_vocab_get_flag(t->b, KEY("add_space_prefix"), 0),
               merge = gg_back_vocab_get_flag(
                   t->b, KEY("remove_extra_whitespaces"), 0);
    bool bytes = false;
    int64_t unk = -1;
    if (!says_ends(t))
        return gg_back_put_spm(t, "spiece.model", true, out, err);
    json_object_set_new(config, "tokenizer_class",
                        json_string("PreTrainedTokenizerFast"));
    json_t *vocab = json_array();
    const enum gguf_status st = put_unigram_vocab(t, vocab, &unk, &bytes, err);
    if (st != GGUF_OK) {
        json_decref(vocab);
        return st;
    }
    json_t *steps = json_array();
    if (merge)
        json_array_append_new(steps,
                              json_pack("{s:s}", "type", "WhitespaceSplit"));
    json_array_append_new(steps, make_metaspace(prefix));
    return give_tokenizer(
        t, table_of(t),
        json_pack("{s:s, s:o}", "type", "Sequence", "pretokenizers", steps),
        make_metaspace(prefix),
        json_pack("{s:s, s:o, s:o, s:b}", "type", "Unigram", "unk_id",
                  unk < 0 ? json_null() : json_integer(unk), "vocab", vocab,
                  "byte_fallback", bytes),
        out, err);
}
