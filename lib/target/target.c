/* SPDX-License-Identifier: MIT */
/* target.c - choose types that meet a file size */
#include "config.h"
#include "target/target_int.h"
#include "base/compiler.h"
#include "base/params.h"
#include "base/str.h"
#include "target/knapsack.h"
#include "quant/job/outer_scale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Types to choose from by default. Tensors whose rows do not fit get the
 * fallbacks with blocks of 32. */
static const uint32_t all_types[] = {
    GGUF_DTYPE_IQ1_S, GGUF_DTYPE_IQ1_M,  GGUF_DTYPE_IQ2_XXS, GGUF_DTYPE_IQ2_XS,
    GGUF_DTYPE_IQ2_S, GGUF_DTYPE_Q2_K,   GGUF_DTYPE_IQ3_XXS, GGUF_DTYPE_IQ3_S,
    GGUF_DTYPE_Q3_K,  GGUF_DTYPE_IQ4_XS, GGUF_DTYPE_Q4_K,    GGUF_DTYPE_Q5_K,
    GGUF_DTYPE_Q6_K,  GGUF_DTYPE_Q8_0,   GGUF_DTYPE_F16,
};

struct target {
    struct gguf_quant *q;
    struct gguf_target_params p;
    const uint32_t *types;
    size_t n_types;
    struct gg_target_tensor *tensors; /* free tensors */
    size_t n;
    struct gg_knapsack_group
        *groups; /* one per free tensor; with pure, one for
                  * all */
    size_t n_groups;
    struct gg_knapsack_option *options; /* options of all groups */
    uint64_t other;                     /* bytes that the choice does not
                                         * change */
    uint64_t align;                     /* alignment of tensors in the limited
                                         * size */
    uint64_t limit;
    bool predicts; /* noise is predicted divergence */
};

static enum gguf_status check_params(const struct gguf_target_params *p,
                                     struct gguf_error *err)
{
    bool bpw = isfinite(p->max_bpw) && p->max_bpw > 0 && p->max_bpw < 1024;
    bool good = p->max_size ? p->max_bpw == 0 : bpw;
    if (!good || p->n_types > GGUF_TARGET_MAX_TYPES)
        return gg_error_set(
            err, GGUF_E_INVALID, GGUF_NO_OFFSET, "gguf_target_params: %s",
            good ? "too many types"
                 : "exactly one of max_size and max_bpw must be set");
    if (p->sample == GGUF_TARGET_SAMPLE_ELEMENTS && !p->n_sample)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "gguf_target_params: n_sample is 0, must be 1 or "
                            "more");
    for (size_t i = 0; i < p->n_types; i++) {
        const struct gguf_dtype_info *t = gguf_dtype_find(p->types[i]);
        if (!t || t->family == GGUF_FAMILY_INT ||
            t->family == GGUF_FAMILY_REMOVED)
            return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                                "gguf_target_params: nothing is quantized to "
                                "type %" PRIu32,
                                p->types[i]);
    }
    return GGUF_OK;
}

/* Can a tensor have this type, and is the type smaller than the present one? */
static bool is_candidate(const struct gguf_quant *q,
                         const struct gg_job_tensor *t,
                         const struct gg_target_option *o)
{
    const struct gg_codec_kern *c = &q->kern.codec[gg_dtype_index(o->to)];
    bool weights = gg_job_imatrix(q, t) != NULL;
    return c->encode && c->decode && o->size < t->pub.from_size &&
           (!q->p.max_file_size || o->size < q->p.max_file_size) &&
           (weights ||
            (!(c->flags & GG_CODEC_NEEDS_WEIGHT) &&
             !gg_recipe_choose_needs_imatrix(q->p.recipe, t->cls, o->to)));
}

/* Bytes of the limit that a tensor takes as a type with size bytes of data. */
static uint64_t taken_bytes(const struct target *t,
                            const struct gg_job_tensor *jt, uint32_t type,
                            uint64_t size)
{
    return (size + t->align - 1) / t->align * t->align +
           gg_outer_scale_size(t->q, jt, type, t->align, t->p.max_size != 0);
}

/* List the options of a tensor: its present type first, then candidates in the
 * order of the types. */
