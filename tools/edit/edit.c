/* SPDX-License-Identifier: MIT */
/* gguf-edit - change the metadata of a GGUF file */
#include "config.h"
#include "tools/common/guard.h"
#include "tools/common/opt.h"
#include "tools/common/paths.h"
#include "tools/common/progress.h"
#include "tools/common/table.h"
#include "tools/edit/edit.h"
#include "base/os/os.h"
#include "base/os/os_program.h"

#include <gguf/edit.h>
#include <gguf/text.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The edit of one file. */
struct job {
    const struct edit_options *o;
    const char *path;
    const char *output; /* NULL: path itself */
    size_t n_ops;       /* number of changes that apply to this file */
    struct gguf_file *file;
    struct gguf_meta *before, *after;
    struct text log;          /* a line for each change */
    struct gguf_paths *noted; /* other files that are read */
};

/* ----------------------------------------------------------- operations --- */

/* Escape a key for a message. Free the result with text_fini(). */
static struct text escape_key(const char *key)
{
    struct text t = { NULL, 0, 0 };
    text_add_esc(&t, (struct gguf_str){ key, strlen(key) }, 200);
    return t;
}

static void log_key(struct job *j, const char *word, const char *key)
{
    text_addf(&j->log, "%s '", word);
    text_add_esc(&j->log, (struct gguf_str){ key, strlen(key) }, 200);
    text_addz(&j->log, "'");
}

static void log_value(struct job *j, const struct gguf_kv *kv)
{
    static const struct text_limits shown = { 8, 120 };
    bool array = kv->type == GGUF_VAL_ARR;
    text_addf(&j->log, array ? "arr[%s] " : "%s ",
              gguf_val_type_name(kv->elem_type));
    text_add_kv(&j->log, kv, &shown);
}

/* Set v to the number of the token whose text is op->arg. */
static bool make_special(const struct job *j, const struct op *op,
                         struct value *v)
{
    static const char tokens[] = "tokenizer.ggml.tokens";
    const struct gguf_kv *kv = gguf_meta_find(j->after, tokens);
    struct gguf_kv_iter it;
    struct gguf_kv e;
    struct gguf_str s;
    char number[24];
    bool found = false;
    uint64_t i = 0;
    if (kv && kv->type == GGUF_VAL_ARR)
        for (gguf_kv_iter_init(&it, kv); gguf_kv_iter_next(&it, &e) && !found;
             i++)
            found = gguf_kv_get_str(&e, &s, NULL) == GGUF_OK &&
                    s.size == strlen(op->arg) &&
                    !memcmp(s.data, op->arg, s.size);
    if (found) {
        struct text why = { NULL, 0, 0 };
        snprintf(number, sizeof number, "u32:%" PRIu64, i - 1);
        found = value_parse(v, op->key, number, NULL, &why);
        text_fini(&why);
    } else {
        struct text text = escape_key(op->arg);
        msg_error(j->path, "--special-token: %s has no token '%s'", tokens,
                  text.s);
        text_fini(&text);
    }
    return found;
}

/* Set v to the new value of op. */
static bool make_value(struct job *j, const struct op *op, struct value *v)
{
    struct text t = { NULL, 0, 0 };
    bool good;
    if (op->kind == SET_FILE) {
        good = text_read(&t, op->arg);
        if (good)
            value_set_str(v, (struct gguf_str){ t.s, t.n });
    } else if (op->kind == TEMPLATE) {
        value_set_str(v, (struct gguf_str){ op->arg, strlen(op->arg) });
        good = true;
    } else if (op->kind == SPECIAL) {
        good = make_special(j, op, v);
    } else {
        good = value_parse(v, op->key, op->arg,
                           gguf_meta_find(j->after, op->key), &t);
        struct text key = escape_key(op->key);
        if (!good)
            msg_error(j->path, "--set %s: %s", key.s, t.s);
        text_fini(&key);
    }
    text_fini(&t);
    return good;
}

