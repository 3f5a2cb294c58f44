/* SPDX-License-Identifier: MIT */
/* check-target.c - models quantized to a given size */
#include "config.h"
#include "base/compiler.h"
#include "gguf/split.h"
#include "gguf/target.h"
#include "quant/job/job.h"
#include "tests/ignore_status.h"
#include "tests/quant/fixture.h"
#include "tests/tap.h"

#include <math.h>
#include <sys/stat.h>

/* A job under way. */
struct case_ {
    struct gguf_quant_params p;
    struct gguf_target_params t;
    const char *recipe; /* text of the recipe */
    unsigned threads;
    uint32_t cpu; /* levels, with forced */
    bool forced;
    struct gguf_target_result result;
    struct gguf_recipe *r;
    struct gguf_quant *q;
    struct gguf_pool *pool;
    struct gguf_error err;
};
#define CASE                                                                  \
    {                                                                         \
        .p = GGUF_QUANT_PARAMS_INIT, .t = GGUF_TARGET_PARAMS_INIT,            \
        .recipe = "base Q2_K\n", .result = GGUF_TARGET_RESULT_INIT            \
    }

static enum gguf_status begin_job(struct case_ *c, const char *in)
{
    struct gguf_pool_params pp = GGUF_INIT(struct gguf_pool_params);
    struct gguf_str text = { c->recipe, strlen(c->recipe) };
    gguf_error_clear(&c->err);
    pp.n_threads = c->threads;
    enum gguf_status st = gguf_recipe_parse(&c->r, text, NULL, &c->err);
    if (st == GGUF_OK && c->threads)
        st = gguf_pool_create(&c->pool, &pp, &c->err);
    c->p.recipe = c->r;
    c->p.pool = c->pool;
    if (st == GGUF_OK)
        st = gguf_quant_create(&c->q, in, &c->p, &c->err);
    if (st == GGUF_OK && c->forced)
        gg_job_set_cpu(c->q, c->cpu);
    if (st == GGUF_OK)
        st = gguf_quant_fit_size(c->q, &c->t, &c->result, &c->err);
    return st;
}

static void end_job(struct case_ *c)
{
    gguf_quant_destroy(c->q);
    gguf_recipe_destroy(c->r);
    gguf_pool_destroy(c->pool);
    c->q = NULL;
    c->r = NULL;
    c->pool = NULL;
}

static enum gguf_status write_out(struct case_ *c, const char *out)
{
    struct gguf_quant_output o = GGUF_QUANT_OUTPUT_INIT;
    o.no_sync = o.force = 1;
    return gguf_quant_run(c->q, out, &o, &c->err);
}

static uint64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? 0 : (uint64_t)st.st_size;
}

static const struct gguf_quant_tensor *find_tensor(const struct case_ *c,
                                                   const char *name)
{
    size_t i = 0;
    while (i < gguf_quant_n_tensors(c->q) &&
           strcmp(gguf_quant_tensor(c->q, i)->name, name))
        i++;
    return gguf_quant_tensor(c->q, i);
}

/* From the smallest possible size to the largest: files never exceed the
 * limit, and noise falls. */
