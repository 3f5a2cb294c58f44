/* SPDX-License-Identifier: MIT */
/* variant.c - models with changes from a text, and their outputs */
#include "config.h"
#include "tests/family/variant.h"

#include "base/compiler.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines of a text ---- */

static struct variant_text text;

static void add_line(const char *line)
{
    const bool more = line[0] == ' ';
    const size_t had = more && text.n ? strlen(text.line[text.n - 1]) : 0;
    if (text.n + !more > GG_LEN(text.line) || (more && !text.n))
        abort();
    char **to = &text.line[text.n - more];
    line += more ? strspn(line, " ") : 0;
    *to = realloc(more ? *to : NULL, had + strlen(line) + 2);
    if (!*to)
        abort();
    sprintf(*to + had, "%s%s", more ? " " : "", line);
    text.n += !more;
}

const struct variant_text *variant_text(const char *model)
{
    char line[1024];
    if (!strcmp(text.model, model))
        return &text;
    while (text.n)
        free(text.line[--text.n]);
    snprintf(text.model, sizeof text.model, "%s", model);
    FILE *f = skeleton_section(model, "variants", line);
    while (f && fgets(line, sizeof line, f) && line[0] != '[') {
        line[strcspn(line, "\n")] = 0;
        if (line[0] && line[0] != '#')
            add_line(line);
    }
    if (f)
        fclose(f);
    return &text;
}

/* Changes that a line "let" has given this name; NULL: unknown. */
static const char *find_named(const char *model, const char *name)
{
    const struct variant_text *t = variant_text(model);
    const size_t len = strlen(name);
    for (size_t i = 0; i < t->n; i++) {
        const char *l = t->line[i];
        if (!strncmp(l, "let ", 4) && !strncmp(l + 4, name, len) &&
            !strncmp(l + 4 + len, " = ", 3))
            return l + 4 + len + 3;
    }
    return NULL;
}

/* ---- names of several layers ---- */

/* Names of "blk.0,2-5.rest": one for each layer. Any other text is one name. */
struct names {
    const char *pattern, *rest;
    bool in[256];
    int il; /* layer of the last name; -1: the name has no layer */
    size_t before;
};

static void begin_names(struct names *n, const char *pattern)
{
    const char *b = strstr(pattern, "blk.");
    char *p = (char *)(b ? b + 4 : pattern);
    *n = (struct names){ .pattern = pattern, .il = -1 };
    if (!b || *p < '0' || *p > '9')
        return;
    n->before = (size_t)(p - pattern);
    do {
        unsigned long a = strtoul(p, &p, 10), last = a;
        if (*p == '-')
            last = strtoul(p + 1, &p, 10);
        while (a <= last && a < GG_LEN(n->in))
            n->in[a++] = true;
    } while (*p++ == ',');
    n->rest = p - 1;
}

static bool next_name(struct names *n, char name[64])
{
    if (!n->rest) {
        snprintf(name, 64, "%s", n->pattern);
        const bool first = n->pattern[0] != 0;
        n->pattern = "";
        return first;
    }
    do
        n->il++;
    while (n->il < (int)GG_LEN(n->in) && !n->in[n->il]);
    if (n->il == (int)GG_LEN(n->in))
        return false;
    snprintf(name, 64, "%.*s%d%s", (int)n->before, n->pattern, n->il, n->rest);
    return true;
}

/* ---- changes: args is what follows the word ---- */

static void change_nothing(struct variant *v, char *args)
{
    (void)v;
    (void)args;
}

static void change_key(struct variant *v, char *args)
{
    if (!skeleton_set_key(&v->m, args))
        variant_fail(v, "cannot set a key: %s", args);
}

static void remove_keys(struct variant *v, char *args)
{
    char key[192];
    for (char *w; *(w = variant_word(&args));) {
        skeleton_key(&v->m, w, key);
        if (!gguf_meta_find(v->m.g.meta, key))
            variant_fail(v, "no key '%s'", key);
        gguf_meta_remove(v->m.g.meta, key);
    }
}

static void set_tensor(struct variant *v, char *args)
{
    struct names names;
    char name[64];
    const char *pattern = variant_word(&args);
    int64_t ne[4] = { 1, 1, 1, 1 };
    unsigned n_dims = 0;
    while (n_dims < 4 && *args && *args != '=')
        ne[n_dims++] = strtoll(variant_word(&args), NULL, 10);
    if (!n_dims || (*args && *args++ != '='))
        variant_fail(v, "cannot read the shape of '%s'", pattern);
    begin_names(&names, pattern);
    while (next_name(&names, name)) {
        char words[1024];
        snprintf(words, sizeof words, "%s", args);
        const float *x = *args ? variant_values(v, words, ne, names.il) : NULL;
        if (!variant_tensor(v, name))
            gen_tensor(&v->m.g, 1, 0, "%s", name);
        struct gen_tensor *t = variant_tensor(v, name);
        t->n_dims = n_dims;
        memcpy(t->ne, ne, sizeof ne);
        t->values = x;
    }
}

