/* SPDX-License-Identifier: MIT */
/* print.c - printing plan and result of gguf-quantize */
#include "config.h"
#include "tools/common/ignore_status.h"
#include "tools/quantize/quantize.h"
#include "tools/common/json.h"
#include "tools/common/msg.h"
#include "tools/common/table.h"
#include "tools/common/text.h"

#include <inttypes.h>
#include <string.h>

#include <gguf/text.h>

static const char *type_name(uint32_t id)
{
    const struct gguf_dtype_info *t = gguf_dtype_find(id);
    return t ? t->name : "?";
}

static struct gguf_str str_of(const char *z)
{
    return (struct gguf_str){ z, strlen(z) };
}

void print_heading(const struct target *target, bool others)
{
    struct text text = { NULL, 0, 0 };
    text_add_esc(&text, str_of(target->path ? target->path : ""), UINT64_MAX);
    text_addz(&text, target->path ? ": " : "");
    text_add_esc(&text, str_of(target->type), UINT64_MAX);
    printf("%s%s\n", others ? "\n" : "", text.s);
    text_fini(&text);
}

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), k = strlen(end);
    return n >= k && !strcmp(name + n - k, end);
}

void print_adapter(const struct options *o)
{
    const struct gguf_quant_tensor *t =
        gguf_quant_tensor(o->targets[0].job, 0);
    if (t && (ends_with(t->name, ".lora_a") || ends_with(t->name, ".lora_b")))
        msg_warn(o->in,
                 "is a LoRA adapter, not a model; '--lora %s MODEL' merges it "
                 "into a model",
                 o->in);
}

void print_plan(const struct target *target, bool explain)
{
    struct table t;
    struct text text = { NULL, 0, 0 };
    char size[24];
    table_init(&t, explain ? "lrllrl" : "lrllr", 0);
    for (size_t i = 0; i < gguf_quant_n_tensors(target->job); i++) {
        const struct gguf_quant_tensor *q = gguf_quant_tensor(target->job, i);
        table_add_strz(&t, q->name);
        table_add_shape(&t, q->n_dims, q->ne);
        table_add(&t, type_name(q->from));
        table_addf(&t, "%s%s", q->copied ? "" : "-> ",
                   q->copied ? "" : type_name(q->to));
        table_add(&t, table_size(size, q->to_size));
        if (!explain)
            continue;
        text_clear(&text);
        text_add_esc(&text, str_of(q->rule), UINT64_MAX);
        if (q->to != q->wanted)
            text_addf(&text, "; rows do not fit %s", type_name(q->wanted));
        if (q->needs_imatrix)
            text_addz(&text, "; needs importance data");
        else if (q->lacks_imatrix)
            text_addz(&text, "; no importance data");
        if (q->merged)
            text_addz(&text, "; adapters merged");
        table_add(&t, text.s ? text.s : "");
    }
    table_show(&t, explain ? "12/4" : "1/24");
    text_fini(&text);
}

void print_loss(const struct target *target)
{
    static const char *const heads[] = { "tensor",    "type",     "bytes",
                                         "rms error", "weighted", "max error",
                                         "SNR dB",    "seconds" };
    struct table t;
    table_init(&t, "llrrrrrr", 0);
    table_add_row(&t, heads);
    for (size_t i = 0; i < gguf_quant_n_tensors(target->job); i++) {
        const struct gguf_quant_tensor *q = gguf_quant_tensor(target->job, i);
        if (!q->loss.measured)
            continue;
        table_add_strz(&t, q->name);
        table_add(&t, type_name(q->to));
        table_addf(&t, "%" PRIu64, q->to_size);
        table_addf(&t, "%.4g", q->loss.rms);
        table_addf(&t, "%.4g", q->loss.weighted);
        table_addf(&t, "%.4g", q->loss.max);
        table_addf(&t, "%.2f", q->loss.snr);
        table_addf(&t, "%.3f", q->loss.seconds);
    }
    table_show(&t, "72/541");
}

