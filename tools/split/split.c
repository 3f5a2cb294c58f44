/* SPDX-License-Identifier: MIT */
/* gguf-split - split a model into several files, or merge them */
#include "config.h"
#include "tools/common/digest.h"
#include "tools/common/option_hint.h"
#include "tools/common/load.h"
#include "tools/common/opt.h"
#include "tools/common/progress.h"
#include "tools/common/remote.h"
#include "tools/common/table.h"
#include "tools/common/text.h"
#include "base/os/os.h"
#include "base/os/os_path.h"
#include "base/os/os_program.h"

#include <errno.h>
#include <gguf/split.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct options {
    bool split, merge, dry_run, force, resume, quiet, verify, delete_inputs;
    struct gguf_split_params limits;
    struct gguf_limits file_limits;
};

#define AT(member) OPT_AT(struct options, member)

static const struct opt table[] = {
    { .help = "What to do:" },
    { "--split", NULL,
      "write IN as shards OUT-00001-of-0000N.gguf ... (the default)", OPT_FLAG,
      AT(split) },
    { "--merge", NULL,
      "write the split model IN (any shard, its folder or its prefix) as one "
      "file OUT",
      OPT_FLAG, AT(merge) },
    { .help = "How to split:" },
    { "--split-max-tensors", "N",
      "put at most N tensors into a shard (default: 128 without another "
      "limit)",
      OPT_UINT, AT(limits.max_tensors), .min = 1, .max = INT32_MAX },
    { "--split-max-size", "SIZE",
      "limit shards to SIZE bytes; units: k, M, G, T (powers of 1000), Ki, Mi, "
      "Gi, Ti (of 1024)",
      OPT_SIZE, AT(limits.max_size) },
    { "--no-tensor-first-split", NULL,
      "put only metadata into the first shard", OPT_FLAG,
      AT(limits.no_tensor_first) },
    { "--split-by-layer", NULL,
      "keep the tensors of a layer together; without a limit, write a shard "
      "for each layer",
      OPT_FLAG, AT(limits.by_layer) },
    { .help = "In general:" },
    { "--verify", NULL,
      "read the output again and compare its checksums with those of the "
      "input",
      OPT_FLAG, AT(verify) },
    { "--delete-inputs --delete-splits", NULL,
      "verify the output, then delete the input files", OPT_FLAG,
      AT(delete_inputs) },
    { "-n --dry-run", NULL, "print what would be written; read no tensor data",
      OPT_FLAG, AT(dry_run) },
    { "-f --force", NULL, "replace output files that exist", OPT_FLAG,
      AT(force) },
    { "--resume", NULL,
      "with --merge: note progress in OUT.resume; after an interruption the "
      "same command continues",
      OPT_FLAG, AT(resume) },
    { "--limit", "NAME=N", OPT_LIMIT_HELP, OPT_LIMIT, AT(file_limits) },
    { "-q --quiet", NULL, "print no progress and no summary", OPT_FLAG,
      AT(quiet) },
    { .names = NULL },
};

static const struct opt_rule rules[] = {
    { "--merge", OPT_EXCLUDES,
      "--split --split-max-tensors --split-max-size --no-tensor-first-split "
      "--split-by-layer" },
    { "--resume", OPT_NEEDS, "--merge" },
    { .a = NULL },
};

static const struct opt_tool tool = {
    "gguf-split",
    "[--split] [OPTION]... IN OUT-PREFIX\n--merge [OPTION]... IN OUT",
    "Split a GGUF model into several files, or merge them. The input is "
    "checked before the first byte is written. An output appears under its "
    "name when it is complete. Merging the shards gives the original "
    "file, byte for byte.",
    table,
    rules,
    "IN OUT [MORE]...",
    NULL
};

/* Report an extra operand: a shell pattern may have matched all shards. */
static _Noreturn void fail_extra_operand(const struct options *o,
                                         char *const *arg)
{
    size_t n, m;
    if (o->merge && gguf_split_name_parse(arg[0], &n, NULL, NULL) &&
        gguf_split_name_parse(arg[1], &m, NULL, NULL) && m == n &&
        !memcmp(arg[0], arg[1], n))
        opt_usage("'%s' is one argument too many: one shard stands for all, "
                  "and OUT comes after it",
                  arg[1]);
    opt_usage("'%s' is one argument too many", arg[2]);
}

