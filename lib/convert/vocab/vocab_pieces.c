/* SPDX-License-Identifier: MIT */
/* vocab_pieces.c - functions of several readers of tokenizer.json */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/compiler.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

static const struct gg_json *tokenizer_json(const struct gg_convert_vocab *v)
{
    return &v->folder->text[GG_CONVERT_TOKENIZER].json;
}

enum gguf_status gg_convert_vocab_fail_scan(const struct gg_json_scan *s,
                                            const char *what,
                                            struct gguf_error *err)
{
    GG_TRY(gg_json_scan_end(s, err));
    return gg_error_set(err, GGUF_E_VOCAB, gg_json_scan_offset(s), "%s", what);
}

/* Texts live until the folder's texts are closed, which is after metadata has
 * copies. */
static enum gguf_status read_piece(struct gg_convert_vocab *v,
                                   struct gg_json_scan *s, struct gg_index *ix,
                                   struct gguf_error *err)
{
    struct gguf_str text;
    struct gg_str_esc e;
    double x;
    uint32_t other;
    if (!gg_json_scan_name(s, &text))
        return gg_json_scan_end(s, err);
    const uint64_t at = gg_json_scan_offset(s);
    if (!gg_json_scan_num(s, &x) || !(x >= 0) ||
        !(x < (double)GG_CONVERT_MOST_TOKENS) || x != (double)(int64_t)x)
        return gg_convert_vocab_fail_scan(s, "a piece's id is out of range",
                                          err);
    const int64_t id = (int64_t)x;
    GG_TRY(gg_convert_vocab_grow(v, id + 1, 0, err));
    if (v->token[id].data)
        return gg_convert_vocab_fail_scan(s, "two pieces have this id", err);
    v->token[id] = text;
    v->type[id] = GG_CONVERT_NORMAL;
    GG_TRY(gg_index_add(ix, (uint32_t)id, &other, err));
    return other == GG_INDEX_NONE ? GGUF_OK
                                  : gg_error_set(err, GGUF_E_DUPLICATE, at,
                                                 "piece '%s' is there twice",
                                                 gg_str_esc(&e, text));
}

enum gguf_status gg_convert_vocab_read_pieces(struct gg_convert_vocab *v,
                                              json_t *vocab,
                                              struct gguf_error *err)
{
    static const char none[] = "the model has no object \"vocab\"";
    struct gg_json_scan s;
    struct gg_index ix;
    int64_t n = 0;
    if (!json_is_object(vocab))
        return gg_error_set(err, GGUF_E_VOCAB,
                            gg_json_offset_of(tokenizer_json(v), vocab), "%s",
                            none);
    if (!gg_folder_get_count(v->folder, "vocab_size", &n) ||
        (uint64_t)n > tokenizer_json(v)->size / sizeof "\"\":0")
        n = 0; /* more than the text can have: it grows */
    gg_json_scan_open(&s, tokenizer_json(v), vocab, v->folder->arena);
    enum gguf_status st = gg_convert_vocab_fill_index(v, &ix, (size_t)n, err);
    while (st == GGUF_OK && gg_json_scan_more(&s))
        st = read_piece(v, &s, &ix, err);
    gg_index_fini(&ix);
    GG_TRY(st);
    GG_TRY(gg_json_scan_end(&s, err));
    return v->n ? GGUF_OK
                : gg_error_set(err, GGUF_E_VOCAB,
                               gg_json_offset_of(tokenizer_json(v), vocab),
                               "%s", none);
}

bool gg_convert_vocab_is_byte(struct gguf_str s)
{
    static const char hex[] = "0123456789ABCDEF";
    return s.size == 6 && gg_str_starts(s, "<0x") && s.data[5] == '>' &&
           strchr(hex, s.data[3]) && strchr(hex, s.data[4]);
}

const json_t *gg_convert_vocab_find_step(const json_t *section,
                                         const char *type)
{
    static const char *const lists[] = { "normalizers", "pretokenizers",
                                         "decoders" };
    struct gguf_str s;
    if (gg_json_str(json_object_get(section, "type"), &s) &&
        gg_str_eqz(s, type))
        return section;
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        const json_t *list = json_object_get(section, lists[k]);
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t *found =
                gg_convert_vocab_find_step(json_array_get(list, i), type);
            if (found)
                return found;
        }
    }
    return NULL;
}

bool gg_convert_vocab_adds_space_prefix(const struct gg_convert_vocab *v)
{
    const json_t *root = tokenizer_json(v)->root;
    const json_t *meta = gg_convert_vocab_find_step(
        json_object_get(root, "pre_tokenizer"), "Metaspace");
    struct gguf_str s;
    if (gg_convert_vocab_is_prepend_step(gg_convert_vocab_find_step(
            json_object_get(root, "normalizer"), "Prepend")))
        return true;
    if (!meta)
        return false;
    if (gg_json_str(json_object_get(meta, "prepend_scheme"), &s))
        return !gg_str_eqz(s, "never");
    return json_is_true(json_object_get(meta, "add_prefix_space"));
}
