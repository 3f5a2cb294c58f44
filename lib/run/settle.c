/* SPDX-License-Identifier: MIT */
/* settle.c - weights into the memory of what computes with them
 *
 * The graphs of a session say which operations read a weight. They are
 * described, those of most tokens and of one, and each backend is asked about
 * each node: a weight goes to the first that supports all that read it.
 */
#include "config.h"
#include "run/session.h"

#include "backend/backend.h"
#include "base/mem.h"
#include "base/params.h"
#include "base/str.h"
#include "gguf/load.h"
#include "graph/optab.h"
#include "model/move.h"
#include "recipe/pattern.h"

#include <stdlib.h>

struct use {
    const struct gguf_tensor *t;
    size_t i;     /* of the tensors of all files */
    uint32_t can; /* a bit for each backend that supports all that read it */
    bool read;    /* by anything */
};

struct placer {
    struct gguf_model *m;
    struct gguf_backend *backend[GGUF_SCHED_MAX_BACKENDS];
    unsigned n_backends;
    struct use *use; /* by address */
    size_t n;
    struct gguf_place_params p;
    struct gg_pattern **pattern; /* of the rules */
    bool *matched;
    struct gg_weight_move *move;
    size_t n_moves;
};

/* ---- what reads a weight ---- */

static int by_address(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t)((const struct use *)a)->t;
    const uintptr_t y = (uintptr_t)((const struct use *)b)->t;
    return x < y ? -1 : x > y;
}

/* The weight that t is, or looks at. */
static struct use *find(const struct placer *v, const struct gguf_tensor *t)
{
    const struct use key = { .t = t->view_src ? t->view_src : t };
    return bsearch(&key, v->use, v->n, sizeof key, by_address);
}

/* The backends that support a node: a bit for each. */
static uint32_t supporters(const struct placer *v,
                           const struct gguf_tensor *node)
{
    uint32_t all = 0;
    for (unsigned b = 0; b < v->n_backends; b++)
        if (gguf_backend_supports_op(v->backend[b], node))
            all |= UINT32_C(1) << b;
    return all;
}

static void see(void *user, const struct gguf_graph *g)
{
    const struct placer *v = user;
    for (size_t i = 0; i < gguf_graph_n_nodes(g); i++) {
        const struct gguf_tensor *t = gguf_graph_node(g, i);
        bool asked = false;
        uint32_t can = 0;
        for (int k = 0; k < GGUF_TENSOR_SRC && !gguf_op_is_view(t->op); k++) {
            struct use *u = t->src[k] ? find(v, t->src[k]) : NULL;
            if (!u)
                continue;
            if (!asked)
                can = supporters(v, t);
            asked = true;
            u->can &= can;
            u->read = true;
        }
    }
}

static enum gguf_status ask(struct placer *v,
                            const struct gguf_session_params *sp,
                            struct gguf_error *err)
{
    struct gg_measure m;
    struct gguf_session *s;
    GG_TRY(gg_session_measure(&s, v->m, sp, &m, err));
    enum gguf_status st = gg_session_each_graph(s, see, v, err);
    gguf_session_destroy(s);
    return st;
}

/* ---- where it goes ---- */

/* Can some backend compute with it in memory of a type? */
static bool can_lie(const struct placer *v, const struct use *u,
                    const struct gguf_buft *buft)
{
    for (unsigned b = 0; b < v->n_backends; b++)
        if (u->can >> b & 1 && gguf_backend_supports_buft(v->backend[b], buft))
            return true;
    return !u->read;
}

/* The rule for a weight: the first that matches, or NULL. */
static enum gguf_status find_rule(struct placer *v, const struct use *u,
                                  const struct gguf_place_rule **rule,
                                  struct gguf_error *err)
{
    *rule = NULL;
    for (size_t k = 0; k < v->p.n_rules; k++) {
        bool found;
        GG_TRY(gg_pattern_match(v->pattern[k], u->t->name, &found, err));
        v->matched[k] |= found;
        if (found && !*rule)
            *rule = &v->p.rules[k];
    }
    return GGUF_OK;
}

/* The type of memory that it goes to; NULL: it stays. */
static enum gguf_status choose(struct placer *v, const struct use *u,
                               const struct gguf_buft **to,
                               struct gguf_error *err)
{
    const struct gguf_place_rule *rule;
    struct gg_str_esc e;
    *to = NULL;
    GG_TRY(find_rule(v, u, &rule, err));
    if (rule && !can_lie(v, u, rule->buft))
        return gg_error_set(err, GGUF_E_OP, GGUF_NO_OFFSET,
                            "tensor '%s': no backend computes all that reads "
                            "it in memory of type '%s'",
                            gg_str_esc(&e, gg_str_z(u->t->name)),
                            gguf_buft_name(rule->buft));
    if (rule) {
        *to = rule->buft == gguf_host_buft() ? NULL : rule->buft;
        return GGUF_OK;
    }
    for (unsigned b = 0; u->read && b < v->n_backends; b++)
        if (u->can >> b & 1) {
            if (!gguf_backend_supports_buft(v->backend[b], gguf_host_buft()))
                *to = gguf_backend_buft(v->backend[b]);
            break;
        }
    return GGUF_OK;
}

