/* gguf-quantize - a model file of other tensor types */
#include "config.h"
#include "tools/gguf-quantize.h"
#include "tools/common/load.h"
#include "tools/common/opt.h"
#include "tools/common/progress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gguf/split.h>

enum {
    OPT_COMPAT = OPT_FIRST_LONG,
    OPT_EMBEDDING_TYPE,
    OPT_EXCLUDE,
    OPT_EXPLAIN,
    OPT_IMATRIX,
    OPT_INCLUDE,
    OPT_JSON,
    OPT_KEEP_SPLIT,
    OPT_LEAVE_OUTPUT,
    OPT_LIST,
    OPT_MAX_MEMORY,
    OPT_NONFINITE,
    OPT_OUTPUT_TYPE,
    OPT_OVERRIDE_KV,
    OPT_PRINT_RECIPE,
    OPT_PRUNE,
    OPT_PURE,
    OPT_RECIPE,
    OPT_REPORT,
    OPT_REQUANTIZE,
    OPT_SPLIT_MAX_SIZE,
    OPT_TENSOR_TYPE,
    OPT_TENSOR_TYPE_FILE
};

static const struct opt table[] = {
    { 0, NULL, NULL, "Which types:" },
    { OPT_PURE, "--pure", NULL,
      "every tensor that can be quantized gets the base type" },
    { OPT_OUTPUT_TYPE, "--output-tensor-type", "TYPE",
      "type of output.weight, or of the token embedding where that is both" },
    { OPT_EMBEDDING_TYPE, "--token-embedding-type", "TYPE",
      "type of the token embedding" },
    { OPT_LEAVE_OUTPUT, "--leave-output-tensor", NULL,
      "output.weight keeps its type" },
    { OPT_TENSOR_TYPE, "--tensor-type", "PATTERN=TYPE",
      "type of the tensors whose names match PATTERN, a regular expression; "
      "may be given again, the first that matches counts; one that matches "
      "nothing is an error" },
    { OPT_TENSOR_TYPE_FILE, "--tensor-type-file", "FILE",
      "the same from a file: PATTERN=TYPE, separated by blanks or lines" },
    { OPT_RECIPE, "-r --recipe", "FILE",
      "a recipe of one's own instead of TYPE" },
    { OPT_LIST, "--list-types", NULL, "list what TYPE may be, and exit" },
    { OPT_PRINT_RECIPE, "--print-recipe", "TYPE",
      "print the recipe of TYPE, and exit" },
    { 0, NULL, NULL, "What matters:" },
    { OPT_IMATRIX, "--imatrix", "FILE",
      "importance data, in GGUF or the older form (.dat); given again, the "
      "data are added up" },
    { OPT_INCLUDE, "--include-weights", "TEXT",
      "use importance data only for tensors whose names contain TEXT; may be "
      "given again" },
    { OPT_EXCLUDE, "--exclude-weights", "TEXT",
      "use none for such tensors; excludes --include-weights" },
    { 0, NULL, NULL, "What is written:" },
    { 'o', "-o --output", "OUT=TYPE",
      "another output; may be given again. The input is read once for all" },
    { OPT_OVERRIDE_KV, "--override-kv", "KEY=TYPE:VALUE",
      "set a metadata key; TYPE is int, float, bool, str, or a type of GGUF "
      "such as u64 or i8. May be given again" },
    { OPT_PRUNE, "--prune-layers", "N,...",
      "leave out these layers, counted from 0; later ones move up" },
    { OPT_KEEP_SPLIT, "--keep-split", NULL,
      "write as many files as IN has: OUT-00001-of-0000N.gguf ..." },
    { OPT_SPLIT_MAX_SIZE, "--split-max-size", "SIZE",
      "write several files of at most SIZE bytes" },
    { OPT_REQUANTIZE, "--allow-requantize", NULL,
      "also from tensors that are quantized already, which costs quality" },
    { OPT_NONFINITE, "--on-nonfinite", "WHAT",
      "weights that are NaN or infinite: error (the default) ends the run, "
      "zero takes them as 0, keep encodes what comes" },
    { OPT_COMPAT, "--compat", NULL,
      "the file that llama-quantize writes, byte for byte" },
    { 'f', "-f --force", NULL, "replace output files that exist" },
    { 0, NULL, NULL, "What is shown:" },
    { 'n', "-n --dry-run", NULL, "show the plan; read no tensor data" },
    { OPT_EXPLAIN, "--explain", NULL,
      "list the tensors with the rule that chose each type" },
    { 'v', "-v --verbose", NULL, "list the tensors" },
    { OPT_REPORT, "--report", "[FILE]",
      "read back what was encoded and tell each tensor's error: as a table, "
      "or as JSON into FILE" },
    { OPT_JSON, "-j --json", NULL,
      "print plan and result as one JSON document" },
    { 'q', "-q --quiet", NULL, "no progress, no summary" },
    { 0, NULL, NULL, "How it is done:" },
    { 't', "-t --threads", "N",
      "threads; the default is the number of processors" },
    { OPT_MAX_MEMORY, "--max-memory", "SIZE",
      "bytes of buffers at most, 128Mi by default; the input is mapped and "
      "does not count" },
    { 0, NULL, NULL, NULL },
};