static double bits_per_weight(const struct gguf_quant_totals *t)
{
    return t->n_elements ? 8.0 * (double)t->to_size / (double)t->n_elements
                         : 0;
}

static void print_target(const struct target *target)
{
    const struct gguf_target_result *r = &target->result;
    char best[64] = "the least possible";
    if (!r->exact && r->bound > 0)
        snprintf(best, sizeof best, "at most %.2g%% above the least possible",
                 100 * (r->noise / r->bound - 1));
    else if (!r->exact)
        snprintf(best, sizeof best, "perhaps not the least possible");
    msg_info(target->path,
             "%" PRIu64 " bytes, limit %" PRIu64 "; %s of %zu tensors %.4g, "
             "%s",
             r->size, r->limit, r->predicted ? "divergence" : "noise",
             r->n_free, r->noise, best);
}

static void print_prediction(const struct target *target)
{
    const struct gguf_quant_prediction *p = &target->prediction;
    char without[64] = "";
    if (!p->n_tensors)
        return;
    if (p->n_unknown)
        snprintf(without, sizeof without, ", without %zu unknown tensor%s",
                 p->n_unknown, text_s(p->n_unknown));
    msg_info(target->path, "predicted divergence %.4g nats%s%s", p->divergence,
             without, target->calibration ? ", before calibration" : "");
}

/* Escape a name from a file for a message. */
static const char *escape_name(char out[512], const char *name)
{
    gguf_text_escape(out, 512, str_of(name));
    return out;
}

/* Append the first tensors that lack importance data, quoted. */
static const char *list_lacking(const struct target *target, struct text *text)
{
    enum { MOST = 3 };
    const struct gguf_quant_tensor *q;
    char name[512];
    size_t n = 0;
    for (size_t i = 0; (q = gguf_quant_tensor(target->job, i)); i++)
        if (q->lacks_imatrix && n++ < MOST)
            text_addf(text, "%s'%s'", n > 1 ? ", " : "",
                      escape_name(name, q->name));
    if (n > MOST)
        text_addz(text, " ...");
    return text->s;
}

void print_skipped_norms(const struct target *t)
{
    struct gguf_quant_totals s = GGUF_QUANT_TOTALS_INIT;
    ignore_status(gguf_quant_totals(t->job, &s, NULL));
    if (s.n_left_out)
        msg_warn(NULL,
                 "%" PRIu64 " norm%s of adapters not merged: llama.cpp does "
                 "not use them",
                 s.n_left_out, text_s(s.n_left_out));
}

void print_imatrix(const char *in, const struct target *target, size_t n,
                   bool filtered)
{
    struct gguf_quant_totals t = GGUF_QUANT_TOTALS_INIT;
    ignore_status(gguf_quant_totals(target->job, &t, NULL));
    if (t.n_imatrix_unknown)
        msg_warn(in,
                 "has no tensor for %" PRIu64 " of the importance data, which "
                 "may belong to another model; gguf-imatrix --model compares "
                 "them",
                 t.n_imatrix_unknown);
    for (size_t i = 0; i < n && !filtered; i++) {
        struct text text = { NULL, 0, 0 };
        ignore_status(gguf_quant_totals(target[i].job, &t, NULL));
        if (t.n_lacks_imatrix)
            msg_warn(target[i].path,
                     "%" PRIu64 " of %" PRIu64 " tensors whose type uses "
                     "importance data %s none: %s",
                     t.n_lacks_imatrix, t.n_lacks_imatrix + t.n_imatrix,
                     t.n_lacks_imatrix == 1 ? "has" : "have",
                     list_lacking(&target[i], &text));
        text_fini(&text);
    }
}

