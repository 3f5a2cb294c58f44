/* SPDX-License-Identifier: MIT */
/* weight_place.c - copy weights to the memory of the backends that compute
 * with them
 *
 * The graphs of the session, of the most tokens and of one, tell which
 * operations read a weight. Each backend is asked about each node. A weight
 * goes to the first backend that supports all nodes that read it; or, if
 * layers are divided (layer_split.c), to that of its layer. */
#include "config.h"
#include "run/session_int.h"
#include "run/weight_place.h"

#include "backend/backend_int.h"
#include "base/mem.h"
#include "base/params.h"
#include "base/str.h"
#include "gguf/load.h"
#include "graph/op_table.h"
#include "model/weight/weight_move.h"
#include "recipe/pattern.h"

#include <stdlib.h>

struct placer {
    struct gg_weight_place all;
    struct gguf_place_params p;
    struct gg_pattern **pattern; /* patterns of the rules */
    bool *matched;
    struct gg_weight_move *move;
    size_t n_moves;
    uint64_t n_graphs; /* graphs that were seen */
};

/* ---- readers of weights ---- */

static int compare_uses(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t)((const struct gg_weight_place_use *)a)->t;
    const uintptr_t y = (uintptr_t)((const struct gg_weight_place_use *)b)->t;
    return x < y ? -1 : x > y;
}

/* The use of t, or of the tensor that t views. */
static struct gg_weight_place_use *find_use(const struct gg_weight_place *v,
                                            const struct gguf_tensor *t)
{
    const struct gg_weight_place_use key = { .t = t->view_src ? t->view_src
                                                              : t };
    return bsearch(&key, v->use, v->n_uses, sizeof key, compare_uses);
}

/* A bit for each backend that supports a node. */
static uint32_t find_supporters(const struct gg_weight_place *v,
                                const struct gguf_tensor *node)
{
    uint32_t all = 0;
    for (unsigned b = 0; b < v->n_backends; b++)
        if (gguf_backend_supports_op(v->backend[b], node))
            all |= UINT32_C(1) << b;
    return all;
}

/* Note that node number at reads the weight. */
static void note_reader(struct gg_weight_place_use *u, uint64_t at,
                        uint32_t can)
{
    u->can &= can;
    u->first = GG_MIN(u->first, at);
    if (at >> 32 == u->first >> 32)
        u->last = at;
    u->read = true;
}

static void note_graph(void *user, const struct gguf_graph *g)
{
    struct placer *v = user;
    for (size_t i = 0; i < gguf_graph_n_nodes(g); i++) {
        const struct gguf_tensor *t = gguf_graph_node(g, i);
        bool asked = false;
        uint32_t can = 0;
        for (int k = 0; k < GGUF_TENSOR_SRC && !gguf_op_is_view(t->op); k++) {
            struct gg_weight_place_use *u =
                t->src[k] ? find_use(&v->all, t->src[k]) : NULL;
            if (!u)
                continue;
            if (!asked)
                can = find_supporters(&v->all, t);
            asked = true;
            note_reader(u, v->n_graphs << 32 | i, can);
        }
    }
    v->n_graphs++;
}

static struct gg_weight_place_use *add_use(struct gg_weight_place *v,
                                           const struct gguf_tensor *t)
{
    struct gg_weight_place_use *u = &v->use[v->n_uses++];
    *u = (struct gg_weight_place_use){ .t = t,
                                       .size = gguf_tensor_size(t),
                                       .first = UINT64_MAX,
                                       .can = UINT32_MAX };
    return u;
}