static const struct opt_tool tool = {
    "gguf-quantize",
    "[OPTION]... IN OUT TYPE [THREADS]\n[OPTION]... IN TYPE [THREADS]\n"
    "[OPTION]... --recipe FILE IN OUT [THREADS]\n[OPTION]... IN -o OUT=TYPE...",
    "Write the model IN as OUT with tensors of smaller types. TYPE names a "
    "recipe, such as Q4_K_M, that chooses a type for each tensor; a number is "
    "understood as general.file_type has it. IN may be any shard of a split "
    "model. Without OUT it is ggml-model-TYPE.gguf beside IN. Any "
    "architecture will do. OUT appears under its name when it is complete.",
    table, NULL
};

enum { MAX_TARGETS = 64 };

struct options {
    struct gguf_quant_params params;
    struct gguf_quant_override *overrides; /* patterns are allocated */
    size_t n_overrides;
    struct target targets[MAX_TARGETS];
    size_t n_targets;
    const char *in, *recipe_file;
    struct gguf_meta *meta; /* of --override-kv */
    const char *kv_texts[64];
    size_t n_kv_texts;
    uint32_t prune[1024];
    struct gguf_imatrix *imatrix;
    const char *imatrix_path;
    const char *texts[64]; /* of --include-weights or --exclude-weights */
    size_t n_texts;
    bool include;
    unsigned threads;
    const char *report; /* a file's name */
    bool dry_run, explain, verbose, json, quiet, force;
    char *default_out;
};

static uint32_t parse_type(const char *option, const char *name)
{
    const struct gguf_dtype_info *t = gguf_dtype_from_name(name);
    if (!t || (t->family != GGUF_FAMILY_FLOAT &&
               t->family != GGUF_FAMILY_QUANT))
        opt_usage("%s: '%s' is no type to quantize to", option, name);
    return t->id;
}

/* PATTERN=TYPE of n bytes; the last '=' counts. */
static void add_override(struct options *o, const char *option,
                         const char *text, size_t n)
{
    char *copy = msg_must(malloc(n + 1));
    memcpy(copy, text, n);
    copy[n] = 0;
    char *eq = strrchr(copy, '=');
    if (!eq || eq == copy)
        opt_usage("%s: '%s' is not PATTERN=TYPE", option, copy);
    *eq = 0;
    o->overrides = msg_must(realloc(
        o->overrides, (o->n_overrides + 1) * sizeof *o->overrides));
    o->overrides[o->n_overrides++] =
        (struct gguf_quant_override){ copy, parse_type(option, eq + 1) };
}

