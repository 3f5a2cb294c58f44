/* SPDX-License-Identifier: MIT */
/* vocab_plamo.c - read tokenizer.jsonl, the tokenizer of PLaMo 2 and 3
 *
 * Each line is a list: the text of a token, its score, and its kind, "NORMAL",
 * "UNKNOWN", "CONTROL" or "BYTE". The number of the line is the id.
 */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/str.h"

#include <math.h>

#define SCORE_PAD (-1000.0f)

static int32_t kind_of(const json_t *list, struct gguf_str text)
{
    struct gguf_str kind;
    if (!gg_json_str(json_array_get(list, 2), &kind))
        kind = GG_STR("NORMAL");
    return gg_str_eqz(kind, "UNKNOWN")   ? GG_CONVERT_UNKNOWN
           : gg_str_eqz(kind, "CONTROL") ? GG_CONVERT_CONTROL
           : gg_str_eqz(kind, "BYTE")    ? GG_CONVERT_BYTE
           : gg_str_starts(text, "<|plamo:") && gg_str_ends(text, "|>")
               ? GG_CONVERT_CONTROL
               : GG_CONVERT_NORMAL;
}

static enum gguf_status take_piece(struct gg_convert_vocab *v,
                                   const json_t *list,
                                   const struct gg_convert_line *line,
                                   struct gguf_error *err)
{
    struct gguf_str text;
    double score;
    const size_t id = v->n;
    if (!gg_json_str(json_array_get(list, 0), &text) ||
        !gg_json_num(json_array_get(list, 1), &score) ||
        !isfinite((float)score))
        return gg_error_set(err, GGUF_E_VOCAB, line->off,
                            "line %zu: not a list of a text and a score",
                            line->no);
    GG_TRY(gg_convert_vocab_grow(v, (int64_t)id + 1, 0, err));
    v->token[id].data =
        gg_mem_arena_strndup(v->folder->arena, text.data, text.size);
    if (!v->token[id].data)
        return gg_error_set_nomem(err, text.size);
    v->token[id].size = text.size;
    v->score[id] = (float)score;
    v->type[id] = kind_of(list, text);
    return GGUF_OK;
}

/* Write the keys: token OP ends a turn. */
static enum gguf_status set_keys(struct gg_convert_vocab *v,
                                 struct gguf_error *err)
{
    enum { OP = 4 };
    return v->n > OP && gg_str_eqz(v->token[OP], "<|plamo:op|>")
               ? gguf_meta_set_u32(v->meta, "tokenizer.ggml.eot_token_id", OP,
                                   err)
               : GGUF_OK;
}

enum gguf_status gg_convert_vocab_read_plamo(struct gg_convert_vocab *v,
                                             const struct gg_mapfile *m,
                                             struct gguf_error *err)
{
    struct gg_convert_line line = { .map = m };
    int64_t size;
    while (gg_convert_vocab_next_line(&line)) {
        struct gg_json j;
        if (!line.text.size)
            continue;
        GG_TRY(gg_json_read(&j, line.text.data, line.text.size, line.off, 0,
                            err));
        const enum gguf_status st = take_piece(v, j.root, &line, err);
        gg_json_fini(&j);
        GG_TRY(st);
    }
    if (!v->n)
        return gg_error_set(err, GGUF_E_VOCAB, 0, "no tokens");
    v->model = "plamo2";
    v->pre = "default";
    v->has_scores = v->unique = true;
    v->pad_from = v->n - 1; /* fillers are counted from 1 on */
    v->space_prefix = 0;
    v->last_keys = set_keys;
    return gg_folder_get_count(v->folder, "vocab_size", &size)
               ? gg_convert_vocab_grow(v, size, SCORE_PAD, err)
               : GGUF_OK;
}