static enum gguf_status list_options(const struct target *t,
                                     struct gg_target_tensor *tt,
                                     struct gguf_error *err)
{
    const struct gguf_quant_tensor *pub = &tt->t->pub;
    const struct gguf_dtype_info *from = gguf_dtype_find(pub->from);
    bool readable =
        from && gg_dtype_index(pub->from) >= 0 &&
        gg_stored_can_decode(t->q->kern.codec, gg_dtype_index(pub->from)) &&
        (from->family == GGUF_FAMILY_FLOAT || t->q->p.allow_requantize);
    uint64_t ne0 = (uint64_t)pub->ne[0], row;
    tt->options[0] =
        (struct gg_target_option){ .wanted = pub->from,
                                   .to = pub->from,
                                   .size = pub->from_size,
                                   .taken = taken_bytes(t, tt->t, pub->from,
                                                        pub->from_size) };
    tt->n = 1;
    for (size_t i = 0; readable && i < t->n_types; i++) {
        struct gg_target_option o = { .wanted = t->types[i] };
        bool known = false;
        o.to = gg_recipe_choose_fitting_type(o.wanted, pub->ne[0]);
        GG_TRY(gguf_dtype_row_size(o.to, ne0, &row, err));
        o.size =
            row * (pub->n_elements / ne0); /* cannot overflow: smaller than
                                            * the tensor in the input */
        o.taken = taken_bytes(t, tt->t, o.to, o.size);
        for (size_t k = 0; k < tt->n; k++)
            known |= tt->options[k].to == o.to;
        if (!known && is_candidate(t->q, tt->t, &o))
            tt->options[tt->n++] = o;
    }
    return GGUF_OK;
}

static bool is_free(const struct target *t, const struct gg_job_tensor *jt)
{
    const enum gguf_quant_reason why = jt->pub.reason;
    return (why == GGUF_REASON_BASE || why == GGUF_REASON_TARGET ||
            why == GGUF_REASON_LOOKUP_TABLE) &&
           (!t->predicts || gg_target_find_effect(t->q, jt).known);
}

/* Is the sensitivity of a free tensor known? */
static bool can_predict(const struct target *t)
{
    for (size_t i = 0; i < t->q->n_t; i++)
        if (is_free(t, &t->q->t[i]) &&
            gg_target_find_effect(t->q, &t->q->t[i]).known)
            return true;
    return false;
}

/* List the free tensors with their options, and add up the bytes of the
 * others. */
static enum gguf_status list_free(struct target *t, struct gguf_error *err)
{
    struct gguf_quant *q = t->q;
    t->tensors = gg_mem_alloc_zero(q->p.allocator, q->n_t, sizeof *t->tensors);
    if (!t->tensors)
        return gg_error_set_nomem(err, q->n_t * sizeof *t->tensors);
    t->other = t->p.max_size ? q->totals.file_size : q->totals.to_size;
    gg_outer_scale_unfold(q); /* the choice decides which scale tensors stay */
    for (size_t i = 0; i < q->n_t; i++) {
        const struct gguf_quant_tensor *pub = &q->t[i].pub;
        if (!is_free(t, &q->t[i]))
            continue;
        t->tensors[t->n].t = &q->t[i];
        if (t->predicts)
            t->tensors[t->n].effect = gg_target_find_effect(q, &q->t[i]);
        t->other -= taken_bytes(t, &q->t[i], pub->to, pub->to_size);
        GG_TRY(list_options(t, &t->tensors[t->n++], err));
    }
    return GGUF_OK;
}

/* Cost of an option: its noise. A predicted divergence needs no factor. The
 * relative noise of a layer's matrix enters one of the
 * terms (two per layer) whose sum a model computes; that of the output matrix
 * enters every logit, and so counts once per term. */
static double cost_of(const struct target *t,
                      const struct gg_target_tensor *tt,
                      const struct gg_target_option *o)
{
    const char *name = tt->t->pub.name;
    bool output =
        tt->t->cls == GG_CLASS_OUTPUT &&
        (!strcmp(name, "output.weight") || !strcmp(name, "token_embd.weight"));
    double parts = 2 * (double)t->q->n_layers_left;
    if (t->predicts)
        return o->noise;
    return output ? GG_MAX(parts, 1) * o->noise : o->noise;
}