static void read_overrides(struct options *o, const char *path)
{
    char line[4096];
    FILE *f = fopen(path, "r");
    if (!f) {
        msg_error(path, "cannot be opened");
        exit(MSG_FAILED);
    }
    while (fgets(line, sizeof line, f))
        for (char *p = line; *(p += strspn(p, " \t\r\n"));) {
            size_t n = strcspn(p, " \t\r\n");
            add_override(o, "--tensor-type-file", p, n);
            p += n;
        }
    bool bad = ferror(f);
    fclose(f);
    if (bad) {
        msg_error(path, "cannot be read");
        exit(MSG_FAILED);
    }
}

static void add_target(struct options *o, const char *path, const char *type)
{
    if (o->n_targets == MAX_TARGETS)
        opt_usage("more than %d outputs", MAX_TARGETS);
    o->targets[o->n_targets++] =
        (struct target){ .path = path, .type = type };
}

static void list_types(void)
{
    for (size_t i = 0; gguf_recipe_preset_name(i); i++)
        printf("%-10s %s\n", gguf_recipe_preset_name(i),
               gguf_recipe_preset_about(i));
    exit(msg_exit(MSG_DONE));
}

static bool is_preset(const char *name)
{
    struct gguf_recipe *r;
    bool yes = gguf_recipe_preset(&r, name, NULL, NULL) == GGUF_OK;
    gguf_recipe_destroy(r);
    return yes;
}

static void print_recipe(const char *name)
{
    struct gguf_recipe *r;
    struct gguf_error err;
    if (gguf_recipe_preset(&r, name, NULL, &err) != GGUF_OK)
        opt_usage("--print-recipe: %s", err.message);
    struct gguf_str text = gguf_recipe_text(r);
    fwrite(text.data, 1, text.size, stdout);
    gguf_recipe_destroy(r);
    exit(msg_exit(MSG_DONE));
}

static void parse_output(struct options *o, char *arg)
{
    char *eq = strrchr(arg, '=');
    if (!eq || eq == arg || !is_preset(eq + 1))
        opt_usage("--output: '%s' is not OUT=TYPE", arg);
    *eq = 0;
    add_target(o, arg, eq + 1);
}

static void parse_nonfinite(struct options *o, const char *arg)
{
    static const char *const words[] = { "error", "zero", "keep" };
    for (int i = 0; i < 3; i++)
        if (!strcmp(arg, words[i])) {
            o->params.nonfinite = (enum gguf_nonfinite)i;
            return;
        }
    opt_usage("--on-nonfinite: '%s' is none of error, zero, keep", arg);
}

/* The first file, or one to be added to it. */
static void load_imatrix(struct options *o, const char *path)
{
    struct gguf_imatrix *im;
    struct gguf_error err;
    gguf_error_clear(&err);
    enum gguf_status st = gguf_imatrix_load(&im, path, NULL, &err);
    if (st == GGUF_OK && o->imatrix) {
        st = gguf_imatrix_merge(o->imatrix, im, &err);
        gguf_imatrix_destroy(im);
    } else if (st == GGUF_OK) {
        o->imatrix = im;
        o->imatrix_path = path;
    }
    if (st != GGUF_OK) {
        msg_fail(path, &err);
        exit(MSG_FAILED);
    }
}

static void add_text(struct options *o, const char *text, bool include)
{
    if (o->n_texts && o->include != include)
        opt_usage("--include-weights and --exclude-weights exclude each "
                  "other");
    if (o->n_texts == sizeof o->texts / sizeof *o->texts)
        opt_usage("too many --%s-weights", include ? "include" : "exclude");
    o->include = include;
    o->texts[o->n_texts++] = text;
}

/* Importance data as the jobs get them, and the name that is recorded: not the
 * path, which tells about the machine. */
static void use_imatrix(struct options *o)
{
    if (!o->imatrix) {
        if (o->n_texts)
            opt_usage("--%s-weights is for --imatrix",
                      o->include ? "include" : "exclude");
        return;
    }
    if (o->n_texts)
        gguf_imatrix_filter(o->imatrix, o->texts, o->n_texts, o->include);
    const char *slash = strrchr(o->imatrix_path, '/');
    o->params.imatrix = o->imatrix;
    o->params.imatrix_name =
        slash && !o->params.compat ? slash + 1 : o->imatrix_path;
}

