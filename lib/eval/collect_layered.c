/* SPDX-License-Identifier: MIT */
/* collect_layered.c - collect importance data layer by layer
 *
 * All chunks for which memory is allowed go through one layer before the next
 * (gguf_session_decode_layered()). When a chunk has passed a layer, its sums
 * there are known, but a later layer may still show that the chunk must be
 * left out. So the chunks of a group have totals of their own, which are added
 * to the others at the end. If a chunk was left out, the group is computed
 * once more without it. Totals are exact: the order of additions does not
 * matter. */
#include "config.h"
#include "eval/collect_int.h"

#include "base/compiler.h"
#include "run/session_int.h"

#include <string.h>

struct layered {
    struct gg_collect_job *j;
    struct gguf_collect *group; /* totals of the group */
    size_t most;                /* most chunks of a group */
    struct held {
        size_t chunk; /* number of the chunk */
        /* matrix that made it be left out; NULL: it counts */
        const char *bad;
    } * held;
    size_t n_held;
    gguf_token *token; /* [most][n_ctx] */
    struct gguf_batch *batch;
    const struct gguf_batch **list;
    size_t *at;            /* [most], index in held of each batch */
    size_t n;              /* number of batches */
    uint64_t n_shown;      /* tokens of the last report */
    struct gguf_error err; /* error of a callback */
};

/* ---- a group ---- */

/* Add the sums of batch b in a layer, or in the last one. */
static enum gguf_status end_batch(struct layered *l, size_t b,
                                  struct gguf_error *err)
{
    struct held *h = &l->held[l->at[b]];
    const char *bad = gg_collect_add_chunk(l->group, h->bad != NULL);
    if (!bad)
        return GGUF_OK;
    h->bad = gg_mem_arena_strndup(&l->j->c->arena, bad, strlen(bad));
    return h->bad ? GGUF_OK : gg_error_set_nomem(err, strlen(bad) + 1);
}

/* Progress of the session: called after each batch in each layer. */
static bool on_layer(void *user, uint64_t done, uint64_t total)
{
    struct layered *l = user;
    const uint64_t n_ctx = l->j->c->n_ctx;
    const double part = (double)done / (double)total;
    const uint64_t tokens = (uint64_t)l->n_held * n_ctx;
    const uint64_t now =
        (uint64_t)l->j->n_done * n_ctx + (uint64_t)((double)tokens * part);
    if (end_batch(l, (size_t)((done / n_ctx - 1) % l->n), &l->err) != GGUF_OK)
        return 1;
    l->n_shown = GG_MAX(l->n_shown, now);
    return gg_collect_report(l->j, l->n_shown, &l->err) != GGUF_OK;
}

static enum gguf_status on_outputs(void *user, size_t b,
                                   struct gguf_error *err)
{
    struct layered *l = user;
    GG_TRY(gg_collect_add_outputs(l->j, err));
    return end_batch(l, b, err);
}

/* Make batches of the group's chunks that are not left out. */
static void fill_batches(struct layered *l)
{
    const size_t n_ctx = l->j->c->n_ctx;
    l->n = 0;
    for (size_t i = 0; i < l->n_held; i++) {
        if (l->held[i].bad)
            continue;
        l->batch[l->n] = gg_collect_fill_batch(l->j, l->held[i].chunk,
                                               l->token + l->n * n_ctx);
        l->list[l->n] = &l->batch[l->n];
        l->at[l->n++] = i;
    }
}

/* Check that each chunk added each matrix once. Sums that are added in two
 * parts would be rounded twice; cuts lie where no weight is used on both
 * sides. */
static enum gguf_status check_ends(const struct layered *l,
                                   struct gguf_error *err)
{
    for (size_t k = 0; k < l->group->n_entries; k++) {
        const struct gg_collect_entry *e = l->group->entries[k];
        if (e->n_ends != l->n)
            return gg_error_set(err, GGUF_E_UNSUPPORTED, GGUF_NO_OFFSET,
                                "'%s' is used in several layers: not layer "
                                "by layer",
                                e->name);
    }
    return GGUF_OK;
}

