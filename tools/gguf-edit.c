/* gguf-edit - other metadata for a GGUF file */
#include "config.h"
#include "tools/common/guard.h"
#include "tools/common/opt.h"
#include "tools/common/paths.h"
#include "tools/common/progress.h"
#include "tools/common/table.h"
#include "tools/gguf-edit.h"

#include <gguf/edit.h>
#include <gguf/text.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A change, in the order of the command line. */
enum what { SET, SET_FILE, RENAME, DELETE, TEMPLATE, SPECIAL };
struct op {
    enum what what;
    char *key;       /* from malloc; arg is part of it */
    const char *arg; /* after the '='; NULL for DELETE */
};

struct options {
    struct opt_list changes; /* with enum what */
    struct op *op;           /* what they say, n_ops of them */
    size_t n_ops;
    char *joined; /* words of the command line, with what they begin with */
    const char *output;
    enum gguf_edit_mode mode;
    enum gguf_edit_order order;
    struct gguf_limits limits;
    bool dry_run, force, quiet, recover;
};

#define AT(member) OPT_AT(struct options, member)

static const struct opt_word byte_orders[] = {
    { "big", GGUF_EDIT_BIG_ENDIAN },
    { "little", GGUF_EDIT_LITTLE_ENDIAN },
    { NULL, 0 },
};

static const struct opt table[] = {
    { .help = "What to change, in the order given:" },
    { "--set", "KEY=[TYPE:]VALUE",
      "give KEY a value. TYPE is u8, i8, u16, i16, u32, i32, u64, i64, f32, "
      "f64, bool, str, or arr[TYPE] with a VALUE like 1,2,3 or "
      "[\"a\", \"b\"], or arr[arr[TYPE]] with [[1,2],[3]] and so on; without "
      "it, the type that KEY has, or else one that fits",
      OPT_LIST, AT(changes), .value = SET },
    { "--set-file", "KEY=PATH",
      "give KEY the bytes of the file PATH as a string; '-' is standard "
      "input",
      OPT_LIST, AT(changes), .value = SET_FILE },
    { "--rename", "OLD=NEW", "give a value another key", OPT_LIST, AT(changes),
      .value = RENAME },
    { "--delete --remove-metadata", "KEY", "take KEY out", OPT_LIST,
      AT(changes), .value = DELETE },
    { "--chat-template", "TEXT",
      "give tokenizer.chat_template this text; --set-file has one from a file",
      OPT_LIST, AT(changes), .value = TEMPLATE },
    { "--special-token", "NAME=TEXT",
      "give tokenizer.ggml.NAME_token_id the number of the token TEXT; NAME is "
      "bos, eos, eot, eom, unk, pad, sep, cls, mask ... NAME TEXT will do, too",
      OPT_LIST, AT(changes), .value = SPECIAL },
    { "--to-endian", "ORDER",
      "write metadata and tensor data in this byte order: big or little",
      OPT_WORD, AT(order), .words = byte_orders },
    { .help = "How to write it:" },
    { "-o --output", "OUT", "write a new file; FILE stays as it is", OPT_OUT,
      AT(output) },
    { "--in-place", NULL,
      "never copy the tensor data: fail if the metadata does not fit",
      OPT_FLAG, AT(mode), .value = GGUF_EDIT_IN_PLACE },
    { "--copy", NULL, "always write a whole file, without room to spare",
      OPT_FLAG, AT(mode), .value = GGUF_EDIT_COPY },
    { "--recover", NULL,
      "finish an edit that was interrupted; change nothing else", OPT_FLAG,
      AT(recover) },
    { .help = "In general:" },
    { "-n --dry-run", NULL, "print what would change; write nothing", OPT_FLAG,
      AT(dry_run) },
    { "-f --force", NULL,
      "also make changes that others cannot read, and replace OUT", OPT_FLAG,
      AT(force) },
    { "--limit", "NAME=N", OPT_LIMIT_HELP, OPT_LIMIT, AT(limits) },
    { "-q --quiet", NULL, "no progress, no summary", OPT_FLAG, AT(quiet) },
    { .names = NULL },
};