/* An integer of KEY=int:VALUE: of the narrowest usual type that holds it. With
 * compat as llama-quantize has it: without its sign. */
static enum gguf_status set_int(struct options *o, const char *key,
                                const char *text, struct gguf_error *err)
{
    char *end;
    errno = 0;
    if (text[0] == '-') {
        long long v = strtoll(text, &end, 10);
        if (*end || end == text || errno)
            opt_usage("--override-kv: '%s' is no integer", text);
        if (o->params.compat)
            return gguf_meta_set_u32(o->meta, key, (uint32_t)-v, err);
        return v >= INT32_MIN
                   ? gguf_meta_set_i32(o->meta, key, (int32_t)v, err)
                   : gguf_meta_set_i64(o->meta, key, v, err);
    }
    unsigned long long v = strtoull(text, &end, 10);
    if (*end || end == text || errno)
        opt_usage("--override-kv: '%s' is no integer", text);
    return v <= UINT32_MAX || o->params.compat
               ? gguf_meta_set_u32(o->meta, key, (uint32_t)v, err)
               : gguf_meta_set_u64(o->meta, key, v, err);
}

/* A number of one of GGUF's own types: its bytes. */
static enum gguf_status set_number(struct options *o, const char *key,
                                   int type, const char *text,
                                   struct gguf_error *err)
{
    uint8_t b[8];
    char *end;
    errno = 0;
    size_t size = gguf_val_type_size((uint32_t)type);
    uint64_t bits = text[0] == '-' ? (uint64_t)strtoll(text, &end, 10)
                                   : strtoull(text, &end, 10);
    bool is_signed = type == GGUF_VAL_I8 || type == GGUF_VAL_I16 ||
                     type == GGUF_VAL_I32 || type == GGUF_VAL_I64;
    unsigned width = (unsigned)(8 * size);
    bool fits = is_signed
                    ? (text[0] == '-'
                           ? (int64_t)bits >= -(INT64_C(1) << (width - 2)) * 2
                           : bits >> (width - 1) == 0)
                    : text[0] != '-' && (width == 64 || !(bits >> width));
    if (!size || *end || end == text || errno || !fits)
        opt_usage("--override-kv: '%s' is no %s", text,
                  gguf_val_type_name((uint32_t)type));
    for (size_t i = 0; i < size; i++)
        b[i] = (uint8_t)(bits >> 8 * i);
    return gguf_meta_set_encoded(o->meta, key, (uint32_t)type, b, size, err);
}

static enum gguf_status set_kv(struct options *o, const char *key,
                               const char *type, const char *value,
                               struct gguf_error *err)
{
    int id = gguf_val_type_from_name(type);
    char *end;
    if (!strcmp(type, "str") || id == GGUF_VAL_STR)
        return gguf_meta_set_strz(o->meta, key, value, err);
    if (!strcmp(type, "bool") || id == GGUF_VAL_BOOL) {
        if (strcmp(value, "true") && strcmp(value, "false"))
            opt_usage("--override-kv: '%s' is neither true nor false", value);
        return gguf_meta_set_bool(o->meta, key, *value == 't', err);
    }
    if (!strcmp(type, "float") || id == GGUF_VAL_F32 || id == GGUF_VAL_F64) {
        double v = strtod(value, &end);
        if (*end || end == value)
            opt_usage("--override-kv: '%s' is no number", value);
        return id == GGUF_VAL_F64
                   ? gguf_meta_set_f64(o->meta, key, v, err)
                   : gguf_meta_set_f32(o->meta, key, (float)v, err);
    }
    if (!strcmp(type, "int"))
        return set_int(o, key, value, err);
    if (id < 0 || id == GGUF_VAL_ARR)
        opt_usage("--override-kv: '%s' is no type of a value", type);
    return set_number(o, key, id, value, err);
}