/* Find the option of a tensor with this type; NULL if the type is not a
 * candidate, for example because it is not smaller. */
static const struct gg_target_option *
find_option(const struct gg_target_tensor *tt, uint32_t to)
{
    for (size_t k = 0; k < tt->n; k++)
        if (tt->options[k].to == to)
            return &tt->options[k];
    return NULL;
}

/* With pure: make the option that gives type i to all tensors. Tensors that it
 * does not make smaller keep their type. Returns false if a tensor cannot have
 * it. */
static bool uniform_type(const struct target *t, size_t i,
                         struct gg_knapsack_option *out)
{
    *out = (struct gg_knapsack_option){ .tag = (uint32_t)i };
    for (size_t k = 0; k < t->n; k++) {
        const struct gg_target_tensor *tt = &t->tensors[k];
        uint32_t to =
            gg_recipe_choose_fitting_type(t->types[i], tt->t->pub.ne[0]);
        const struct gg_target_option *o = find_option(tt, to);
        uint64_t row;
        if (!o) {
            uint64_t ne0 = (uint64_t)tt->t->pub.ne[0];
            if (gguf_dtype_row_size(to, ne0, &row, NULL) != GGUF_OK ||
                row * (tt->t->pub.n_elements / ne0) < tt->t->pub.from_size)
                return false;
            o = &tt->options[0];
        }
        out->size += o->taken;
        out->cost += cost_of(t, tt, o);
    }
    return isfinite(out->cost);
}

/* Make the groups and options of the solver. */
static enum gguf_status make_groups(struct target *t, struct gguf_error *err)
{
    const struct gguf_allocator *a = t->q->p.allocator;
    size_t most = (GGUF_TARGET_MAX_TYPES + 1) * GG_MAX(t->n, 1), n = 0;
    t->groups = gg_mem_alloc_zero(a, GG_MAX(t->n, 1), sizeof *t->groups);
    t->options = gg_mem_alloc_zero(a, most, sizeof *t->options);
    if (!t->groups || !t->options)
        return gg_error_set_nomem(err, most * sizeof *t->options);
    t->n_groups = t->q->p.pure && t->n ? 1 : t->n;
    for (size_t i = 0; i < t->n_groups; i++) {
        struct gg_knapsack_group *g = &t->groups[i];
        g->options = t->options + n;
        for (size_t k = 0; t->q->p.pure && k < t->n_types; k++)
            g->n += uniform_type(t, k, &g->options[g->n]);
        for (size_t k = 0; !t->q->p.pure && k < t->tensors[i].n; k++) {
            const struct gg_target_option *o = &t->tensors[i].options[k];
            if (isfinite(o->noise))
                g->options[g->n++] = (struct gg_knapsack_option){
                    o->taken, cost_of(t, &t->tensors[i], o), (uint32_t)k
                };
        }
        if (!g->n)
            return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                                "no type fits all tensors");
        n += g->n;
    }
    return GGUF_OK;
}

/* ------------------------------------------------------------- choice --- */

static const char *type_name(uint32_t id)
{
    const struct gguf_dtype_info *t = gguf_dtype_find(id);
    return t ? t->name : "?";
}

/* Set the type of a tensor to option o. next is the next larger option of the
 * choice; NULL: none. */
static enum gguf_status apply_option(struct target *t,
                                     struct gg_target_tensor *tt,
                                     const struct gg_target_option *o,
                                     const struct gg_target_option *next,
                                     struct gguf_error *err)
{
    char text[160];
    int n = snprintf(text, sizeof text, "target: %s %.3g",
                     t->predicts ? "divergence" : "noise", o->noise);
    if (next)
        snprintf(text + n, sizeof text - (size_t)n,
                 "; %s has %.3g for %" PRIu64 " bytes more",
                 type_name(next->to), next->noise, next->taken - o->taken);
    tt->t->pub.noise = o->noise;
    return gg_job_set_type(t->q, tt->t, o->wanted, o->to, GGUF_REASON_TARGET,
                           text, err);
}

