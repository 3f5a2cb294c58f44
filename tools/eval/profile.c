/* SPDX-License-Identifier: MIT */
/* profile.c - the time of each operation and of each layer */
#include "config.h"
#include "tools/eval/eval.h"
#include "tools/common/msg.h"
#include "tools/common/table.h"
#include "tools/common/wrap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Sums over the nodes of one operation on one backend. */
struct row {
    uint32_t op;
    const struct gguf_backend *backend;
    uint64_t n, ns, flops, bytes;
};

struct profile {
    struct row *rows;
    size_t n_rows, room_rows;
    uint64_t *layer; /* [n_layers], nanoseconds */
    size_t n_layers, room_layers;
    uint64_t pending; /* nanoseconds of nodes before the next named one */
    uint64_t rest;    /* nanoseconds of nodes outside of layers */
    uint64_t ns, n;   /* nanoseconds and number of all nodes */
};

static struct row *find_row(struct profile *p,
                            const struct gguf_profile_node *n)
{
    for (size_t i = 0; i < p->n_rows; i++)
        if (p->rows[i].op == n->node->op && p->rows[i].backend == n->backend)
            return &p->rows[i];
    p->rows = msg_grow(p->rows, &p->room_rows, p->n_rows + 1, sizeof *p->rows);
    struct row *r = &p->rows[p->n_rows++];
    *r = (struct row){ .op = n->node->op, .backend = n->backend };
    return r;
}

static uint64_t *find_layer(struct profile *p, const char *name)
{
    const struct gguf_str s = { name, strlen(name) };
    const int64_t il = gguf_layer_from_name(s, NULL);
    if (il < 0 || il >= 1 << 20)
        return &p->rest;
    const size_t n = (size_t)il + 1;
    p->layer = msg_grow(p->layer, &p->room_layers, n, sizeof *p->layer);
    for (; p->n_layers < n; p->n_layers++)
        p->layer[p->n_layers] = 0;
    return &p->layer[il];
}

static void add_node(void *user, const struct gguf_profile_node *n)
{
    struct profile *p = user;
    struct row *r = find_row(p, n);
    const uint64_t ns = n->end - n->begin;
    r->n++;
    r->ns += ns;
    r->flops += n->flops;
    r->bytes += n->bytes;
    p->n++;
    p->ns += ns;
    p->pending += ns;
    if (n->node->name[0]) {
        *find_layer(p, n->node->name) += p->pending;
        p->pending = 0;
    }
}

/* ---- printing ---- */

/* Compare rows for qsort(), the longest time first. */
static int compare_times(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}

static double compute_percent(const struct profile *p, uint64_t ns)
{
    return p->ns ? 100 * (double)ns / (double)p->ns : 0;
}

static void add_rate(struct table *t, uint64_t amount, uint64_t ns)
{
    if (amount && ns)
        table_addf(t, "%.1f", (double)amount / (double)ns);
    else
        table_add(t, "-");
}

static void print_operations(const struct profile *p)
{
    static const char *const heads[] = { "operation", "backend", "count",
                                         "seconds",   "share",   "GFLOP/s",
                                         "GB/s" };
    struct table t;
    table_init(&t, "llrrrrr", 0);
    table_add_row(&t, heads);
    for (size_t i = 0; i < p->n_rows; i++) {
        const struct row *r = &p->rows[i];
        table_add_strz(&t, gguf_op_name(r->op));
        table_add_strz(&t, gguf_backend_name(r->backend));
        table_addf(&t, "%" PRIu64, r->n);
        table_addf(&t, "%.4f", 1e-9 * (double)r->ns);
        table_addf(&t, "%.1f%%", compute_percent(p, r->ns));
        add_rate(&t, r->flops, r->ns);
        add_rate(&t, r->bytes, r->ns);
    }
    table_show(&t, "");
}

static void add_layer(struct table *t, const struct profile *p,
                      const char *name, uint64_t ns)
{
    table_add(t, name);
    table_addf(t, "%.4f", 1e-9 * (double)ns);
    table_addf(t, "%.1f%%", compute_percent(p, ns));
}