/* List the weights, and the tensors of the session's memory. */
static enum gguf_status list_uses(struct placer *v,
                                  const struct gguf_session *s,
                                  struct gguf_error *err)
{
    const struct gguf_model *m = v->all.m;
    const size_t n = gg_source_n_tensors(&m->src);
    const struct gguf_tensor *t;
    size_t n_kept = 0;
    for (t = gguf_ctx_first_tensor(s->cache_ctx); t;
         t = gguf_ctx_next_tensor(s->cache_ctx, t))
        n_kept++;
    v->all.use =
        gg_mem_alloc_zero(m->allocator, n + n_kept + 1, sizeof *v->all.use);
    v->move = gg_mem_alloc_zero(m->allocator, n + 1, sizeof *v->move);
    if (!v->all.use || !v->move)
        return gg_error_set_nomem(err, (n + n_kept + 1) * sizeof *v->all.use);
    for (size_t i = 0; i < n; i++)
        if (m->of[i])
            add_use(&v->all, m->of[i])->i = i;
    for (t = gguf_ctx_first_tensor(s->cache_ctx); t;
         t = gguf_ctx_next_tensor(s->cache_ctx, t)) {
        struct gg_weight_place_use *u = add_use(&v->all, t);
        u->kept = true;
        if (s->memory_on_host)
            u->size = 0;
    }
    qsort(v->all.use, v->all.n_uses, sizeof *v->all.use, compare_uses);
    return GGUF_OK;
}

/* Find the readers of each weight in the graphs, and divide the layers. */
static enum gguf_status note_session(struct placer *v, struct gguf_session *s,
                                     struct gguf_error *err)
{
    uint64_t cache;
    GG_TRY(list_uses(v, s, err));
    gguf_session_memory_size(s, &cache, &v->all.n_graph);
    GG_TRY(gg_session_visit_graphs(s, note_graph, v, err));
    return gg_weight_place_layers(&v->all, v->p.split, v->p.n_split, err);
}

static enum gguf_status ask_backend(struct placer *v,
                                    const struct gguf_session_params *sp,
                                    struct gguf_error *err)
{
    struct gg_measure m;
    struct gguf_session *s;
    GG_TRY(gg_session_measure(&s, v->all.m, sp, &m, err));
    for (unsigned b = 0; b < sp->n_preferred; b++)
        v->all.backend[v->all.n_backends++] = sp->preferred[b];
    v->all.backend[v->all.n_backends++] = sp->backend;
    const enum gguf_status st = note_session(v, s, err);
    gguf_session_destroy(s);
    return st;
}

/* ---- places of weights ---- */

/* Can some backend compute with the weight in this type of memory? */
static bool can_be_placed(const struct gg_weight_place *v,
                          const struct gg_weight_place_use *u,
                          const struct gguf_buft *buft)
{
    for (unsigned b = 0; b < v->n_backends; b++)
        if (u->can >> b & 1 && gguf_backend_supports_buft(v->backend[b], buft))
            return true;
    return !u->read;
}

