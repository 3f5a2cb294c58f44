/* SPDX-License-Identifier: MIT */
/* check-types.c - each preset chooses llama-quantize's types (August 2026) for
 * models of 22 shapes
 *
 * generate.py makes tests/recipe/types.txt from ../shared/golden/recipes. It
 * lists the shapes:
 *
 *     shape NAME ARCHITECTURE LAYERS HEADS KV-HEADS EXPERTS
 *     output.weight f16 4096 32000      a tensor, its type, and its shape
 *     in 0-31                           the next tensors are in blk.0 to blk.31
 *     in -                              the next tensors are in no layer
 *
 * in the order of the files: a tensor's type depends on the tensors before it.
 * For each preset, with and without importance data, follows the sum of the
 * FNV-1a hashes of "SHAPE TENSOR TYPE" over all tensors of all shapes, and of
 * "SHAPE needs" for presets that lack the importance data they need:
 *
 *     types Q4_K_M no 0x0123456789abcdef falcon_7b! bert?
 *
 * A shape with ! is one where the reference failed or was not run. With ? it
 * fell back to other types, and did not say whether data are needed. If
 * ../shared is there, its list of types is compared one by one.
 */
#include "config.h"
#include "base/compiler.h"
#include "base/str.h"
#include "recipe/type_choice.h"
#include "tests/tap.h"

#include <stdbool.h>
#include <strings.h>

enum { MAX_TENSORS = 1000 };
static struct shape {
    char name[32], arch[32];
    int64_t layers, heads, kv, experts;
    bool tied;
    unsigned n;
    struct {
        char name[64];
        int64_t ne[GGUF_MAX_DIMS];
        uint32_t type;
    } t[MAX_TENSORS];
} shapes[32];
static unsigned n_shapes;

static struct shape *find_shape(const char *name)
{
    for (unsigned i = 0; i < n_shapes; i++)
        if (!strcmp(shapes[i].name, name))
            return &shapes[i];
    return NULL;
}

static uint64_t fnv1a(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * UINT64_C(0x100000001b3);
    return h;
}

/* Hash of words with blanks between them; b may be NULL. */
static uint64_t hash_text(const struct shape *s, const char *a, const char *b)
{
    uint64_t h = fnv1a(UINT64_C(0xcbf29ce484222325), s->name);
    h = fnv1a(fnv1a(h, " "), a);
    if (!b)
        return h;
    h = fnv1a(h, " ");
    for (; *b; b++) {
        const char c[2] = { *b >= 'A' && *b <= 'Z' ? (char)(*b + 32) : *b, 0 };
        h = fnv1a(h, c);
    }
    return h;
}

/* Types that a preset chooses for a shape. */
struct chosen {
    const char *type[MAX_TENSORS];
    uint64_t sum; /* sum of the hashes */
    bool needs;   /* needs importance data */
};

/* Choose types. false: a tensor gets no type, or one that does not fit its
 * rows. */
static bool choose_types(const struct shape *s, const struct gguf_recipe *r,
                         bool imatrix, struct chosen *out)
{
    struct gg_recipe_chooser c = { .recipe = r, .tied = s->tied };
    c.facts.arch = gg_str_z(s->arch);
    c.facts.var[GG_VAR_LAYERS] = c.facts.var[GG_VAR_N] = s->layers;
    c.facts.var[GG_VAR_HEADS] = s->heads;
    c.facts.var[GG_VAR_KV_HEADS] = s->kv;
    c.facts.var[GG_VAR_EXPERTS] = s->experts;
    c.facts.var[GG_VAR_IMATRIX] = imatrix;
    out->sum = 0;
    out->needs = false;
    for (unsigned i = 0; i < s->n; i++) {
        struct gg_recipe_choice choice;
        if (gg_recipe_choose_type(&c, s->t[i].name, s->t[i].ne, s->t[i].type,
                                  &choice, NULL) != GGUF_OK)
            return false;
        const struct gguf_dtype_info *t = gguf_dtype_find(choice.type);
        if (s->t[i].ne[0] % t->block_len)
            return false;
        out->needs |=
            !imatrix && choice.type != s->t[i].type &&
            gg_recipe_choose_needs_imatrix(r, choice.cls, choice.type);
        out->type[i] = t->name;
        out->sum += hash_text(s, s->t[i].name, t->name);
    }
    return true;
}

/* ---- the shapes ---- */

/* Tensors of a layer: the first one's index, and the number of further layers.
 */
static struct {
    unsigned first;
    int layer, more;
} block;

