/* gguf-info - show what is in GGUF files */
#include "config.h"
#include "tools/gguf-info.h"
#include "tools/common/opt_old.h"
#include "tools/common/progress.h"
#include "tools/common/style.h"

#include <gguf/digest.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPT_ALONE = OPT_FIRST_LONG,
    OPT_ARRAYS,
    OPT_CHECK,
    OPT_COLOR,
    OPT_DIFF,
    OPT_HASH,
    OPT_JSON,
    OPT_KEY,
    OPT_LIMIT,
    OPT_MANIFEST,
    OPT_MARKDOWN,
    OPT_MEMORY,
    OPT_METADATA,
    OPT_SORT,
    OPT_STATS,
    OPT_STRINGS,
    OPT_SUMMARY,
    OPT_TENSORS,
    OPT_TYPES,
    OPT_VALUES
};

static const struct opt table[] = {
    { 0, NULL, NULL, "What is shown (without these, all of it):" },
    { OPT_SUMMARY, "--summary", NULL,
      "architecture, shape, parameters, sizes, also by tensor type" },
    { OPT_METADATA, "--metadata", NULL, "keys and their values" },
    { OPT_TENSORS, "--tensors", "[GLOB]",
      "names, shapes and types of the tensors, of those that match GLOB" },
    { OPT_TYPES, "--types", NULL, "totals by tensor type" },
    { OPT_MEMORY, "--memory", NULL,
      "what weights, key/value cache and computation take in memory" },
    { 'c', "-c --ctx-size", "N",
      "tokens of the cache for --memory; those of the model by default" },
    { OPT_KEY, "--key", "NAME",
      "print the value of NAME and nothing else: a string as its bytes, an "
      "array one element a line" },
    { 0, NULL, NULL, "What reads tensor data:" },
    { OPT_CHECK, "--check", "[WHAT]",
      "look for whatever is odd or wrong, down to every number; WHAT is 'all' "
      "or 'header', which reads no tensor data" },
    { OPT_STATS, "--stats", "[GLOB]",
      "extremes, mean, rms, kurtosis, zeros, what is not finite, and a "
      "histogram, of the tensors that match GLOB" },
    { OPT_HASH, "--hash", "[ALGO]",
      "print checksums of the tensors and of the model, as a manifest; ALGO is "
      "'xxh64' or 'xxh3-128'" },
    { OPT_MANIFEST, "--manifest", "FILE",
      "compare with the checksums in FILE, which llama-gguf-hash or --hash "
      "wrote" },
    { OPT_VALUES, "--values", "NAME",
      "print the numbers of tensor NAME and nothing else, a row on each line" },
    { OPT_DIFF, "--diff", NULL,
      "compare two models: keys, shapes, types, and the numbers after "
      "decoding" },
    { 't', "-t --threads", "N", "use N threads; all processors by default" },
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
    { OPT_COLOR, "--color", "WHEN",
      "'auto' (colours on a terminal only), 'always' or 'never'" },
    { OPT_LIMIT, "--limit", "NAME=N", OPT_LIMIT_HELP },
    { 'q', "-q --quiet", NULL, "no warnings" },
    { 0, NULL, NULL, NULL },
};

static const struct opt_tool tool = {
    "gguf-info", "[OPTION]... FILE...\n--diff [OPTION]... FILE-A FILE-B",
    "Show what is in GGUF files: the model, its metadata, its tensors. FILE "
    "may be a shard, the folder or the prefix of a split model, which is then "
    "shown as one.",
    table, NULL
};

static uint64_t amount(const struct opt_parser *p)
{
    return strcmp(p->arg, "all") ? opt_u64(p, 0, UINT64_MAX - 1) : UINT64_MAX;
}

static void check_sort(const char *word)
{
    for (size_t i = 0; info_sorts[i]; i++)
        if (!strcmp(word, info_sorts[i]))
            return;
    opt_usage("--sort: there is no order '%s'", word);
}

/* The argument of --check. */
static bool header_only(const char *what)
{
    if (what && strcmp(what, "all") && strcmp(what, "header"))
        opt_usage("--check: there is no '%s'", what);
    return what && !strcmp(what, "header");
}

struct settings {
    struct info_options o;
    struct gguf_limits limits;
    bool diff;
    unsigned n_threads;
};

/* Options that add a part to what is shown. */
static const struct {
    int id;
    unsigned show;
} parts[] = {
    { OPT_SUMMARY, SHOW_SUMMARY }, { OPT_METADATA, SHOW_METADATA },
    { OPT_TENSORS, SHOW_TENSORS }, { OPT_TYPES, SHOW_TYPES },
    { OPT_MEMORY, SHOW_MEMORY },   { OPT_STATS, SHOW_STATS },
    { OPT_HASH, SHOW_HASH },       { OPT_CHECK, SHOW_CHECK },
};

/* What an option says beside which part is shown. */
static void option(const struct opt_parser *p, int id, struct settings *s)
{
    struct info_options *o = &s->o;
    switch (id) {
    case OPT_TENSORS:
    case OPT_STATS:
        o->glob = p->arg ? p->arg : o->glob;
        break;
    case OPT_CHECK:
        o->check_header = header_only(p->arg);
        break;
    case OPT_HASH:
        o->hash = p->arg ? gguf_digest_algo_from_name(p->arg)
                         : GGUF_DIGEST_XXH64;
        if (o->hash < 0)
            opt_usage("--hash: there is no algorithm '%s'", p->arg);
        break;
    case OPT_KEY: o->key = p->arg; break;
    case OPT_VALUES: o->values = p->arg; break;
    case OPT_MANIFEST: o->manifest = p->arg; break;
    case OPT_DIFF: s->diff = true; break;
    case OPT_JSON: o->json = true; break;
    case OPT_MARKDOWN: o->markdown = true; break;
    case OPT_ALONE: o->alone = true; break;
    case 'q': o->quiet = true; break;
    case 'c': o->n_ctx = opt_u64(p, 1, UINT32_MAX); break;
    case 't':
        s->n_threads = (unsigned)opt_u64(p, 1, GGUF_POOL_MAX_THREADS);
        break;
    case OPT_ARRAYS:
        o->limits.elems = amount(p);
        o->limits_given = true;
        break;
    case OPT_STRINGS: o->limits.bytes = amount(p); break;
    case OPT_COLOR:
        if (!style_init(p->arg))
            opt_usage("--color: '%s' is not 'auto', 'always' or 'never'",
                      p->arg);
        break;
    case OPT_SORT:
        check_sort(p->arg);
        o->sort = p->arg;
        break;
    case OPT_LIMIT: opt_limit(p, &s->limits); break;
    }
}

