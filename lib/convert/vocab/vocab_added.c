/* SPDX-License-Identifier: MIT */
/* vocab_added.c - tokens that were added to those of a tokenizer's model
 *
 * tokenizer.json lists them in added_tokens, tokenizer_config.json in
 * added_tokens_decoder by their id, added_tokens.json as text and id.
 */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

#define SCORE_ADDED (-1000.0f)
enum { MOST_NAMED = 256 }; /* notes about tokens */

/* Is this a text that llama.cpp's converter makes a control token whatever a
 * file says? */
static bool is_known_special(struct gguf_str s)
{
    static const char *const whole[] = { "<pad>", "<mask>", "<2mass>",
                                         "[@BOS@]" };
    static const char *const around[][2] = {
        { "<|", "|>" },
        { "<\xef\xbd\x9c", "\xef\xbd\x9c>" },
        { "<unused", ">" },
    };
    for (size_t i = 0; i < GG_LEN(whole); i++)
        if (gg_str_eqz(s, whole[i]))
            return true;
    for (size_t i = 0; i < GG_LEN(around); i++)
        if (gg_str_starts(s, around[i][0]) && gg_str_ends(s, around[i][1]))
            return true;
    return false;
}

/* The text with U+2581 as a blank: tokens of users are looked for as they
 * are. */
static enum gguf_status with_blanks(struct gg_convert_vocab *v,
                                    struct gguf_str *s, struct gguf_error *err)
{
    static const char mark[] = "\xe2\x96\x81";
    char *out = gg_mem_arena_alloc(v->folder->arena, s->size + 1);
    size_t n = 0;
    if (!out)
        return gg_error_set_nomem(err, s->size + 1);
    for (size_t i = 0; i < s->size;)
        if (s->size - i >= 3 && !memcmp(s->data + i, mark, 3)) {
            out[n++] = ' ';
            i += 3;
        } else {
            out[n++] = s->data[i++];
        }
    out[n] = 0;
    *s = (struct gguf_str){ out, n };
    return GGUF_OK;
}

/* ---- tokens without a row of the embedding ---- */

static enum gguf_status add_rowless(struct gg_convert_vocab *v, int64_t id,
                                    struct gguf_str text,
                                    struct gguf_error *err)
{
    if (v->n_rowless == v->room_rowless) {
        void *grown =
            gg_mem_grow(v->folder->p->allocator, v->rowless, &v->room_rowless,
                        sizeof *v->rowless, 64, err);
        if (!grown)
            return GGUF_E_NOMEM;
        v->rowless = grown;
    }
    v->rowless[v->n_rowless++] =
        (struct gg_convert_token_without_row){ id, text };
    return GGUF_OK;
}