static enum gguf_status choose_all(struct placer *v, struct gguf_error *err)
{
    struct gg_str_esc e;
    for (size_t k = 0; k < v->n; k++) {
        const struct gguf_buft *to;
        GG_TRY(choose(v, &v->use[k], &to, err));
        if (to && to != gguf_buffer_buft(v->use[k].t->buffer))
            v->move[v->n_moves++] =
                (struct gg_weight_move){ .i = v->use[k].i, .to = to };
    }
    for (size_t k = 0; k < v->p.n_rules; k++)
        if (!v->matched[k])
            return gg_error_set(
                err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                "pattern '%s' matches no weight",
                gg_str_esc(&e, gg_str_z(v->p.rules[k].pattern)));
    return GGUF_OK;
}

/* ---- all of it ---- */

static enum gguf_status make_rules(struct placer *v, struct gguf_error *err)
{
    const struct gguf_allocator *a = v->m->allocator;
    const size_t n = v->p.n_rules;
    v->pattern = gg_mem_alloc_zero(a, n + 1, sizeof(void *));
    v->matched = gg_mem_alloc_zero(a, n + 1, sizeof *v->matched);
    if (!v->pattern || !v->matched)
        return gg_error_set_nomem(err, (n + 1) * sizeof(void *));
    for (size_t k = 0; k < n; k++) {
        if (!v->p.rules[k].pattern || !v->p.rules[k].buft)
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "rule %zu has no pattern or no type of buffer",
                                k);
        GG_TRY(gg_pattern_create(&v->pattern[k],
                                 gg_str_z(v->p.rules[k].pattern), a, err));
    }
    return GGUF_OK;
}

static enum gguf_status make_uses(struct placer *v, struct gguf_error *err)
{
    const struct gguf_model *m = v->m;
    const size_t n = gg_source_n_tensors(&m->src);
    v->use = gg_mem_alloc_zero(m->allocator, n + 1, sizeof *v->use);
    v->move = gg_mem_alloc_zero(m->allocator, n + 1, sizeof *v->move);
    if (!v->use || !v->move)
        return gg_error_set_nomem(err, (n + 1) * sizeof *v->use);
    for (size_t i = 0; i < n; i++)
        if (m->of[i])
            v->use[v->n++] =
                (struct use){ .t = m->of[i], .i = i, .can = UINT32_MAX };
    qsort(v->use, v->n, sizeof *v->use, by_address);
    return GGUF_OK;
}

static void placer_fini(struct placer *v)
{
    const struct gguf_allocator *a = v->m->allocator;
    for (size_t k = 0; v->pattern && k < v->p.n_rules; k++)
        gg_pattern_destroy(v->pattern[k]);
    gg_mem_free(a, v->pattern);
    gg_mem_free(a, v->matched);
    gg_mem_free(a, v->use);
    gg_mem_free(a, v->move);
}

enum gguf_status gguf_model_place(struct gguf_model *m,
                                  const struct gguf_session_params *session,
                                  const struct gguf_place_params *params,
                                  struct gguf_error *err)
{
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct gguf_model_job job;
    struct placer v = { .m = m, .p = GGUF_PLACE_PARAMS_INIT };
    GG_TRY(gg_params_take(&v.p, sizeof v.p, params, "gguf_place_params", err));
    GG_TRY(
        gg_params_take(&sp, sizeof sp, session, "gguf_session_params", err));
    GG_TRY(gg_work_job(&job, v.p.job, err));
    enum gguf_status st = make_rules(&v, err);
    if (st == GGUF_OK)
        st = make_uses(&v, err);
    for (unsigned b = 0;
         sp.preferred && b < sp.n_preferred && b < GGUF_SCHED_MAX_BACKENDS - 1;
         b++)
        v.backend[v.n_backends++] = sp.preferred[b];
    if (sp.backend)
        v.backend[v.n_backends++] = sp.backend;
    if (st == GGUF_OK)
        st = ask(&v, session, err);
    if (st == GGUF_OK)
        st = choose_all(&v, err);
    if (st == GGUF_OK && v.n_moves)
        st = gg_weights_move(m, v.move, v.n_moves, &job, err);
    placer_fini(&v);
    return st;
}