static void check_sizes(const char *in)
{
    const char *out = in_dir("o.gguf");
    uint64_t whole = size_of(in);
    double last = (double)INFINITY;
    int bad = 0, n = 0, n_exact = 0;
    struct case_ c = CASE;
    c.t.max_size = 1;
    ok(begin_job(&c, in) == GGUF_E_LIMIT, "too little: %s", c.err.message);
    const char *digits = strstr(c.err.message, "types has ");
    uint64_t least = digits ? strtoull(digits + 10, NULL, 10) : 0;
    end_job(&c);
    for (uint64_t size = least; size <= whole; size += (whole - least) / 9) {
        c.t.max_size = size;
        bad += begin_job(&c, in) != GGUF_OK || write_out(&c, out) != GGUF_OK ||
               size_of(out) > size || size_of(out) != c.result.size ||
               c.result.limit != size || c.result.noise > last ||
               c.result.bound > c.result.noise || c.result.n_free != 7;
        n_exact += c.result.exact;
        last = c.result.noise;
        n++;
        end_job(&c);
    }
    ok(!bad && n > 8 && n_exact == n,
       "%d sizes from %llu bytes on: never exceeded, noise falls, all proven",
       n, (unsigned long long)least);
    c.t.max_size = whole + 1000;
    ok(begin_job(&c, in) == GGUF_OK && c.result.noise == 0,
       "with room for all nothing is lost");
    end_job(&c);
    c.t.max_size = least - 1;
    ok(begin_job(&c, in) == GGUF_E_LIMIT, "a byte less than the least: %s",
       c.err.message);
    end_job(&c);
    c.t.max_size = 0;
    for (double bpw = 4.5; bpw < 17; bpw += 2.9) {
        struct gguf_quant_totals totals = GGUF_QUANT_TOTALS_INIT;
        c.t.max_bpw = bpw;
        bool good = begin_job(&c, in) == GGUF_OK;
        if (good)
            ignore_status(gguf_quant_totals(c.q, &totals, NULL));
        ok(good &&
               8 * (double)totals.to_size <= bpw * (double)totals.n_elements,
           "%g bits per weight: %g %s", bpw,
           8 * (double)totals.to_size / (double)totals.n_elements,
           c.err.message);
        end_job(&c);
    }
    remove(out);
}

/* Types and figures are equal, however they are computed. */
static void check_same(const char *in)
{
    static uint32_t want[64];
    struct gguf_target_result first = GGUF_TARGET_RESULT_INIT;
    int bad = 0, n = 0;
    for (unsigned threads = 0; threads < 9; threads++)
        for (int forced = 0; forced < 2; forced++, n++) {
            struct case_ c = CASE;
            c.threads = threads;
            c.forced = forced;
            c.p.max_memory = threads % 2 ? 300000 : 0;
            c.t.max_size = 400000;
            bad += begin_job(&c, in) != GGUF_OK;
            if (!n)
                first = c.result;
            bad +=
                c.result.noise != first.noise || c.result.size != first.size;
            for (size_t i = 0; c.q && i < gguf_quant_n_tensors(c.q); i++) {
                uint32_t type = gguf_quant_tensor(c.q, i)->to;
                if (!n)
                    want[i] = type;
                bad += type != want[i];
            }
            end_job(&c);
        }
    struct case_ c = CASE;
    c.t.max_size = 300000;
    bad += begin_job(&c, in) != GGUF_OK;
    c.t.max_size = 400000;
    bad += !c.q || gguf_quant_fit_size(c.q, &c.t, &c.result, &c.err) ||
           c.result.noise != first.noise || c.result.size != first.size;
    for (size_t i = 0; c.q && i < gguf_quant_n_tensors(c.q); i++)
        bad += gguf_quant_tensor(c.q, i)->to != want[i];
    end_job(&c);
    ok(!bad,
       "the same choice with 0 to 8 threads, with and without vector "
       "instructions, in little memory, after another %s",
       c.err.message);
}