#define CHANGES                                                               \
    "--set --set-file --rename --delete --chat-template --special-token "     \
    "--to-endian "

static const struct opt_rule rules[] = {
    { "--in-place", OPT_EXCLUDES, "--copy --output --to-endian" },
    { "--recover", OPT_EXCLUDES,
      CHANGES "--output --in-place --copy --dry-run" },
    { .a = NULL },
};

static const struct opt_tool tool = {
    "gguf-edit",
    "[OPTION]... FILE...\n[OPTION]... FILE KEY VALUE\n--recover FILE...",
    "Change the metadata of a GGUF file. Tensor data of a large file stays "
    "where it is if the metadata fits into the space before it. Whenever the "
    "program is interrupted, what is left is the old file or the new one.",
    table,
    rules,
    "FILE...",
    NULL
};

/* What is being done to one file. */
struct job {
    const struct options *o;
    const char *path;
    struct gguf_file *file;
    struct gguf_meta *before, *after;
    struct text log;          /* a line for each change */
    struct gguf_paths *noted; /* what is read besides */
};

/* The key of the special token that op->key names; arg stays what it is. */
static void special_key(struct op *op)
{
    /* Short names, and what stands in keys where that is another. */
    static const char *const names[][2] = {
        { "bos", NULL },      { "eos", NULL },      { "eot", NULL },
        { "eom", NULL },      { "cls", NULL },      { "mask", NULL },
        { "unk", "unknown" }, { "pad", "padding" }, { "sep", "seperator" },
        { "fim_pre", NULL },  { "fim_suf", NULL },  { "fim_mid", NULL },
        { "fim_pad", NULL },  { "fim_rep", NULL },  { "fim_sep", NULL },
    };
    struct gguf_near near;
    struct text key = { NULL, 0, 0 };
    char hint[GGUF_NEAR_HINT];
    gguf_near_init(&near, (struct gguf_str){ op->key, strlen(op->key) });
    for (size_t i = 0; i < sizeof names / sizeof *names && !key.n; i++) {
        const char *full = names[i][1] ? names[i][1] : names[i][0];
        if (!strcmp(names[i][0], op->key) || !strcmp(full, op->key))
            text_addf(&key, "tokenizer.ggml.%s_token_id", full);
        gguf_near_try(&near, (struct gguf_str){ full, strlen(full) });
    }
    if (!key.n)
        opt_usage("--special-token: '%s' is not the name of a special token%s",
                  op->key, gguf_near_hint(&near, hint));
    /* the argument lies in the key's memory */
    const size_t n = key.n + 1;
    text_addz(&key, " ");
    text_addz(&key, op->arg);
    key.s[n - 1] = '\0';
    free(op->key);
    op->key = key.s;
    op->arg = key.s + n;
}

/* Change i: its argument taken apart. */
static struct op make_op(const struct opt_list *changes, size_t i)
{
    static const char *const forms[][2] = {
        [SET] = { "--set", "KEY=[TYPE:]VALUE" },
        [SET_FILE] = { "--set-file", "KEY=PATH" },
        [RENAME] = { "--rename", "OLD=NEW" },
        [SPECIAL] = { "--special-token", "NAME=TEXT, or two words" },
    };
    struct op op = { (enum what)changes->value[i], NULL, NULL };
    op.key = msg_must(strdup(op.what == TEMPLATE ? "tokenizer.chat_template"
                                                 : changes->arg[i]));
    if (op.what == TEMPLATE)
        op.arg = changes->arg[i];
    if (op.what == DELETE || op.what == TEMPLATE)
        return op;
    char *eq = strchr(op.key, '=');
    if (!eq || eq == op.key)
        opt_usage("%s: '%s' is not %s", forms[op.what][0], op.key,
                  forms[op.what][1]);
    *eq = '\0';
    op.arg = eq + 1;
    if (op.what == SPECIAL)
        special_key(&op);
    return op;
}