static void parse_options(struct options *o, int argc, char **argv)
{
    if (opt_parse(&tool, argc, argv, o) > 2)
        fail_extra_operand(o, argv + 1);
    o->verify |= o->delete_inputs;
    if (!o->merge && !o->limits.max_tensors && !o->limits.max_size &&
        !o->limits.by_layer)
        o->limits.max_tensors = 128;
}

/* Refuse tensors of unknown size, since it is unknown which bytes belong to
 * them. */
static bool has_known_sizes(const struct gguf_file *s, const char *path)
{
    for (size_t i = 0; i < gguf_file_n_tensors(s); i++) {
        const struct gguf_tensor_info *t = gguf_file_tensor(s, i);
        struct text name = { NULL, 0, 0 };
        if (!t->size_inferred)
            continue;
        text_add_esc(&name, t->name, UINT64_MAX);
        msg_error(path,
                  "tensor '%s' at byte %" PRIu64
                  " has the unknown type %" PRIu32 ": its size is unknown",
                  name.s, t->info_off, t->dtype);
        text_fini(&name);
        return false;
    }
    return true;
}

static void list_shards(const struct gguf_split_plan *plan, const char *prefix)
{
    static const char *const heads[] = { "file", "tensors", "bytes", "" };
    struct table t;
    char path[4096], out[24];
    size_t n = gguf_split_plan_n_shards(plan);
    table_init(&t, "lrrr", 0);
    table_add_row(&t, heads);
    for (size_t i = 0; i < n; i++) {
        const struct gguf_split_shard *s = gguf_split_plan_shard(plan, i);
        if (gguf_split_name_format(path, sizeof path, prefix, (unsigned)i + 1,
                                   (unsigned)n, NULL) != GGUF_OK)
            continue;
        table_add_strz(&t, path);
        table_addf(&t, "%zu", s->n_tensors);
        table_addf(&t, "%" PRIu64, s->file_size);
        table_addf(&t, "(%s)", table_size(out, s->file_size));
    }
    table_show(&t, "3/1");
}

static void print_result(const struct options *o, const char *file,
                         size_t n_files, size_t n_tensors, uint64_t size)
{
    char out[24];
    if (!o->quiet)
        msg_info(file, "%s %zu file%s, %zu tensor%s, %s",
                 o->dry_run ? "would write" : "wrote", n_files,
                 text_s(n_files), n_tensors, text_s(n_tensors),
                 table_size(out, size));
}

/* Split the model. *about receives the path that an error is about. */
static enum gguf_status
split_model(const struct options *o, const struct gguf_file *s,
            const char *prefix, const struct gguf_split_output_params *job,
            const char **about, size_t *n_shards, struct gguf_error *err)
{
    struct gguf_split_plan *plan;
    enum gguf_status st = gguf_split_plan_create(&plan, s, &o->limits, err);
    if (st == GGUF_OK && o->dry_run) {
        list_shards(plan, prefix);
    } else if (st == GGUF_OK) {
        *about = prefix;
        st = gguf_split_plan_write(plan, prefix, job, err);
    }
    if (st == GGUF_OK) {
        uint64_t size = 0;
        size_t n = *n_shards = gguf_split_plan_n_shards(plan);
        for (size_t i = 0; i < n; i++)
            size += gguf_split_plan_shard(plan, i)->file_size;
        progress_clear(job->progress.user);
        print_result(o, prefix, n, gguf_file_n_tensors(s), size);
    }
    gguf_split_plan_destroy(plan);
    return st;
}

static enum gguf_status
merge_shards(const struct options *o, const struct gguf_file *s,
             const char *path, const struct gguf_split_output_params *job,
             const char **about, struct gguf_error *err)
{
    uint64_t size;
    enum gguf_status st = gguf_split_merge_size(s, &size, err);
    if (st == GGUF_OK && !o->dry_run) {
        *about = path;
        st = gguf_split_merge(s, path, job, err);
    }
    if (st == GGUF_OK) {
        progress_clear(job->progress.user);
        print_result(o, path, 1, gguf_file_n_tensors(s), size);
    }
    return st;
}

/* ---- after writing ---- */

static bool output_differs(const char *out)
{
    return msg_error(out, "the data differs from that of the input");
}

