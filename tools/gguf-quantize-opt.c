/* gguf-quantize-opt.c - what the command line of gguf-quantize says */
#include "config.h"
#include "tools/gguf-quantize.h"
#include "tools/common/opt_old.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    OPT_LIMIT,
    OPT_LIST,
    OPT_MAX_MEMORY,
    OPT_NONFINITE,
    OPT_OUTER_SCALES,
    OPT_OUTPUT_TYPE,
    OPT_OVERRIDE_KV,
    OPT_PRINT_RECIPE,
    OPT_PRUNE,
    OPT_PURE,
    OPT_RECIPE,
    OPT_REPORT,
    OPT_REQUANTIZE,
    OPT_RESUME,
    OPT_SPLIT_MAX_SIZE,
    OPT_TARGET_BPW,
    OPT_TARGET_SIZE,
    OPT_TARGET_TYPES,
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
    { OPT_TARGET_SIZE, "--target-size", "SIZE",
      "choose types such that OUT has at most SIZE bytes and the damage is "
      "least; what options and rules of TYPE decide stays. TYPE may be left "
      "out" },
    { OPT_TARGET_BPW, "--target-bpw", "X",
      "the same with at most X bits per weight" },
    { OPT_TARGET_TYPES, "--target-types", "TYPE,...",
      "choose from these types only" },
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
    { OPT_OUTER_SCALES, "--outer-scales", NULL,
      "tensors that become NVFP4 get a scale of their own, NAME.scale, so that "
      "small weights lose less" },
    { OPT_REQUANTIZE, "--allow-requantize", NULL,
      "also from tensors that are quantized already, which costs quality" },
    { OPT_NONFINITE, "--on-nonfinite", "WHAT",
      "weights that are NaN or infinite: error (the default) ends the run, "
      "zero takes them as 0, keep encodes what comes" },
    { OPT_COMPAT, "--compat", NULL,
      "the file that llama-quantize writes, byte for byte" },
    { 'f', "-f --force", NULL, "replace output files that exist" },
    { OPT_RESUME, "--resume", NULL,
      "note in OUT.resume what is complete; if the run is interrupted, the "
      "same command goes on from there" },
    { 0, NULL, NULL, "What is shown:" },
    { 'n', "-n --dry-run", NULL, "show the plan; read no tensor data" },
    { OPT_EXPLAIN, "--explain", NULL,
      "list the tensors with the rule that chose each type" },
    { 'v', "-v --verbose", NULL, "list the tensors" },
    { OPT_REPORT, "--report", "[FILE]",
      "read back what was encoded and tell each tensor's error: as a table, "
      "or as JSON into FILE, - for standard output" },
    { OPT_JSON, "-j --json", NULL,
      "print plan and result as one JSON document" },
    { 'q', "-q --quiet", NULL, "no progress, no summary" },
    { 0, NULL, NULL, "How it is done:" },
    { 't', "-t --threads", "N",
      "threads; the default is the number of processors" },
    { OPT_MAX_MEMORY, "--max-memory", "SIZE",
      "bytes of buffers at most, 128Mi by default; the input is mapped and "
      "does not count" },
    { OPT_LIMIT, "--limit", "NAME=N", OPT_LIMIT_HELP },
    { 0, NULL, NULL, NULL },
};