/* "--special-token NAME TEXT", as llama.cpp's scripts have it, becomes
 * "--special-token NAME=TEXT". Returns how many words there are then; *joined
 * is theirs, for free(). */
static int join_special(int argc, char **argv, char **joined)
{
    size_t room = 1;
    int n = 0;
    for (int i = 0; i < argc; i++)
        room += strlen(argv[i]) + 1;
    char *at = *joined = msg_must(malloc(room));
    bool end = false; /* after "--" */
    for (int i = 0; i < argc; i++) {
        const bool special = n && !strcmp(argv[n - 1], "--special-token");
        end = end || !strcmp(argv[i], "--");
        argv[n] = argv[i];
        if (!end && special && i + 1 < argc && !strchr(argv[i], '=')) {
            const int size = sprintf(at, "%s=%s", argv[i], argv[i + 1]) + 1;
            argv[n] = at;
            at += size;
            i++;
        }
        n++;
    }
    argv[n] = NULL;
    return n;
}

/* Returns how many files there are: argv[1] and so on. */
static int parse(struct options *o, int argc, char **argv)
{
    argc = join_special(argc, argv, &o->joined);
    const int n = opt_parse(&tool, argc, argv, o);
    o->n_ops = o->changes.n;
    o->op = msg_must(calloc(o->n_ops + 1, sizeof *o->op));
    for (size_t i = 0; i < o->n_ops; i++)
        o->op[i] = make_op(&o->changes, i);
    const bool some = o->n_ops || o->order != GGUF_EDIT_KEEP_ORDER ||
                      o->output || o->mode == GGUF_EDIT_COPY || o->recover;
    if (!o->n_ops && !o->recover && n == 3 &&
        o->order == GGUF_EDIT_KEEP_ORDER) {
        o->op[o->n_ops++] =
            (struct op){ SET, msg_must(strdup(argv[2])), argv[3] };
        return 1;
    }
    if (!some)
        opt_usage("nothing is said to be changed: --set KEY=VALUE, --delete "
                  "KEY and others do that, or FILE KEY VALUE");
    if (n > 1 && o->output)
        opt_usage("%d files cannot become the one output '%s'", n, o->output);
    return n;
}

/* ----------------------------------------------------------- operations --- */

/* To be given to text_fini. */
static struct text escaped(const char *key)
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

/* The number of the token whose text is op's. */
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
        for (gguf_kv_iter_init(&it, kv); gguf_kv_next(&it, &e) && !found; i++)
            found = gguf_kv_get_str(&e, &s, NULL) == GGUF_OK &&
                    s.size == strlen(op->arg) &&
                    !memcmp(s.data, op->arg, s.size);
    if (found) {
        struct text why = { NULL, 0, 0 };
        snprintf(number, sizeof number, "u32:%" PRIu64, i - 1);
        found = value_parse(v, op->key, number, NULL, &why);
        text_fini(&why);
    } else {
        struct text text = escaped(op->arg);
        msg_error(j->path, "--special-token: no token of %s is '%s'", tokens,
                  text.s);
        text_fini(&text);
    }
    return found;
}

/* The value that op gives, into v. */
static bool make_value(struct job *j, const struct op *op, struct value *v)
{
    struct text t = { NULL, 0, 0 };
    bool good;
    if (op->what == SET_FILE) {
        good = text_read(&t, op->arg);
        if (good)
            value_set_str(v, (struct gguf_str){ t.s, t.n });
    } else if (op->what == TEMPLATE) {
        value_set_str(v, (struct gguf_str){ op->arg, strlen(op->arg) });
        good = true;
    } else if (op->what == SPECIAL) {
        good = make_special(j, op, v);
    } else {
        good = value_parse(v, op->key, op->arg,
                           gguf_meta_find(j->after, op->key), &t);
        struct text key = escaped(op->key);
        if (!good)
            msg_error(j->path, "--set %s: %s", key.s, t.s);
        text_fini(&key);
    }
    text_fini(&t);
    return good;
}