/* The first rule that matches a weight; NULL: none. */
static enum gguf_status find_rule(struct placer *v,
                                  const struct gg_weight_place_use *u,
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

/* The backend that computes with a weight: that of its layer if layers are
 * divided and it can, else the last one; without division the first that can.
 * n_backends: none. */
static unsigned choose_backend(const struct placer *v,
                               const struct gg_weight_place_use *u)
{
    const struct gg_weight_place *all = &v->all;
    unsigned b = all->split ? all->backend_of[u->layer] : 0;
    while (b < all->n_backends && !(u->can >> b & 1))
        b = all->split ? all->n_backends : b + 1;
    return b;
}

/* Choose where a weight goes: move->to; NULL: it stays. */
static enum gguf_status choose_place(struct placer *v,
                                     const struct gg_weight_place_use *u,
                                     struct gg_weight_move *move,
                                     struct gguf_error *err)
{
    const struct gguf_place_rule *rule;
    struct gg_str_esc e;
    *move = (struct gg_weight_move){ .i = u->i };
    GG_TRY(find_rule(v, u, &rule, err));
    if (rule && !can_be_placed(&v->all, u, rule->buft))
        return gg_error_set(err, GGUF_E_OP, GGUF_NO_OFFSET,
                            "tensor '%s': no backend computes all that reads "
                            "it in memory of type '%s'",
                            gg_str_esc(&e, gg_str_z(u->t->name)),
                            gguf_buft_name(rule->buft));
    if (rule) {
        move->to = rule->buft == gguf_host_buft() ? NULL : rule->buft;
        return GGUF_OK;
    }
    if (!u->read || (!v->p.split && gg_weight_place_backend_of(&v->all, u) <
                                        v->all.n_backends))
        return GGUF_OK;
    const unsigned b = choose_backend(v, u);
    if (b < v->all.n_backends && gg_weight_place_has_own_memory(&v->all, b) &&
        gg_weight_place_backend_of(&v->all, u) != b) {
        move->to = gguf_backend_buft(v->all.backend[b]);
        move->maps = gguf_backend_device(v->all.backend[b]);
    }
    return GGUF_OK;
}

static enum gguf_status choose_all(struct placer *v, struct gguf_error *err)
{
    struct gg_str_esc e;
    for (size_t k = 0; k < v->all.n_uses; k++) {
        const struct gg_weight_place_use *u = &v->all.use[k];
        struct gg_weight_move *move = &v->move[v->n_moves];
        if (u->kept)
            continue;
        GG_TRY(choose_place(v, u, move, err));
        if (move->to && move->to != gguf_buffer_buft(u->t->buffer))
            v->n_moves++;
    }
    for (size_t k = 0; k < v->p.n_rules; k++)
        if (!v->matched[k])
            return gg_error_set(
                err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                "pattern '%s' matches no weight",
                gg_str_esc(&e, gg_str_z(v->p.rules[k].pattern)));
    return GGUF_OK;
}

/* ---- placing ---- */

static enum gguf_status make_rules(struct placer *v, struct gguf_error *err)
{
    const struct gguf_allocator *a = v->all.m->allocator;
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

static void placer_fini(struct placer *v)
{
    const struct gguf_allocator *a = v->all.m->allocator;
    for (size_t k = 0; v->pattern && k < v->p.n_rules; k++)
        gg_pattern_destroy(v->pattern[k]);
    gg_mem_free(a, v->pattern);
    gg_mem_free(a, v->matched);
    gg_mem_free(a, v->all.use);
    gg_mem_free(a, v->all.backend_of);
    gg_mem_free(a, v->move);
}

enum gguf_status gguf_model_place_weights(
    struct gguf_model *m, const struct gguf_session_params *session,
    const struct gguf_place_params *params, struct gguf_error *err)
{
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct gguf_model_job job;
    struct placer v = { .all = { .m = m }, .p = GGUF_PLACE_PARAMS_INIT };
    GG_TRY(gg_params_take(&v.p, sizeof v.p, params, "gguf_place_params", err));
    GG_TRY(
        gg_params_take(&sp, sizeof sp, session, "gguf_session_params", err));
    GG_TRY(gg_parallel_pass_take_job(&job, v.p.job, err));
    enum gguf_status st = make_rules(&v, err);
    if (st == GGUF_OK)
        st = ask_backend(&v, &sp, err);
    if (st == GGUF_OK)
        st = choose_all(&v, err);
    if (st == GGUF_OK && v.n_moves)
        st = gg_weights_move(m, v.move, v.n_moves, &job, err);
    placer_fini(&v);
    return st;
}

enum gguf_status gguf_model_split(const struct gguf_model *m,
                                  const struct gguf_session_params *session,
                                  uint32_t *split, size_t n_split,
                                  struct gguf_error *err)
{
    struct gguf_session_params sp = GGUF_SESSION_PARAMS_INIT;
    struct placer v = { .all = { .m = (struct gguf_model *)(uintptr_t)m },
                        .p = GGUF_PLACE_PARAMS_INIT };
    GG_TRY(
        gg_params_take(&sp, sizeof sp, session, "gguf_session_params", err));
    if (n_split != sp.n_preferred)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "%zu split points for %u preferred backends",
                            n_split, sp.n_preferred);
    const enum gguf_status st = ask_backend(&v, &sp, err);
    for (size_t b = 0; st == GGUF_OK && b < n_split; b++) {
        split[b] = b ? split[b - 1] : 0;
        for (uint32_t il = split[b]; il < v.all.n_layers; il++)
            if (v.all.backend_of[il] <= b)
                split[b] = il + 1;
    }
    placer_fini(&v);
    return st;
}
