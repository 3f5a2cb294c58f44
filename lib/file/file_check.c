/* SPDX-License-Identifier: MIT */
/* file_check.c - check the structure, metadata and tensor list of a file */
#include "config.h"
#include "file/file_check.h"
#include "file/file_int.h"
#include "file/shard_set.h"
#include "file/value.h"
#include "base/params.h"
#include "base/str.h"
#include "dtype/interleave.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *code, *about;
    enum gguf_severity severity;
} codes[] = {
#define X(ID, CODE, SEVERITY, ABOUT) { CODE, ABOUT, GGUF_SEVERITY_##SEVERITY },
    GG_CHECK_LIST(X)
#undef X
};

const char *gguf_check_code(size_t n, const char **about,
                            enum gguf_severity *severity)
{
    if (n >= GG_LEN(codes))
        return NULL;
    if (about)
        *about = codes[n].about;
    if (severity)
        *severity = codes[n].severity;
    return codes[n].code;
}

const char *gguf_severity_name(enum gguf_severity severity)
{
    static const char *const names[] = { "note", "warning", "error" };
    return (size_t)severity < GG_LEN(names) ? names[severity] : "?";
}

enum gguf_status gg_file_report_finding(const struct gg_file_checker *c,
                                        enum gg_file_check_code code,
                                        struct gguf_str name, uint64_t offset,
                                        struct gguf_error *err,
                                        const char *fmt, ...)
{
    char message[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    const struct gguf_file *file =
        c->file && c->file->like ? c->file->like : c->file;
    struct gguf_finding f = {
        codes[code].severity, codes[code].code, name, offset, message, file
    };
    if (!c->report.fn(c->report.user, &f))
        return GGUF_OK;
    return gg_error_set(err, GGUF_E_CANCELLED, GGUF_NO_OFFSET,
                        "the check was stopped");
}

static const struct gguf_str no_name = { "", 0 };

/* Offset of the first byte in [from, to) that is not zero; to if all are. */
static uint64_t first_nonzero(const struct gguf_file *f, uint64_t from,
                              uint64_t to)
{
    while (from < to && f->map.data[from] == 0)
        from++;
    return from;
}

/* Check that bytes [from, to) are zero: the padding after tensor name, or after
 * the header if name is empty. */
static enum gguf_status check_zeros(const struct gg_file_checker *c,
                                    uint64_t from, uint64_t to,
                                    struct gguf_str name,
                                    struct gguf_error *err)
{
    if (c->params.quick || c->file->like || c->file->map.read)
        return GGUF_OK;
    to = GG_MIN(to, c->file->map.size);
    uint64_t at = first_nonzero(c->file, from, to);
    struct gg_str_esc e;
    if (at >= to)
        return GGUF_OK;
    return gg_file_report_finding(
        c, GG_CHECK_PADDING, name, at, err,
        "padding after %s%s%s is not zero at byte %" PRIu64,
        name.size ? "tensor '" : "the header", gg_str_esc(&e, name),
        name.size ? "'" : "", at);
}

static enum gguf_status check_whole(const struct gg_file_checker *c,
                                    struct gguf_error *err)
{
    const struct gguf_file *f = c->file;
    uint64_t end;
    if (f->big_endian)
        GG_TRY(gg_file_report_finding(c, GG_CHECK_BIG_ENDIAN, no_name, 4, err,
                                      "the file is big-endian"));
    if (f->version == 2)
        GG_TRY(gg_file_report_finding(c, GG_CHECK_VERSION_2, no_name, 4, err,
                                      "the file has GGUF version 2"));
    GG_TRY(check_zeros(c, f->header_end, f->data_off, no_name, err));
    if (gg_file_align_up(&end, f->data_end, f->align))
        return GGUF_OK;
    if (f->n_tensors && f->map.size < end)
        GG_TRY(gg_file_report_finding(
            c, GG_CHECK_NO_FINAL_PAD, no_name, f->map.size, err,
            "the last tensor ends at byte %" PRIu64 " and the file at %" PRIu64
            ", expected padding up to %" PRIu64,
            f->data_end, f->map.size, end));
    if (f->map.size > end)
        GG_TRY(gg_file_report_finding(c, GG_CHECK_TRAILING, no_name, end, err,
                                      "%" PRIu64
                                      " bytes after the last tensor, from "
                                      "byte %" PRIu64,
                                      f->map.size - end, end));
    return GGUF_OK;
}

/* ------------------------------------------------------------ metadata --- */

static bool is_ascii(struct gguf_str s)
{
    for (size_t i = 0; i < s.size; i++)
        if ((unsigned char)s.data[i] > 0x7f)
            return false;
    return true;
}

/* Numbers of faulty strings in a value, and the index of the first one of each
 * kind in the outermost array. */
struct texts {
    uint64_t n, n_not_utf8, n_nul;
    uint64_t first_not_utf8, first_nul;
};

static void look_at_text(struct texts *t, struct gguf_str s, uint64_t i)
{
    t->n++;
    if (!gg_str_utf8_valid(s.data, s.size) && t->n_not_utf8++ == 0)
        t->first_not_utf8 = i;
    if (s.size && memchr(s.data, 0, s.size) && t->n_nul++ == 0)
        t->first_nul = i;
}

/* Look at all strings of an array. outer is the index of the array, or of the
 * array around it, in the outermost one; GGUF_NO_INDEX for the outermost. */
static void look_at_array(struct texts *t, const struct gguf_kv *kv,
                          uint64_t outer)
{
    struct gguf_kv_iter it;
    struct gguf_kv e;
    struct gguf_str s;
    gguf_kv_iter_init(&it, kv);
    while (gguf_kv_iter_next_str(&it, &s))
        look_at_text(t, s, outer == GGUF_NO_INDEX ? it.i - 1 : outer);
    if (kv->elem_type == GGUF_VAL_ARR)
        while (gguf_kv_iter_next(&it, &e)) /* recursion: max_depth */
            look_at_array(t, &e, outer == GGUF_NO_INDEX ? e.index : outer);
}

static enum gguf_status report_texts(const struct gg_file_checker *c,
                                     const struct gguf_kv *kv,
                                     enum gg_file_check_code code,
                                     const char *what, uint64_t n, uint64_t of,
                                     uint64_t first, struct gguf_error *err)
{
    struct gg_str_esc e;
    if (n == 0)
        return GGUF_OK;
    if (kv->type == GGUF_VAL_STR)
        return gg_file_report_finding(c, code, kv->key, kv->off, err,
                                      "key '%s': the string at byte %" PRIu64
                                      " %s",
                                      gg_str_esc(&e, kv->key), kv->off, what);
    return gg_file_report_finding(c, code, kv->key, kv->off, err,
                                  "key '%s': %" PRIu64 " of %" PRIu64
                                  " strings, first [%" PRIu64 "], %s",
                                  gg_str_esc(&e, kv->key), n, of, first, what);
}

static enum gguf_status check_texts(const struct gg_file_checker *c,
                                    const struct gguf_kv *kv,
                                    struct gguf_error *err)
{
    struct texts t = { 0 };
    struct gguf_str s;
    if (gguf_kv_get_str(kv, &s, NULL) == GGUF_OK)
        look_at_text(&t, s, 0);
    else
        look_at_array(&t, kv, GGUF_NO_INDEX);
    GG_TRY(report_texts(c, kv, GG_CHECK_STR_UTF8, "is not UTF-8", t.n_not_utf8,
                        t.n, t.first_not_utf8, err));
    return report_texts(c, kv, GG_CHECK_STR_NUL, "holds a NUL byte", t.n_nul,
                        t.n, t.first_nul, err);
}

static enum gguf_status check_metadata(const struct gg_file_checker *c,
                                       struct gguf_error *err)
{
    const struct gguf_kv *arch =
        gguf_file_kv_find(c->file, "general.architecture");
    struct gg_str_esc e;
    struct gguf_str name;
    uint64_t no = 0; /* only the first shard has the key */
    const struct gguf_kv *shard =
        gguf_file_kv_find(c->file, gg_file_split_keys[GG_SPLIT_NO]);
    if (gguf_kv_get_uint(shard, &no, NULL) != GGUF_OK)
        no = 0;
    if (!no && (gguf_kv_get_str(arch, &name, NULL) != GGUF_OK || !name.size))
        GG_TRY(gg_file_report_finding(
            c, GG_CHECK_NO_ARCH, GG_STR("general.architecture"),
            arch ? arch->off : GGUF_NO_OFFSET, err,
            "key 'general.architecture' is %s",
            !arch                        ? "missing"
            : arch->type == GGUF_VAL_STR ? "empty"
                                         : "not a string"));
    for (size_t i = 0; i < c->file->n_kv; i++) {
        const struct gguf_kv *kv = &c->file->kv[i];
        if (!is_ascii(kv->key))
            GG_TRY(gg_file_report_finding(
                c, GG_CHECK_KEY_ASCII, kv->key, kv->key_off, err,
                "key '%s' at byte %" PRIu64 " is not ASCII",
                gg_str_esc(&e, kv->key), kv->key_off));
        if (kv->type == GGUF_VAL_ARR && kv->elem_type == GGUF_VAL_ARR)
            GG_TRY(gg_file_report_finding(
                c, GG_CHECK_NESTED, kv->key, kv->off, err,
                "key '%s' holds nested arrays, which "
                "some programs do not read",
                gg_str_esc(&e, kv->key)));
        GG_TRY(check_texts(c, kv, err));
    }
    return GGUF_OK;
}

/* ------------------------------------------------------------- tensors --- */

static enum gguf_status check_type(const struct gg_file_checker *c,
                                   const struct gguf_tensor_info *t,
                                   struct gguf_error *err)
{
    const struct gguf_dtype_info *dt = gguf_dtype_find(t->dtype);
    struct gg_str_esc e;
    const char *name = gg_str_esc(&e, t->name);
    if (!dt)
        return gg_file_report_finding(
            c, GG_CHECK_UNKNOWN, t->name, t->info_off, err,
            "tensor '%s' has the unknown type %" PRIu32, name, t->dtype);
    if (dt->family == GGUF_FAMILY_REMOVED)
        return gg_file_report_finding(
            c, GG_CHECK_REMOVED, t->name, t->info_off, err,
            "tensor '%s' has type %" PRIu32
            " (%s), which was removed from the format",
            name, t->dtype, dt->name);
    const unsigned rows = gg_interleave_rows(gg_dtype_index(t->dtype));
    if (!t->size_inferred && t->ne[1] % (int64_t)rows)
        GG_TRY(gg_file_report_finding(
            c, GG_CHECK_TENSOR_SHAPE, t->name, t->info_off, err,
            "tensor '%s' has %" PRId64
            " rows, must be a multiple of %u, which %s stores together",
            name, t->ne[1], rows, dt->name));
    if (dt->family == GGUF_FAMILY_FORK)
        return gg_file_report_finding(
            c, t->size_inferred ? GG_CHECK_UNKNOWN : GG_CHECK_FORK, t->name,
            t->info_off, err, "tensor '%s' has type %" PRIu32 ", %s%s", name,
            t->dtype,
            t->size_inferred ? "but not the size of "
                             : "which only forks read: ",
            dt->name);
    if (t->dtype == GGUF_DTYPE_Q8_1 || t->dtype == GGUF_DTYPE_Q8_K)
        return gg_file_report_finding(
            c, GG_CHECK_RUNTIME, t->name, t->info_off, err,
            "tensor '%s' has type %s, which is not meant for "
            "files",
            name, dt->name);
    return GGUF_OK;
}

static enum gguf_status check_tensor(const struct gg_file_checker *c,
                                     const struct gguf_tensor_info *t,
                                     struct gguf_error *err)
{
    struct gg_str_esc e;
    const char *name = gg_str_esc(&e, t->name);
    if (!is_ascii(t->name))
        GG_TRY(gg_file_report_finding(c, GG_CHECK_NAME_ASCII, t->name,
                                      t->info_off, err,
                                      "tensor name '%s' is not ASCII", name));
    if (t->name.size > 63)
        GG_TRY(gg_file_report_finding(
            c, GG_CHECK_NAME_LONG, t->name, t->info_off, err,
            "tensor name '%s' has %zu bytes; some programs "
            "take 63",
            name, t->name.size));
    if (t->n_dims == 0)
        GG_TRY(gg_file_report_finding(
            c, GG_CHECK_SCALAR, t->name, t->info_off, err,
            "tensor '%s' has no dimensions: one element", name));
    return check_type(c, t, err);
}

static enum gguf_status check_places(const struct gg_file_checker *c,
                                     struct gguf_error *err)
{
    const struct gguf_file *f = c->file;
    struct gg_str_esc e;
    uint64_t end = 0, next;
    for (size_t i = 1; i < f->n_tensors; i++)
        if (f->tensor[i].off < f->tensor[i - 1].off) {
            const struct gguf_tensor_info *t = &f->tensor[i];
            GG_TRY(gg_file_report_finding(
                c, GG_CHECK_ORDER, t->name, t->info_off, err,
                "data of tensor '%s' lies before that of the "
                "tensor listed before it, which some programs "
                "do not read",
                gg_str_esc(&e, t->name)));
            break;
        }
    for (size_t i = 0; i < f->n_tensors; i++) {
        const struct gguf_tensor_info *t = &f->tensor[f->places[i].index];
        if (t->off > end)
            GG_TRY(gg_file_report_finding(
                c, GG_CHECK_GAP, t->name, f->data_off + end, err,
                "%" PRIu64 " unused bytes before tensor "
                "'%s', from byte %" PRIu64,
                t->off - end, gg_str_esc(&e, t->name), f->data_off + end));
        end = t->off + t->size;
        if (gg_file_align_up(&next, end, f->align))
            return GGUF_OK;
        GG_TRY(check_zeros(c, f->data_off + end, f->data_off + next, t->name,
                           err));
        end = next;
    }
    return GGUF_OK;
}

enum gguf_status gg_file_check_header(const struct gg_file_checker *c,
                                      struct gguf_error *err)
{
    GG_TRY(check_whole(c, err));
    GG_TRY(check_metadata(c, err));
    for (size_t i = 0; i < c->file->n_tensors; i++)
        GG_TRY(check_tensor(c, &c->file->tensor[i], err));
    return check_places(c, err);
}

enum gguf_status gg_file_checker_init(struct gg_file_checker *c,
                                      const struct gguf_check_params *params,
                                      struct gguf_finding_callback report,
                                      struct gguf_error *err)
{
    *c = (struct gg_file_checker){ .params =
                                       GGUF_INIT(struct gguf_check_params),
                                   .report = report };
    GG_TRY(gg_params_take(&c->params, sizeof c->params, params,
                          "gguf_check_params", err));
    GG_TRY(gg_params_need(report.fn, "report.fn", err));
    if (c->params.payload && c->params.quick)
        return gg_error_set(err, GGUF_E_INVALID, GGUF_NO_OFFSET,
                            "payload and quick exclude each other");
    return GGUF_OK;
}

enum gguf_status gguf_file_check(const struct gguf_file *file,
                                 const struct gguf_check_params *params,
                                 struct gguf_finding_callback report,
                                 struct gguf_error *err)
{
    struct gg_file_checker c;
    GG_TRY(gg_file_checker_init(&c, params, report, err));
    for (size_t i = 0; i < gguf_file_n_shards(file); i++) {
        c.file = gguf_file_shard(file, i);
        GG_TRY(gg_file_check_header(&c, err));
        if (c.params.payload)
            GG_TRY(gg_file_check_payload(&c, err));
    }
    return GGUF_OK;
}
