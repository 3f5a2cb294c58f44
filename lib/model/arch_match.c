/* SPDX-License-Identifier: MIT */
/* arch_match.c - the architectures that fit a file of an unknown one
 *
 * A file is verified as a model of each row of the table, with the keys of its
 * own prefix. Findings that differ only in the number of a layer are one
 * difference. The rows with the fewest differences are the nearest. */
#include "config.h"
#include "model/arch_match.h"

#include "base/mem.h"
#include "base/str.h"
#include "model/unread_keys.h"
#include "model/weight/needs.h"
#include "model/weight/verify_row.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- differences ---- */

static const struct {
    const char *code; /* code of a finding (file_check.h) */
    uint8_t kind;
} kinds[] = {
    { "missing-key", GGUF_ARCH_KEY_MISSING },
    { "key-type", GGUF_ARCH_KEY_OTHER },
    { "key-value", GGUF_ARCH_KEY_OTHER },
    { "vocab-size", GGUF_ARCH_KEY_OTHER },
    { "missing-block", GGUF_ARCH_TENSOR_MISSING },
    { "missing-tensor", GGUF_ARCH_TENSOR_MISSING },
    { "extra-tensor", GGUF_ARCH_TENSOR_EXTRA },
    { "tensor-shape", GGUF_ARCH_TENSOR_OTHER },
    { "tensor-type", GGUF_ARCH_TENSOR_OTHER },
};

/* Do two names differ in the number of their layer only? */
static bool is_same_part(struct gguf_str a, struct gguf_str b)
{
    uint64_t il;
    const enum gg_model_scope s = gg_weight_scope(&a, &il);
    return s == gg_weight_scope(&b, &il) && gg_str_eq(a, b);
}

static void add_difference(struct gg_arch_match *m, uint8_t kind,
                           struct gguf_str name, bool prevents,
                           const char *message)
{
    const size_t n = GG_MIN(m->n, (size_t)GG_ARCH_DIFFERENCES);
    for (size_t i = 0; i < n; i++)
        if (m->item[i].kind == kind && is_same_part(m->item[i].name, name))
            return;
    if (m->n++ >= GG_ARCH_DIFFERENCES)
        return;
    m->item[n].kind = kind;
    m->item[n].prevents = prevents;
    m->item[n].name = name;
    snprintf(m->item[n].message, sizeof m->item[n].message, "%s", message);
    /* the name of a missing key or tensor is valid during the finding only */
    if ((kind == GGUF_ARCH_KEY_MISSING || kind == GGUF_ARCH_TENSOR_MISSING ||
         kind == GGUF_ARCH_KEY_OTHER) &&
        gg_str_join(m->item[n].literal, sizeof m->item[n].literal, name, ""))
        m->item[n].name = gg_str_z(m->item[n].literal);
}

static bool note_finding(void *user, const struct gguf_finding *f)
{
    for (size_t i = 0; i < GG_LEN(kinds); i++)
        if (!strcmp(f->code, kinds[i].code))
            add_difference(user, kinds[i].kind, f->name, true, f->message);
    return false;
}

static void add_keys(struct gg_arch_match *m, const struct gg_source *src,
                     struct gguf_str prefix)
{
    const struct gguf_kv *kv;
    struct gg_str_esc e;
    char line[200];
    bool known;
    for (size_t i = 0; (kv = gg_unread_keys_next(gg_source_meta(src), m->arch,
                                                 prefix, &i, &known));) {
        snprintf(line, sizeof line,
                 "key '%.100s' is not read by models of architecture '%s'",
                 gg_str_esc(&e, kv->key), m->arch->name);
        add_difference(m, GGUF_ARCH_KEY_EXTRA, kv->key, known, line);
    }
}

enum gguf_status
gg_arch_match_row(struct gg_arch_match *m, const struct gg_source *src,
                  const struct gg_arch *arch, struct gguf_str prefix,
                  const struct gguf_allocator *a, struct gguf_error *err)
{
    struct gg_file_checker c = { .params = GGUF_CHECK_PARAMS_INIT,
                                 .report = { note_finding, m } };
    c.params.allocator = a;
    m->arch = arch;
    m->n = 0;
    GG_TRY(gg_verify_row(&c, src, arch, prefix, err));
    add_keys(m, src, prefix);
    return GGUF_OK;
}

/* ---- search ---- */

/* Letters in which two names begin alike; less than three count as none. */
static size_t count_like(struct gguf_str name, const char *other)
{
    size_t n = 0;
    while (n < name.size && other[n] && name.data[n] == other[n])
        n++;
    return n < 3 ? 0 : n;
}