static void check_constraints(const char *in)
{
    static const struct gguf_quant_override over = { "attn_k",
                                                     GGUF_DTYPE_Q5_0 };
    static const uint32_t types[] = { GGUF_DTYPE_Q4_0, GGUF_DTYPE_Q8_0 };
    struct case_ c = CASE;
    const struct gguf_quant_tensor *t;
    c.recipe = "base Q2_K\n\"blk.10\" = Q8_0\nffn_gate = keep\n";
    c.p.overrides = &over;
    c.p.n_overrides = 1;
    c.p.embedding_type = gguf_dtype_find(GGUF_DTYPE_Q4_1);
    c.p.leave_output = 1;
    c.t.max_size = 450000;
    ok(begin_job(&c, in) == GGUF_OK && c.result.size <= 450000 &&
           c.result.n_free == 3,
       "constraints of all kinds %s", c.err.message);
    ok((t = find_tensor(&c, "token_embd.weight")) &&
           t->to == GGUF_DTYPE_Q4_1 &&
           (t = find_tensor(&c, "output.weight")) &&
           t->to == GGUF_DTYPE_BF16 &&
           (t = find_tensor(&c, "blk.2.attn_k.weight")) &&
           t->to == GGUF_DTYPE_Q5_0 && t->reason == GGUF_REASON_OVERRIDE &&
           (t = find_tensor(&c, "blk.10.attn_v.weight")) &&
           t->to == GGUF_DTYPE_Q8_0 &&
           (t = find_tensor(&c, "output_norm.weight")) &&
           t->to == GGUF_DTYPE_F32 && t->reason == GGUF_REASON_NEVER_QUANTIZED,
       "types chosen by options and rules stay");
    t = find_tensor(&c, "blk.2.ffn_down_exps.weight");
    ok(t && t->reason == GGUF_REASON_TARGET && t->noise > 0 &&
           strstr(t->rule, "target: noise ") && strstr(t->rule, " has "),
       "a free choice gives its reason: %s", t ? t->rule : "");
    t = find_tensor(&c, "blk.2.attn_q.weight");
    ok(t && t->to == t->from, "rows of 48 fit nothing, and stay");
    end_job(&c);

    struct case_ d = CASE;
    d.t.types = types;
    d.t.n_types = 2;
    d.t.max_size = 400000;
    int bad = begin_job(&d, in) != GGUF_OK;
    for (size_t i = 0; d.q && i < gguf_quant_n_tensors(d.q); i++) {
        t = gguf_quant_tensor(d.q, i);
        bad += t->reason == GGUF_REASON_TARGET && t->to != GGUF_DTYPE_Q4_0 &&
               t->to != GGUF_DTYPE_Q8_0 && t->to != t->from;
    }
    ok(!bad, "types that were asked for, or none %s", d.err.message);
    end_job(&d);
    d.p.pure = 1;
    bad = begin_job(&d, in) != GGUF_OK || d.result.size > 400000;
    uint32_t only = UINT32_MAX;
    for (size_t i = 0; d.q && i < gguf_quant_n_tensors(d.q); i++) {
        t = gguf_quant_tensor(d.q, i);
        if (t->reason != GGUF_REASON_TARGET || t->to == t->from)
            continue;
        bad += only != UINT32_MAX && t->to != only;
        only = t->to;
    }
    ok(!bad && only == GGUF_DTYPE_Q4_0, "pure: one type for all %s",
       d.err.message);
    end_job(&d);
}

/* Importance data allow more types, and weight the noise. */
static void check_imatrix(const char *in)
{
    static float sums[512 * 3], counts[3] = { 1, 1, 1 };
    struct gguf_imatrix *im = NULL;
    struct case_ c = CASE;
    c.t.max_size = 165000;
    ok(begin_job(&c, in) == GGUF_E_LIMIT,
       "without importance data nothing is so small: %s", c.err.message);
    end_job(&c);
    for (size_t i = 0; i < 512 * 3; i++)
        sums[i] = i % 7 ? 0.01f : 1;
    bool good = gguf_imatrix_create(&im, NULL, NULL) == GGUF_OK &&
                gguf_imatrix_add(im, "blk.2.ffn_down_exps.weight", 512, 3,
                                 sums, counts, NULL) == GGUF_OK;
    c.p.imatrix = im;
    good = good && begin_job(&c, in) == GGUF_OK &&
           write_out(&c, in_dir("o.gguf")) == GGUF_OK;
    const struct gguf_quant_tensor *t =
        good ? find_tensor(&c, "blk.2.ffn_down_exps.weight") : NULL;
    ok(t && t->has_imatrix && size_of(in_dir("o.gguf")) <= 165000,
       "with them it is: %s (%s) %s", t ? gguf_dtype_find(t->to)->name : "",
       t ? t->rule : "", c.err.message);
    remove(in_dir("o.gguf"));
    end_job(&c);
    gguf_imatrix_destroy(im);
}