static void set_values(struct variant *v, char *args)
{
    struct names names;
    char name[64];
    begin_names(&names, variant_word(&args));
    while (next_name(&names, name)) {
        struct gen_tensor *t = variant_tensor(v, name);
        char words[1024];
        snprintf(words, sizeof words, "%s", args);
        if (!t)
            variant_fail(v, "no tensor '%s'", name);
        t->values = variant_values(v, words, t->ne, names.il);
    }
}

/* Remove tensors. A name may end with ".*". */
static void drop_tensors(struct variant *v, char *args)
{
    struct names names;
    char name[64];
    for (char *w; *(w = variant_word(&args));) {
        begin_names(&names, w);
        while (next_name(&names, name)) {
            const size_t len = strlen(name), had = v->m.g.n;
            const bool all = len && name[len - 1] == '*';
            for (size_t i = had; i-- > 0;)
                if (all ? !strncmp(v->m.g.t[i].name, name, len - 1)
                        : !strcmp(v->m.g.t[i].name, name))
                    gen_drop(&v->m.g, v->m.g.t[i].name);
            if (v->m.g.n == had)
                variant_fail(v, "no tensor '%s'", name);
        }
    }
}

/* Add layers as in "blk.1 blk.2-5". */
static void add_layers(struct variant *v, char *args, bool copies)
{
    struct gen *g = &v->m.g;
    struct names names;
    char from[72], layer[64];
    const size_t had = g->n;
    snprintf(from, sizeof from, "%s.", variant_word(&args));
    begin_names(&names, variant_word(&args));
    while (next_name(&names, layer))
        for (size_t i = 0; i < had; i++) {
            char name[160];
            struct gen_tensor t = g->t[i];
            if (strncmp(t.name, from, strlen(from)) != 0)
                continue;
            snprintf(name, sizeof name, "%s.%s", layer, t.name + strlen(from));
            if (variant_tensor(v, name))
                continue;
            gen_tensor(g, 1, 0, "%s", name);
            memcpy(t.name, g->t[g->n - 1].name, sizeof t.name);
            g->t[g->n - 1] = t;
            if (copies)
                g->t[g->n - 1].values = variant_values(
                    v, strcat(strcpy(name, "0 "), g->t[i].name), t.ne, 0);
        }
    if (g->n == had)
        variant_fail(v, "no tensors of '%s'", from);
}

static void like_layer(struct variant *v, char *args)
{
    add_layers(v, args, false);
}

static void copy_layer(struct variant *v, char *args)
{
    add_layers(v, args, true);
}

static void gain_weights(struct variant *v, char *args)
{
    const char *pattern = variant_word(&args);
    char *end;
    const double factor = strtod(args, &end);
    if (end == args || *end || !gen_gain(&v->m.g, pattern, factor))
        variant_fail(v, "cannot multiply '%s' by '%s'", pattern, args);
}

static void set_context(struct variant *v, char *args)
{
    v->params.n_ctx = (uint32_t)strtoul(args, NULL, 10);
}

static void set_tokens(struct variant *v, char *args)
{
    v->n_tok = strtoul(args, NULL, 10);
}

static void set_position(struct variant *v, char *args)
{
    v->position = (int32_t)strtol(args, NULL, 10);
}

#define MEMBER(NAME, TYPE)                                                    \
    {                                                                         \
#NAME, offsetof(struct gguf_session_params, NAME), TYPE               \
    }
static void set_member(struct variant *v, char *args)
{
    static const struct {
        const char *name;
        size_t at;
        bool real; /* the member is a float; else a uint32_t */
    } members[] = {
        MEMBER(rope_scaling, false),   MEMBER(rope_freq_base, true),
        MEMBER(rope_factor, true),     MEMBER(yarn_orig_ctx, false),
        MEMBER(yarn_ext_factor, true), MEMBER(yarn_attn_factor, true),
        MEMBER(yarn_beta_fast, true),  MEMBER(yarn_beta_slow, true),
        MEMBER(window, false),         MEMBER(n_window, false),
    };
    static const char *const scalings[] = { "model", "none", "linear", "yarn",
                                            "longrope" };
    const char *name = variant_word(&args);
    const float f = strtof(args, NULL);
    uint32_t u = (uint32_t)strtoul(args, NULL, 10);
    for (unsigned i = 0; i < GG_LEN(scalings); i++)
        u = strcmp(args, scalings[i]) ? u : i;
    for (size_t i = 0; i < GG_LEN(members); i++)
        if (!strcmp(name, members[i].name)) {
            memcpy((char *)&v->params + members[i].at,
                   members[i].real ? (const void *)&f : &u, 4);
            if (!strcmp(name, "n_window"))
                v->params.window = GGUF_SLIDING_WINDOW_TOKENS;
            if (!strcmp(name, "yarn_ext_factor"))
                v->params.yarn_ext = GGUF_YARN_EXT_FACTOR;
            return;
        }
    variant_fail(v, "no member '%s'", name);
}