static enum gguf_status apply_all(struct target *t, struct gguf_error *err)
{
    gg_outer_scale_unfold(t->q); /* back to the order in which tensors were
                                  * listed */
    for (size_t i = 0; i < t->n; i++) {
        struct gg_target_tensor *tt = &t->tensors[i];
        const struct gg_knapsack_group *g =
            &t->groups[t->n_groups == t->n ? i : 0];
        const struct gg_knapsack_option *o = &g->options[g->chosen];
        const struct gg_target_option *to, *next = NULL;
        if (t->q->p.pure) {
            uint32_t type = t->types[o->tag];
            to = find_option(
                tt, gg_recipe_choose_fitting_type(type, tt->t->pub.ne[0]));
            to = to ? to : &tt->options[0];
        } else {
            to = &tt->options[o->tag];
            if (g->chosen + 1 < g->n)
                next = &tt->options[g->options[g->chosen + 1].tag];
        }
        GG_TRY(apply_option(t, tt, to, next, err));
    }
    GG_TRY(gg_outer_scale_fold(t->q, err));
    return gg_job_plan_files(t->q, &t->q->totals.file_size, err);
}

/* Size of the present plan, as the limit counts it. Also updates the limit,
 * which with max_bpw depends on the number of weights. */
static uint64_t size_of_plan(struct target *t)
{
    const struct gguf_quant_totals *s = &t->q->totals;
    double bits = t->p.max_bpw * (double)s->n_elements;
    t->limit = t->p.max_size ? t->p.max_size : (uint64_t)(bits / 8);
    return t->p.max_size ? s->file_size : s->to_size;
}

/* Solve the problem and apply the solution. Header sizes depend on the division
 * into files, and padding on the remaining scale tensors: if they exceed the
 * estimate, the tensors get less and the problem is solved again. */
static enum gguf_status choose_types(struct target *t, struct gg_knapsack *k,
                                     struct gguf_error *err)
{
    uint64_t other = t->other;
    for (;;) {
        enum gguf_status st = GGUF_E_LIMIT;
        if (other <= t->limit)
            st = gg_knapsack_solve(t->groups, t->n_groups, t->limit - other, 0,
                                   t->q->p.allocator, k, err);
        if (st == GGUF_E_LIMIT) {
            uint64_t least = other;
            for (size_t i = 0; i < t->n_groups; i++) {
                uint64_t size = UINT64_MAX;
                for (size_t j = 0; j < t->groups[i].n; j++)
                    size = GG_MIN(size, t->groups[i].options[j].size);
                least += size;
            }
            return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                                "the smallest choice of types has %" PRIu64
                                " bytes, limit is %" PRIu64,
                                least, t->limit);
        }
        GG_TRY(st);
        GG_TRY(apply_all(t, err));
        uint64_t size = size_of_plan(t);
        if (size <= t->limit)
            return GGUF_OK;
        other += size - t->limit;
    }
}

/* ------------------------------------------------------ measurements --- */

/* Elements of each tensor to measure, at least; 0: the default. */
static uint64_t sample_size(const struct gguf_target_params *p)
{
    switch (p->sample) {
    case GGUF_TARGET_SAMPLE_ELEMENTS: return p->n_sample;
    case GGUF_TARGET_SAMPLE_ALL: return UINT64_MAX;
    default: return 0;
    }
}

/* Place of the noise of a tensor in a type. */
static double *noise_slot(const struct gguf_quant *q,
                          const struct gg_job_tensor *t, uint32_t type)
{
    return &q->noise[t->no * GG_N_DTYPES + (size_t)gg_dtype_index(type)];
}

/* Make a table of noises: that of this job, a copy of that of params->measured,
 * or an empty one. */
static enum gguf_status recall_noise(struct gguf_quant *q,
                                     const struct gguf_target_params *p,
                                     struct gguf_error *err)
{
    const size_t n = q->n_in * GG_N_DTYPES;
    const struct gguf_quant *from = p->measured;
    const uint64_t sample = sample_size(p);
    if (q->noise && q->noise_sample == sample)
        return GGUF_OK;
    gg_mem_free(q->p.allocator, q->noise);
    q->noise = gg_mem_alloc_zero(q->p.allocator, n, sizeof *q->noise);
    q->noise_sample = sample;
    if (!q->noise)
        return gg_error_set_nomem(err, n * sizeof *q->noise);
    if (!from)
        return GGUF_OK;
    const char *differs = gg_job_input_difference(q, from);
    if (!differs && from->p.imatrix != q->p.imatrix)
        differs = "importance data";
    if (!differs && (from->p.outer_scales != q->p.outer_scales ||
                     from->p.compat != q->p.compat))
        differs = "scales";
    if (differs)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "gguf_target_params: measured is a job with "
                            "different %s",
                            differs);
    if (from->noise && from->noise_sample == sample)
        memcpy(q->noise, from->noise, n * sizeof *q->noise);
    return GGUF_OK;
}

