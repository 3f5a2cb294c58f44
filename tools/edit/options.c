/* SPDX-License-Identifier: MIT */
/* options.c - the options of gguf-edit */
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
    { "--delete --remove-metadata", "KEY",
      "take KEY out, or all keys that are like it, if it is a pattern: *, ?",
      OPT_LIST, AT(changes), .value = DELETE },
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
    { "-o --output", "OUT",
      "write a new file, or a new set, if it is named as its first shard; FILE "
      "stays as it is",
      OPT_OUT, AT(output) },
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
    /* of gguf_new_metadata.py */
    ROW_REFUSED("--general-name", "NAME", "--set general.name=NAME does that"),
    ROW_REFUSED("--general-description", "TEXT",
                "--set general.description=TEXT does that"),
    ROW_REFUSED("--chat-template-file", "FILE",
                "--set-file tokenizer.chat_template=FILE does that"),
    ROW_REFUSED("--chat-template-config", "FILE",
                "--chat-template TEXT sets one that is taken out of FILE"),
    ROW_REFUSED("--pre-tokenizer", "NAME",
                "--set tokenizer.ggml.pre=NAME does that"),
    ROW_REFUSED("--special-token-by-id", "NAME",
                "--set tokenizer.ggml.NAME_token_id=ID does that"),
    ROW_REFUSED("-v --verbose", NULL, "each change is told; leave it out"),
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
        o->op[o->n_ops++] =
            (struct op){ SET, msg_must(strdup(argv[2])), argv[3] };
        return 1;
    }
    if (!some)
        opt_usage("nothing is said to be changed: --set KEY=VALUE, --delete "
                  "KEY and others do that, or FILE KEY VALUE");
    if (n > 1 && o->output &&
        !gguf_split_name_parse(o->output, NULL, NULL, NULL))
        opt_usage("%d files cannot become the one output '%s'", n, o->output);
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
