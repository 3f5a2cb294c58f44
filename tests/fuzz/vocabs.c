/* SPDX-License-Identifier: MIT */
/* vocabs.c - runs readers of tokenizers on bytes (vocabs.h) */
#include "config.h"
#include "tests/fuzz/vocabs.h"

#include <string.h>

void vocab_begin(struct vocab *t)
{
    memset(t, 0, sizeof *t);
    t->folder.p = &t->params;
    t->folder.arena = &t->arena;
    t->v.folder = &t->folder;
    t->v.arch = gg_convert_arch_row(0); /* readers ask it for its pieces */
    t->v.unk = t->v.space_prefix = -1;
    gguf_error_clear(&t->err);
    gg_mem_arena_init(&t->arena, NULL);
    MUST(gguf_meta_create(&t->v.meta, NULL, &t->err) == GGUF_OK);
}

void vocab_end(struct vocab *t, enum gguf_status st, bool whole)
{
    struct gg_convert_special_ends ends;
    const struct gg_convert_vocab *v = &t->v;
    if (st == GGUF_OK) {
        MUST(v->model && v->n && v->n <= v->room);
        MUST(v->unk >= -1 && v->unk < (int64_t)v->n);
        for (size_t i = 0; i < v->n; i++) {
            MUST(!whole || v->token[i].data);
            MUST(v->type[i] >= GG_CONVERT_NORMAL &&
                 v->type[i] <= GG_CONVERT_BYTE);
        }
        gg_convert_vocab_read_ends(v, &ends);
        if (v->finish && v->finish(&t->v, &t->err) != GGUF_OK)
            MUST(t->err.message[0]);
        if (v->last_keys && v->last_keys(&t->v, &t->err) != GGUF_OK)
            MUST(t->err.message[0]);
    } else {
        MUST(t->err.message[0]);
    }
    for (size_t i = 0; i < GG_CONVERT_N_TEXTS; i++)
        gg_json_fini(&t->folder.text[i].json);
    gguf_meta_destroy(t->v.meta);
    gg_mem_free(NULL, t->v.token);
    gg_mem_free(NULL, t->v.score);
    gg_mem_free(NULL, t->v.type);
    gg_mem_free(NULL, t->v.merge);
    gg_mem_arena_fini(&t->arena);
}

void vocab_try(vocab_reader *read, const uint8_t *data, size_t size)
{
    static const char config[] = "{\"architectures\":[\"XLMRobertaModel\"]}";
    struct vocab t;
    struct gg_mapfile m;
    vocab_begin(&t);
    MUST(gg_json_read(&t.folder.text[GG_CONVERT_CONFIG].json, config,
                      sizeof config - 1, 0, 0, &t.err) == GGUF_OK);
    MUST(gg_mapfile_open_memory(&m, data, size, 0, size, &t.err) == GGUF_OK);
    const enum gguf_status st = read(&t.v, &m, &t.err);
    gg_mapfile_close(&m);
    vocab_end(&t, st, true);
}
