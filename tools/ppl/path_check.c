/* SPDX-License-Identifier: MIT */
/* path_check.c - checks of the files that gguf-ppl reads and writes */
#include "config.h"
#include "tools/ppl/ppl.h"
#include "tools/common/msg.h"
#include "tools/common/paths.h"

/* ---- texts ---- */

bool ppl_find_texts(struct ppl_options *o)
{
    if (!ev_find_files(&o->texts))
        return false;
    o->text = o->texts.n ? o->texts.path[0] : NULL;
    if (o->texts.n > 1 && (o->task || o->save_base || o->base_is_saved))
        opt_usage("%zu texts, expected 1 with tasks and with files of logits",
                  o->texts.n);
    return true;
}

/* ---- inputs and outputs ---- */

void ppl_check_local(const struct ppl_options *o)
{
    for (size_t i = 0; i < o->models.n; i++)
        paths_require_local(o->models.arg[i]);
    paths_require_local(o->base);
    for (size_t i = 0; i < o->texts.args.n; i++)
        paths_require_local(o->texts.args.arg[i]);
}

static void add_inputs(struct gguf_paths *p, const struct ppl_options *o)
{
    for (size_t i = 0; i < o->models.n; i++)
        paths_read_model(p, o->models.arg[i], NULL, "--model");
    if (o->base && o->base_is_saved)
        paths_read(p, o->base, "--base");
    else if (o->base)
        paths_read_model(p, o->base, NULL, "--base");
    for (size_t i = 0; i < o->texts.n; i++)
        paths_read(p, o->texts.path[i], "--file");
    ev_add_adapter_inputs(p, &o->ev);
}

void ppl_check_paths(const struct ppl_options *o, char **parts, int n_parts)
{
    const struct {
        const char *path, *what;
    } out[] = {
        { o->save_base, "--save-base" }, { o->per_token, "--per-token" },
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
    add_inputs(p, o);
    for (int i = 0; i < n_parts; i++)
        paths_read(p, parts[i], "part");
    for (size_t i = 0; i < n; i++)
        paths_write(p, out[i].path, out[i].what);
    gguf_paths_destroy(p);
}