/* Compare the checksum of the output, read again, with that of the input. */
static bool verify_output(const struct options *o, struct gguf_file *in,
                          const char *out, size_t n_shards)
{
    struct gguf_file *file;
    struct gguf_digest x, y;
    struct gguf_error err;
    char first[4096];
    if (!o->merge) {
        /* the prefix may also be the name of another file */
        if (gguf_split_name_format(first, sizeof first, out, 1,
                                   (unsigned)n_shards, &err) != GGUF_OK)
            return msg_fail(out, &err);
        out = first;
    }
    struct gguf_file_params params = GGUF_INIT(struct gguf_file_params);
    params.limits = &o->file_limits;
    gguf_error_clear(&err);
    if (gguf_file_open(&file, out, &params, &err) != GGUF_OK)
        return msg_fail(out, &err);
    bool good =
        digest_model(in, GGUF_DIGEST_XXH3_128, NULL, "reading input", o->quiet,
                     NULL, &x, &err) == GGUF_OK &&
        digest_model(file, GGUF_DIGEST_XXH3_128, NULL, "reading output",
                     o->quiet, NULL, &y, &err) == GGUF_OK;
    if (!good)
        msg_fail(out, &err);
    else if (gguf_file_n_tensors(in) != gguf_file_n_tensors(file) ||
             !gguf_digest_equal(&x, &y))
        good = output_differs(out);
    gguf_file_close(file);
    return good;
}

static bool delete_inputs(const struct gguf_file *s)
{
    bool good = true;
    for (size_t i = 0; i < gguf_file_n_shards(s); i++)
        if (gg_os_remove(gguf_file_path(gguf_file_shard(s, i))) != 0) {
            msg_error(gguf_file_path(gguf_file_shard(s, i)), "%s",
                      strerror(errno));
            good = false;
        }
    return good;
}

int main(int argc, char **argv)
{
    struct options o = { .limits = GGUF_INIT(struct gguf_split_params),
                         .file_limits = GGUF_INIT(struct gguf_limits) };
    struct gguf_file_params params = GGUF_INIT(struct gguf_file_params);
    struct gguf_split_output_params job =
        GGUF_INIT(struct gguf_split_output_params);
    struct gguf_file *s = NULL;
    struct progress bar;
    struct gguf_error err;
    gg_os_program_arguments(&argc, &argv);
    parse_options(&o, argc, argv);
    remote_args(argv + 1, 1);
    const char *in = argv[1], *out = opt_check_output(argv[2]);
    if (!o.merge && !*gg_os_path_name(out))
        opt_usage("OUT-PREFIX '%s' ends without a file name", out);
    load_raise_limits();
    progress_init(&bar, o.merge ? "merging" : "splitting", NULL, o.quiet);
    bar.defer_close = !o.resume; /* files with a name are kept */
    progress_catch_signals();
    params.limits = &o.file_limits;
    params.opener = remote_opener();
    job.force = o.force;
    job.resume = o.resume;
    job.progress.fn = progress_report;
    job.progress.user = &bar;
    gguf_error_clear(&err);
    const char *about = in;
    enum gguf_status st = gguf_file_open(&s, in, &params, &err);
    int status = MSG_FAILED;
    size_t n_shards = 0;
    if (st == GGUF_OK && has_known_sizes(s, in)) {
        st = o.merge ? merge_shards(&o, s, out, &job, &about, &err)
                     : split_model(&o, s, out, &job, &about, &n_shards, &err);
        if (st == GGUF_OK)
            status = MSG_DONE;
    }
    if (status == MSG_DONE && !o.dry_run && o.verify &&
        !verify_output(&o, s, out, n_shards)) {
        status = MSG_FAILED;
        if (o.delete_inputs)
            msg_error(in, "was not deleted, since the output is not verified");
    } else if (status == MSG_DONE && !o.dry_run && o.delete_inputs &&
               !delete_inputs(s)) {
        status = MSG_FAILED;
    }
    progress_clear(&bar);
    if (st != GGUF_OK)
        msg_fail(about, &err);
    if (o.merge && about == out && !o.quiet)
        hint_resume(in, out, st, o.resume);
    gguf_file_close(s);
    progress_raise();
    return msg_exit(status);
}
