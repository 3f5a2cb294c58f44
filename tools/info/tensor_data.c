/* SPDX-License-Identifier: MIT */
/* tensor_data.c - what reads tensor data: statistics and values */
#include "config.h"
#include "tools/info/info.h"
#include "tools/common/msg.h"
#include "tools/common/progress.h"
#include "tools/common/style.h"

#include <gguf/text.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- statistics ---- */

/* Draw a histogram with ten levels of darkness, in ASCII. Markdown would merge
 * blanks, so it gets another character for zero. */
static void add_histogram(struct table *t, const struct gguf_stats *s,
                          const struct info_options *o)
{
    const char *ramp = o->markdown ? "_.:-=+*#%@" : " .:-=+*#%@";
    char out[GGUF_STATS_BINS + 3];
    uint64_t most = 1;
    for (int i = 0; i < GGUF_STATS_BINS; i++)
        most = s->bins[i] > most ? s->bins[i] : most;
    out[0] = '[';
    for (int i = 0; i < GGUF_STATS_BINS; i++) {
        double f = (double)s->bins[i] / (double)most;
        int level = s->bins[i] ? 1 + (int)(8.999 * f) : 0;
        out[i + 1] = ramp[level > 9 ? 9 : level];
    }
    out[GGUF_STATS_BINS + 1] = ']';
    out[GGUF_STATS_BINS + 2] = '\0';
    table_add(t, out);
}

static void stats_heading(struct table *t)
{
    static const char *const names[] = {
        "name", "type",     "min",   "max",        "mean",
        "rms",  "kurtosis", "zeros", "not finite", "-4 sd .. +4 sd"
    };
    table_add_row(t, names);
}

static void stats_row(struct table *t, const struct gguf_tensor_info *x,
                      const struct gguf_stats *s, const struct info_options *o)
{
    char type[32];
    table_add_str(t, x->name);
    table_add(t, info_type_name(x->dtype, type));
    table_addf(t, "%.4g", s->min);
    table_addf(t, "%.4g", s->max);
    table_addf(t, "%.3g", s->mean);
    table_addf(t, "%.4g", s->rms);
    table_addf(t, "%.2f", s->kurtosis);
    table_addf(t, "%.3g%%",
               s->n ? 100.0 * (double)s->n_zero / (double)s->n : 0);
    table_addf(t, "%" PRIu64, s->n_nan + s->n_inf);
    add_histogram(t, s, o);
}

static void stats_json(struct json *j, const struct gguf_tensor_info *x,
                       const struct gguf_stats *s)
{
    json_open(j, NULL, '{');
    json_str(j, "name", x->name);
    json_u64(j, "elements", s->n);
    json_u64(j, "zeros", s->n_zero);
    json_u64(j, "nan", s->n_nan);
    json_u64(j, "infinite", s->n_inf);
    json_f64(j, "min", s->min);
    json_f64(j, "max", s->max);
    json_f64(j, "mean", s->mean);
    json_f64(j, "rms", s->rms);
    json_f64(j, "stddev", s->stddev);
    json_f64(j, "kurtosis", s->kurtosis);
    json_open(j, "histogram", '{');
    json_f64(j, "from", s->lo);
    json_f64(j, "to", s->hi);
    json_open(j, "counts", '(');
    for (int i = 0; i < GGUF_STATS_BINS; i++)
        json_u64(j, NULL, s->bins[i]);
    json_close(j);
    json_close(j);
    json_close(j);
}

bool info_stats(struct json *j, const struct info *info,
                const struct info_options *o)
{
    struct gguf_stats_params p = GGUF_INIT(struct gguf_stats_params);
    struct gguf_error err;
    struct gguf_stats s = GGUF_INIT(struct gguf_stats);
    struct progress bar;
    struct table t;
    bool good = true;
    p.rows = o->rows;
    p.pool = o->pool;
    progress_init(&bar, "reading", "tensors", o->quiet);
    table_init(&t, "llrrrrrrrl", o->markdown ? 0 : 2);
    t.drop = "671/489235";
    stats_heading(&t);
    if (j)
        json_open(j, "stats", '[');
    else
        info_heading("Statistics", o);
    for (size_t i = 0; i < info->n_list && !progress_stopped(); i++) {
        const struct gguf_file *f = info->load->file;
        const struct gguf_tensor_info *x = gguf_file_tensor(f, info->list[i]);
        progress_report(&bar, i, info->n_list);
        if (gguf_stats_tensor(f, x->index, &p, &s, &err) != GGUF_OK) {
            progress_clear(&bar);
            msg_fail(gguf_file_path(gguf_file_shard(f, x->shard)), &err);
            good = false;
        } else if (j) {
            stats_json(j, x, &s);
        } else {
            stats_row(&t, x, &s, o);
        }
    }
    progress_clear(&bar);
    if (j) {
        json_close(j);
        table_fini(&t);
    } else {
        info_table(&t, o);
    }
    return good;
}