/* Repeat the tensors of the first layer for the others. */
static bool end_block(struct shape *s)
{
    const unsigned n = s ? s->n - block.first : 0;
    const unsigned prefix =
        (unsigned)snprintf(NULL, 0, "blk.%d.", block.layer);
    for (int il = 1; il <= block.more; il++)
        for (unsigned i = 0; i < n; i++) {
            if (s->n == MAX_TENSORS)
                return false;
            char rest[64];
            snprintf(rest, sizeof rest, "%.40s",
                     s->t[block.first + i].name + prefix);
            s->t[s->n] = s->t[block.first + i];
            snprintf(s->t[s->n++].name, sizeof s->t->name, "blk.%d.%.40s",
                     block.layer + il, rest);
        }
    block.layer = -1;
    block.more = 0;
    return true;
}

static bool read_in(struct shape *s, const char *p)
{
    int last;
    if (!s || !end_block(s))
        return false;
    block.first = s->n;
    if (!strcmp(p, "-"))
        return true;
    if (sscanf(p, "%d-%d", &block.layer, &last) != 2)
        return false;
    block.more = last - block.layer;
    return block.layer >= 0 && block.more >= 0;
}

static bool read_tensor(struct shape *s, const char *line)
{
    char name[64], type[16], prefix[24] = "";
    long long d[4] = { 1, 1, 1, 1 };
    if (!s || s->n == MAX_TENSORS ||
        sscanf(line, "%63s %15s %lld %lld %lld %lld", name, type, d, d + 1,
               d + 2, d + 3) < 3)
        return false;
    const struct gguf_dtype_info *t = gguf_dtype_find_name(type);
    if (!t)
        return false;
    if (block.layer >= 0)
        snprintf(prefix, sizeof prefix, "blk.%d.", block.layer);
    snprintf(s->t[s->n].name, sizeof s->t->name, "%s%.40s", prefix, name);
    for (int k = 0; k < GGUF_MAX_DIMS; k++)
        s->t[s->n].ne[k] = k < 4 ? d[k] : 1;
    s->t[s->n++].type = t->id;
    if (!strcmp(name, "output.weight"))
        s->tied = false;
    return true;
}

static bool read_shape(const char *line)
{
    struct shape *s = &shapes[n_shapes];
    long long n[4];
    if (n_shapes == GG_LEN(shapes) || (n_shapes && !end_block(s - 1)) ||
        sscanf(line, "shape %31s %31s %lld %lld %lld %lld", s->name, s->arch,
               n, n + 1, n + 2, n + 3) != 6)
        return false;
    s->layers = n[0];
    s->heads = n[1];
    s->kv = n[2];
    s->experts = n[3];
    s->tied = true;
    block.layer = -1;
    n_shapes++;
    return true;
}

/* ---- the digests ---- */

static struct digest {
    char recipe[32];
    bool imatrix;
    uint64_t sum;
    char odd[512];   /* " SHAPE! SHAPE? " */
    uint64_t listed; /* sum of the hashes of ../shared's types */
} digests[128];
static unsigned n_digests;

static bool read_digest(const char *line)
{
    struct digest *d = &digests[n_digests];
    char imatrix[8], sum[32];
    int at = 0;
    if (n_digests == GG_LEN(digests) ||
        sscanf(line, "types %31s %7s %31s%n", d->recipe, imatrix, sum, &at) !=
            3)
        return false;
    d->imatrix = !strcmp(imatrix, "yes");
    d->sum = strtoull(sum, NULL, 16);
    snprintf(d->odd, sizeof d->odd, "%s ", line + at);
    n_digests++;
    return true;
}

/* Mark of a shape: 0, '!' or '?'. */
static char is_odd(const struct digest *d, const struct shape *s)
{
    const size_t n = strlen(s->name);
    for (const char *p = d->odd; (p = strstr(p, s->name)) != NULL; p += n)
        if (p[-1] == ' ' && (p[n] == '!' || p[n] == '?'))
            return p[n];
    return 0;
}

static void check_digest(const struct digest *d)
{
    static struct chosen c;
    struct gguf_recipe *r;
    uint64_t sum = 0;
    bool fit = gguf_recipe_preset(&r, d->recipe, NULL, NULL) == GGUF_OK;
    for (unsigned i = 0; fit && i < n_shapes; i++) {
        const struct shape *s = &shapes[i];
        const char o = is_odd(d, s);
        fit = choose_types(s, r, d->imatrix, &c);
        if (!fit)
            printf("# %s\n", s->name);
        else if (o != '!')
            sum += c.sum + (c.needs && !o ? hash_text(s, "needs", NULL) : 0);
    }
    ok(fit && sum == d->sum, "%s, %s importance data: the types of %u shapes",
       d->recipe, d->imatrix ? "with" : "without", n_shapes);
    gguf_recipe_destroy(r);
}