void print_summary(const struct target *target, double seconds)
{
    struct gguf_quant_totals t = GGUF_QUANT_TOTALS_INIT;
    char from[24], to[24], files[32] = "", time[32] = "";
    ignore_status(gguf_quant_totals(target->job, &t, NULL));
    if (gguf_quant_n_files(target->job) > 1)
        snprintf(files, sizeof files, ", %zu files",
                 gguf_quant_n_files(target->job));
    if (seconds >= 0)
        snprintf(time, sizeof time, ", %.1f s", seconds);
    msg_info(target->path,
             "%s, %zu tensor%s, %s -> %s, %.2f bits per weight%s%s",
             target->type, gguf_quant_n_tensors(target->job),
             text_s(gguf_quant_n_tensors(target->job)),
             table_size(from, t.from_size), table_size(to, t.to_size),
             bits_per_weight(&t), files, time);
    if (has_size_limit(target))
        print_target(target);
    print_calibration_summary(target);
    print_prediction(target);
    if (t.n_kept)
        msg_info(target->path, "kept %" PRIu64 " tensor%s of an earlier run",
                 t.n_kept, text_s(t.n_kept));
    if (t.n_fallbacks)
        msg_info(target->path,
                 "%" PRIu64 " tensor%s got another type, since the blocks of "
                 "the chosen one do not fit the rows; --explain lists them",
                 t.n_fallbacks, text_s(t.n_fallbacks));
    if (t.n_needs_imatrix)
        msg_info(target->path,
                 "types that need importance data: %" PRIu64 " tensor%s; %s",
                 t.n_needs_imatrix, text_s(t.n_needs_imatrix),
                 t.n_imatrix + t.n_lacks_imatrix + t.n_bad_imatrix
                     ? "the given data do not cover them"
                     : "give data with --imatrix");
    if (t.n_bad_imatrix)
        msg_warn(
            target->path,
            "importance data not used, since their shape differs: %" PRIu64
            " tensor%s",
            t.n_bad_imatrix, text_s(t.n_bad_imatrix));
}

void print_nonfinite(const char *in, const struct target *t, int kept)
{
    char name[512];
    for (size_t i = 0; i < gguf_quant_n_tensors(t->job); i++) {
        const struct gguf_quant_tensor *q = gguf_quant_tensor(t->job, i);
        uint64_t ne0 = (uint64_t)q->ne[0], first = q->first_nonfinite;
        if (q->n_nonfinite)
            msg_warn(in,
                     "tensor '%s': %" PRIu64 " weight%s NaN or infinite, "
                     "or too large%s, the first at row %" PRIu64
                     ", column %" PRIu64,
                     escape_name(name, q->name), q->n_nonfinite,
                     q->n_nonfinite == 1 ? " is" : "s are",
                     kept ? "" : " and became 0", first / ne0, first % ne0);
    }
}

/* Find the tensor of this name among n targets whose importances were
 * replaced, or NULL. Outputs need not have the same tensors. */
static const struct gguf_quant_tensor *
find_replaced(const struct target *t, size_t n, const char *name)
{
    const struct gguf_quant_tensor *q;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; (q = gguf_quant_tensor(t[k].job, i)); i++)
            if (q->n_mended && !strcmp(q->name, name))
                return q;
    return NULL;
}

void print_replaced_importance(const char *in, const struct target *t,
                               size_t n)
{
    const struct gguf_quant_tensor *q;
    char name[512];
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; (q = gguf_quant_tensor(t[k].job, i)); i++)
            if (q->n_mended && !find_replaced(t, k, q->name))
                msg_warn(in,
                         "tensor '%s': the importance of %" PRIu64 " column%s "
                         "was replaced: it was zero throughout or not finite",
                         escape_name(name, q->name), q->n_mended,
                         text_s(q->n_mended));
}