unsigned gg_arch_count_departures(const struct gg_arch *a)
{
    const bool does[] = {
        a->bidirectional,
        a->whole_sequence,
        a->rope_rule,
        a->rope == GG_ROPE_NONE,
        a->alibi,
        a->alibi_bias,
        a->fix_rope,
        a->temperature,
        a->scale,
        a->embd_scale,
        a->logit_scale,
        a->residual_scale,
        a->mask_logits,
        a->finish_mixer,
        a->defaults,
        a->unused,
        a->mix_rule,
        a->is_parallel.fn,
        a->place_norms.fn,
        a->norm_result.fn,
        a->build_layers.fn,
        a->unroll,
        a->finish_layer.fn,
        a->gate_attention.fn,
        a->fill_hparams.fn,
        a->activation_sparsity.fn,
        a->fill_full_rope.fn,
        a->n_kv_layers.fn,
        a->moe.router_input.fn,
        a->moe.add_shared.fn,
        a->moe.gating_of_model.fn,
        a->output == GG_OUTPUT_NONE,
    };
    unsigned n = 0;
    for (size_t i = 0; i < GG_LEN(does); i++)
        n += does[i];
    return n;
}

/* A row that fits, as far as fitting rows are ordered. */
struct fit {
    size_t like; /* letters in which the names begin alike */
    unsigned
        departures; /* gg_arch_count_departures(), and experts that it lacks */
    unsigned chosen;   /* optional weights of the row that the file has */
    unsigned optional; /* optional weights and keys of the row */
};

static struct fit fit_of(const struct gg_source *src, const struct gg_arch *a,
                         struct gguf_str prefix)
{
    struct fit f = { count_like(prefix, a->name), gg_arch_count_departures(a),
                     0, 0 };
    struct gg_hparams hp = { .n_layer = 1 };
    struct gg_model_layer layer = { .mixer = gg_arch_mixer(a),
                                    .ffn = gg_arch_ffn(a) };
    struct gg_needs keys, weights;
    char name[GG_WEIGHT_NAME];
    f.departures +=
        a->moe.where && a->moe.where != &gg_arch_experts_if_any &&
        !gg_source_find(src, gg_weight_name(GG_W_ROUTER, 0, name), NULL);
    hp.layer = &layer;
    gg_needs_fill_keys(a, &keys);
    gg_needs_fill_weights(a, &hp, &layer, &weights);
    for (unsigned id = 1; id < GG_N_HPARAMS; id++)
        f.optional += keys.key[id] == GG_MAY;
    for (unsigned id = GG_W_NONE + 1; id < GG_N_WEIGHTS; id++) {
        if (weights.weight[id] != GG_MAY)
            continue;
        f.optional++;
        f.chosen += gg_source_find(
            src, gg_weight_name((enum gg_weight)id, 0, name), NULL);
    }
    return f;
}

/* Does row a come before row b of the same number of differences? */
static bool is_nearer(const struct gg_source *src, struct gguf_str prefix,
                      const struct gg_arch *a, const struct gg_arch *b)
{
    const struct fit x = fit_of(src, a, prefix), y = fit_of(src, b, prefix);
    if (x.like != y.like)
        return x.like > y.like;
    if (x.departures != y.departures)
        return x.departures < y.departures;
    if (x.chosen != y.chosen)
        return x.chosen < y.chosen;
    return x.optional > y.optional;
}

static void insert_row(struct gg_arch_nearest *out,
                       const struct gg_source *src, struct gguf_str prefix,
                       const struct gg_arch *row)
{
    size_t i = GG_MIN(out->n, (size_t)GG_ARCH_NEAREST - 1);
    out->n = i + 1;
    for (; i > 0 && is_nearer(src, prefix, row, out->arch[i - 1]); i--)
        out->arch[i] = out->arch[i - 1];
    out->arch[i] = row;
}

enum gguf_status gg_arch_find_nearest(struct gg_arch_nearest *out,
                                      const struct gg_source *src,
                                      struct gguf_str prefix,
                                      const struct gguf_allocator *a,
                                      struct gguf_error *err)
{
    *out = (struct gg_arch_nearest){ .n = 0 };
    GG_TRY(gg_unread_keys_check_prefix(prefix, GGUF_NO_OFFSET, err));
    struct gg_arch_match *m = gg_mem_alloc_zero(a, 1, sizeof *m);
    enum gguf_status st = m ? GGUF_OK : gg_error_set_nomem(err, sizeof *m);
    for (const struct gg_arch *row = gg_arch_next(NULL); row && !st;
         row = gg_arch_next(row)) {
        if (!row->runs)
            continue;
        st = gg_arch_match_row(m, src, row, prefix, a, err);
        if (st == GGUF_OK && out->n && m->n > out->n_differences)
            continue;
        if (out->n && m->n < out->n_differences)
            out->n = 0;
        out->n_differences = m->n;
        insert_row(out, src, prefix, row);
    }
    gg_mem_free(a, m);
    return st;
}

/* ---- as text ---- */