/* The keys of --override-kv, once --compat is known. */
static void use_overrides(struct options *o)
{
    struct gguf_error err;
    gguf_error_clear(&err);
    if (!o->n_kv_texts)
        return;
    if (gguf_meta_create(&o->meta, NULL, &err) != GGUF_OK) {
        msg_fail(NULL, &err);
        exit(MSG_FAILED);
    }
    for (size_t i = 0; i < o->n_kv_texts; i++) {
        char *copy = msg_must(malloc(strlen(o->kv_texts[i]) + 1));
        strcpy(copy, o->kv_texts[i]);
        char *eq = strchr(copy, '='), *colon = eq ? strchr(eq, ':') : NULL;
        if (!colon || eq == copy)
            opt_usage("--override-kv: '%s' is not KEY=TYPE:VALUE", copy);
        *eq = *colon = 0;
        if (set_kv(o, copy, eq + 1, colon + 1, &err) != GGUF_OK)
            opt_usage("--override-kv: %s", err.message);
        free(copy);
    }
    o->params.meta = o->meta;
}

static void parse_prune(struct options *o, const char *arg)
{
    for (const char *p = arg;; p++) {
        char *end;
        unsigned long v = strtoul(p, &end, 10);
        if (end == p || *p < '0' || *p > '9' || v > 1000000 ||
            (*end && *end != ',') ||
            o->params.n_prune == sizeof o->prune / sizeof *o->prune)
            opt_usage("--prune-layers: '%s' is no list of layers", arg);
        o->prune[o->params.n_prune++] = (uint32_t)v;
        o->params.prune = o->prune;
        p = end;
        if (!*p)
            return;
    }
}

static uint64_t parse_size(const char *option, const char *arg)
{
    uint64_t v;
    if (gguf_size_parse(arg, &v, NULL) != GGUF_OK || !v)
        opt_usage("%s: '%s' is no size", option, arg);
    return v;
}

static void parse_options(struct opt_parser *p, struct options *o)
{
    for (int id; (id = opt_next(p)) != OPT_END;)
        switch (id) {
        case OPT_PURE: o->params.pure = 1; break;
        case OPT_LEAVE_OUTPUT: o->params.leave_output = 1; break;
        case OPT_REQUANTIZE: o->params.allow_requantize = 1; break;
        case OPT_COMPAT: o->params.compat = 1; break;
        case OPT_EXPLAIN: o->explain = true; break;
        case OPT_JSON: o->json = true; break;
        case 'n': o->dry_run = true; break;
        case 'v': o->verbose = true; break;
        case 'q': o->quiet = true; break;
        case 'f': o->force = true; break;
        case 't': o->threads = (unsigned)opt_u64(p, 1, GGUF_POOL_MAX_THREADS);
            break;
        case 'o': parse_output(o, (char *)p->arg); break;
        case OPT_REPORT:
            o->params.measure = 1;
            o->report = p->arg;
            break;
        case OPT_IMATRIX: load_imatrix(o, p->arg); break;
        case OPT_INCLUDE: add_text(o, p->arg, true); break;
        case OPT_EXCLUDE: add_text(o, p->arg, false); break;
        case OPT_OUTPUT_TYPE:
            o->params.output_type = parse_type("--output-tensor-type", p->arg);
            break;
        case OPT_EMBEDDING_TYPE:
            o->params.embedding_type =
                parse_type("--token-embedding-type", p->arg);
            break;
        case OPT_TENSOR_TYPE:
            add_override(o, "--tensor-type", p->arg, strlen(p->arg));
            break;
        case OPT_TENSOR_TYPE_FILE: read_overrides(o, p->arg); break;
        case OPT_RECIPE: o->recipe_file = p->arg; break;
        case OPT_LIST: list_types(); break;
        case OPT_PRINT_RECIPE: print_recipe(p->arg); break;
        case OPT_NONFINITE: parse_nonfinite(o, p->arg); break;
        case OPT_OVERRIDE_KV:
            if (o->n_kv_texts == sizeof o->kv_texts / sizeof *o->kv_texts)
                opt_usage("too many --override-kv");
            o->kv_texts[o->n_kv_texts++] = p->arg;
            break;
        case OPT_PRUNE: parse_prune(o, p->arg); break;
        case OPT_KEEP_SPLIT: o->params.keep_split = 1; break;
        case OPT_SPLIT_MAX_SIZE:
            o->params.max_file_size = parse_size("--split-max-size", p->arg);
            break;
        case OPT_MAX_MEMORY:
            o->params.max_memory = parse_size("--max-memory", p->arg);
            break;
        }
}

