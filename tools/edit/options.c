/* SPDX-License-Identifier: MIT */
/* options.c - the command line of gguf-edit */
#include "config.h"
#include "tools/common/opt.h"
#include "tools/edit/edit.h"

#include <gguf/split.h>
#include <gguf/text.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) OPT_AT(struct edit_options, member)

static const struct opt_word byte_orders[] = {
    { "big", GGUF_EDIT_BIG_ENDIAN },
    { "little", GGUF_EDIT_LITTLE_ENDIAN },
    { NULL, 0 },
};

static const struct opt table[] = {
    { .help = "What to change, in the order given:" },
    { "--set", "KEY=[TYPE:]VALUE",
      "set KEY. TYPE is u8 ... i64, f32, f64, bool, str or arr[TYPE] "
      "(default: KEY's, or one that fits)",
      OPT_LIST, AT(changes), .value = SET },
    { "--set-file", "KEY=PATH",
      "set KEY to the bytes of the file PATH as a string; '-' is standard "
      "input",
      OPT_LIST, AT(changes), .value = SET_FILE },
    { "--rename", "OLD=NEW", "rename a key; its value and place stay",
      OPT_LIST, AT(changes), .value = RENAME },
    { "--delete --remove-metadata", "KEY",
      "delete KEY, or all keys that match it as a pattern (*, ?)", OPT_LIST,
      AT(changes), .value = DELETE },
    { "--chat-template", "TEXT", "set tokenizer.chat_template to TEXT",
      OPT_LIST, AT(changes), .value = TEMPLATE },
    { "--special-token", "NAME=TEXT",
      "set token id NAME (bos, eos, eot, eom, unk, pad, sep, cls, mask ...) "
      "to that of token TEXT",
      OPT_LIST, AT(changes), .value = SPECIAL },
    { "--to-endian", "ORDER",
      "convert metadata and tensor data to this byte order: big or little",
      OPT_WORD, AT(order), .words = byte_orders },
    { .help = "How to write it:" },
    { "-o --output", "OUT",
      "write a new file and leave FILE unchanged; for a split model OUT is "
      "named as its first shard",
      OPT_OUT, AT(output) },
    { "--recover", NULL,
      "finish an edit that was interrupted; change nothing else", OPT_FLAG,
      AT(recover) },
    { "-n --dry-run", NULL, "check and print the changes; write nothing",
      OPT_FLAG, AT(dry_run) },
    { "-f --force", NULL,
      "replace OUT, and make changes that other programs cannot read",
      OPT_FLAG, AT(force) },
    { "-q --quiet", NULL, "print no progress and no summary", OPT_FLAG,
      AT(quiet) },
    { .help = "Space and limits:", .rare = true },
    { "--in-place", NULL,
      "never copy the tensor data; fail if the metadata does not fit",
      OPT_FLAG, AT(mode), .value = GGUF_EDIT_IN_PLACE },
    { "--copy", NULL, "always write a whole file, without libgguf.padding",
      OPT_FLAG, AT(mode), .value = GGUF_EDIT_COPY },
    { "--limit", "NAME=N", OPT_LIMIT_HELP, OPT_LIMIT, AT(limits) },
    /* options of gguf_new_metadata.py */
    ROW_REFUSED("--general-name", "NAME", "--set general.name=NAME does that"),
    ROW_REFUSED("--general-description", "TEXT",
                "--set general.description=TEXT does that"),
    ROW_REFUSED("--chat-template-file", "FILE",
                "--set-file tokenizer.chat_template=FILE does that"),
    ROW_REFUSED("--chat-template-config", "FILE",
                "--chat-template TEXT sets the template"),
    ROW_REFUSED("--pre-tokenizer", "NAME",
                "--set tokenizer.ggml.pre=NAME does that"),
    ROW_REFUSED("--special-token-by-id", "NAME",
                "--set tokenizer.ggml.NAME_token_id=ID does that"),
    ROW_REFUSED("-v --verbose", NULL, "each change is printed; leave it out"),
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
    "Change the metadata of a GGUF file. A large file is edited in place if "
    "the metadata fits into the space before the tensor data. After an "
    "interruption the file is the old one or the new one.",
    table,
    rules,
    "FILE...",
    NULL
};