/* Append text, cut at the end of out. */
static void append_text(char *out, size_t size, const char *fmt, ...)
    GGUF_PRINTF(3, 4);
static void append_text(char *out, size_t size, const char *fmt, ...)
{
    const size_t n = strlen(out);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(out + n, size - n, fmt, ap);
    va_end(ap);
}

const char *gg_arch_nearest_text(char *out, size_t size,
                                 const struct gg_source *src,
                                 struct gguf_str prefix,
                                 const struct gguf_allocator *a)
{
    struct gg_arch_nearest near;
    struct gg_arch_match *m = gg_mem_alloc_zero(a, 1, sizeof *m);
    out[0] = '\0';
    if (!m || !gg_source_n_tensors(src) ||
        gg_arch_find_nearest(&near, src, prefix, a, NULL) != GGUF_OK ||
        gg_arch_match_row(m, src, near.arch[0], prefix, a, NULL) != GGUF_OK) {
        gg_mem_free(a, m);
        return out;
    }
    const size_t shown = near.n > 4 ? 4 : near.n;
    append_text(out, size, "; nearest is '%s'", near.arch[0]->name);
    for (size_t i = 1; i < shown; i++)
        append_text(out, size, "%s'%s'", i + 1 < near.n ? ", " : " or ",
                    near.arch[i]->name);
    if (near.n > shown)
        append_text(out, size, " or one of %zu others", near.n - shown);
    if (!m->n)
        append_text(out, size, ", with no difference in tensors and keys");
    else
        append_text(out, size, ", with %zu difference%s", m->n,
                    m->n == 1 ? "" : "s");
    for (size_t i = 0; i < GG_MIN(m->n, (size_t)3); i++)
        append_text(out, size, "%s%s", i ? "; " : ": ", m->item[i].message);
    gg_mem_free(a, m);
    return out;
}

/* ---- interface ---- */

/* Keys and tensors of a file as a source, and its architecture. */
static enum gguf_status open_source(struct gg_source *src,
                                    struct gguf_str *prefix,
                                    const struct gguf_file *file,
                                    struct gguf_error *err)
{
    const struct gguf_kv *kv;
    *src = (struct gg_source){ .file = file };
    GG_TRY(gguf_file_kv_get(gg_source_meta(src), "general.architecture", &kv,
                            err));
    GG_TRY(gguf_kv_get_str(kv, prefix, err));
    if (!gg_source_n_tensors(src))
        return gg_error_set(err, GGUF_E_NOTFOUND, GGUF_NO_OFFSET,
                            "the file has no tensors");
    return gg_unread_keys_check_prefix(*prefix, kv->off, err);
}

enum gguf_status gguf_arch_find_nearest(const struct gguf_file *file,
                                        const char **arch, size_t room,
                                        size_t *n, size_t *n_differences,
                                        struct gguf_error *err)
{
    struct gg_source src;
    struct gguf_str prefix;
    struct gg_arch_nearest near;
    *n = 0;
    GG_TRY(open_source(&src, &prefix, file, err));
    GG_TRY(gg_arch_find_nearest(&near, &src, prefix, NULL, err));
    *n = near.n;
    if (n_differences)
        *n_differences = near.n_differences;
    for (size_t i = 0; i < GG_MIN(near.n, room); i++)
        arch[i] = near.arch[i]->name;
    return GGUF_OK;
}

static enum gguf_status report_all(const struct gg_arch_match *m,
                                   struct gguf_arch_difference_callback report,
                                   struct gguf_error *err)
{
    for (size_t i = 0; i < GG_MIN(m->n, (size_t)GG_ARCH_DIFFERENCES); i++) {
        const struct gguf_arch_difference d = {
            .kind = (enum gguf_arch_difference_kind)m->item[i].kind,
            .name = m->item[i].name,
            .message = m->item[i].message,
            .prevents = m->item[i].prevents,
        };
        if (report.fn(report.user, &d))
            return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                                "cancelled");
    }
    return GGUF_OK;
}

enum gguf_status gguf_arch_compare(const struct gguf_file *file,
                                   const char *arch,
                                   struct gguf_arch_difference_callback report,
                                   struct gguf_error *err)
{
    struct gg_source src;
    struct gguf_str prefix;
    const struct gg_arch *row = arch ? gg_arch_find(gg_str_z(arch)) : NULL;
    if (!report.fn || !row)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            row ? "no callback"
                                : "no architecture of this name is known");
    GG_TRY(open_source(&src, &prefix, file, err));
    struct gg_arch_match *m = gg_mem_alloc_zero(NULL, 1, sizeof *m);
    if (!m)
        return gg_error_set_nomem(err, sizeof *m);
    enum gguf_status st = gg_arch_match_row(m, &src, row, prefix, NULL, err);
    if (st == GGUF_OK)
        st = report_all(m, report, err);
    gg_mem_free(NULL, m);
    return st;
}