static const struct opt_tool tool = {
    "gguf-quantize",
    "[OPTION]... IN OUT TYPE [THREADS]\n[OPTION]... IN TYPE [THREADS]\n"
    "[OPTION]... --recipe FILE IN OUT [THREADS]\n"
    "[OPTION]... --target-size SIZE IN OUT [TYPE [THREADS]]\n"
    "[OPTION]... IN -o OUT=TYPE...",
    "Write the model IN as OUT with tensors of smaller types. TYPE names a "
    "recipe, such as Q4_K_M, that chooses a type for each tensor; a number is "
    "understood as general.file_type has it. IN may be any shard of a split "
    "model. Without OUT it is ggml-model-TYPE.gguf beside IN. Any "
    "architecture will do. OUT appears under its name when it is complete.",
    table, NULL
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

static _Noreturn void cannot(const char *path, const char *what)
{
    msg_error(path, "cannot be %s: %s", what, strerror(errno));
    exit(MSG_FAILED);
}

static void read_overrides(struct options *o, const char *path)
{
    char *line = NULL;
    size_t size = 0;
    FILE *f = fopen(path, "r");
    if (!f)
        cannot(path, "opened");
    while (errno = 0, getline(&line, &size, f) >= 0)
        for (char *p = line; *(p += strspn(p, " \t\r\n"));) {
            size_t n = strcspn(p, " \t\r\n");
            add_override(o, "--tensor-type-file", p, n);
            p += n;
        }
    if (!feof(f))
        cannot(path, "read");
    free(line);
    fclose(f);
}

static void add_target(struct options *o, const char *path, const char *type)
{
    if (o->n_targets == MAX_TARGETS)
        opt_usage("more than %d outputs", MAX_TARGETS);
    o->targets[o->n_targets++] = (struct target){
        .path = opt_out(path), .type = type,
        .is_file = o->recipe_file && type == o->recipe_file
    };
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

static void parse_target_types(struct options *o, const char *arg)
{
    char name[32];
    for (const char *p = arg;; p++) {
        size_t n = strcspn(p, ",");
        if (o->target.n_types == GGUF_TARGET_MAX_TYPES)
            opt_usage("--target-types: more than %d", GGUF_TARGET_MAX_TYPES);
        snprintf(name, sizeof name, "%.*s", (int)(n < 31 ? n : 31), p);
        o->target_types[o->target.n_types++] =
            parse_type("--target-types", name);
        o->target.types = o->target_types;
        p += n;
        if (!*p)
            return;
    }
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

static void add_text(struct options *o, const char *text, bool include)
{
    if (o->n_texts && o->include != include)
        opt_usage("--include-weights and --exclude-weights exclude each "
                  "other");
    if (o->n_texts == MAX_TEXTS)
        opt_usage("too many --%s-weights", include ? "include" : "exclude");
    o->include = include;
    o->texts[o->n_texts++] = text;
}

/* All files of --imatrix, added up. */
static void load_imatrix(struct options *o)
{
    struct gguf_file_params fp = GGUF_FILE_PARAMS_INIT;
    struct gguf_error err;
    gguf_error_clear(&err);
    fp.limits = &o->limits;
    for (size_t i = 0; i < o->n_imatrix_paths; i++) {
        struct gguf_imatrix *im;
        enum gguf_status st =
            gguf_imatrix_load(&im, o->imatrix_paths[i], &fp, &err);
        if (st == GGUF_OK && i) {
            st = gguf_imatrix_merge(o->imatrix, im, &err);
            gguf_imatrix_destroy(im);
        } else if (st == GGUF_OK) {
            o->imatrix = im;
        }
        if (st != GGUF_OK) {
            msg_fail(o->imatrix_paths[i], &err);
            exit(MSG_FAILED);
        }
    }
}

/* Importance data as the jobs get them, and the name that is recorded: not the
 * path, which tells about the machine. */
static void use_imatrix(struct options *o)
{
    if (!o->n_imatrix_paths) {
        if (o->n_texts)
            opt_usage("--%s-weights is for --imatrix",
                      o->include ? "include" : "exclude");
        return;
    }
    load_imatrix(o);
    if (o->n_texts)
        gguf_imatrix_filter(o->imatrix, o->texts, o->n_texts, o->include);
    if (o->include && !gguf_imatrix_n_entries(o->imatrix) &&
        !o->params.compat) {
        msg_error(NULL, "--include-weights leaves no importance data");
        exit(MSG_FAILED);
    }
    const char *path = o->imatrix_paths[0], *slash = strrchr(path, '/');
    o->params.imatrix = o->imatrix;
    o->params.imatrix_name = slash && !o->params.compat ? slash + 1 : path;
}

static void parse_prune(struct options *o, const char *arg)
{
    for (const char *p = arg;; p++) {
        char *end;
        unsigned long v = strtoul(p, &end, 10);
        if (end == p || *p < '0' || *p > '9' || v > 1000000 ||
            (*end && *end != ',') ||
            o->params.n_prune == MAX_PRUNE)
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
        case OPT_OUTER_SCALES: o->params.outer_scales = 1; break;
        case OPT_RESUME: o->resume = true; break;
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
            if (p->arg && !strcmp(p->arg, "-"))
                o->json = true;
            else
                o->report = p->arg;
            break;
        case OPT_IMATRIX:
            if (o->n_imatrix_paths == MAX_TEXTS)
                opt_usage("more than %d --imatrix", MAX_TEXTS);
            o->imatrix_paths[o->n_imatrix_paths++] = p->arg;
            break;
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
        case OPT_TENSOR_TYPE_FILE:
            if (o->n_type_files == MAX_TEXTS)
                opt_usage("more than %d --tensor-type-file", MAX_TEXTS);
            o->type_files[o->n_type_files++] = p->arg;
            read_overrides(o, p->arg);
            break;
        case OPT_RECIPE: o->recipe_file = p->arg; break;
        case OPT_LIMIT:
            opt_limit(p, &o->limits);
            o->params.limits = &o->limits;
            break;
        case OPT_LIST: list_types(); break;
        case OPT_PRINT_RECIPE: print_recipe(p->arg); break;
        case OPT_NONFINITE: parse_nonfinite(o, p->arg); break;
        case OPT_OVERRIDE_KV:
            if (o->n_kv_texts == MAX_TEXTS)
                opt_usage("too many --override-kv");
            o->kv_texts[o->n_kv_texts++] = p->arg;
            break;
        case OPT_PRUNE: parse_prune(o, p->arg); break;
        case OPT_KEEP_SPLIT: o->params.keep_split = 1; break;
        case OPT_SPLIT_MAX_SIZE:
            o->params.max_file_size = parse_size("--split-max-size", p->arg);
            break;
        case OPT_TARGET_SIZE:
            o->target.max_size = parse_size("--target-size", p->arg);
            break;
        case OPT_TARGET_BPW: o->target.max_bpw = opt_double(p, 0.01, 64);
            break;
        case OPT_TARGET_TYPES: parse_target_types(o, p->arg); break;
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
    bool sized = o->target.max_size || o->target.max_bpw > 0;
    size_t n_outputs = o->n_targets;
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
    } else if (sized && (n == 1 || (!n && o->dry_run))) { /* IN OUT */
        add_target(o, n ? arg[0] : NULL, TYPE_AUTO);
        arg += n;
        n = 0;
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
    if (sized && o->n_targets == n_outputs)
        opt_usage("--target-size and --target-bpw are for OUT, which is "
                  "missing");
    if (sized)
        o->targets[n_outputs].sized = true;
    if (n == 1 && opt_parse_u64(arg[0], &threads) && threads >= 1 &&
        threads <= GGUF_POOL_MAX_THREADS) {
        o->threads = (unsigned)threads;
        n = 0;
    }
    if (n)
        opt_usage("'%s' is one argument too many", arg[0]);
}

void parse_command_line(struct options *o, int argc, char **argv)
{
    struct opt_parser p;
    opt_begin(&p, &tool, argc, argv);
    parse_options(&p, o);
    if (o->target.max_size && o->target.max_bpw > 0)
        opt_usage("--target-size and --target-bpw exclude each other");
    if (o->params.keep_split && o->params.max_file_size)
        opt_usage("--keep-split and --split-max-size exclude each other");
    parse_operands(&p, o);
    use_imatrix(o);
    use_kv_texts(o);
}

void options_fini(struct options *o)
{
    for (size_t i = 0; i < o->n_overrides; i++)
        free((char *)o->overrides[i].pattern);
    free(o->overrides);
    gguf_imatrix_destroy(o->imatrix);
    gguf_meta_destroy(o->meta);
    free(o->default_out);
}