/* Replace op->key, the name of a special token, by its metadata key. */
static void special_key(struct op *op)
{
    /* Names of tokens, and the names in keys if these differ. */
    static const char *const names[][2] = {
        { "bos", NULL },      { "eos", NULL },      { "eot", NULL },
        { "eom", NULL },      { "cls", NULL },      { "mask", NULL },
        { "unk", "unknown" }, { "pad", "padding" }, { "sep", "seperator" },
        { "fim_pre", NULL },  { "fim_suf", NULL },  { "fim_mid", NULL },
        { "fim_pad", NULL },  { "fim_rep", NULL },  { "fim_sep", NULL },
    };
    struct gguf_suggestion near;
    struct text key = { NULL, 0, 0 };
    char hint[GGUF_SUGGESTION_SIZE];
    gguf_suggestion_init(&near, (struct gguf_str){ op->key, strlen(op->key) });
    for (size_t i = 0; i < sizeof names / sizeof *names && !key.n; i++) {
        const char *full = names[i][1] ? names[i][1] : names[i][0];
        if (!strcmp(names[i][0], op->key) || !strcmp(full, op->key))
            text_addf(&key, "tokenizer.ggml.%s_token_id", full);
        gguf_suggestion_try(&near, (struct gguf_str){ full, strlen(full) });
    }
    if (!key.n)
        opt_usage("--special-token: '%s' is not the name of a special token%s",
                  op->key, gguf_suggestion_text(&near, hint));
    /* op->arg is moved to the new key's memory */
    const size_t n = key.n + 1;
    text_addz(&key, " ");
    text_addz(&key, op->arg);
    key.s[n - 1] = '\0';
    free(op->key);
    op->key = key.s;
    op->arg = key.s + n;
}

/* Parse the argument of change i. */
static struct op make_op(const struct opt_list *changes, size_t i)
{
    static const char *const forms[][2] = {
        [SET] = { "--set", "KEY=[TYPE:]VALUE" },
        [SET_FILE] = { "--set-file", "KEY=PATH" },
        [RENAME] = { "--rename", "OLD=NEW" },
        [SPECIAL] = { "--special-token", "NAME=TEXT, or two words" },
    };
    struct op op = { (enum op_kind)changes->value[i], NULL, NULL };
    op.key = msg_copy(op.kind == TEMPLATE ? "tokenizer.chat_template"
                                          : changes->arg[i]);
    if (op.kind == TEMPLATE)
        op.arg = changes->arg[i];
    if (op.kind == DELETE || op.kind == TEMPLATE)
        return op;
    char *eq = strchr(op.key, '=');
    if (!eq || eq == op.key)
        opt_usage("%s: '%s' is not %s", forms[op.kind][0], op.key,
                  forms[op.kind][1]);
    *eq = '\0';
    op.arg = eq + 1;
    if (op.kind == SPECIAL)
        special_key(&op);
    return op;
}

/* Join "--special-token NAME TEXT", the form of llama.cpp's scripts, to
 * "--special-token NAME=TEXT". Returns the new number of words. *joined is
 * their memory, for free(). */
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

int edit_parse(struct edit_options *o, int argc, char **argv)
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
        o->op[o->n_ops++] = (struct op){ SET, msg_copy(argv[2]), argv[3] };
        return 1;
    }
    if (!some)
        opt_usage("no change is given: add KEY VALUE, or an option such as "
                  "--set or --delete");
    if (n > 1 && o->output &&
        !gguf_split_name_parse(o->output, NULL, NULL, NULL))
        opt_usage(
            "--output: '%s' is one file, but %d are edited: name one, or "
            "edit them in place",
            o->output, n);
    return n;
}

void edit_options_fini(struct edit_options *o)
{
    for (size_t i = 0; i < o->n_ops; i++)
        free(o->op[i].key);
    free(o->op);
    free(o->joined);
    opt_list_fini(&o->changes);
}