static void check_carried(void)
{
    const char *top = getenv("srcdir");
    char path[4096], line[1024];
    bool good = true;
    snprintf(path, sizeof path, "%.4000s/tests/recipe/types.txt",
             top ? top : ".");
    FILE *f = fopen(path, "r");
    while (f && good && fgets(line, sizeof line, f)) {
        struct shape *s = n_shapes ? &shapes[n_shapes - 1] : NULL;
        line[strcspn(line, "\n")] = 0;
        good = !strncmp(line, "shape ", 6) ? read_shape(line)
               : !strncmp(line, "types ", 6)
                   ? end_block(s) && read_digest(line)
               : !strncmp(line, "in ", 3) ? read_in(s, line + 3)
                                          : read_tensor(s, line);
        if (!good)
            printf("# '%s'\n", line);
    }
    if (f)
        fclose(f);
    ok(good && n_shapes == 22 && n_digests == 67, "%u shapes, %u digests",
       n_shapes, n_digests);
    for (unsigned i = 0; i < n_digests; i++)
        check_digest(&digests[i]);
}

/* ---- golden/recipes, where it is: every type ---- */

/* Tensors of each shape in the order of ../shared's lists. */
static const char *order[32][MAX_TENSORS];
static unsigned n_order[32];

static void read_order(void)
{
    char name[64], tensor[64], line[1024];
    FILE *f = fopen(shared_path("golden/recipes/tensors.tsv"), "r");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%63s %*d %63s", name, tensor) != 2)
            continue;
        const struct shape *s = find_shape(name);
        for (unsigned i = 0; s && i < s->n; i++)
            if (!strcmp(s->t[i].name, tensor))
                order[s - shapes][n_order[s - shapes]++] = s->t[i].name;
    }
    if (f)
        fclose(f);
}

/* Compare with "type*count,type...". *sum: hash of that list. */
static bool same_types(const struct shape *s, const struct chosen *c,
                       const char *want, uint64_t *sum)
{
    const unsigned at = (unsigned)(s - shapes);
    int left = 0;
    char name[32] = "";
    for (unsigned i = 0; i < n_order[at]; i++) {
        if (!left) {
            size_t n = strcspn(want, "*,");
            snprintf(name, sizeof name, "%.*s", (int)n, want);
            want += n;
            left =
                *want == '*' ? (int)strtol(want + 1, (char **)&want, 10) : 1;
            want += *want == ',';
        }
        left--;
        unsigned k = 0;
        while (s->t[k].name != order[at][i])
            k++;
        *sum += hash_text(s, s->t[k].name, name);
        if (strcasecmp(name, c->type[k])) {
            printf("# %s %s: %s, not %s\n", s->name, s->t[k].name, c->type[k],
                   name);
            return false;
        }
    }
    return n_order[at] == s->n && !left && !*want;
}

static bool check_row(char *line)
{
    static struct chosen c;
    char *f[6] = { line };
    for (int i = 1; i < 6; i++) {
        f[i] = strchr(f[i - 1], '\t');
        if (!f[i])
            return false;
        *f[i]++ = 0;
    }
    struct gguf_recipe *r;
    const struct shape *s = find_shape(f[0]);
    const bool imatrix = !strcmp(f[2], "yes"), given_up = *f[3] == '1';
    struct digest *d = digests;
    while (d < digests + n_digests &&
           (strcmp(d->recipe, f[1]) || d->imatrix != imatrix))
        d++;
    if (!s || d == digests + n_digests ||
        gguf_recipe_preset(&r, f[1], NULL, NULL) != GGUF_OK)
        return false;
    bool good = choose_types(s, r, imatrix, &c);
    if (!given_up) {
        const bool needs = !strncmp(f[5], "needs_imatrix", 13);
        good = good && same_types(s, &c, f[4], &d->listed) &&
               (!strncmp(f[5], "fallbacks", 9) || c.needs == needs);
        d->listed += needs ? hash_text(s, "needs", NULL) : 0;
    }
    gguf_recipe_destroy(r);
    return good;
}

static void check_golden(void)
{
    static char line[65536];
    const char *path = shared_path("golden/recipes/recipes.tsv");
    FILE *f = path ? fopen(path, "r") : NULL;
    unsigned n = 0, bad = 0;
    if (!f)
        return;
    read_order();
    while (fgets(line, sizeof line, f)) {
        if (!strncmp(line, "shape\t", 6))
            continue;
        n++;
        if (!check_row(line)) {
            printf("# %s: wrong\n", line);
            bad++;
        }
    }
    fclose(f);
    ok(n > 1400 && !bad, "%u lists of types are the reference's", n);
    for (unsigned i = 0; i < n_digests; i++)
        bad += digests[i].listed != digests[i].sum;
    ok(!bad, "and their digests agree");
}

int main(void)
{
    check_carried();
    check_golden();
    return done_testing();
}
