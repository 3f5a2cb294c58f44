/* SPDX-License-Identifier: MIT */
/* projector.c - the projector of a folder, beside its language model */
#include "config.h"
#include "tools/convert/convert.h"
#include "tools/common/msg.h"
#include "tools/common/progress.h"

#include <string.h>

/* Options of one output without those for the tensors of the language model. */
static struct options options_of(const struct convert_options *o)
{
    struct options q = o->q;
    q.params.overrides = NULL;
    q.params.n_overrides = 0;
    q.params.output_type = q.params.embedding_type = NULL;
    q.params.imatrix = NULL;
    q.params.meta = NULL;
    q.check = (struct gguf_quant_check_callback){ NULL, NULL };
    q.targets[0] = o->projector.target;
    q.n_targets = 1;
    return q;
}

enum gguf_status projector_plan(struct convert_options *o, const char **about,
                                struct gguf_error *err)
{
    struct projector_output *p = &o->projector;
    struct gguf_convert_params params = o->params;
    struct options q = options_of(o);
    if (!p->arg)
        return GGUF_OK;
    params.projector = true;
    enum gguf_status st = gguf_convert_open(&p->from, o->q.in, &params, err);
    *about = st == GGUF_OK ? p->target.type : o->q.in;
    if (st == GGUF_OK)
        st = gguf_recipe_preset(&p->target.recipe, p->target.type, NULL, err);
    if (st != GGUF_OK)
        return st;
    q.params.recipe = p->target.recipe;
    *about = o->q.in;
    return gguf_convert_create_job(&p->target.job, p->from, &q.params, err);
}

enum gguf_status projector_write(struct convert_options *o,
                                 const struct gguf_paths *noted,
                                 struct progress *bar, const char **about,
                                 struct gguf_error *err)
{
    struct options q = options_of(o);
    return o->projector.arg ? run_targets(&q, "converting the projector",
                                          noted, bar, about, err)
                            : GGUF_OK;
}

void projector_fini(struct projector_output *p)
{
    gguf_quant_destroy(p->target.job);
    gguf_recipe_destroy(p->target.recipe);
    gguf_convert_close(p->from);
}
