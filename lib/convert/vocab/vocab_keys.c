/* SPDX-License-Identifier: MIT */
/* vocab_keys.c - the tokenizer of a folder */
#include "config.h"
#include "convert/vocab/vocab_folder.h"

#include "base/compiler.h"
#include "base/str.h"
#include "vocab/pretok.h"

#include <stdio.h>
#include <string.h>

#define SCORE_PAD (-10000.0f)

/* Add fillers until each row of the embedding has a token; ids without a token
 * get one. */
static enum gguf_status fill_tokens(struct gg_convert_vocab *v,
                                    struct gguf_error *err)
{
    int64_t size;
    char text[32];
    if (gg_folder_get_count(v->folder, "vocab_size", &size))
        GG_TRY(gg_convert_vocab_grow(v, size, SCORE_PAD, err));
    for (size_t i = 0; i < v->n; i++) {
        if (v->token[i].data)
            continue;
        const int n = snprintf(text, sizeof text, "[PAD%zu]", i - v->pad_from);
        v->token[i].data =
            gg_mem_arena_strndup(v->folder->arena, text, (size_t)n);
        v->token[i].size = (size_t)n;
        if (!v->token[i].data)
            return gg_error_set_nomem(err, (size_t)n);
        v->type[i] = GG_CONVERT_UNUSED;
    }
    return GGUF_OK;
}

/* Readers of the file look tokens up by text, so texts must differ. */
static enum gguf_status check_unique(const struct gg_convert_vocab *v,
                                     struct gguf_error *err)
{
    struct gg_index ix;
    struct gg_str_esc e;
    enum gguf_status st = gg_convert_vocab_fill_index(v, &ix, v->n, err);
    for (uint32_t i = 0; i < v->n && st == GGUF_OK; i++) {
        uint32_t other = GG_INDEX_NONE;
        if (v->token[i].size)
            st = gg_index_add(&ix, i, &other, err);
        if (st == GGUF_OK && other != GG_INDEX_NONE)
            st = gg_error_set(err, GGUF_E_VOCAB, GGUF_NO_OFFSET,
                              "tokens %" PRIu32 " and %" PRIu32
                              " are both '%s'",
                              other, i, gg_str_esc(&e, v->token[i]));
    }
    gg_index_fini(&ix);
    return st;
}

static enum gguf_status set_meta(const struct gg_convert_vocab *v,
                                 struct gguf_error *err)
{
    struct gguf_meta *m = v->meta;
    GG_TRY(gguf_meta_set_strz(m, "tokenizer.ggml.model", v->model, err));
    if (v->pre)
        GG_TRY(gguf_meta_set_strz(m, "tokenizer.ggml.pre", v->pre, err));
    GG_TRY(gguf_meta_set_str_array(m, "tokenizer.ggml.tokens", v->token, v->n,
                                   err));
    if (v->has_scores)
        GG_TRY(gguf_meta_set_array(m, "tokenizer.ggml.scores", GGUF_VAL_F32,
                                   v->score, v->n, err));
    GG_TRY(gguf_meta_set_array(m, "tokenizer.ggml.token_type", GGUF_VAL_I32,
                               v->type, v->n, err));
    if (v->n_merges)
        GG_TRY(gguf_meta_set_str_array(m, "tokenizer.ggml.merges", v->merge,
                                       v->n_merges, err));
    return GGUF_OK;
}

/* ---- choice of the file ---- */

/* By their names, the first that is there. */
static const struct {
    const char *name;
    /* NULL: of tokenizer.json */
    enum gguf_status (*read)(struct gg_convert_vocab *v,
                             const struct gg_mapfile *m,
                             struct gguf_error *err);
} files[] = {
    { "tokenizer.model", gg_convert_vocab_read_spm },
    { "spiece.model", gg_convert_vocab_read_spm },
    { "rwkv_vocab_v20230424.txt", gg_convert_vocab_read_rwkv },
    { "tokenizer.jsonl", gg_convert_vocab_read_plamo },
    { "tokenizer.json", NULL },
    { "qwen.tiktoken", gg_convert_vocab_read_tiktoken },
    { "tiktoken.model", gg_convert_vocab_read_kimi },
    { "sentencepiece.bpe.model", gg_convert_vocab_read_fairseq },
    { "vocab.txt", gg_convert_vocab_read_wpm_txt },
};