static void json_tensor(struct json *j, const struct target *target, size_t i)
{
    const struct gguf_quant_tensor *q = gguf_quant_tensor(target->job, i);
    json_open(j, NULL, '{');
    json_strz(j, "name", q->name);
    json_i64s(j, "dims", q->n_dims, q->ne);
    json_strz(j, "from", type_name(q->from));
    json_strz(j, "to", type_name(q->to));
    json_strz(j, "wanted", type_name(q->wanted));
    json_strz(j, "rule", q->rule);
    json_u64(j, "from_size", q->from_size);
    json_u64(j, "to_size", q->to_size);
    json_bool(j, "has_imatrix", q->has_imatrix);
    json_bool(j, "needs_imatrix", q->needs_imatrix);
    json_bool(j, "lacks_imatrix", q->lacks_imatrix);
    json_bool(j, "merged", q->merged);
    json_u64(j, "n_mended", q->n_mended);
    json_u64(j, "n_nonfinite", q->n_nonfinite);
    if (q->n_nonfinite) {
        json_open(j, "first_nonfinite", '(');
        json_u64(j, NULL, q->first_nonfinite / (uint64_t)q->ne[0]);
        json_u64(j, NULL, q->first_nonfinite % (uint64_t)q->ne[0]);
        json_close(j);
    }
    if (q->loss.measured) {
        json_f64(j, "rms_error", q->loss.rms);
        json_f64(j, "weighted_error", q->loss.weighted);
        json_f64(j, "max_error", q->loss.max);
        json_f64(j, "rms", q->loss.rms_in);
        json_f64(j, "snr_db", q->loss.snr);
        json_f64(j, "seconds", q->loss.seconds);
    }
    json_calibrated_tensor(j, target->calibration, i);
    json_close(j);
}

void json_target(struct json *j, const struct target *target)
{
    struct gguf_quant_totals t = GGUF_QUANT_TOTALS_INIT;
    ignore_status(gguf_quant_totals(target->job, &t, NULL));
    json_open(j, NULL, '{');
    if (target->path)
        json_strz(j, "path", target->path);
    else
        json_null(j, "path");
    json_strz(j, "type", target->type);
    if (has_size_limit(target)) {
        const struct gguf_target_result *r = &target->result;
        json_open(j, "target", '{');
        json_u64(j, "limit", r->limit);
        json_u64(j, "size", r->size);
        json_u64(j, "n_free", r->n_free);
        json_f64(j, "noise", r->noise);
        json_f64(j, "bound", r->bound);
        json_bool(j, "exact", r->exact);
        if (r->predicted)
            json_bool(j, "predicted", true);
        json_close(j);
    }
    if (target->prediction.n_tensors) {
        json_open(j, "prediction", '{');
        json_f64(j, "divergence", target->prediction.divergence);
        json_u64(j, "n_tensors", target->prediction.n_tensors);
        json_u64(j, "n_unknown", target->prediction.n_unknown);
        json_close(j);
    }
    json_u64(j, "n_files", gguf_quant_n_files(target->job));
    json_u64(j, "file_size", t.file_size);
    json_u64(j, "n_elements", t.n_elements);
    json_u64(j, "from_size", t.from_size);
    json_u64(j, "to_size", t.to_size);
    json_f64(j, "bits_per_weight", bits_per_weight(&t));
    json_u64(j, "n_fallbacks", t.n_fallbacks);
    json_u64(j, "n_needs_imatrix", t.n_needs_imatrix);
    json_u64(j, "n_bad_imatrix", t.n_bad_imatrix);
    json_u64(j, "n_lacks_imatrix", t.n_lacks_imatrix);
    json_u64(j, "n_imatrix_unknown", t.n_imatrix_unknown);
    json_u64(j, "n_nonfinite", t.n_nonfinite);
    json_u64(j, "n_kept", t.n_kept);
    json_calibration_result(j, target->calibration);
    json_open(j, "tensors", '[');
    for (size_t i = 0; i < gguf_quant_n_tensors(target->job); i++)
        json_tensor(j, target, i);
    json_close(j);
}

void print_json(FILE *f, const char *in, const struct target *t, size_t n,
                const struct calibration *c, double seconds)
{
    struct json j;
    json_begin_object(&j, f);
    json_strz(&j, "input", in);
    json_bool(&j, "written", seconds >= 0);
    if (seconds >= 0)
        json_f64(&j, "seconds", seconds);
    json_calibration(&j, c);
    json_open(&j, "outputs", '[');
    for (size_t i = 0; i < n; i++) {
        json_target(&j, &t[i]);
        json_close(&j);
    }
    json_close(&j);
    json_end(&j);
}