static bool set_key(struct job *j, const struct op *op, struct gguf_error *err)
{
    struct value v = { 0, 0, 0, { NULL, 0, 0 } };
    struct text old = { NULL, 0, 0 };
    bool good = make_value(j, op, &v);
    const struct gguf_kv *was = gguf_meta_find(j->after, op->key);
    log_key(j, was ? "set" : "added", op->key);
    if (was) {
        /* formatted now: setting the value frees the old one */
        size_t n = j->log.n;
        text_addz(&j->log, " (was ");
        log_value(j, was);
        text_addz(&j->log, ")");
        text_add(&old, j->log.s + n, j->log.n - n);
        j->log.s[j->log.n = n] = '\0';
    }
    if (good && gguf_meta_set_encoded(j->after, op->key, v.type, v.bytes.s,
                                      v.bytes.n, err) != GGUF_OK) {
        msg_error(j->path, "%s", err->message);
        good = false;
    }
    if (good) {
        text_addz(&j->log, old.n ? " to " : " as ");
        log_value(j, gguf_meta_find(j->after, op->key));
        if (old.n)
            text_addz(&j->log, old.s);
    }
    text_fini(&old);
    value_fini(&v);
    return good;
}

static bool rename_key(struct job *j, const struct op *op,
                       struct gguf_error *err)
{
    log_key(j, "renamed", op->key);
    log_key(j, " to", op->arg);
    if (gguf_meta_rename(j->after, op->key, op->arg, err) == GGUF_OK)
        return true;
    return msg_error(j->path, "--rename: %s", err->message);
}

static void delete_one(struct job *j, const struct gguf_kv *kv,
                       const char *key)
{
    log_key(j, "deleted", key);
    text_addz(&j->log, " (was ");
    log_value(j, kv);
    text_addz(&j->log, ")\n");
    gguf_meta_remove(j->after, key);
}

/* Delete all keys that match the pattern. Returns false if no key matches. */
static bool delete_matching(struct job *j, const char *pattern)
{
    const size_t n = gguf_meta_n_kv(j->after);
    for (size_t i = 0; i < gguf_meta_n_kv(j->after);) {
        const struct gguf_kv *kv = gguf_meta_kv(j->after, i);
        struct text key = { NULL, 0, 0 };
        if (!text_glob(pattern, kv->key) ||
            text_is(kv->key, GGUF_EDIT_PADDING_KEY) ||
            memchr(kv->key.data, '\0', kv->key.size)) {
            i++;
            continue;
        }
        text_add(&key, kv->key.data, kv->key.size);
        delete_one(j, kv, key.s);
        text_fini(&key);
    }
    return gguf_meta_n_kv(j->after) < n;
}

static bool delete_key(struct job *j, const struct op *op)
{
    const struct gguf_kv *kv = gguf_meta_find(j->after, op->key);
    if (kv) {
        delete_one(j, kv, op->key);
        return true;
    }
    const bool pattern = strpbrk(op->key, "*?[") != NULL;
    if (pattern && delete_matching(j, op->key))
        return true;
    struct text key = escape_key(op->key);
    struct gguf_suggestion near;
    char hint[GGUF_SUGGESTION_SIZE];
    gguf_suggestion_init(&near, (struct gguf_str){ op->key, strlen(op->key) });
    for (size_t i = 0; i < gguf_meta_n_kv(j->after); i++)
        gguf_suggestion_try(&near, gguf_meta_kv(j->after, i)->key);
    if (pattern)
        msg_error(j->path, "--delete: no key matches '%s'", key.s);
    else
        msg_error(j->path, "--delete: key '%s' does not exist%s", key.s,
                  gguf_suggestion_text(&near, hint));
    text_fini(&key);
    return false;
}

static bool apply_op(struct job *j, const struct op *op)
{
    struct gguf_error err;
    if (!guard_check_key(j->path, op->key) ||
        (op->kind == RENAME && !guard_check_key(j->path, op->arg)))
        return false;
    gguf_error_clear(&err);
    bool good = op->kind == DELETE   ? delete_key(j, op)
                : op->kind == RENAME ? rename_key(j, op, &err)
                                     : set_key(j, op, &err);
    if (op->kind != DELETE)
        text_addz(&j->log, "\n");
    return good;
}

/* -------------------------------------------------------------- writing --- */

