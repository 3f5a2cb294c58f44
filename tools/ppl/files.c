/* SPDX-License-Identifier: MIT */
/* files.c - the files that gguf-ppl reads and writes */
#include "config.h"
#include "tools/ppl/ppl.h"
#include "tools/common/msg.h"
#include "tools/common/paths.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- texts ---- */

static void add_file(struct ppl_options *o, const char *path)
{
    o->files =
        msg_grow(o->files, &o->room_files, o->n_files + 1, sizeof *o->files);
    o->files[o->n_files++] = msg_must(strdup(path));
}

/* Expand a pattern as a shell does. */
static bool add_pattern(struct ppl_options *o, const char *pattern)
{
    glob_t g;
    const int st = glob(pattern, GLOB_ERR, NULL, &g);
    if (st == GLOB_NOMATCH)
        msg_error(pattern, "there is no such file, nor one that it matches");
    else if (st)
        msg_error(pattern, "cannot be looked up as a pattern");
    for (size_t i = 0; !st && i < g.gl_pathc; i++)
        add_file(o, g.gl_pathv[i]);
    if (!st)
        globfree(&g);
    return !st;
}

bool ppl_find_texts(struct ppl_options *o)
{
    size_t n_stdin = 0;
    for (size_t i = 0; i < o->text_args.n; i++) {
        const char *arg = o->text_args.arg[i];
        struct stat st;
        n_stdin += strcmp(arg, "-") == 0;
        if (strpbrk(arg, "*?[") && stat(arg, &st) != 0) {
            if (!add_pattern(o, arg))
                return false;
        } else {
            add_file(o, arg);
        }
    }
    if (n_stdin > 1)
        opt_usage("--file: there is only one standard input");
    o->text = o->n_files ? o->files[0] : NULL;
    if (o->n_files > 1 && (o->task || o->save_base || o->base_is_saved))
        opt_usage("%zu texts: only perplexity and --base take several",
                  o->n_files);
    return true;
}

/* ---- inputs and outputs ---- */

void ppl_check_local(const struct ppl_options *o)
{
    for (size_t i = 0; i < o->models.n; i++)
        paths_local(o->models.arg[i]);
    paths_local(o->base);
    for (size_t i = 0; i < o->text_args.n; i++)
        paths_local(o->text_args.arg[i]);
}

static void note_reads(struct gguf_paths *p, const struct ppl_options *o)
{
    for (size_t i = 0; i < o->models.n; i++)
        paths_read_model(p, o->models.arg[i], NULL, "--model");
    if (o->base && o->base_is_saved)
        paths_read(p, o->base, "--base");
    else if (o->base)
        paths_read_model(p, o->base, NULL, "--base");
    for (size_t i = 0; i < o->n_files; i++)
        paths_read(p, o->files[i], "--file");
    ev_note_adapters(p, &o->ev);
}

void ppl_check_paths(const struct ppl_options *o, char **parts, int n_parts)
{
    const struct {
        const char *path, *what;
    } out[] = {
        { o->save_base, "--save-base" }, { o->each, "--per-token" },
        { o->plot, "--plot" },           { o->html, "--html" },
        { o->part, "--save-part" },
    };
    const size_t n = sizeof out / sizeof *out;
    bool writes = false;
    for (size_t i = 0; i < n; i++)
        writes |= out[i].path != NULL;
    if (!writes)
        return;
    struct gguf_paths *p = paths_new();
    note_reads(p, o);
    for (int i = 0; i < n_parts; i++)
        paths_read(p, parts[i], "part");
    for (size_t i = 0; i < n; i++)
        paths_write(p, out[i].path, out[i].what);
    gguf_paths_destroy(p);
}
