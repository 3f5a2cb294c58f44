/* SPDX-License-Identifier: MIT */
/* gguf-compare - show where two models, backends or precisions differ */
#include "config.h"
#include "tools/compare/compare.h"
#include "tools/common/msg.h"
#include "base/os/os_program.h"

#include <stdio.h>
#include <stdlib.h>

/* Open the base, without adapters. */
static bool open_base(struct compare *c)
{
    const struct compare_options *o = c->o;
    struct gguf_error err;
    if (!ev_model_open(&c->base, o->base ? o->base : o->model, &o->ev))
        return false;
    c->base.precision = (unsigned)o->base_precision;
    if (o->base_backends)
        c->base.backend_names = o->base_backends;
    c->run.own = &c->base;
    if (c->model.info.n_vocab == c->base.info.n_vocab ||
        gguf_scan_compare_vocab(c->base.model, c->model.model, &err) ==
            GGUF_OK)
        return true;
    return progress_fail(NULL, c->model.path, &err);
}

static bool open_models(struct compare *c)
{
    const struct compare_options *o = c->o;
    c->run.own = &c->model;
    if (!ev_pool_open(&c->pool, &o->ev) ||
        !ev_model_open(&c->model, o->model, &o->ev) ||
        !ev_adapters_open(&c->model, &o->ev))
        return false;
    if (o->pair)
        c->model.backend_names = o->pair;
    return (o->pair || open_base(c)) && ev_check_vocab(&c->run);
}

static bool read_text(struct compare *c)
{
    return ev_read_texts(&c->run, c->o->texts.path, c->o->texts.n,
                         &c->tokens) &&
           ev_plan_chunks(&c->run, ev_count_chunks(&c->run),
                          c->o->ev.first_chunk, c->o->ev.n_chunks);
}

static bool load_weights(struct compare *c)
{
    const bool digest = c->run.wants_digest;
    return (c->o->pair ||
            ev_model_load_weights(&c->base, &c->o->ev, digest, c->pool)) &&
           ev_model_load_weights(&c->model, &c->o->ev, digest, c->pool);
}

bool compare_begin_sessions(struct compare *c, gguf_session_graph_fn *on_graph,
                            void *user)
{
    const struct ev_options *o = &c->o->ev;
    struct gguf_session_params sp = ev_plan_session(&c->run);
    sp.on_graph.fn = on_graph;
    sp.on_graph.user = user;
    return (c->o->pair || (ev_model_open_backends(&c->base, o, c->pool) &&
                           ev_model_begin_session(&c->base, o, &sp, false))) &&
           ev_model_open_backends(&c->model, o, c->pool) &&
           ev_model_begin_session(&c->model, o, &sp, c->o->pair != NULL);
}

static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    struct compare *c = user;
    return progress_report(&c->run.bar, done, total);
}

struct gguf_scan_params compare_scan_params(struct compare *c)
{
    struct gguf_scan_params p = ev_scan_params(&c->run);
    p.pool = c->pool;
    p.progress.fn = on_progress;
    p.progress.user = c;
    return p;
}

void compare_print_head(const struct compare *c)
{
    ev_print_model("model", &c->o->ev, &c->model);
    ev_print_model("base", &c->o->ev, &c->base);
    ev_print_text(&c->run);
    ev_print_mode(&c->run);
    msg_flush();
}

void compare_json_head(struct json *j, const struct compare *c)
{
    json_begin_object(j, stdout);
    ev_json_model(j, "model", &c->o->ev, &c->model);
    json_close(j);
    ev_json_model(j, "base", &c->o->ev, &c->base);
    json_close(j);
    ev_json_text(j, &c->run, "tokens", c->run.n_tokens);
    ev_json_settings(j, &c->run);
    json_u64(j, "first_chunk", c->run.first_chunk);
    json_u64(j, "chunks", c->run.n_chunks);
}

int main(int argc, char **argv)
{
    struct compare_options o;
    gg_os_program_arguments(&argc, &argv);
    compare_parse_options(&o, argc, argv);
    bool good = ev_find_files(&o.texts);
    struct compare c = { .o = &o, .tokens = GGUF_TOKENS_INIT };
    c.run = (struct ev_run){ .o = &o.ev,
                             .has_base = !o.pair,
                             .wants_digest = o.ev.json && !o.ev.no_digest,
                             .text = o.texts.n ? o.texts.path[0] : NULL,
                             .scan = GGUF_SCAN_PARAMS_INIT };
    c.run.scan.n_ctx = o.ev.n_ctx;
    good = good && open_models(&c) && read_text(&c) && load_weights(&c);
    good = good && (o.pair     ? compare_nodes(&c)
                    : o.bisect ? compare_bisect(&c)
                               : compare_layers(&c));
    ev_model_close(&c.model);
    ev_model_close(&c.base);
    gguf_pool_destroy(c.pool);
    gguf_tokens_fini(&c.tokens);
    ev_free_texts(&c.run);
    ev_files_fini(&o.texts);
    ev_options_fini(&o.ev);
    return msg_exit(good ? MSG_DONE : MSG_FAILED);
}