/* Tokenizers of unsupported formats. */
static const struct gg_dir_alternative instead[] = {
    { "tekken", ".json",
      "is of Mistral's own code: download or make the tokenizer.json of "
      "transformers" },
    { "tokenizer.model.v", "", "must be named tokenizer.model" },
    { "vocab", ".json",
      "is of an older form: save the tokenizer as tokenizer.json, by "
      "save_pretrained of transformers" },
};

static enum gguf_status read_file(struct gg_convert_vocab *v,
                                  const char **name, struct gguf_error *err)
{
    for (size_t i = 0; i < GG_LEN(files); i++) {
        struct gg_mapfile m = { .fd = -1 };
        bool there = v->folder->text[GG_CONVERT_TOKENIZER].json.root != NULL;
        *name = files[i].name;
        if (files[i].read)
            GG_TRY(gg_folder_map(v->folder, *name, &m, &there, err));
        if (!there)
            continue;
        if (!files[i].read)
            return gg_convert_prefix_error(
                *name, gg_convert_vocab_read_json(v, err), err);
        enum gguf_status st =
            gg_convert_prefix_error(*name, files[i].read(v, &m, err), err);
        gg_mapfile_close(&m);
        return st;
    }
    *name = files[0].name;
    return gg_dir_fail_missing(&v->folder->dir,
                               "there is no tokenizer (tokenizer.json, "
                               "tokenizer.model, vocab.txt ...)",
                               instead, GG_LEN(instead), err);
}

static enum gguf_status read_vocab(struct gg_convert_vocab *v,
                                   struct gguf_error *err)
{
    const char *name;
    struct gg_str_esc e;
    v->pre = v->folder->p->pre;
    if (v->pre && !gg_pretok_is_known(gg_str_z(v->pre))) {
        struct gg_pretok_suggestions near;
        gg_pretok_suggest(&near, gg_str_z(v->pre));
        return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                            "unknown pre-tokenizer '%s'; similar names are "
                            "'%.*s' and '%.*s'",
                            gg_str_esc(&e, gg_str_z(v->pre)),
                            (int)near.name[0].size, near.name[0].data,
                            (int)near.name[1].size, near.name[1].data);
    }
    GG_TRY(read_file(v, &name, err));
    if (!v->pre && !strcmp(v->model, "gpt2"))
        GG_TRY(gg_convert_prefix_error(name, gg_convert_vocab_find_pre(v, err),
                                       err));
    GG_TRY(gg_convert_vocab_read_added(v, err));
    if (v->finish)
        GG_TRY(v->finish(v, err));
    GG_TRY(fill_tokens(v, err));
    if (v->arch && v->arch->fix_vocab)
        GG_TRY(v->arch->fix_vocab(v, err));
    if (v->unique)
        GG_TRY(gg_convert_prefix_error(name, check_unique(v, err), err));
    GG_TRY(set_meta(v, err));
    if (v->keys)
        GG_TRY(v->keys(v, err));
    GG_TRY(gg_convert_vocab_set_special(v, err));
    return v->last_keys ? v->last_keys(v, err) : GGUF_OK;
}

/* Bound the number of tokens by the rows of the embedding, so that a wrong
 * number in a text cannot allocate memory for the largest vocabulary. */
static void limit_tokens(struct gg_convert_vocab *v)
{
    v->most = GG_CONVERT_MOST_TOKENS;
    if (v->rows && v->rows < v->most / 2 - GG_CONVERT_MORE_TOKENS)
        v->most = 2 * v->rows + GG_CONVERT_MORE_TOKENS;
}

enum gguf_status gg_convert_add_vocab(struct gg_folder *folder,
                                      const struct gg_convert_arch *arch,
                                      int64_t rows, struct gguf_meta *meta,
                                      size_t *n_left, struct gguf_error *err)
{
    const struct gguf_allocator *a = folder->p->allocator;
    struct gg_convert_vocab v = { .folder = folder,
                                  .arch = arch,
                                  .meta = meta,
                                  .rows = rows,
                                  .space_prefix = -1,
                                  .unk = -1 };
    limit_tokens(&v);
    enum gguf_status st = read_vocab(&v, err);
    *n_left = v.n_left;
    gg_mem_free(a, v.token);
    gg_mem_free(a, v.score);
    gg_mem_free(a, v.type);
    gg_mem_free(a, v.merge);
    gg_mem_free(a, v.rowless);
    return st;
}