/* If all rows are measured, the expected noise is that of the output. */
static void check_noise(const char *in)
{
    struct case_ c = CASE;
    int bad = 0, n = 0;
    c.t.max_size = 400000;
    c.t.sample = GGUF_TARGET_SAMPLE_ALL;
    c.p.measure = 1;
    bad += begin_job(&c, in) != GGUF_OK ||
           write_out(&c, in_dir("o.gguf")) != GGUF_OK;
    for (size_t i = 0; c.q && i < gguf_quant_n_tensors(c.q); i++) {
        const struct gguf_quant_tensor *t = gguf_quant_tensor(c.q, i);
        if (t->reason != GGUF_REASON_TARGET || !t->loss.measured)
            continue;
        double r = t->loss.rms / t->loss.rms_in;
        bad += fabs(r * r - t->noise) > 1e-9 * t->noise;
        n++;
    }
    ok(!bad && n >= 4, "the noise of %d tensors is what --report measures %s",
       n, c.err.message);
    remove(in_dir("o.gguf"));
    end_job(&c);
}

/* Another alignment than the input's is taken into account. */
static void check_alignment(const char *in)
{
    const char *out = in_dir("o.gguf");
    int bad = 0;
    for (uint32_t align = 8; align < 10000; align *= 32) {
        struct case_ c = CASE;
        struct gguf_meta *m;
        if (gguf_meta_create(&m, NULL, NULL) ||
            gguf_meta_set_u32(m, "general.alignment", align, NULL))
            abort();
        c.p.meta = m;
        c.t.max_size = 400000;
        bad += begin_job(&c, in) != GGUF_OK || write_out(&c, out) != GGUF_OK ||
               size_of(out) != c.result.size || c.result.size > 400000 ||
               c.result.size < 380000;
        end_job(&c);
        gguf_meta_destroy(m);
    }
    ok(!bad, "with alignments from 8 to 8192");
    remove(out);
}

/* Does every weight in NVFP4 have its scale beside it, and no other weight? n:
 * number of scales. */
static bool has_scales(const char *path, size_t *n)
{
    struct gguf_file *f;
    char name[64];
    bool good = true;
    *n = 0;
    if (gguf_file_open(&f, path, NULL, NULL) != GGUF_OK)
        return false;
    for (size_t i = 0; i < gguf_file_n_tensors(f); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(f, i);
        int size = (int)t->name.size - 7; /* before ".weight" */
        if (t->ne[1] == 1)
            continue;
        snprintf(name, sizeof name, "%.*s.scale", size, t->name.data);
        bool has = gguf_file_tensor_find(f, name) != NULL;
        good = good && has == (t->dtype == GGUF_DTYPE_NVFP4);
        *n += has;
    }
    gguf_file_close(f);
    return good;
}

/* NVFP4 with scales outside of its blocks. The input's scales stay beside
 * weights that keep their type, and are multiplied into the others. The
 * output's scales are included in the measurement. Both count as bytes. */
