/* gguf-info - show what is in GGUF files */
#include "config.h"
#include "tools/gguf-info.h"
#include "tools/common/opt.h"

#include <stdio.h>
#include <string.h>

enum {
    OPT_ALONE = OPT_FIRST_LONG,
    OPT_ARRAYS,
    OPT_JSON,
    OPT_KEY,
    OPT_LIMIT,
    OPT_MARKDOWN,
    OPT_METADATA,
    OPT_SORT,
    OPT_STRINGS,
    OPT_SUMMARY,
    OPT_TENSORS,
    OPT_TYPES
};

static const struct opt table[] = {
    { 0, NULL, NULL, "What is shown (without these, all of it):" },
    { OPT_SUMMARY, "--summary", NULL,
      "architecture, shape, parameters, sizes" },
    { OPT_METADATA, "--metadata", NULL, "keys and their values" },
    { OPT_TENSORS, "--tensors", "[GLOB]",
      "names, shapes and types of the tensors, of those that match GLOB" },
    { OPT_TYPES, "--types", NULL, "totals by tensor type" },
    { OPT_KEY, "--key", "NAME",
      "print the value of NAME and nothing else: a string as its bytes, an "
      "array one element a line" },
    { 0, NULL, NULL, "How:" },
    { OPT_JSON, "-j --json", NULL, "one JSON document" },
    { OPT_MARKDOWN, "--markdown", NULL, "Markdown, for model cards" },
    { OPT_ARRAYS, "--arrays", "N",
      "show N elements of each array, or all of them (N is 'all'); 6 without "
      "this option, and all with --json and --key" },
    { OPT_STRINGS, "--strings", "N",
      "show N bytes of each string, or all of them (N is 'all'); 120 without "
      "this option, and all with --json and --key" },
    { OPT_SORT, "--sort", "WORD",
      "list tensors by 'name', 'size', 'type', 'elements' or 'offset' "
      "instead of by their place in the file" },
    { OPT_ALONE, "--alone", NULL,
      "show one shard of a split model as if it were a file of its own" },
    { OPT_LIMIT, "--limit", "NAME=N",
      "read files that break a limit honestly; NAME is one of kv, tensors, "
      "key-size, name-size, str-size, array-items, depth, dims" },
    { 'q', "-q --quiet", NULL, "no warnings" },
    { 0, NULL, NULL, NULL },
};

static const struct opt_tool tool = {
    "gguf-info", "[OPTION]... FILE...",
    "Show what is in GGUF files: the model, its metadata, its tensors. FILE "
    "may be a shard, the folder or the prefix of a split model, which is then "
    "shown as one.",
    table, NULL
};

static uint64_t amount(const struct opt_parser *p)
{
    return strcmp(p->arg, "all") ? opt_u64(p, 0, UINT64_MAX - 1) : UINT64_MAX;
}

static void set_limit(const struct opt_parser *p, struct gguf_limits *limits)
{
    char name[64];
    const char *eq = strchr(p->arg, '=');
    uint64_t n;
    struct gguf_error err;
    if (!eq || (size_t)(eq - p->arg) >= sizeof name ||
        !opt_parse_u64(eq + 1, &n))
        opt_usage("--limit: '%s' is not NAME=N", p->arg);
    memcpy(name, p->arg, (size_t)(eq - p->arg));
    name[eq - p->arg] = '\0';
    if (gguf_limits_set(limits, name, n, &err) != GGUF_OK)
        opt_usage("--limit: %s", err.message);
}

static void check_sort(const char *word)
{
    for (size_t i = 0; info_sorts[i]; i++)
        if (!strcmp(word, info_sorts[i]))
            return;
    opt_usage("--sort: there is no order '%s'", word);
}

static void parse(struct opt_parser *p, struct info_options *o,
                  struct gguf_limits *limits)
{
    for (int id; (id = opt_next(p)) != OPT_END;)
        switch (id) {
        case OPT_SUMMARY:
            o->show |= SHOW_SUMMARY;
            break;
        case OPT_METADATA:
            o->show |= SHOW_METADATA;
            break;
        case OPT_TYPES:
            o->show |= SHOW_TYPES;
            break;
        case OPT_TENSORS:
            o->show |= SHOW_TENSORS;
            o->glob = p->arg;
            break;
        case OPT_KEY:
            o->key = p->arg;
            break;
        case OPT_JSON:
            o->json = true;
            break;
        case OPT_MARKDOWN:
            o->markdown = true;
            break;
        case OPT_ARRAYS:
            o->limits.elems = amount(p);
            o->limits_given = true;
            break;
        case OPT_STRINGS:
            o->limits.bytes = amount(p);
            break;
        case OPT_SORT:
            check_sort(p->arg);
            o->sort = p->arg;
            break;
        case OPT_ALONE:
            o->alone = true;
            break;
        case OPT_LIMIT:
            set_limit(p, limits);
            break;
        case 'q':
            o->quiet = true;
            break;
        }
    if (o->json && o->markdown)
        opt_usage("--json and --markdown exclude each other");
    if (!o->show)
        o->show = SHOW_ALL;
}

/* One operand; false: it failed. */
static bool show(const char *path, const struct info_options *o,
                 const struct gguf_file_params *params, struct json *j)
{
    struct load l;
    struct info info;
    bool good = true;
    if (!load_open(&l, path, !o->alone, params)) {
        load_close(&l);
        return false;
    }
    if (o->key) {
        good = info_key(&l, o);
    } else {
        info_init(&info, &l, o);
        if (!o->quiet)
            info_warn(&info);
        if (o->json)
            info_json(j, &info, o);
        else
            info_text(&info, o);
        info_fini(&info);
    }
    load_close(&l);
    return good;
}

int main(int argc, char **argv)
{
    struct gguf_limits limits = GGUF_LIMITS_INIT;
    struct gguf_file_params params = GGUF_FILE_PARAMS_INIT;
    struct info_options o = { .limits = { 6, 120 } };
    struct opt_parser p;
    opt_begin(&p, &tool, argc, argv);
    parse(&p, &o, &limits);
    params.limits = &limits;
    int n = p.argc - p.i, status = MSG_DONE;
    if (!n)
        opt_usage("which file?");
    load_raise_limits();
    /* One operand is one object, more are an array of them. */
    struct json j;
    json_begin(&j, stdout);
    bool array = o.json && !o.key && n > 1;
    if (array)
        json_open(&j, NULL, '[');
    bool some = false;
    for (int i = 0; i < n; i++) {
        if (some && !o.json && !o.key)
            putchar('\n');
        if (show(argv[p.i + i], &o, &params, &j))
            some = true;
        else
            status = MSG_FAILED;
    }
    if (array)
        json_close(&j);
    if (o.json && !o.key && (array || some))
        json_end(&j);
    return msg_exit(status);
}
