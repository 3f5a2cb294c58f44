/* SPDX-License-Identifier: MIT */
/* verify_path.c - verification of files that may not even open */
#include "config.h"
#include "base/error.h"
#include "base/mem.h"
#include "file/file_check.h"
#include "file/file_int.h"
#include "file/split_find.h"
#include "gguf/verify.h"

/* Findings for failures to open a file or a set. Statuses that are not listed
 * say nothing about contents. */
static const struct {
    enum gguf_status status;
    enum gg_file_check_code code;
} rows[] = {
    { GGUF_E_FORMAT, GG_CHECK_MALFORMED },
    { GGUF_E_VERSION, GG_CHECK_VERSION },
    { GGUF_E_TRUNCATED, GG_CHECK_TRUNCATED },
    { GGUF_E_OVERFLOW, GG_CHECK_OVERFLOW },
    { GGUF_E_SHAPE, GG_CHECK_ROW },
    { GGUF_E_LIMIT, GG_CHECK_LIMIT },
    { GGUF_E_DUPLICATE, GG_CHECK_TWICE },
    { GGUF_E_MISMATCH, GG_CHECK_SET },
    { GGUF_E_TYPE, GG_CHECK_SET },
};

/* A missing file is a fault of the set if other shards exist; else the path is
 * wrong. */
static enum gguf_status is_in_set(const char *path,
                                  const struct gguf_file_params *params,
                                  bool *yes, struct gguf_error *err)
{
    struct gguf_file_params p = GGUF_INIT(struct gguf_file_params);
    char *prefix;
    unsigned count;
    GG_TRY(gg_file_params_take(&p, params, err));
    enum gguf_status st =
        gg_file_split_find_path(path, p.allocator, &prefix, &count, err);
    gg_mem_free(p.allocator, prefix);
    *yes = st == GGUF_OK;
    return st == GGUF_E_NOMEM ? st : GGUF_OK;
}

static enum gguf_status report_why(const struct gg_file_checker *c,
                                   const struct gguf_error *why,
                                   struct gguf_error *err)
{
    static const struct gguf_str no_name = { "", 0 };
    for (size_t i = 0; i < GG_LEN(rows); i++)
        if (rows[i].status == why->status)
            return gg_file_report_finding(c, rows[i].code, no_name,
                                          why->offset, err, "%s",
                                          why->message);
    if (err)
        *err = *why;
    return why->status;
}

enum gguf_status gguf_path_verify(const char *path,
                                  const struct gguf_file_params *file_params,
                                  const struct gguf_check_params *params,
                                  struct gguf_finding_callback report,
                                  struct gguf_error *err)
{
    struct gg_file_checker c;
    struct gguf_file_params own = GGUF_INIT(struct gguf_file_params);
    struct gguf_file *file;
    struct gguf_error why;
    GG_TRY(gg_file_checker_init(&c, params, report, err));
    gguf_error_clear(&why);
    GG_TRY(gg_file_params_take(&own, file_params, err));
    if (gguf_file_open(&file, path, &own, &why) == GGUF_OK) {
        enum gguf_status st = gguf_file_verify(file, params, report, err);
        gguf_file_close(file);
        return st;
    }
    if (why.status == GGUF_E_IO) /* this says nothing about contents */
        return report_why(&c, &why, err);
    /* a shard may be valid although its set is not, which is a finding then */
    own.single_file = true;
    enum gguf_status alone = gguf_file_open(&file, path, &own, err);
    if (alone == GGUF_E_NOMEM)
        return alone;
    if (alone != GGUF_OK) {
        bool in_set = false;
        if (why.status == GGUF_E_NOTFOUND)
            GG_TRY(is_in_set(path, file_params, &in_set, err));
        if (in_set)
            why.status = GGUF_E_MISMATCH;
        return report_why(&c, &why, err);
    }
    enum gguf_status st = gguf_file_verify(file, params, report, err);
    gguf_file_close(file);
    return st;
}