static void check_outer(const char *in)
{
    static const uint32_t types[] = { GGUF_DTYPE_NVFP4, GGUF_DTYPE_Q2_K,
                                      GGUF_DTYPE_Q8_0 };
    static const struct gguf_quant_override over = { "weight",
                                                     GGUF_DTYPE_NVFP4 };
    const char *out = in_dir("o.gguf"), *nv = in_dir("nv.gguf");
    struct gguf_error err;
    struct case_ c = CASE;
    int bad, n_out = 0;
    c.p.outer_scales = c.p.measure = 1;
    c.t.types = types;
    c.t.n_types = GG_LEN(types);
    c.t.max_size = 400000;
    c.t.sample = GGUF_TARGET_SAMPLE_ALL;
    bad = begin_job(&c, in) != GGUF_OK || write_out(&c, out) != GGUF_OK ||
          size_of(out) != c.result.size || c.result.size > 400000;
    for (size_t i = 0; c.q && i < gguf_quant_n_tensors(c.q); i++) {
        const struct gguf_quant_tensor *t = gguf_quant_tensor(c.q, i);
        if (t->reason != GGUF_REASON_TARGET || t->to != GGUF_DTYPE_NVFP4)
            continue;
        double r = t->loss.rms / t->loss.rms_in;
        bad += fabs(r * r - t->noise) > 1e-9 * t->noise;
        n_out++;
    }
    ok(!bad && n_out > 0, "%d tensors get scales: the noise is with them %s",
       n_out, c.err.message);
    end_job(&c);

    struct setup s = SETUP("Q8_0");
    s.p.outer_scales = 1;
    s.p.overrides = &over;
    s.p.n_overrides = 1;
    size_t n_all, n, last = SIZE_MAX;
    ok(quantize(in, nv, s, &err) == GGUF_OK && has_scales(nv, &n_all) &&
           n_all >= 5,
       "a model of NVFP4 %s", err.message);
    bad = 0;
    uint64_t whole = size_of(nv);
    for (uint64_t size = whole; size > whole / 2; size -= whole / 16) {
        struct case_ d = CASE;
        struct gguf_quant_totals totals = GGUF_QUANT_TOTALS_INIT;
        d.p.allow_requantize = 1;
        d.t.max_size = size;
        if (begin_job(&d, nv) == GGUF_E_LIMIT) {
            end_job(&d);
            break;
        }
        bad += !d.q || write_out(&d, out) != GGUF_OK ||
               size_of(out) != d.result.size || d.result.size > size ||
               !has_scales(out, &n) || n > last ||
               (size == whole && n != n_all);
        last = n;
        end_job(&d);
        d.t.max_size = 0;
        d.t.max_bpw = 4.5 * (double)size / (double)whole;
        bad += begin_job(&d, nv) != GGUF_OK || write_out(&d, out) != GGUF_OK ||
               !has_scales(out, &n);
        if (d.q)
            ignore_status(gguf_quant_totals(d.q, &totals, NULL));
        bad += d.q && 8 * (double)totals.to_size >
                          d.t.max_bpw * (double)totals.n_elements;
        end_job(&d);
    }
    ok(!bad && last < n_all && last > 0, "its scales stay where NVFP4 does");
    remove(nv);
    remove(out);
}

static void check_shards(const char *in)
{
    struct gguf_file *set = NULL;
    struct case_ c = CASE;
    c.p.max_file_size = 250000;
    int bad = 0;
    for (uint64_t size = 350000; size < 420000; size += 7777) {
        c.t.max_size = size;
        bad += begin_job(&c, in) != GGUF_OK ||
               write_out(&c, in_dir("s.gguf")) != GGUF_OK;
        char name[64];
        size_t n = c.q ? gguf_quant_n_files(c.q) : 0;
        uint64_t sum = 0;
        snprintf(name, sizeof name, "s-00001-of-%05zu.gguf", n);
        bad += gguf_file_open(&set, in_dir(name), NULL, &c.err) != GGUF_OK;
        sum = set ? gguf_file_size(set) : 0;
        bad += n < 2 || sum != c.result.size || sum > size;
        gguf_file_close(set);
        set = NULL;
        for (size_t i = 1; i <= n; i++) {
            snprintf(name, sizeof name, "s-%05zu-of-%05zu.gguf", i, n);
            remove(in_dir(name));
        }
        end_job(&c);
    }
    ok(!bad, "several files together stay below, too %s", c.err.message);
}

struct stopper {
    int calls, stop;
    bool wrong;
    uint64_t last;
};

static bool stop_at(void *user, uint64_t done, uint64_t total)
{
    struct stopper *s = user;
    s->wrong |= done > total || done < s->last;
    s->last = done;
    return ++s->calls == s->stop;
}

/* Note the total number of bytes to measure. */
static bool note_total(void *user, uint64_t done, uint64_t total)
{
    uint64_t *most = user;
    (void)done;
    *most = *most < total ? total : *most;
    return 0;
}

/* With several sizes each choice is that of a separate job, and nothing is
 * measured twice. */