static void parse(struct opt_parser *p, struct settings *s)
{
    struct info_options *o = &s->o;
    (void)style_init("auto");
    for (int id; (id = opt_next(p)) != OPT_END;) {
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
            if (parts[i].id == id)
                o->show |= parts[i].show;
        option(p, id, s);
    }
    if (o->json && o->markdown)
        opt_usage("--json and --markdown exclude each other");
    if ((o->key != NULL) + (o->values != NULL) + (o->manifest != NULL) +
            s->diff + (o->show != 0) > 1)
        opt_usage("--key, --values, --manifest and --diff do one thing only");
    if (o->json && (o->values || o->manifest))
        opt_usage("--values and --manifest have no --json");
    if (o->markdown && (o->key || o->values || o->manifest || s->diff))
        opt_usage("--key, --values, --manifest and --diff have no --markdown");
    if (o->markdown)
        (void)style_init("never"); /* it has its own ways */
    if (!o->show)
        o->show = SHOW_ALL;
}

/* One operand; false: it failed. *opened: something was shown. */
static bool show(const char *path, const struct info_options *o,
                 const struct gguf_file_params *params, struct json *j,
                 bool *opened)
{
    struct load l;
    struct info info;
    struct gguf_error err;
    bool good = true;
    *opened = load_try(&l, path, !o->alone, params, &err);
    if (!*opened) {
        msg_fail(path, &err);
        good = false;
        *opened = (o->show & SHOW_CHECK) && info_broken(j, path, o, params);
    } else if (o->key) {
        good = info_key(&l, o);
    } else if (o->values) {
        good = info_values(&l, o);
    } else if (o->manifest) {
        good = info_manifest(&l, o);
    } else {
        info_init(&info, &l, o);
        if (!o->quiet && !(o->show & SHOW_CHECK))
            info_warn(&info);
        good = o->json ? info_json(j, &info, o) : info_text(&info, o);
        info_fini(&info);
    }
    load_close(&l);
    return good;
}

static int show_all(char *const *path, int n, const struct info_options *o,
                    const struct gguf_file_params *params)
{
    /* One operand is one object, more are an array of them. */
    struct json j;
    json_begin(&j, stdout);
    bool plain = o->key || o->values || o->manifest;
    bool array = o->json && !plain && n > 1;
    bool some = false;
    int status = MSG_DONE;
    if (array)
        json_open(&j, NULL, '[');
    for (int i = 0; i < n && !progress_stopped(); i++) {
        bool opened;
        if (some && !o->json && !plain)
            putchar('\n');
        if (!show(path[i], o, params, &j, &opened))
            status = MSG_FAILED;
        some |= opened;
    }
    if (array)
        json_close(&j);
    if (o->json && !plain && (array || some))
        json_end(&j);
    return status;
}

/* Like diff: 1 also if the models differ. */
static int diff(char *const *path, const struct info_options *o,
                const struct gguf_file_params *params)
{
    struct load a, b = { NULL, NULL, NULL };
    bool same = false;
    bool good = load_open(&a, path[0], !o->alone, params) &&
                load_open(&b, path[1], !o->alone, params) &&
                info_diff(&a, &b, o, &same);
    load_close(&a);
    load_close(&b);
    return good && same ? MSG_DONE : MSG_FAILED;
}

/* Threads and decoders, for what reads tensor data. */
static void prepare(struct settings *s)
{
    struct gguf_pool_params pp = GGUF_POOL_PARAMS_INIT;
    struct gguf_error err;
    if (!(s->o.show & (SHOW_STATS | SHOW_CHECK | SHOW_HASH)) &&
        !s->o.values && !s->o.manifest && !s->diff)
        return;
    pp.n_threads = s->n_threads;
    if (gguf_rows_create(&s->o.rows, NULL, &err) != GGUF_OK ||
        gguf_pool_create(&s->o.pool, &pp, &err) != GGUF_OK) {
        msg_fail(NULL, &err);
        exit(MSG_FAILED);
    }
    progress_catch_signals();
}

int main(int argc, char **argv)
{
    struct settings s = { .o = { .limits = { 6, 120 } },
                          .limits = GGUF_LIMITS_INIT };
    struct gguf_file_params params = GGUF_FILE_PARAMS_INIT;
    struct opt_parser p;
    opt_begin(&p, &tool, argc, argv);
    parse(&p, &s);
    params.limits = &s.limits;
    int n = p.argc - p.i;
    if (!n)
        opt_usage("which file?");
    if (s.diff && n != 2)
        opt_usage("--diff wants two files");
    load_raise_limits();
    prepare(&s);
    int status = s.diff ? diff(argv + p.i, &s.o, &params)
                        : show_all(argv + p.i, n, &s.o, &params);
    gguf_pool_destroy(s.o.pool);
    gguf_rows_destroy(s.o.rows);
    progress_raise();
    return msg_exit(status);
}