static int compare_ids(const void *a, const void *b)
{
    const struct gg_convert_token_without_row *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

/* Note each token without a row once, up to MOST_NAMED of them. */
static void note_rowless(struct gg_convert_vocab *v)
{
    size_t n = 0;
    int64_t rows = 0, last = -1;
    if (v->n_rowless)
        qsort(v->rowless, v->n_rowless, sizeof *v->rowless, compare_ids);
    (void)gg_folder_get_count(v->folder, "vocab_size", &rows);
    for (size_t i = 0; i < v->n_rowless; i++) {
        struct gg_str_esc e;
        if (v->rowless[i].id == last)
            continue;
        last = v->rowless[i].id;
        if (n++ < MOST_NAMED)
            gg_folder_warn(v->folder,
                           "token %" PRId64 " '%s' is left out: the "
                           "embedding has %" PRId64 " rows",
                           last, gg_str_esc(&e, v->rowless[i].text), rows);
    }
    if (n > MOST_NAMED)
        gg_folder_warn(v->folder, "and %zu more tokens are left out",
                       n - MOST_NAMED);
    v->n_left = n;
}

/* ---- tokens with a row ---- */

static enum gguf_status add_token(struct gg_convert_vocab *v, const char *file,
                                  int64_t id, struct gguf_str text,
                                  bool special, struct gguf_error *err)
{
    int64_t size;
    if (id < 0 || id >= GG_CONVERT_MOST_TOKENS)
        return gg_error_set(err, GGUF_E_VOCAB, GGUF_NO_OFFSET,
                            "%s: an added token has id %" PRId64, file, id);
    /* a token without a row in the embedding cannot be used */
    if (gg_folder_get_count(v->folder, "vocab_size", &size) && id >= size)
        return add_rowless(v, id, text, err);
    const bool there = id < (int64_t)v->n && v->token[id].data &&
                       gg_str_eq(v->token[id], text);
    const bool known = there && (v->type[id] == GG_CONVERT_UNKNOWN ||
                                 v->type[id] == GG_CONVERT_BYTE);
    GG_TRY(gg_convert_vocab_grow(v, id + 1, SCORE_ADDED, err));
    if (known)
        return GGUF_OK;
    special = special || is_known_special(text);
    if (!there)
        v->score[id] = SCORE_ADDED;
    if (!special)
        GG_TRY(with_blanks(v, &text, err));
    else
        text.data =
            gg_mem_arena_strndup(v->folder->arena, text.data, text.size);
    if (!text.data)
        return gg_error_set_nomem(err, text.size);
    v->token[id] = text;
    v->type[id] = special ? GG_CONVERT_CONTROL : GG_CONVERT_USER;
    return GGUF_OK;
}

static enum gguf_status add_object(struct gg_convert_vocab *v,
                                   const struct gg_convert_text *t,
                                   const json_t *o, int64_t id,
                                   struct gguf_error *err)
{
    struct gguf_str text;
    if (!gg_json_str(json_object_get(o, "content"), &text))
        return gg_error_set(err, GGUF_E_VOCAB, gg_json_offset_of(&t->json, o),
                            "%s: an added token has no \"content\"", t->name);
    return add_token(v, t->name, id, text,
                     json_is_true(json_object_get(o, "special")), err);
}

/* Digits. */
static bool to_id(const char *s, int64_t *id)
{
    struct gguf_str rest = gg_str_z(s);
    uint64_t n;
    if (!gg_str_uint(&rest, (uint64_t)GG_CONVERT_MOST_TOKENS, &n) || rest.size)
        return false;
    *id = (int64_t)n;
    return true;
}

enum gguf_status gg_convert_vocab_read_added(struct gg_convert_vocab *v,
                                             struct gguf_error *err)
{
    const struct gg_convert_text *t = &v->folder->text[GG_CONVERT_ADDED];
    const char *key;
    json_t *e;
    size_t i;
    int64_t id;
    json_object_foreach(t->json.root, key, e)
    {
        if (!gg_json_int(e, &id))
            return gg_error_set(err, GGUF_E_VOCAB,
                                gg_json_offset_of(&t->json, e),
                                "%s: an id that is not an integer", t->name);
        GG_TRY(add_token(v, t->name, id, gg_str_z(key), false, err));
    }
    t = &v->folder->text[GG_CONVERT_TOKENIZER];
    json_array_foreach(json_object_get(t->json.root, "added_tokens"), i, e)
    {
        if (!gg_json_int(json_object_get(e, "id"), &id))
            return gg_error_set(err, GGUF_E_VOCAB,
                                gg_json_offset_of(&t->json, e),
                                "%s: an added token has no id", t->name);
        GG_TRY(add_object(v, t, e, id, err));
    }
    t = &v->folder->text[GG_CONVERT_TOKENIZER_CONFIG];
    json_object_foreach(json_object_get(t->json.root, "added_tokens_decoder"),
                        key, e)
    {
        if (!to_id(key, &id))
            return gg_error_set(
                err, GGUF_E_VOCAB, gg_json_offset_of(&t->json, e),
                "%s: an added token whose id is not a number", t->name);
        GG_TRY(add_object(v, t, e, id, err));
    }
    note_rowless(v);
    return GGUF_OK;
}
