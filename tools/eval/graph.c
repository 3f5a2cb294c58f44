/* SPDX-License-Identifier: MIT */
/* graph.c - printing graphs, assignments and plans */
#include "config.h"
#include "tools/common/ignore_status.h"
#include "tools/eval/eval.h"
#include "tools/common/msg.h"

#include <stdio.h>
#include <stdlib.h>

struct printed {
    const struct eval_options *o;
    size_t n; /* number of printed graphs */
};

static bool write_stdout(void *user, const char *text, size_t size)
{
    (void)user;
    return fwrite(text, 1, size, stdout) != size;
}

static bool print_graph(void *user, struct gguf_graph *graph,
                        struct gguf_sched *sched)
{
    struct printed *p = user;
    const struct eval_options *o = p->o;
    const struct gguf_write_callback out = { write_stdout, NULL };
    const char *part = p->n++ ? "logits" : "pass";
    /* a full disk is noticed at exit */
    if (o->print_graph == EVAL_GRAPH_TEXT)
        ignore_status(gguf_graph_dump(graph, part, out, NULL));
    if (o->print_graph == EVAL_GRAPH_DOT)
        ignore_status(gguf_graph_dump_dot(graph, part, out, NULL));
    if (o->print_assignments)
        ignore_status(gguf_sched_dump(sched, out, NULL));
    if (o->print_plan)
        ignore_status(gguf_sched_dump_plan(sched, out, NULL));
    return false;
}

/* Decode a batch of the largest size and print its graphs. The token ids do not
 * change the graphs. The batch is computed, because the graph of the logits
 * needs its states. */
bool eval_graphs(struct eval *e)
{
    const struct eval_options *o = e->o;
    const uint32_t n_ctx = o->ev.n_ctx;
    struct ev_model *m = &e->model;
    struct printed p = { .o = o };
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    sp.n_ubatch =
        o->ev.n_batch < o->ev.n_ubatch ? o->ev.n_batch : o->ev.n_ubatch;
    sp.n_seq = sp.n_ubatch / n_ctx ? sp.n_ubatch / n_ctx : 1;
    sp.on_graph.fn = print_graph;
    sp.on_graph.user = &p;
    if (!eval_begin_session(e, &sp))
        return false;
    const uint32_t n = gguf_session_n_ubatch(m->session) < n_ctx
                           ? gguf_session_n_ubatch(m->session)
                           : n_ctx;
    gguf_token *ids = msg_must(calloc(n, sizeof *ids));
    struct gguf_batch b = GGUF_BATCH_INIT;
    const float *logits;
    struct gguf_error err;
    b.n = n;
    b.token = ids;
    if (o->print_graph == EVAL_GRAPH_DOT)
        puts("digraph gguf {");
    const bool good =
        gguf_session_decode(m->session, &b, &err) == GGUF_OK &&
        gguf_session_logits(m->session, 0, 1, &logits, &err) == GGUF_OK;
    if (!good)
        msg_fail(m->path, &err);
    else if (o->print_graph == EVAL_GRAPH_DOT)
        puts("}");
    free(ids);
    return good;
}