/* ggml-model-TYPE.gguf in the folder of IN, as llama-quantize does. */
static const char *default_out(struct options *o, const char *type)
{
    const char *slash = strrchr(o->in, '/');
    size_t dir = slash ? (size_t)(slash - o->in) + 1 : 0;
    struct gguf_recipe *r;
    if (gguf_recipe_preset(&r, type, NULL, NULL) != GGUF_OK)
        return NULL;
    const char *name = gguf_recipe_name(r);
    size_t size = dir + strlen(name) + sizeof "ggml-model-.gguf";
    o->default_out = msg_must(malloc(size));
    snprintf(o->default_out, size, "%.*sggml-model-%s.gguf", (int)dir, o->in,
             name);
    gguf_recipe_destroy(r);
    return o->default_out;
}

static void parse_operands(struct opt_parser *p, struct options *o)
{
    char **arg = p->argv + p->i;
    int n = p->argc - p->i;
    uint64_t threads;
    if (n < 1)
        opt_usage("the input file is missing");
    o->in = arg[0];
    arg++;
    n--;
    if (o->recipe_file) {
        if (n < 1 && !o->dry_run)
            opt_usage("two names are wanted: IN and OUT");
        add_target(o, n ? arg[0] : NULL, o->recipe_file);
        arg += n > 0;
        n -= n > 0;
    } else if (n && is_preset(arg[0])) { /* IN TYPE */
        add_target(o, default_out(o, arg[0]), arg[0]);
        arg++;
        n--;
    } else if (n > 1) { /* IN OUT TYPE */
        if (!is_preset(arg[1]))
            opt_usage("'%s' is no type; --list-types lists them", arg[1]);
        add_target(o, arg[0], arg[1]);
        arg += 2;
        n -= 2;
    } else if (!o->n_targets || n) {
        opt_usage(n ? "TYPE is missing; --list-types lists them"
                    : "OUT and TYPE are missing");
    }
    if (n == 1 && opt_parse_u64(arg[0], &threads) && threads >= 1 &&
        threads <= GGUF_POOL_MAX_THREADS) {
        o->threads = (unsigned)threads;
        n = 0;
    }
    if (n)
        opt_usage("'%s' is one argument too many", arg[0]);
}