/* ---- values ---- */

static void put_row(const float *x, size_t n)
{
    char out[32];
    for (size_t i = 0; i < n; i++) {
        json_format_f32(out, x[i]);
        printf("%s%s", i ? " " : "", out);
    }
    putchar('\n');
}

/* Does the type have numbers that a float cannot hold? */
static bool is_wide(uint32_t dtype)
{
    return dtype == GGUF_DTYPE_I32 || dtype == GGUF_DTYPE_I64 ||
           dtype == GGUF_DTYPE_F64;
}

/* Read the number at p, of size bytes. */
static uint64_t bits_at(const unsigned char *p, size_t size, bool big_endian)
{
    uint64_t v = 0;
    for (size_t i = 0; i < size; i++)
        v = v << 8 | p[big_endian ? i : size - 1 - i];
    return v;
}

/* Print a tensor of such a type, row by row. */
static void put_wide(const struct gguf_file *f,
                     const struct gguf_tensor_info *x)
{
    const unsigned char *p = gguf_file_tensor_data(f, x->index);
    bool big = gguf_file_is_big_endian(f);
    size_t size = x->dtype == GGUF_DTYPE_I32 ? 4 : 8;
    for (uint64_t i = 0;
         i < x->n_elements && !ferror(stdout) && !progress_stopped(); i++) {
        uint64_t v = bits_at(p + i * size, size, big);
        char out[32];
        double d;
        memcpy(&d, &v, sizeof d);
        if (x->dtype == GGUF_DTYPE_F64)
            json_format_f64(out, d);
        else
            snprintf(out, sizeof out, "%" PRId64,
                     size == 4 ? (int64_t)(int32_t)v : (int64_t)v);
        printf("%s%c", out, (i + 1) % (uint64_t)x->ne[0] ? ' ' : '\n');
    }
}

/* Print tensor t, row by row. */
static bool put_values(const struct load *l, const struct gguf_tensor_info *t,
                       const struct info_options *o)
{
    struct gguf_error err;
    if (is_wide(t->dtype)) {
        put_wide(l->file, t);
        return true;
    }
    uint64_t n = (uint64_t)t->ne[0];
    float *x =
        n <= SIZE_MAX / sizeof *x ? malloc((size_t)n * sizeof *x) : NULL;
    bool good = x != NULL;
    if (!x)
        msg_error(l->path, "out of memory for a row");
    for (uint64_t i = 0; good && i < t->n_elements; i += n) {
        good = gguf_rows_decode(o->rows, l->file, t->index, i, n, x, &err) ==
               GGUF_OK;
        if (good)
            put_row(x, (size_t)n);
        else
            msg_fail(gguf_file_path(gguf_file_shard(l->file, t->shard)), &err);
        if (ferror(stdout) || progress_stopped())
            break;
    }
    free(x);
    return good;
}

bool info_values(const struct load *l, const struct info_options *o)
{
    for (size_t i = 0; i < gguf_file_n_tensors(l->file); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(l->file, i);
        if (t->name.size == strlen(o->values) &&
            !memcmp(t->name.data, o->values, t->name.size))
            return put_values(l, t, o);
    }
    struct text name = { NULL, 0, 0 };
    const struct gguf_str s = { o->values, strlen(o->values) };
    struct gguf_suggestion near;
    char hint[GGUF_SUGGESTION_SIZE];
    gguf_suggestion_init(&near, s);
    for (size_t i = 0; i < gguf_file_n_tensors(l->file); i++)
        gguf_suggestion_try(&near, gguf_file_tensor(l->file, i)->name);
    text_add_esc(&name, s, UINT64_MAX);
    msg_error(l->path, "tensor '%s' does not exist%s", name.s,
              gguf_suggestion_text(&near, hint));
    text_fini(&name);
    return false;
}