enum gguf_status gg_target_measure_all(struct gguf_quant *q,
                                       const struct gguf_target_params *params,
                                       struct gg_target_tensor *tensors,
                                       size_t n, struct gguf_error *err)
{
    GG_TRY(recall_noise(q, params, err));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < tensors[i].n; k++) {
            struct gg_target_option *o = &tensors[i].options[k];
            if (o->to == tensors[i].t->pub.from)
                continue;
            o->noise = *noise_slot(q, tensors[i].t, o->to);
            o->known = o->noise > 0;
        }
    GG_TRY(gg_target_measure(q, tensors, n, sample_size(params), err));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < tensors[i].n; k++) {
            const struct gg_target_option *o = &tensors[i].options[k];
            if (o->to != tensors[i].t->pub.from)
                *noise_slot(q, tensors[i].t, o->to) = o->noise;
        }
    return GGUF_OK;
}

static enum gguf_status fill_result(struct gguf_target_result *out,
                                    const struct gguf_target_result *r,
                                    struct gguf_error *err)
{
    return out ? gg_params_give(out, r, sizeof *r, "gguf_target_result", err)
               : GGUF_OK;
}

static enum gguf_status run_target(struct target *t,
                                   struct gguf_target_result *result,
                                   struct gguf_error *err)
{
    static const char type[] = "general.file_type";
    struct gguf_quant *q = t->q;
    struct gg_knapsack k = { .size = 0 };
    if (!q->ftype_given)
        gguf_meta_remove(q->meta, type); /* this choice has no number */
    t->predicts = can_predict(t);
    if (t->predicts && !t->p.no_record)
        GG_TRY(gg_target_record(q, 0, err)); /* reserves the size of the key */
    GG_TRY(gg_job_plan_files(q, &q->totals.file_size, err));
    t->align = t->p.max_size ? gg_job_alignment(q) : 1;
    (void)size_of_plan(t);
    GG_TRY(list_free(t, err));
    GG_TRY(gg_target_measure_all(q, &t->p, t->tensors, t->n, err));
    GG_TRY(make_groups(t, err));
    GG_TRY(choose_types(t, &k, err));
    if (t->predicts)
        GG_TRY(gg_target_predict(q, &t->p, NULL, err));
    uint64_t size = size_of_plan(t);
    const struct gguf_target_result r = {
        .struct_size = sizeof r,
        .limit = t->limit,
        .size = size,
        .n_free = t->n,
        .noise = k.cost,
        .bound = k.bound,
        .exact = k.exact,
        .predicted = t->predicts,
    };
    return fill_result(result, &r, err);
}

enum gguf_status gguf_quant_fit_size(struct gguf_quant *q,
                                     const struct gguf_target_params *params,
                                     struct gguf_target_result *result,
                                     struct gguf_error *err)
{
    struct gguf_target_params p = GGUF_TARGET_PARAMS_INIT;
    GG_TRY(gg_params_take(&p, sizeof p, params, "gguf_target_params", err));
    GG_TRY(check_params(&p, err));
    const struct gguf_target_result none = GGUF_TARGET_RESULT_INIT;
    GG_TRY(fill_result(result, &none, err));
    struct target t = {
        .q = q, .p = p, .types = p.types, .n_types = p.n_types
    };
    if (!t.n_types) {
        t.types = all_types;
        t.n_types = GG_LEN(all_types);
    }
    enum gguf_status st = run_target(&t, result, err);
    gg_mem_free(q->p.allocator, t.tensors);
    gg_mem_free(q->p.allocator, t.groups);
    gg_mem_free(q->p.allocator, t.options);
    return st;
}