static void check_several(const char *in)
{
    struct case_ first = CASE, alone = CASE, second = CASE;
    uint64_t n[3] = { 0, 0, 0 };
    const uint64_t whole = size_of(in);
    first.t.max_size = whole / 3;
    alone.t.max_size = second.t.max_size = whole / 4;
    first.p.progress = (struct gguf_progress_callback){ note_total, &n[0] };
    alone.p.progress = (struct gguf_progress_callback){ note_total, &n[1] };
    second.p.progress = (struct gguf_progress_callback){ note_total, &n[2] };
    bool good =
        begin_job(&first, in) == GGUF_OK && begin_job(&alone, in) == GGUF_OK;
    second.t.measured = first.q;
    good = good && begin_job(&second, in) == GGUF_OK &&
           second.result.noise == alone.result.noise &&
           second.result.size == alone.result.size;
    for (size_t i = 0; good && i < gguf_quant_n_tensors(alone.q); i++)
        good = gguf_quant_tensor(alone.q, i)->to ==
               gguf_quant_tensor(second.q, i)->to;
    ok(good && n[0] && n[0] == n[1] && !n[2],
       "measured once for two sizes: %llu bytes, then %llu: %s",
       (unsigned long long)n[0], (unsigned long long)n[2], second.err.message);
    end_job(&second);
    second.t.sample = GGUF_TARGET_SAMPLE_ALL;
    ok(begin_job(&second, in) == GGUF_OK && n[2] > n[0],
       "but again with another sample");
    end_job(&second);
    second.t.sample = GGUF_TARGET_SAMPLE_DEFAULT;
    second.p.outer_scales = 1;
    ok(begin_job(&second, in) == GGUF_E_INVALID &&
           strstr(second.err.message, "different scales"),
       "of a job that is not alike nothing is taken: %s", second.err.message);
    end_job(&second);
    n[0] = 0;
    first.t.max_size = whole / 5;
    ok(gguf_quant_fit_size(first.q, &first.t, NULL, NULL) == GGUF_OK && !n[0],
       "another limit for the same job measures nothing");
    end_job(&alone);
    end_job(&first);
}

static void check_refusals(const char *in)
{
    struct case_ c = CASE;
    static const uint32_t removed = 4;
    ok(begin_job(&c, in) == GGUF_E_INVALID, "no limit: %s", c.err.message);
    end_job(&c);
    c.t.max_size = 1000000;
    c.t.max_bpw = 4;
    ok(begin_job(&c, in) == GGUF_E_INVALID, "two limits: %s", c.err.message);
    end_job(&c);
    c.t.max_size = 0;
    c.t.max_bpw = (double)NAN;
    ok(begin_job(&c, in) == GGUF_E_INVALID, "no number: %s", c.err.message);
    end_job(&c);
    c.t.max_bpw = 6;
    c.t.types = &removed;
    c.t.n_types = 1;
    ok(begin_job(&c, in) == GGUF_E_INVALID, "a removed type: %s",
       c.err.message);
    end_job(&c);
    c.t.n_types = 0;
    struct stopper s = { .stop = 0 };
    c.p.progress = (struct gguf_progress_callback){ stop_at, &s };
    ok(begin_job(&c, in) == GGUF_OK && !s.wrong && s.calls > 20,
       "progress in %d steps", s.calls);
    end_job(&c);
    s = (struct stopper){ .stop = 5 };
    ok(begin_job(&c, in) == GGUF_E_CANCELLED && s.calls == 5, "stopped: %s",
       c.err.message);
    end_job(&c);
    c.p.progress.fn = NULL;
    c.p.max_memory = 1000;
    ok(begin_job(&c, in) == GGUF_E_LIMIT, "too little memory: %s",
       c.err.message);
    end_job(&c);
}

int main(void)
{
    const char *in = enter_model();
    check_sizes(in);
    check_same(in);
    check_constraints(in);
    check_imatrix(in);
    check_noise(in);
    check_alignment(in);
    check_outer(in);
    check_shards(in);
    check_several(in);
    check_refusals(in);
    return leave_model();
}