/* Will the byte order change? */
static bool changes_byte_order(const struct job *j)
{
    return j->o->order != GGUF_EDIT_KEEP_ORDER &&
           (j->o->order == GGUF_EDIT_BIG_ENDIAN) !=
               !!gguf_file_is_big_endian(j->file);
}

static bool has_changed(const struct job *j)
{
    size_t n = gguf_meta_n_kv(j->before);
    if (n != gguf_meta_n_kv(j->after) || changes_byte_order(j))
        return true;
    for (size_t i = 0; i < n; i++) {
        const struct gguf_kv *a = gguf_meta_kv(j->before, i);
        const struct gguf_kv *b = gguf_meta_kv(j->after, i);
        if (a->key.size != b->key.size ||
            memcmp(a->key.data, b->key.data, a->key.size) != 0 ||
            !gguf_kv_equal(a, b))
            return true;
    }
    return false;
}

/* Print the changes: to standard output in a dry run, otherwise as notes. */
static void print_changes(const struct job *j)
{
    if (j->o->dry_run) {
        fputs(j->log.s ? j->log.s : "", stdout);
        return;
    }
    for (char *p = j->log.s, *end; p && *p; p = end + 1) {
        end = strchr(p, '\n');
        msg_info(j->path, "%.*s", (int)(end - p), p);
    }
}

static void print_edit_method(const struct job *j, enum gguf_edit_result way)
{
    char size[24];
    const char *out = j->output ? j->output : j->path;
    table_size(size, gguf_file_size(j->file));
    if (way == GGUF_EDIT_COPIED)
        msg_info(out, "wrote a new file of about %s", size);
    else
        msg_info(out,
                 "wrote the metadata in place, without copying the %s of the "
                 "file",
                 size);
}

/* The file has these values already, but perhaps only in the journal of an
 * interrupted edit: finish that edit. */
static bool finish_interrupted_edit(const struct job *j)
{
    struct gguf_error err;
    bool done;
    gguf_error_clear(&err);
    if (gguf_edit_recover(j->path, &done, &err) != GGUF_OK)
        return msg_fail(j->path, &err);
    if (!j->o->quiet)
        msg_info(j->path, "has these values already: %s",
                 done ? "finished the edit that was interrupted"
                      : "nothing was written");
    return true;
}

static bool write_edit(struct job *j)
{
    const struct edit_options *o = j->o;
    struct gguf_edit_params p = GGUF_INIT(struct gguf_edit_params);
    struct gguf_error err;
    struct progress bar;
    enum gguf_edit_result way;
    if (!j->output && o->mode != GGUF_EDIT_COPY && !has_changed(j))
        return finish_interrupted_edit(j);
    progress_init(&bar, changes_byte_order(j) ? "converting" : "copying", NULL,
                  o->quiet);
    bar.defer_close = true;
    progress_catch_signals();
    p.mode = o->mode;
    p.byte_order = o->order;
    p.output = j->output;
    p.paths = j->noted;
    p.force = o->force;
    p.progress.fn = progress_report;
    p.progress.user = &bar;
    gguf_error_clear(&err);
    bool good = gguf_edit_apply(j->file, j->after, &p, &way, &err) == GGUF_OK;
    progress_clear(&bar);
    if (!good) {
        msg_fail(j->output ? j->output : j->path, &err);
    } else if (!o->quiet) {
        print_changes(j);
        print_edit_method(j, way);
    }
    return good;
}

static bool open_job(struct job *j)
{
    struct gguf_error err;
    struct gguf_file_params params = GGUF_INIT(struct gguf_file_params);
    uint64_t no = 0;
    gguf_error_clear(&err);
    params.limits = &j->o->limits;
    params.single_file = true;
    if (gguf_file_open(&j->file, j->path, &params, &err) != GGUF_OK ||
        gguf_meta_create(&j->before, NULL, &err) != GGUF_OK ||
        gguf_meta_create(&j->after, NULL, &err) != GGUF_OK ||
        gguf_meta_copy_file(j->before, j->file, &err) != GGUF_OK ||
        gguf_meta_copy_file(j->after, j->file, &err) != GGUF_OK)
        return msg_fail(j->path, &err);
    if (gguf_kv_get_uint(gguf_meta_find(j->before, "split.no"), &no, NULL) ==
            GGUF_OK &&
        no > 0 && j->n_ops && !j->o->quiet)
        msg_warn(j->path, "is not the first shard of a split model, which has "
                          "its metadata");
    if (changes_byte_order(j))
        text_addf(&j->log, "%s-endian becomes %s-endian\n",
                  j->o->order == GGUF_EDIT_BIG_ENDIAN ? "little" : "big",
                  j->o->order == GGUF_EDIT_BIG_ENDIAN ? "big" : "little");
    return true;
}