static bool set(struct job *j, const struct op *op, struct gguf_error *err)
{
    struct value v = { 0, 0, 0, { NULL, 0, 0 } };
    struct text old = { NULL, 0, 0 };
    bool good = make_value(j, op, &v);
    const struct gguf_kv *was = gguf_meta_find(j->after, op->key);
    log_key(j, was ? "set" : "added", op->key);
    if (was) {
        /* Freed after the new value has replaced it. */
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
    msg_error(j->path, "--rename: %s", err->message);
    return false;
}

static bool delete_key(struct job *j, const struct op *op)
{
    const struct gguf_kv *kv = gguf_meta_find(j->after, op->key);
    if (!kv) {
        struct text key = escaped(op->key);
        struct gguf_near near;
        char hint[GGUF_NEAR_HINT];
        gguf_near_init(&near, (struct gguf_str){ op->key, strlen(op->key) });
        for (size_t i = 0; i < gguf_meta_n_kv(j->after); i++)
            gguf_near_try(&near, gguf_meta_kv(j->after, i)->key);
        msg_error(j->path, "--delete: there is no key '%s'%s", key.s,
                  gguf_near_hint(&near, hint));
        text_fini(&key);
        return false;
    }
    log_key(j, "deleted", op->key);
    text_addz(&j->log, " (was ");
    log_value(j, kv);
    text_addz(&j->log, ")");
    gguf_meta_remove(j->after, op->key);
    return true;
}

static bool run_op(struct job *j, const struct op *op)
{
    struct gguf_error err;
    if (!guard_key(j->path, op->key) ||
        (op->what == RENAME && !guard_key(j->path, op->arg)))
        return false;
    gguf_error_clear(&err);
    bool good = op->what == DELETE   ? delete_key(j, op)
                : op->what == RENAME ? rename_key(j, op, &err)
                                     : set(j, op, &err);
    text_addz(&j->log, "\n");
    return good;
}

/* -------------------------------------------------------------- writing --- */

/* Is the file of another byte order than it is to be? */
static bool turns(const struct job *j)
{
    return j->o->order != GGUF_EDIT_KEEP_ORDER &&
           (j->o->order == GGUF_EDIT_BIG_ENDIAN) !=
               !!gguf_file_is_big_endian(j->file);
}

static bool changed(const struct job *j)
{
    size_t n = gguf_meta_n_kv(j->before);
    if (n != gguf_meta_n_kv(j->after) || turns(j))
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

/* The lines of the log: to standard output if they are all that is wanted. */
static void say_changes(const struct job *j)
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

static void say_way(const struct job *j, enum gguf_edit_way way)
{
    char size[24];
    const char *out = j->o->output ? j->o->output : j->path;
    table_size(size, gguf_file_size(j->file));
    if (way == GGUF_EDIT_COPIED)
        msg_info(out, "wrote a new file of about %s", size);
    else
        msg_info(out,
                 "wrote the metadata in place; %s of the file stayed "
                 "where they were",
                 size);
}

/* The file has these values already, perhaps only by the journal of an
 * interrupted edit: finish that edit. */
static bool finish_old(const struct job *j)
{
    struct gguf_error err;
    int done;
    gguf_error_clear(&err);
    if (gguf_edit_recover(j->path, &done, &err) != GGUF_OK) {
        msg_fail(j->path, &err);
        return false;
    }
    if (!j->o->quiet)
        msg_info(j->path, "has these values already: %s",
                 done ? "finished the edit that was interrupted"
                      : "nothing was written");
    return true;
}

static bool write_it(struct job *j)
{
    const struct options *o = j->o;
    struct gguf_edit_params p = GGUF_EDIT_PARAMS_INIT;
    struct gguf_error err;
    struct progress bar;
    enum gguf_edit_way way;
    if (!o->output && o->mode != GGUF_EDIT_COPY && !changed(j))
        return finish_old(j);
    progress_init(&bar, turns(j) ? "converting" : "copying", NULL, o->quiet);
    bar.linger = true;
    progress_catch_signals();
    p.mode = o->mode;
    p.order = o->order;
    p.output = o->output;
    p.paths = j->noted;
    p.force = o->force;
    p.progress = progress_report;
    p.progress_user = &bar;
    gguf_error_clear(&err);
    bool good = gguf_edit_apply(j->file, j->after, &p, &way, &err) == GGUF_OK;
    progress_clear(&bar);
    if (!good) {
        msg_fail(o->output ? o->output : j->path, &err);
    } else if (!o->quiet) {
        say_changes(j);
        say_way(j, way);
    }
    return good;
}

static bool open_job(struct job *j)
{
    struct gguf_error err;
    struct gguf_file_params params = GGUF_FILE_PARAMS_INIT;
    uint64_t no = 0;
    gguf_error_clear(&err);
    params.limits = &j->o->limits;
    if (gguf_file_open(&j->file, j->path, &params, &err) != GGUF_OK ||
        gguf_meta_create(&j->before, NULL, &err) != GGUF_OK ||
        gguf_meta_create(&j->after, NULL, &err) != GGUF_OK ||
        gguf_meta_copy_file(j->before, j->file, &err) != GGUF_OK ||
        gguf_meta_copy_file(j->after, j->file, &err) != GGUF_OK) {
        msg_fail(j->path, &err);
        return false;
    }
    if (gguf_kv_get_uint(gguf_meta_find(j->before, "split.no"), &no, NULL) ==
            GGUF_OK &&
        no > 0 && j->o->n_ops && !j->o->quiet)
        msg_warn(j->path, "is a later shard of a split model, whose metadata "
                          "is in the first");
    if (turns(j))
        text_addf(&j->log, "%s-endian becomes %s-endian\n",
                  j->o->order == GGUF_EDIT_BIG_ENDIAN ? "little" : "big",
                  j->o->order == GGUF_EDIT_BIG_ENDIAN ? "big" : "little");
    if (turns(j) && !j->o->quiet &&
        gguf_kv_get_uint(gguf_meta_find(j->before, "split.count"), &no,
                         NULL) == GGUF_OK &&
        no > 1)
        msg_warn(j->path,
                 "is one of %" PRIu64 " shards: the others need the "
                 "same byte order",
                 no);
    return true;
}

static bool edit(const struct options *o, const char *path)
{
    struct job j = { .o = o, .path = path, .noted = paths_new() };
    for (size_t i = 0; i < o->n_ops; i++)
        if (o->op[i].what == SET_FILE)
            paths_read(j.noted, o->op[i].arg, "--set-file");
    bool good = open_job(&j);
    for (size_t i = 0; good && i < o->n_ops; i++)
        good = run_op(&j, &o->op[i]);
    struct guard g = { .name = path,
                       .file = j.file,
                       .before = j.before,
                       .after = j.after,
                       .force = o->force };
    good = good && (!o->n_ops || guard_check(&g));
    if (good && o->dry_run)
        say_changes(&j);
    else if (good)
        good = write_it(&j);
    gguf_meta_destroy(j.before);
    gguf_meta_destroy(j.after);
    gguf_file_close(j.file);
    gguf_paths_destroy(j.noted);
    text_fini(&j.log);
    return good;
}

static bool recover(const struct options *o, const char *path)
{
    struct gguf_error err;
    int done;
    gguf_error_clear(&err);
    if (gguf_edit_recover(path, &done, &err) != GGUF_OK) {
        msg_fail(path, &err);
        return false;
    }
    if (!o->quiet)
        msg_info(path, "%s",
                 done ? "finished the edit that was interrupted"
                      : "no edit was interrupted");
    return true;
}

int main(int argc, char **argv)
{
    struct options o = { .limits = GGUF_LIMITS_INIT };
    const int n = parse(&o, argc, argv);
    bool good = true;
    for (int i = 1; i <= n && !progress_stopped(); i++)
        good &= o.recover ? recover(&o, argv[i]) : edit(&o, argv[i]);
    for (size_t i = 0; i < o.n_ops; i++)
        free(o.op[i].key);
    free(o.op);
    free(o.joined);
    opt_list_fini(&o.changes);
    progress_raise();
    return msg_exit(good ? MSG_DONE : MSG_FAILED);
}