static const struct {
    const char *word;
    void (*make)(struct variant *v, char *args);
} changes[] = {
    { "plain", change_nothing }, { "key", change_key },
    { "nokey", remove_keys },    { "tensor", set_tensor },
    { "values", set_values },    { "drop", drop_tensors },
    { "like", like_layer },      { "copy", copy_layer },
    { "gain", gain_weights },    { "context", set_context },
    { "tokens", set_tokens },    { "position", set_position },
    { "set", set_member },
};

static void make_changes(struct variant *v, const char *words, int depth);

static void make_change(struct variant *v, char *args, int depth)
{
    const char *word = variant_word(&args);
    for (size_t i = 0; i < GG_LEN(changes); i++)
        if (!strcmp(word, changes[i].word)) {
            changes[i].make(v, args);
            return;
        }
    const char *named = find_named(v->m.name, word);
    if (!named || *args || depth > 8)
        variant_fail(v, "no change '%s'", word);
    make_changes(v, named, depth + 1);
}

static void make_changes(struct variant *v, const char *words, int depth)
{
    char *all = strdup(words), *next;
    if (!all)
        abort();
    for (char *p = all; p && *p; p = next) {
        next = strstr(p, " + ");
        if (next) {
            *next = 0;
            next += 3;
        }
        make_change(v, p, depth);
    }
    free(all);
}

/* ---- outputs ---- */

void variant_open(struct variant *v, const char *model, const char *words)
{
    v->n_values = 0;
    v->params = (struct gguf_session_params)GGUF_SESSION_PARAMS_INIT;
    v->params.n_ctx = VARIANT_TOKENS;
    v->first = 0;
    v->n_tok = VARIANT_TOKENS;
    v->position = 0;
    if (!skeleton_open(&v->m, model))
        variant_fail(v, "no text '%s'", model);
    make_changes(v, words, 0);
}

void variant_close(struct variant *v)
{
    while (v->n_values)
        free(v->values[--v->n_values]);
    skeleton_close(&v->m);
}

void *variant_file(const struct variant *v, size_t *size)
{
    return gen_file(&v->m.g, GGUF_DTYPE_F32, size);
}

bool variant_run(struct variant *v, float *out, struct gguf_error *err)
{
    struct gguf_batch b = GGUF_BATCH_INIT;
    gguf_token tok[VARIANT_TOKENS];
    int32_t pos[VARIANT_TOKENS];
    uint64_t graphs;
    struct run r;
    size_t size;
    void *file = variant_file(v, &size);
    skeleton_tokens_of(&v->m, tok);
    memset(out, 0, v->n_tok * VARIANT_WIDTH * sizeof *out);
    for (int i = 0; i < VARIANT_TOKENS; i++)
        pos[i] = v->position + i;
    b.n = v->n_tok;
    b.token = tok + v->first;
    b.pos = pos + v->first;
    bool good = run_open(&r, file, size, 1, &v->params);
    if (good)
        gguf_session_memory_size(r.session, &v->kept, &graphs);
    good = good && run_encode(&r, tok, v->first + v->n_tok) &&
           run_outputs(&r, &b, out);
    *err = r.err;
    run_close(&r);
    free(file);
    return good;
}

bool variant_outputs(const char *model, const char *words, float *out,
                     struct gguf_error *err)
{
    static struct variant v;
    variant_open(&v, model, words);
    const bool good = variant_run(&v, out, err);
    variant_close(&v);
    return good;
}

double variant_apart(const char *model, const char *a, const char *b)
{
    enum { N = VARIANT_TOKENS * VARIANT_WIDTH };
    static float x[N], y[N];
    struct gguf_error err;
    memset(x, 0, sizeof x);
    memset(y, 0, sizeof y);
    if (variant_outputs(model, a, x, &err) &&
        variant_outputs(model, b, y, &err))
        return run_nmse(x, y, N);
    printf("# %s: %s\n", model, err.message);
    return 9;
}