static void print_layers(const struct profile *p)
{
    static const char *const heads[] = { "layer", "seconds", "share" };
    char name[24];
    struct table t;
    table_init(&t, "rrr", 0);
    table_add_row(&t, heads);
    for (size_t i = 0; i < p->n_layers; i++) {
        snprintf(name, sizeof name, "%zu", i);
        add_layer(&t, p, name, p->layer[i]);
    }
    add_layer(&t, p, "other", p->rest + p->pending);
    table_show(&t, "");
}

static void print_tables(const struct profile *p)
{
    printf("\nprofile  %" PRIu64 " operations in %.4f s\n\n", p->n,
           1e-9 * (double)p->ns);
    print_operations(p);
    putchar('\n');
    print_layers(p);
}

static void json_profile(struct json *j, const struct profile *p)
{
    json_open(j, "profile", '{');
    json_f64(j, "seconds", 1e-9 * (double)p->ns);
    json_open(j, "operations", '[');
    for (size_t i = 0; i < p->n_rows; i++) {
        const struct row *r = &p->rows[i];
        json_open(j, NULL, '{');
        json_strz(j, "operation", gguf_op_name(r->op));
        json_strz(j, "backend", gguf_backend_name(r->backend));
        json_u64(j, "count", r->n);
        json_f64(j, "seconds", 1e-9 * (double)r->ns);
        json_u64(j, "flops", r->flops);
        json_u64(j, "bytes", r->bytes);
        json_close(j);
    }
    json_close(j);
    json_open(j, "layers", '(');
    for (size_t i = 0; i < p->n_layers; i++)
        json_f64(j, NULL, 1e-9 * (double)p->layer[i]);
    json_close(j);
    json_f64(j, "other", 1e-9 * (double)(p->rest + p->pending));
    json_close(j);
}

/* ---- the run ---- */

static void print_json(const struct eval *e, const struct profile *p)
{
    const struct ev_run *r = &e->run;
    struct json j;
    json_begin_object(&j, stdout);
    ev_json_model(&j, "model", &e->o->ev, &e->model);
    json_close(&j);
    ev_json_text(&j, r, "tokens", r->n_tokens);
    ev_json_settings(&j, r);
    json_u64(&j, "first_chunk", r->first_chunk);
    json_u64(&j, "chunks", r->n_chunks);
    json_f64(&j, "seconds", r->seconds);
    ev_json_timings(&j, &r->timings);
    json_profile(&j, p);
    json_end(&j);
}

static void print_text(const struct eval *e, const struct profile *p)
{
    const struct ev_run *r = &e->run;
    const double n = (double)r->n_chunks * (double)r->scan.n_ctx;
    wrap_printf("time    %.1f s, %.0f tokens/s\n", r->seconds,
                r->seconds > 0 ? n / r->seconds : 0);
    print_tables(p);
}

/* Compute a perplexity, whose operations are timed. */
static enum gguf_status run_text(struct eval *e, struct gguf_error *err)
{
    struct gguf_ppl_params p = GGUF_PPL_PARAMS_INIT;
    struct gguf_scan_params scan = ev_scan_params(&e->run);
    struct gguf_ppl total = GGUF_PPL_INIT;
    scan.pool = e->pool;
    scan.progress.fn = progress_report;
    scan.progress.user = &e->run.bar;
    p.scan = &scan;
    return gguf_ppl_run(e->model.session, e->tokens.id, e->tokens.n, &p,
                        &total, err);
}

bool eval_profile(struct eval *e)
{
    struct profile p = { .rows = NULL };
    const struct gguf_session_params sp = ev_plan_session(&e->run);
    struct gguf_error err;
    if (!eval_begin_session(e, &sp))
        return false;
    enum gguf_status st = gguf_session_set_profile(
        e->model.session, (struct gguf_profile_callback){ add_node, &p },
        &err);
    if (!e->o->ev.json)
        ev_print_head(&e->run);
    ev_begin_work(&e->run, "profiling", "tokens");
    if (st == GGUF_OK)
        st = run_text(e, &err);
    e->run.timings = *gguf_session_timings(e->model.session);
    ev_end_work(&e->run);
    if (p.rows)
        qsort(p.rows, p.n_rows, sizeof *p.rows, compare_times);
    if (st == GGUF_OK)
        (e->o->ev.json ? print_json : print_text)(e, &p);
    free(p.rows);
    free(p.layer);
    return st == GGUF_OK || progress_fail(NULL, e->model.path, &err);
}