/* Recipes and plans of all targets. */
static enum gguf_status make_jobs(struct options *o, const char **about,
                                  struct gguf_error *err)
{
    for (size_t i = 0; i < o->n_targets; i++) {
        struct target *t = &o->targets[i];
        enum gguf_status st =
            o->recipe_file && !i
                ? gguf_recipe_load(&t->recipe, t->type, NULL, err)
                : gguf_recipe_preset(&t->recipe, t->type, NULL, err);
        *about = t->type;
        if (st == GGUF_OK) {
            o->params.recipe = t->recipe;
            *about = o->in;
            st = gguf_quant_create(&t->job, o->in, &o->params, err);
        }
        if (st != GGUF_OK)
            return st;
        if (o->verbose || o->explain)
            print_plan(t, o->explain);
    }
    return GGUF_OK;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static enum gguf_status run(struct options *o, const char **about,
                            struct gguf_error *err)
{
    struct gguf_quant_output out = GGUF_QUANT_OUTPUT_INIT;
    struct gguf_quant *jobs[MAX_TARGETS];
    const char *paths[MAX_TARGETS];
    out.force = o->force;
    for (size_t i = 0; i < o->n_targets; i++) {
        jobs[i] = o->targets[i].job;
        paths[i] = o->targets[i].path;
    }
    enum gguf_status st =
        gguf_quant_run_many(jobs, paths, o->n_targets, &out, err);
    /* The input was opened before: what the system refuses is the output. Of
     * several the library names the one. */
    bool output = st == GGUF_E_EXIST || st == GGUF_E_NOSPACE ||
                  st == GGUF_E_IO || st == GGUF_E_INVALID;
    *about = output && o->n_targets == 1 ? paths[0] : o->in;
    return st;
}

static enum gguf_status write_report(const struct options *o, double seconds,
                                     const char **about,
                                     struct gguf_error *err)
{
    FILE *f = fopen(o->report, "w");
    bool bad = !f;
    int reason = errno;
    if (f) {
        print_json(f, o->in, o->targets, o->n_targets, seconds);
        bad = ferror(f) != 0;
        bad |= fclose(f) != 0;
        reason = errno;
    }
    *about = o->report;
    if (!bad)
        return GGUF_OK;
    gguf_error_clear(err);
    err->status = GGUF_E_IO;
    snprintf(err->message, sizeof err->message, "cannot be written: %s",
             strerror(reason));
    return GGUF_E_IO;
}

static enum gguf_status work(struct options *o, struct progress *bar,
                             const char **about, struct gguf_error *err)
{
    struct gguf_pool_params pp = GGUF_POOL_PARAMS_INIT;
    struct gguf_pool *pool = NULL;
    enum gguf_status st = GGUF_OK;
    double begin = now(), seconds = -1;

    pp.n_threads = o->threads;
    o->params.overrides = o->overrides;
    o->params.n_overrides = o->n_overrides;
    o->params.progress = progress_report;
    o->params.progress_user = bar;
    if (!o->dry_run)
        st = gguf_pool_create(&pool, &pp, err);
    o->params.pool = pool;
    if (st == GGUF_OK)
        st = make_jobs(o, about, err);
    if (st == GGUF_OK && !o->dry_run) {
        fflush(stdout);
        st = run(o, about, err);
        seconds = now() - begin;
    }
    progress_clear(bar);
    for (size_t i = 0; st == GGUF_OK && !o->quiet && i < o->n_targets; i++)
        print_summary(&o->targets[i], seconds);
    for (size_t i = 0; st == GGUF_OK && seconds >= 0 && i < o->n_targets; i++)
        if (o->params.measure && !o->report)
            print_loss(&o->targets[i]);
    if (st == GGUF_OK && seconds >= 0 && o->report)
        st = write_report(o, seconds, about, err);
    if (st == GGUF_OK && o->json)
        print_json(stdout, o->in, o->targets, o->n_targets, seconds);
    for (size_t i = 0; i < o->n_targets; i++) {
        gguf_quant_destroy(o->targets[i].job);
        gguf_recipe_destroy(o->targets[i].recipe);
    }
    gguf_pool_destroy(pool);
    return st;
}

int main(int argc, char **argv)
{
    struct options o = { .params = GGUF_QUANT_PARAMS_INIT };
    struct progress bar;
    struct gguf_error err;
    struct opt_parser p;
    opt_begin(&p, &tool, argc, argv);
    parse_options(&p, &o);
    parse_operands(&p, &o);
    use_imatrix(&o);
    use_overrides(&o);
    load_raise_limits();
    progress_init(&bar, "quantizing", NULL, o.quiet);
    progress_catch_signals();
    gguf_error_clear(&err);
    const char *about = o.in;
    enum gguf_status st = work(&o, &bar, &about, &err);
    if (st != GGUF_OK)
        msg_fail(about, &err);
    for (size_t i = 0; i < o.n_overrides; i++)
        free((char *)o.overrides[i].pattern);
    free(o.overrides);
    gguf_imatrix_destroy(o.imatrix);
    gguf_meta_destroy(o.meta);
    free(o.default_out);
    progress_raise();
    return msg_exit(st == GGUF_OK ? MSG_DONE : MSG_FAILED);
}