/* Compute the totals of the group. Chunks may be left out on the way. */
static enum gguf_status run_pass(struct layered *l, struct gguf_error *err)
{
    gguf_collect_destroy(l->group);
    GG_TRY(gg_collect_create_like(&l->group, l->j->c, err));
    gg_collect_watch_set_target(l->j->w, l->group);
    gguf_error_clear(&l->err);
    const enum gguf_status st = gguf_session_decode_layered(
        l->j->s, l->list, l->n,
        (struct gguf_session_outputs_callback){ on_outputs, l },
        (struct gguf_progress_callback){ on_layer, l }, err);
    if (st == GGUF_E_CANCELLED && l->err.status != GGUF_OK && err)
        *err = l->err;
    GG_TRY(l->err.status != GGUF_OK ? l->err.status : st);
    return check_ends(l, err);
}

static enum gguf_status take_group(struct layered *l, struct gguf_error *err)
{
    struct gguf_collect *c = l->j->c;
    for (size_t k = 0; l->n && k < l->group->n_entries; k++)
        GG_TRY(gg_collect_merge_entry(c, l->group->entries[k], err));
    for (size_t i = 0; i < l->n_held; i++)
        c->state[l->held[i].chunk] =
            l->held[i].bad ? GGUF_COLLECT_SKIPPED : GGUF_COLLECT_DONE;
    for (size_t i = 0; i < l->n_held; i++)
        GG_TRY(gg_collect_finish_chunk(l->j, l->held[i].chunk, l->held[i].bad,
                                       err));
    return GGUF_OK;
}

static enum gguf_status run_group(struct layered *l, struct gguf_error *err)
{
    for (fill_batches(l); l->n;) {
        const size_t before = l->n;
        GG_TRY(run_pass(l, err));
        fill_batches(l);
        if (l->n == before)
            break;
    }
    return take_group(l, err);
}

/* ---- all groups ---- */

/* Compute the number of chunks for which max_stored is enough. */
static enum gguf_status plan_group(struct layered *l, struct gguf_error *err)
{
    const struct gg_collect_job *j = l->j;
    const struct gguf_batch b =
        gg_collect_fill_batch(j, j->windows.begin, j->token);
    const uint64_t most = j->run->max_stored;
    uint64_t size;
    GG_TRY(gguf_session_layered_size(j->s, &b, &size, err));
    if (size > most)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "a chunk leaves %" PRIu64
                            " bytes for the next layer, at most %" PRIu64
                            " may be stored",
                            size, most);
    l->most = (size_t)GG_MIN(size ? most / size : UINT64_MAX,
                             (uint64_t)GG_MAX(j->n_all, 1));
    const struct gguf_allocator *a = j->c->allocator;
    l->held = gg_mem_alloc_zero(a, l->most, sizeof *l->held);
    l->token = gg_mem_alloc_zero(a, (uint64_t)l->most * j->c->n_ctx,
                                 sizeof *l->token);
    l->batch = gg_mem_alloc_zero(a, l->most, sizeof *l->batch);
    l->list = gg_mem_alloc_zero(a, l->most, sizeof *l->list);
    l->at = gg_mem_alloc_zero(a, l->most, sizeof *l->at);
    return l->held && l->token && l->batch && l->list && l->at
               ? GGUF_OK
               : gg_error_set_nomem(err, l->most * sizeof *l->batch);
}

static enum gguf_status run_groups(struct layered *l, struct gguf_error *err)
{
    const struct gg_collect_job *j = l->j;
    GG_TRY(plan_group(l, err));
    for (size_t k = j->windows.begin; k < j->windows.end;) {
        l->n_held = 0;
        for (; k < j->windows.end && l->n_held < l->most; k++)
            if (j->c->state[k] == GGUF_COLLECT_MISSING)
                l->held[l->n_held++] = (struct held){ .chunk = k };
        GG_TRY(run_group(l, err));
    }
    return GGUF_OK;
}

enum gguf_status gg_collect_run_layered(struct gg_collect_job *j,
                                        struct gguf_error *err)
{
    const struct gguf_allocator *a = j->c->allocator;
    struct layered l = { .j = j };
    const enum gguf_status st = run_groups(&l, err);
    gg_collect_watch_set_target(j->w, j->c);
    gguf_collect_destroy(l.group);
    gg_mem_free(a, l.held);
    gg_mem_free(a, l.token);
    gg_mem_free(a, l.batch);
    gg_mem_free(a, (void *)l.list);
    gg_mem_free(a, l.at);
    return st;
}
