/* SPDX-License-Identifier: MIT */
/* back_paths.c - which files writing a folder reads and writes */
#include "config.h"
#include "convert/back/back.h"

#include "base/paths_int.h"
#include "file/file_int.h"

#include <stdio.h>

enum gguf_status gg_back_note_input(const struct gg_back *b,
                                    struct gguf_paths *p,
                                    struct gguf_error *err)
{
    GG_TRY(gg_file_add_paths(b->in, p, err));
    return GGUF_OK;
}

static enum gguf_status note_output(struct gguf_paths *p, const char *dir,
                                    const char *name, struct gguf_error *err)
{
    char path[4096];
    const int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    if (n < 0 || (size_t)n >= sizeof path)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "the path of the folder is too long");
    return gguf_paths_add_output(p, path, "output", err);
}

static enum gguf_status note_outputs(const struct gg_back *b, const char *dir,
                                     const struct gg_back_text *text,
                                     struct gguf_paths *p,
                                     struct gguf_error *err)
{
    char name[64];
    for (size_t i = 0; i < GG_BACK_TEXTS; i++)
        if (text[i].name)
            GG_TRY(note_output(p, dir, text[i].name, err));
    GG_TRY(note_output(p, dir, "config.json", err));
    if (b->out.n_files > 1)
        GG_TRY(note_output(p, dir, "model.safetensors.index.json", err));
    for (size_t i = 0; i < b->out.n_files; i++) {
        gg_safetensors_writer_file_name(&b->out, i, name);
        GG_TRY(note_output(p, dir, name, err));
    }
    return GGUF_OK;
}

enum gguf_status gg_back_check_paths(const struct gg_back *b, const char *dir,
                                     const struct gg_back_text *text,
                                     struct gguf_error *err)
{
    struct gguf_paths *p;
    GG_TRY(gg_paths_copy(&p, b->p.paths, b->p.allocator, err));
    enum gguf_status st = gg_back_note_input(b, p, err);
    if (st == GGUF_OK)
        st = note_outputs(b, dir, text, p, err);
    gguf_paths_destroy(p);
    return st;
}