static bool apply_edits(const struct edit_options *o,
                        const struct edit_file *f)
{
    struct job j = { .o = o,
                     .path = f->path,
                     .output = f->output,
                     .n_ops = f->keys ? o->n_ops : 0,
                     .noted = paths_new() };
    for (size_t i = 0; i < o->n_ops; i++)
        if (o->op[i].kind == SET_FILE)
            paths_read(j.noted, o->op[i].arg, "--set-file");
    bool good = open_job(&j);
    for (size_t i = 0; good && i < j.n_ops; i++)
        good = apply_op(&j, &o->op[i]);
    struct guard g = { .name = f->path,
                       .file = j.file,
                       .before = j.before,
                       .after = j.after,
                       .force = o->force };
    good = good && (!j.n_ops || guard_check(&g));
    if (good && o->dry_run)
        print_changes(&j);
    else if (good)
        good = write_edit(&j);
    gguf_meta_destroy(j.before);
    gguf_meta_destroy(j.after);
    gguf_file_close(j.file);
    gguf_paths_destroy(j.noted);
    text_fini(&j.log);
    return good;
}

static bool recover_file(const struct edit_options *o, const char *path)
{
    struct gguf_error err;
    bool done;
    gguf_error_clear(&err);
    if (gguf_edit_recover(path, &done, &err) != GGUF_OK)
        return msg_fail(path, &err);
    if (!o->quiet)
        msg_info(path, "%s",
                 done ? "finished the edit that was interrupted"
                      : "no edit was interrupted");
    return true;
}

/* May the arguments be meant as IN OUT, as other tools take them? Then nothing
 * must be changed. */
static bool may_mean_output(const struct edit_options *o, char **arg, int n)
{
    return n == 2 && !o->output && !o->recover && gg_os_find(arg[1]) != 0 &&
           !strpbrk(arg[1], "*?[");
}

/* Refuse an output that is a file of the model that is read, or any shard of
 * its set. */
static void check_set(const struct edit_files *files,
                      const struct edit_options *o)
{
    struct gguf_file_params params = GGUF_INIT(struct gguf_file_params);
    struct gguf_paths *p = paths_new();
    params.limits = &o->limits;
    if (files->n)
        paths_read_model(p, files->file[0].path, &params, "input");
    for (size_t i = 0; i < files->n; i++)
        paths_write(p, files->file[i].output, "output");
    gguf_paths_destroy(p);
}

int main(int argc, char **argv)
{
    struct edit_options o = { .limits = GGUF_INIT(struct gguf_limits) };
    struct edit_files files;
    gg_os_program_arguments(&argc, &argv);
    const int n = edit_parse(&o, argc, argv);
    const bool found = edit_files_find(&files, &o, argv + 1, n);
    bool good = found;
    const bool all = found || !may_mean_output(&o, argv + 1, n);
    bool whole = true; /* all shards of a set so far were written */
    if (!all)
        msg_error(NULL, "nothing was changed: the second file may be meant as "
                        "the output, which --output names");
    if (o.output && all)
        check_set(&files, &o);
    for (size_t i = 0; i < files.n && all && !progress_stopped(); i++) {
        const struct edit_file *f = &files.file[i];
        const bool done = o.recover
                              ? recover_file(&o, f->path)
                              : (!o.output || whole) && apply_edits(&o, f);
        whole &= done;
        good &= done;
    }
    edit_files_fini(&files);
    edit_options_fini(&o);
    progress_raise();
    return msg_exit(good ? MSG_DONE : MSG_FAILED);
}
